"""The notation torchinfo against what the installed torchinfo 1.8 prints."""

from __future__ import annotations

from typing import Any

import pytest

from layerscope import analyze
from layerscope.notations import write
from tests.conventions.peers.models import the_torchvision
from tests.formats.torch.torch_nets import nn, torch
from tests.notations.test_torch_notation_torchsummary import SMALL, Size

torchinfo: Any = pytest.importorskip("torchinfo", reason="torchinfo is not installed")
UNITS = {"TERABYTES": "T", "GIGABYTES": "G", "MEGABYTES": "M"}


def printed(model: Any, data: tuple[Any, ...]) -> str:
    text = f"{torchinfo.summary(model, input_data=data, verbose=0, mode='eval')}\n"
    for name, letter in UNITS.items():  # since Python 3.11 a str Enum prints its name
        text = text.replace(f"(Units.{name})", f"({letter})")
    return text


def check(model: Any, *sizes: Size) -> None:
    data = tuple(torch.zeros(2, *size) for size in sizes)
    report = analyze(model.eval(), input_data=data, like="torchinfo")
    assert write(report, "torchinfo") == printed(model, data)


@pytest.mark.parametrize("name", SMALL)
def test_small_models(name: str) -> None:
    make, sizes = SMALL[name]
    check(make(), *sizes)


class Looped(nn.Module):  # type: ignore[misc]
    """A list of modules, one of which is called twice, and a tied weight."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList([nn.Linear(8, 8), nn.LayerNorm(8)])
        self.last = nn.Linear(8, 8, bias=False)
        self.last.weight = self.parts[0].weight

    def forward(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return self.last(self.parts[0](x))


def test_list_and_tied_weight() -> None:
    check(Looped(), (8,))


NAMES = ["alexnet", "resnet18", "vgg16_bn", "mobilenet_v2", "densenet121", "squeezenet1_0"]


@pytest.mark.parametrize("name", NAMES)
def test_torchvision(name: str) -> None:
    check(getattr(the_torchvision().models, name)(weights=None), (3, 224, 224))


@pytest.mark.parametrize("name", ["alexnet", "vgg16", "resnet18", "mobilenet_v2", "squeezenet1_0"])
def test_zoo_networks_print_what_torchvision_s_do(name: str) -> None:
    model = getattr(the_torchvision().models, name)(weights=None).eval()
    expected = printed(model, (torch.zeros(1, 3, 224, 224),))
    assert write(analyze(name, like="torchinfo"), "torchinfo") == expected
