"""Forwards that differentiate: the operators of their backward passes are counted."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

import layerscope
from layerscope.formats.torch.backward_calls import _convolution_backward
from tests.formats.torch.torch_nets import nn, torch

F = nn.functional
flop_registry = pytest.importorskip("torch.utils.flop_counter").flop_registry


class Forces(nn.Module):  # type: ignore[misc]
    """The gradient of a function of a linear layer."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.linear, self.function = nn.Linear(6, 6), function

    def forward(self, x: Any) -> Any:
        with torch.enable_grad():
            x = x.requires_grad_()
            energy = self.function(self.linear(x)).sum()
            return torch.autograd.grad(energy, x, create_graph=True)[0]


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "tanh": torch.tanh, "sigmoid": torch.sigmoid, "relu": F.relu, "elu": F.elu, "celu": F.celu,
    "selu": F.selu, "gelu": F.gelu, "silu": F.silu, "mish": F.mish, "softplus": F.softplus,
    "softmax": lambda x: x.softmax(-1), "log_softmax": lambda x: x.log_softmax(-1),
    "leaky_relu": F.leaky_relu, "hardtanh": F.hardtanh, "hardswish": F.hardswish,
    "hardsigmoid": F.hardsigmoid, "logsigmoid": F.logsigmoid, "softshrink": F.softshrink,
    "hardshrink": F.hardshrink, "threshold": lambda x: F.threshold(x, 0.0, 1.0), "glu": F.glu,
    "prelu": lambda x: F.prelu(x, torch.ones(1)),
    "layer_norm": lambda x: F.layer_norm(x, (6,)),
    "group_norm": lambda x: F.group_norm(x, 2),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "instance_norm": lambda x: F.instance_norm(x.view(1, 2, 3, 4)),
    "rms_norm": lambda x: F.rms_norm(x, (6,)),
    "mse_loss": lambda x: F.mse_loss(x, torch.zeros(4, 6)),
    "cross_entropy": lambda x: F.cross_entropy(x, torch.tensor([0, 1, 2, 3])),
    "slice": lambda x: x[:, 1:3], "det": lambda x: torch.linalg.det(x[:, :4]),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_in_a_forward_are_counted(name: str) -> None:
    """Beside the linear layer, which is run forwards and backwards, only `det` multiplies."""
    report = layerscope.analyze(Forces(FUNCTIONS[name]), input_data=torch.randn(4, 6))
    assert not report.coverage.unknown
    least = 2 * 4 * 6 * 6
    assert report.total_macs == least or (name == "det" and report.total_macs > least)
    assert report.total_params == 6 * 6 + 6


class Counter(torch.utils._python_dispatch.TorchDispatchMode):  # type: ignore[misc]
    """FlopCounterMode without its hooks on modules, which fail inside autograd.grad."""

    flops = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        formula = flop_registry.get(func._overloadpacket)
        if formula is not None:
            self.flops += formula(*args, **(kwargs or {}), out_val=out)
        return out


class Gradients(nn.Module):  # type: ignore[misc]
    """The gradients of a convolution by its input and parameters."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Any) -> Any:
        with torch.enable_grad():
            x = x.requires_grad_()
            y = self.layer(x).square().sum()
            return torch.autograd.grad(y, [x, *self.layer.parameters()])


CONVOLUTIONS = [
    (axes, transposed, kernel,
     {"stride": stride, "padding": pad, "dilation": dilation, "groups": groups})
    for axes, transposed, kernel, stride, pad, dilation, groups in product(
        (1, 2), (False, True), (1, 3), (1, 3), (0, 1), (1, 2), (1, 2)
    )
    if kernel > 1 or pad == 0
]  # fmt: skip


@pytest.mark.parametrize(("axes", "transposed", "kernel", "options"), CONVOLUTIONS)
def test_gradients_of_convolutions(
    axes: int, transposed: bool, kernel: int, options: dict[str, int]
) -> None:
    """Values of the steps are PyTorch's; so are figures, but of groups, where its formula errs.

    For the gradient of a grouped weight the formula counts each group with the channels of all.
    """
    layer = getattr(nn, f"Conv{'Transpose' * transposed}{axes}d")(4, 6, kernel, **options)
    x = torch.randn(2, 4, *(10, 9)[:axes])
    y = layer(x)
    grad, groups = torch.randn_like(y), options["groups"]
    rest = (layer.stride, layer.padding, layer.dilation, transposed, layer.output_padding, groups)
    args = (grad, x, layer.weight.detach(), [6], *rest, [True, True, True])
    wanted = torch.ops.aten.convolution_backward(*args)
    for got, want in zip(_convolution_backward(torch, *args), wanted, strict=True):
        assert torch.allclose(got, want, atol=1e-3, rtol=1e-4)
    report = layerscope.analyze(Gradients(layer), input_data=x)
    assert not report.coverage.unknown
    with Counter() as counter:
        Gradients(layer)(x.clone())
    forward = layerscope.analyze(layer, input_data=x).total_macs
    assert report.total_macs == 3 * forward
    if groups == 1:
        assert report.total_macs == counter.flops // 2
