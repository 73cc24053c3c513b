"""Forwards that call torch.func: derivatives, Jacobians and batched functions are counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import layerscope
from layerscope.ops import SPECS
from tests.formats.torch.torch_nets import nn, torch

func = pytest.importorskip("torch.func")
counter = pytest.importorskip("torch.utils.flop_counter")
pytestmark = pytest.mark.filterwarnings("ignore")

Transform = Callable[[Any, Any], Any]


def loss_of(module: Any) -> tuple[dict[str, Any], Callable[[Any, Any], Any]]:
    """The parameters of a module, and a loss as a function of them."""
    params = dict(module.named_parameters())
    return params, lambda params, x: func.functional_call(module, params, (x,)).pow(2).mean()


def grad(module: Any, x: Any) -> Any:
    params, loss = loss_of(module)
    return list(func.grad(loss)(params, x).values())


def grads_of_samples(module: Any, x: Any) -> Any:
    params, loss = loss_of(module)
    return list(func.vmap(func.grad(loss), in_dims=(None, 0))(params, x).values())


def vjp(module: Any, x: Any) -> Any:
    out, pull = func.vjp(module, x)
    return pull(torch.ones_like(out))[0]


def jvp(module: Any, x: Any) -> Any:
    return func.jvp(module, (x,), (torch.ones_like(x),))[1]


def hessian_product(module: Any, x: Any) -> Any:
    def slope(x: Any) -> Any:
        out, pull = func.vjp(lambda x: module(x).pow(3).sum(), x)
        return pull(torch.ones_like(out))[0]

    return func.jvp(slope, (x,), (torch.ones_like(x),))[1]


# Multiply-adds of Linear(8, 8) on 4 rows, or on one row where the transform takes one.
LINEAR = 4 * 8 * 8
TRANSFORMS: dict[str, tuple[Transform, int]] = {
    "vmap": (lambda module, x: func.vmap(module)(x), LINEAR),
    "grad": (grad, 3 * LINEAR),  # forward, gradient of the input (for the norm), of the weight
    "vmap of grad": (grads_of_samples, 3 * LINEAR),
    "vjp": (vjp, 2 * LINEAR),
    "jacrev": (lambda module, x: func.jacrev(module)(x[0]), 8 * 8 + 8 * 8 * 8),
    "jacfwd": (lambda module, x: func.jacfwd(module)(x[0]), 8 * 8 + 9 * 8 * 8),
    "jvp": (jvp, 3 * LINEAR),
}


class Transformed(nn.Module):  # type: ignore[misc]
    """A transform of a module."""

    def __init__(self, transform: Transform, module: Any) -> None:
        super().__init__()
        self.transform, self.module = transform, module

    def forward(self, x: Any) -> Any:
        return self.transform(self.module, x)


def counted(model: Any, x: Any) -> int | None:
    """Multiply-adds by PyTorch's counter; None where it fails inside of a transform."""
    try:
        with counter.FlopCounterMode(display=False) as counts:
            model(x)
    except RuntimeError:
        return None
    return int(counts.get_total_flops()) // 2


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_of_a_norm_and_a_linear_layer(name: str) -> None:
    """A layer norm returns its mean and deviation too, which only derivatives read."""
    transform, _ = TRANSFORMS[name]
    model = Transformed(transform, nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 8))).eval()
    report = layerscope.analyze(model, input_size=(4, 8))
    assert not report.coverage.unknown
    reference = counted(model, torch.randn(4, 8))
    expected = TRANSFORMS[name][1] if reference is None else reference
    assert report.total_macs == expected
    assert report.total_params == 8 * 8 + 3 * 8
    assert model(torch.randn(4, 8)) is not None  # the model still runs


IMAGE, ROWS = (2, 4, 6, 6), (4, 8)
MODULES: dict[str, tuple[Any, tuple[int, ...]]] = {
    "batch norm": (nn.BatchNorm2d(4), IMAGE), "group norm": (nn.GroupNorm(2, 4), IMAGE),
    "instance norm": (nn.InstanceNorm2d(4), IMAGE), "layer norm": (nn.LayerNorm(8), ROWS),
    "rms norm": (nn.RMSNorm(8), ROWS), "conv": (nn.Conv2d(4, 4, 3), IMAGE),
    "transposed conv": (nn.ConvTranspose2d(4, 4, 2), IMAGE), "prelu": (nn.PReLU(), ROWS),
    "gelu": (nn.GELU(), ROWS), "softmax": (nn.Softmax(-1), ROWS), "elu": (nn.ELU(), ROWS),
    "log softmax": (nn.LogSoftmax(-1), ROWS), "log sigmoid": (nn.LogSigmoid(), ROWS),
    "max pool": (nn.MaxPool2d(2), IMAGE), "average pool": (nn.AvgPool2d(2), IMAGE),
    "adaptive pool": (nn.AdaptiveAvgPool2d(2), IMAGE),
    "pool of volumes": (nn.AvgPool3d(2), (2, 4, 4, 4, 4)),
    "nearest": (nn.Upsample(scale_factor=2), IMAGE),
    "bilinear": (nn.Upsample(scale_factor=2, mode="bilinear"), IMAGE),
    "bicubic": (nn.Upsample(scale_factor=2, mode="bicubic"), IMAGE),
}  # fmt: skip


@pytest.mark.parametrize("transform", [jvp, vjp, hessian_product])
@pytest.mark.parametrize("name", MODULES)
def test_derivatives_of_layers_have_no_unknown_operator(name: str, transform: Transform) -> None:
    module, shape = MODULES[name]
    model = Transformed(transform, module).eval()
    report = layerscope.analyze(model, input_size=shape)
    assert not report.coverage.unknown
    reference = counted(model, torch.randn(shape))
    assert reference in (None, report.total_macs)


@pytest.mark.parametrize("name", ["average pool", "adaptive pool", "nearest", "bilinear"])
def test_gradients_of_pools_and_resizes_cost_what_training_counts(name: str) -> None:
    def pulled(module: Any, x: Any) -> Any:
        out, pull = func.vjp(module, x)
        return pull(out)[0]  # not a constant

    module, shape = MODULES[name]
    report = layerscope.analyze(Transformed(pulled, module).eval(), input_size=shape)
    trained = layerscope.analyze(nn.Sequential(module), input_size=shape)
    [layer] = [layer for layer in trained.layers if layer.cost.ops.add or layer.name == "0"]
    ops, _ = SPECS[layer.op].backward(trained.shapes.calls[layer.name])
    [gradient] = [layer for layer in report.layers if layer.op == "custom"]
    assert gradient.cost.ops == ops
    assert gradient.output == shape


class Moments(nn.Module):  # type: ignore[misc]
    """A forward that reads what a layer norm returns beside its result."""

    def forward(self, x: Any) -> Any:
        out, mean, deviation = torch.native_layer_norm(x, (8,), None, None, 1e-5)
        return out * deviation + mean


def test_results_beside_the_first_may_be_read() -> None:
    report = layerscope.analyze(Moments(), input_size=(4, 8))
    assert report.layers[-1].output == (4, 8)
