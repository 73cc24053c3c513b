"""The notation torchsummary against what the installed torchsummary 1.5.1 prints."""

from __future__ import annotations

import contextlib
import inspect
import io
from typing import Any

import pytest

from layerscope import analyze
from layerscope.notations import write
from layerscope.notations.torchsummary import CONTAINERS
from layerscope.zoo import NAMES, build
from tests.conventions.peers.models import the_torchvision
from tests.formats.torch.torch_nets import nn, torch

torchsummary: Any = pytest.importorskip("torchsummary", reason="torchsummary is not installed")
Size = tuple[int, ...]


def printed(model: Any, sizes: list[Size]) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), torch.no_grad():
        torchsummary.summary(model, sizes, device="cpu")
    return out.getvalue()


def check(model: Any, *sizes: Size) -> None:
    data = tuple(torch.zeros(2, *size) for size in sizes)
    assert write(analyze(model, input_data=data), "torchsummary") == printed(model, list(sizes))


class Block(nn.Module):  # type: ignore[misc]
    """A block with a layer that is called twice, and a sum after its last layer."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)
        self.act = nn.PReLU(channels)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: Any) -> Any:
        return self.act(self.drop(self.norm(self.conv(self.act(x)))) + x)


class Scaled(nn.Module):  # type: ignore[misc]
    """Its own weight, without a module for the product."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))
        self.offset = nn.Parameter(torch.zeros(features))

    def forward(self, x: Any) -> Any:
        return x * self.weight + self.offset


class Normed(nn.Sequential):  # type: ignore[misc]
    """A class derived from nn.Sequential has no row."""


class MLP(nn.Module):  # type: ignore[misc]
    """Has a row, other than torchvision's class of this name."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 5)

    def forward(self, x: Any) -> Any:
        return self.layer(x)


class Two(nn.Module):  # type: ignore[misc]
    """Two inputs, and a GRU, which returns two tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(6, 8), nn.Linear(6, 8, bias=False)
        self.gru = nn.GRU(8, 5, batch_first=True)

    def forward(self, x: Any, y: Any) -> Any:
        return self.gru(self.a(x) + self.b(y))[0]


class Pair(nn.Module):  # type: ignore[misc]
    """A block that returns a tuple."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(4, 3), nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        return self.left(x), self.right(x)


class Joined(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.pair = Pair()

    def forward(self, x: Any) -> Any:
        left, right = self.pair(x)
        return left + right


def frozen() -> Any:
    model = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 6), nn.Linear(6, 2))
    model[0].weight.requires_grad = False
    model[2].bias.requires_grad = False
    return model


SMALL: dict[str, tuple[Any, list[Size]]] = {
    "layers": (
        lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 4)),
        [(3, 8, 8)],
    ),
    "blocks": (
        lambda: nn.Sequential(nn.Conv2d(3, 8, 3), Block(8), nn.Sequential(Block(8), Block(8))),
        [(3, 8, 8)],
    ),
    "sequential class": (
        lambda: nn.Sequential(Normed(nn.Conv1d(4, 6, 3), nn.BatchNorm1d(6)), nn.GELU()),
        [(4, 9)],
    ),
    "own weight": (lambda: nn.Sequential(nn.Linear(4, 5), Scaled(5)), [(4,)]),
    "block named as a container": (lambda: nn.Sequential(MLP(), nn.ReLU()), [(4,)]),
    "frozen": (frozen, [(4,)]),
    "two inputs": (Two, [(7, 6), (7, 6)]),
    "pair": (Joined, [(4,)]),
    "transposed": (
        lambda: nn.Sequential(nn.ConvTranspose2d(3, 4, 2, stride=2), nn.Upsample(scale_factor=2)),
        [(3, 4, 4)],
    ),
    "wide name": (
        lambda: nn.Sequential(nn.Conv3d(1, 2, 2), nn.AdaptiveAvgPool3d((1, 1, 1))),
        [(1, 4, 4, 4)],
    ),
}


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("training", [False, True])
def test_small_models(name: str, training: bool) -> None:
    make, sizes = SMALL[name]
    check(make().train(training), *sizes)


@pytest.mark.parametrize("name", ["resnet18", "vgg16", "mobilenet_v2", "squeezenet1_0"])
def test_torchvision(name: str) -> None:
    check(getattr(the_torchvision().models, name)(weights=None).eval(), (3, 224, 224))


class Tensors(list[Any]):
    """A list of tensors that has a size, which torchsummary asks of the first argument."""

    def size(self) -> Any:
        return self[0].size()


def test_densenet(monkeypatch: pytest.MonkeyPatch) -> None:
    """torchsummary fails on the lists that densenet's layers take; with a size it does not."""
    densenet = the_torchvision().models.densenet
    model = densenet.densenet121(weights=None).eval()
    text = write(analyze(model, input_size=(2, 3, 224, 224)), "torchsummary")
    with pytest.raises(AttributeError, match="'list' object has no attribute 'size'"):
        printed(model, [(3, 224, 224)])

    def forward(self: Any, x: Any) -> Any:
        features = Tensors([x])
        for layer in self.values():
            features.append(layer(features))
        return torch.cat(features, 1)

    monkeypatch.setattr(densenet._DenseBlock, "forward", forward)
    fresh = densenet.densenet121(weights=None).eval()  # the failed run left its hooks on the other
    assert text == printed(fresh, [(3, 224, 224)])


@pytest.mark.parametrize("name", ["alexnet", "vgg16", "resnet18", "mobilenet_v2", "squeezenet1_0"])
def test_zoo_networks_print_what_torchvision_s_do(name: str) -> None:
    model = getattr(the_torchvision().models, name)(weights=None).eval()
    assert write(analyze(name), "torchsummary") == printed(model, [(3, 224, 224)])


def test_an_identity_has_no_row() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Identity())
    text = write(analyze(model, input_size=(2, 4)), "torchsummary")
    assert "Identity" in printed(model, [(4,)])
    assert "Identity" not in text
    assert "Total params: 20" in text


def test_container_classes_are_torchvision_s() -> None:
    """The classes that zoo networks have are derived from nn.Sequential in torchvision, too."""
    torchvision = the_torchvision()
    places = [each for each in vars(torchvision.models).values() if inspect.ismodule(each)]
    found = {
        name: issubclass(each, nn.Sequential)
        for place in (*places, torchvision.ops.misc)
        for name, each in vars(place).items()
        if inspect.isclass(each) and issubclass(each, nn.Module)
    }
    used = {kind for name in NAMES for kind in build(name).modules.values()}
    for kind in used & set(found):
        assert (kind in CONTAINERS) == found[kind], kind
