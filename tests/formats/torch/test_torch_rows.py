"""Modules that others run in a row, and code that puts its hands on what is in it."""

from __future__ import annotations

from typing import Any

import pytest

import layerscope
from layerscope.errors import ModelError
from layerscope.formats.torch.capture import capture
from tests.formats.torch.test_torch_capture import states
from tests.formats.torch.torch_nets import nn, torch


class Twice(nn.Module):  # type: ignore[misc]
    def forward(self, x: Any) -> Any:
        return x + x


class Backwards(nn.Sequential):  # type: ignore[misc]
    def __iter__(self) -> Any:
        return iter(list(self._modules.values())[::-1])


class Doubled(nn.Sequential):  # type: ignore[misc]
    def forward(self, x: Any) -> Any:
        return super().forward(super().forward(x))


class Named(nn.Sequential):  # type: ignore[misc]
    """A row under another name, as torchvision has some."""


class Viewed(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.row = nn.Sequential(nn.ReLU(inplace=True), nn.Sigmoid())

    def forward(self, x: Any) -> Any:
        y = x * 2
        half = self.row(y[:, :2])
        return half, y


def conv() -> Any:
    return nn.Conv2d(4, 4, 3, padding=1)


ROWS = {
    "plain": lambda: nn.Sequential(conv(), nn.BatchNorm2d(4), nn.ReLU()),
    "in place": lambda: nn.Sequential(conv(), nn.ReLU(inplace=True), nn.Dropout(inplace=True)),
    "in place first": lambda: nn.Sequential(nn.ReLU(inplace=True), conv()),
    "another in between": lambda: nn.Sequential(conv(), Twice(), nn.ReLU(), Twice(), conv()),
    "nested": lambda: nn.Sequential(nn.Sequential(conv(), nn.ReLU()), Named(conv(), nn.GELU())),
    "empty": lambda: nn.Sequential(conv(), nn.Sequential(), nn.ReLU()),
    "backwards": lambda: nn.Sequential(Backwards(conv(), nn.ReLU()), nn.Sigmoid()),
    "doubled": lambda: nn.Sequential(Doubled(conv(), nn.ReLU()), nn.Sigmoid()),
    "the same again": lambda: nn.Sequential(*[conv()] * 3),
    "of a view": Viewed,
}


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("kind", ROWS)
def test_rows_are_as_they_run(kind: str, device: str, training: bool) -> None:
    with torch.device(device):
        net = ROWS[kind]().train(training)
        x = torch.zeros(2, 4, 8, 8)
    short = capture(net, (x,))
    assert short == capture(net, (x,), shortcuts=False)
    assert layerscope.summary(net, input_data=(x,), verbose=0).coverage.unknown == {}


def test_a_hooked_row_is_run() -> None:
    net = nn.Sequential(nn.Sequential(conv(), nn.ReLU()), nn.Sigmoid())
    net[0].register_forward_hook(lambda module, given, made: made * 2)
    assert [node.op for node in capture(net, (torch.zeros(1, 4, 8, 8),)).nodes] == [
        "conv", "relu", "mul", "sigmoid",
    ]  # fmt: skip


def test_what_fails_in_a_row_is_named() -> None:
    net = nn.Sequential(nn.Sequential(conv(), nn.ReLU(), nn.Conv2d(5, 4, 3)))
    with pytest.raises(ModelError, match=r"Sequential: 0\.2 \(Conv2d\) on 1x4x8x8 fp32"):
        capture(net, (torch.zeros(1, 4, 8, 8),))


class Meddling(nn.Module):  # type: ignore[misc]
    """Changes what others hold while it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.row = nn.Sequential(conv(), nn.BatchNorm2d(4), nn.Linear(8, 8))

    def forward(self, x: Any) -> Any:
        first, norm, last = self.row
        first.stride = (2, 2)
        first.padding = (0, 0)
        first.weight = nn.Parameter(torch.zeros(2, 4, 1, 1))
        first.bias = None
        first.more = [1]
        norm.running_mean = torch.ones(4)
        del last.weight
        return first(x)


@pytest.mark.parametrize("shortcuts", [True, False])
def test_what_a_forward_changes_in_others_is_put_back(shortcuts: bool) -> None:
    net = Meddling()
    before = states(net)
    graph = capture(net, (torch.zeros(1, 4, 8, 8),), shortcuts=shortcuts)
    assert states(net) == before
    assert graph == capture(net, (torch.zeros(1, 4, 8, 8),), shortcuts=not shortcuts)
    report = layerscope.analyze(graph)
    assert report.tensors[graph.outputs[0]].shape == (1, 2, 4, 4)
    assert report.total_macs == 2 * 4 * 4 * 4


class Calling(nn.Module):  # type: ignore[misc]
    """Has a call of its own, which PyTorch's does not stand in front of."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __call__(self, x: Any) -> Any:
        self.count += 1
        return x.tanh()


@pytest.mark.parametrize("inner", [False, True])
def test_a_call_of_its_own_is_put_back_too(inner: bool) -> None:
    own = Calling()
    net = nn.Sequential(nn.ReLU(), own) if inner else own
    assert [node.op for node in capture(net, (torch.zeros(3),)).nodes][-1] == "tanh"
    assert own.count == 0


@pytest.mark.parametrize("make", ["conv", "transposed", "strided", "group norm"])
def test_integers_of_numpy_in_a_module_give_plain_figures(make: str) -> None:
    numpy = pytest.importorskip("numpy")
    n = numpy.int64
    layer = {
        "conv": lambda: nn.Conv1d(8, 8, 3, groups=n(2)),
        "transposed": lambda: nn.ConvTranspose1d(8, 8, 3, groups=n(1)),
        "strided": lambda: nn.Conv1d(8, 8, n(3), n(2), n(1), n(1)),
        "group norm": lambda: nn.GroupNorm(n(2), 8),
    }[make]()
    report = layerscope.summary(nn.Sequential(layer, nn.ReLU()), (1, 8, 9), verbose=0)
    figures = [report.total_macs, report.total_flops, *(row.activations for row in report.layers)]
    assert {type(figure) for figure in figures} == {int}
    assert {type(size) for row in report.layers for size in row.output or ()} == {int}
    assert report.to_json()
