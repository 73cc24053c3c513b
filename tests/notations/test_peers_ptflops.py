"""The notation ptflops against what the installed ptflops 0.7.5 prints. Run by make test-peers."""

from __future__ import annotations

import io
from typing import Any

import pytest

from layerscope import analyze
from layerscope.notations import write
from tests.conventions.peers.models import the_torchvision
from tests.formats.torch.torch_nets import nn, torch

the_torchvision()  # ptflops imports it, which some builds of torch need help with
ptflops: Any = pytest.importorskip("ptflops", reason="ptflops is not installed")
pytestmark = pytest.mark.peers
Size = tuple[int, ...]


def printed(model: Any, size: Size) -> str:
    text = io.StringIO()
    with torch.no_grad():
        ptflops.get_model_complexity_info(model, size, print_per_layer_stat=True, ost=text)
    return text.getvalue()


def check(model: Any, size: Size) -> None:
    report = analyze(model.eval(), input=(1, *size), like="ptflops")
    assert write(report, "ptflops") == printed(model, size)


class Twice(nn.Module):  # type: ignore[misc]
    """A module that is called twice, functions, and a module without a rule that has parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.act = nn.SiLU()
        self.blocks = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])
        self.table = nn.Bilinear(8, 8, 4)

    def forward(self, x: Any) -> Any:
        x = nn.functional.relu(self.act(self.fc(self.fc(x))))
        for block in self.blocks:
            x = block(x)
        return self.table(x, x)


SMALL: dict[str, tuple[Any, Size]] = {
    "layers": (
        lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 4)),
        (3, 8, 8),
    ),
    "no parameters": (lambda: nn.Sequential(nn.AvgPool2d(2), nn.ReLU(inplace=True)), (3, 8, 8)),
    "norms": (
        lambda: nn.Sequential(nn.BatchNorm2d(4), nn.GroupNorm(2, 4), nn.LayerNorm(8), nn.PReLU()),
        (4, 8, 8),
    ),
    "nested": (lambda: nn.Sequential(nn.Sequential(nn.Linear(4, 2000)), nn.Dropout()), (4,)),
    "twice": (Twice, (8,)),
    "frozen": (lambda: nn.Sequential(nn.Linear(4, 4).requires_grad_(False), nn.Linear(4, 2)), (4,)),
}


@pytest.mark.parametrize("name", SMALL)
def test_small_models(name: str) -> None:
    make, size = SMALL[name]
    check(make(), size)


NAMES = [
    "alexnet", "resnet18", "vgg11_bn", "mobilenet_v2", "densenet121", "squeezenet1_0",
    "efficientnet_b0", "convnext_tiny", "vit_b_32",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_torchvision(name: str) -> None:
    check(getattr(the_torchvision().models, name)(weights=None), (3, 224, 224))


@pytest.mark.parametrize("name", ["alexnet", "vgg16", "resnet18", "mobilenet_v2", "squeezenet1_0"])
def test_zoo_networks_print_what_torchvision_s_do(name: str) -> None:
    model = getattr(the_torchvision().models, name)(weights=None).eval()
    expected = printed(model, (3, 224, 224))
    assert write(analyze(name, like="ptflops"), "ptflops") == expected
