"""Modules on inputs of many shapes: refused where PyTorch refuses, else of the shape it makes."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from layerscope.analysis.shapes import infer
from layerscope.errors import ModelError
from layerscope.formats.torch.capture import capture
from tests.formats.torch.torch_nets import nn, torch

SHAPES = (
    (4,), (3,), (2, 4), (2, 3), (1, 4), (2, 4, 4), (2, 3, 4), (1, 4, 6), (2, 4, 1), (2, 4, 2),
    (2, 16, 4), (4, 8, 8), (2, 4, 8, 8), (2, 3, 8, 8), (2, 6, 4, 4), (2, 8, 4, 4), (2, 4, 1, 1),
    (2, 4, 3, 3), (4, 6, 6, 6), (2, 4, 6, 6, 6), (2, 3, 4, 4, 4), (1, 2, 4, 4, 4, 4),
)  # fmt: skip
WHOLE = ((4,), (2, 4), (2, 4, 4), (2, 4, 8, 8), (2, 4, 6, 6, 6))


class Attention(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x: Any) -> Any:
        return self.inner(x, x, x)[0]


def ranks() -> dict[str, Any]:
    """What there is for one, two and three axes of space."""
    made: dict[str, Any] = {}
    for n in (1, 2, 3):
        kinds: dict[str, tuple[Any, ...]] = {
            f"Conv{n}d": (4, 6, 3, 1, 1),
            f"ConvTranspose{n}d": (4, 6, 2),
            f"BatchNorm{n}d": (4,),
            f"InstanceNorm{n}d": (4,),
            f"MaxPool{n}d": (2,),
            f"AvgPool{n}d": (2,),
            f"LPPool{n}d": (2, 2),
            f"AdaptiveAvgPool{n}d": (2,),
            f"AdaptiveMaxPool{n}d": (2,),
            f"ReflectionPad{n}d": (1,),
            f"ReplicationPad{n}d": (1,),
            f"ZeroPad{n}d": (1,),
            f"CircularPad{n}d": (1,),
            f"Dropout{n}d": (0.5,),
        }
        if n == 3:
            kinds.pop("LPPool3d")  # newer than the oldest PyTorch
        made |= {kind: partial(getattr(nn, kind), *told) for kind, told in kinds.items()}
        conv, norm = getattr(nn, f"Conv{n}d"), getattr(nn, f"InstanceNorm{n}d")
        made[f"Conv{n}d in groups"] = partial(conv, 4, 6, 2, 2, groups=2)
        made[f"Conv{n}d reflecting"] = partial(conv, 4, 6, 3, 1, 1, padding_mode="reflect")
        made[f"MaxPool{n}d and places"] = partial(
            getattr(nn, f"MaxPool{n}d"), 2, return_indices=True
        )
        made[f"AdaptiveAvgPool{n}d to one size"] = partial(
            getattr(nn, f"AdaptiveAvgPool{n}d"), (1,)
        )
        made[f"InstanceNorm{n}d with statistics"] = partial(
            norm, 4, affine=True, track_running_stats=True
        )
    return made


MODULES: dict[str, Any] = {
    **ranks(),
    **{
        f"Upsample {mode}": partial(nn.Upsample, scale_factor=2, mode=mode)
        for mode in ("nearest", "linear", "bilinear", "bicubic", "trilinear", "area")
    },
    "Upsample to a size": partial(nn.Upsample, size=(5, 5), mode="bilinear"),
    "GroupNorm": partial(nn.GroupNorm, 2, 4),
    "GroupNorm plain": partial(nn.GroupNorm, 3, 6, affine=False),
    "LayerNorm": partial(nn.LayerNorm, 4),
    "LayerNorm of two": partial(nn.LayerNorm, (4, 4)),
    "LayerNorm plain": partial(nn.LayerNorm, 4, elementwise_affine=False),
    "LayerNorm of two plain": partial(nn.LayerNorm, (4, 4), elementwise_affine=False),
    "RMSNorm": partial(nn.RMSNorm, 4),
    "RMSNorm plain": partial(nn.RMSNorm, 4, elementwise_affine=False),
    "Linear": partial(nn.Linear, 4, 5),
    "Linear without bias": partial(nn.Linear, 4, 5, bias=False),
    "Embedding": partial(nn.Embedding, 9, 5),
    "PReLU": partial(nn.PReLU, 4),
    "GLU": partial(nn.GLU, 1),
    "Softmax": partial(nn.Softmax, 2),
    "Softmax2d": nn.Softmax2d,
    "LogSoftmax": partial(nn.LogSoftmax, -3),
    "PixelShuffle": partial(nn.PixelShuffle, 2),
    "PixelUnshuffle": partial(nn.PixelUnshuffle, 2),
    "ChannelShuffle": partial(nn.ChannelShuffle, 2),
    "Flatten": partial(nn.Flatten, 2, 3),
    "Unflatten": partial(nn.Unflatten, 1, (2, 2)),
    "Fold": partial(nn.Fold, (4, 4), 2, stride=2),
    "Unfold": partial(nn.Unfold, 2),
    "LSTM": partial(nn.LSTM, 4, 3, 2, batch_first=True, bidirectional=True),
    "GRU": partial(nn.GRU, 4, 3),
    "RNN": partial(nn.RNN, 4, 3),
    "LSTMCell": partial(nn.LSTMCell, 4, 3),
    "GRUCell": partial(nn.GRUCell, 4, 3),
    "RNNCell": partial(nn.RNNCell, 4, 3),
    "TransformerEncoderLayer": partial(nn.TransformerEncoderLayer, 4, 2, 8, batch_first=True),
    "MultiheadAttention": Attention,
    "LocalResponseNorm": partial(nn.LocalResponseNorm, 3),
    **{
        kind.__name__: kind
        for kind in (nn.ReLU, nn.GELU, nn.SiLU, nn.Hardswish, nn.ELU, nn.LeakyReLU, nn.Softplus,
                     nn.Hardshrink, nn.LogSigmoid, nn.CELU, nn.SELU, nn.Mish, nn.ReLU6)
    },
}  # fmt: skip
# Kernels of whole numbers are missing on a processor alone, or there are some of narrow ones.
ELSEWHERE = ("MaxPool1d", "Upsample", "Fold", "Unfold")


def first(made: Any) -> Any:
    while isinstance(made, (tuple, list)):
        made = made[0]
    return made


def theirs(module: Any, x: Any) -> tuple[int, ...] | None:
    """The shape that PyTorch makes, None where it refuses."""
    try:
        with torch.no_grad():
            return tuple(first(module(x)).shape)
    except (RuntimeError, ValueError, IndexError, NotImplementedError, AssertionError):
        return None


def ours(module: Any, x: Any) -> tuple[int, ...] | None:
    """The shape that we tell, None where we refuse, naming the place and what it is given."""
    try:
        graph = capture(nn.Sequential(module), (x,))
    except ModelError as error:
        told = str(error)
    else:
        return infer(graph).tensors[graph.outputs[0]].shape
    assert "; in Sequential: 0" in told
    assert "x".join(map(str, x.shape)) in told
    return None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_refused_where_pytorch_refuses_it(name: str) -> None:
    kinds = ("float64",) if name.startswith(ELSEWHERE) else ("float64", "int64")
    cases = [(shape, "float32") for shape in SHAPES]
    cases += [(shape, kind) for shape in WHOLE for kind in kinds]
    made = set()
    for shape, kind in cases:
        module, x = MODULES[name]().eval(), torch.ones(shape, dtype=getattr(torch, kind))
        wanted = theirs(module, x)
        assert ours(module, x) == wanted, (shape, kind)
        made.add(wanted)
    assert made - {None} or name.endswith("to one size")  # of which there must be two or three
