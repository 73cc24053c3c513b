"""The notation fvcore against what the installed fvcore 0.1.5 prints.

Run by make test-peers. fvcore indents names by `tabulate.PRESERVE_WHITESPACE`, which tabulate 0.10
no longer reads: it has an argument instead, which is given here.
"""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

import pytest

from layerscope import analyze
from layerscope.notations import write
from tests.conventions.peers.models import the_torchvision
from tests.formats.torch.torch_nets import nn, torch

fvcore: Any = pytest.importorskip("fvcore.nn", reason="fvcore is not installed")
pytestmark = pytest.mark.peers
statistics: Any = fvcore.print_model_statistics
Size = tuple[int, ...]


def printed(model: Any, data: tuple[Any, ...]) -> str:
    tabulate = statistics.tabulate.tabulate
    keeps = "preserve_whitespace" in inspect.signature(tabulate).parameters
    options = {"preserve_whitespace": True} if keeps else {}
    with torch.no_grad(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(statistics.tabulate, "tabulate", partial(tabulate, **options))
        table: str = fvcore.flop_count_table(fvcore.FlopCountAnalysis(model, data))
    return f"{table}\n"


def check(model: Any, *sizes: Size) -> None:
    data = tuple(torch.zeros(1, *size) for size in sizes)
    report = analyze(model.eval(), input_data=data, like="fvcore")
    assert write(report, "fvcore") == printed(model, data)


class Scaled(nn.Module):  # type: ignore[misc]
    """Its own parameters, and a module that is never called."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 200))
        self.gain = nn.Parameter(torch.ones(200))
        self.unused = nn.Linear(5, 6)
        self.act = nn.ReLU()

    def forward(self, x: Any) -> Any:
        return self.act(self.inner(x)) * self.gain


class Looped(nn.Module):  # type: ignore[misc]
    """A list of modules, one of which is called twice, and a tied weight."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList([nn.Linear(8, 8), nn.LayerNorm(8), nn.Identity()])
        self.last = nn.Linear(8, 8, bias=False)
        self.last.weight = self.parts[0].weight

    def forward(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return self.last(self.parts[0](x))


SMALL: dict[str, tuple[Any, Size]] = {
    "layers": (
        lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 4)),
        (3, 8, 8),
    ),
    "one module": (lambda: nn.Linear(40, 50), (40,)),
    "one child": (lambda: nn.Sequential(nn.Sequential(nn.Linear(40, 50))), (40,)),
    "plain numbers": (lambda: nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2)), (2,)),
    "no parameters": (lambda: nn.Sequential(nn.AvgPool2d(2), nn.ReLU()), (3, 8, 8)),
    "deep": (
        lambda: nn.Sequential(nn.Sequential(nn.Sequential(nn.Sequential(nn.Linear(4, 99))))),
        (4,),
    ),
    "deeper than the table": (
        lambda: nn.Sequential(
            nn.ReLU(),
            nn.Sequential(
                nn.ReLU(), nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 9)))
            ),
            nn.BatchNorm1d(9),
        ),
        (4,),
    ),
    "own parameters": (Scaled, (4,)),
    "list": (Looped, (8,)),
}


@pytest.mark.parametrize("name", SMALL)
def test_small_models(name: str) -> None:
    make, size = SMALL[name]
    check(make(), size)


NAMES = ["alexnet", "resnet18", "vgg16_bn", "mobilenet_v2", "densenet121", "googlenet", "swin_t"]


@pytest.mark.parametrize("name", NAMES)
def test_torchvision(name: str) -> None:
    options = {"aux_logits": False, "init_weights": False} if name == "googlenet" else {}
    check(getattr(the_torchvision().models, name)(weights=None, **options), (3, 224, 224))


@pytest.mark.parametrize("name", ["alexnet", "vgg16", "resnet18", "mobilenet_v2", "squeezenet1_0"])
def test_zoo_networks_print_what_torchvision_s_do(name: str) -> None:
    model = getattr(the_torchvision().models, name)(weights=None).eval()
    expected = printed(model, (torch.zeros(1, 3, 224, 224),))
    assert write(analyze(name, like="fvcore"), "fvcore") == expected
