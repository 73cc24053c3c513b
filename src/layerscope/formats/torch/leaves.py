"""Modules that are one operation, and the call each of them makes.

A module of exactly such a type, without hooks or a forward of its own, is answered without entering
PyTorch. Of each: the operator, the arrays it holds, what else it is told (None: not answered here),
and how these make up the arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

Told = tuple[Any, ...]


def _after(x: Any, arrays: Told, told: Told) -> Told:
    return (x, *arrays, *told)


class Leaf(Struct, frozen=True):
    """How a type of module is answered."""

    operator: str
    told: Callable[[Any], Told | None]
    params: tuple[str, ...] = ()
    buffers: tuple[str, ...] = ()
    arguments: Callable[[Any, Told, Told], Told] = _after
    in_place: bool = False  # has an `inplace` that must be looked at


def _conv(m: Any) -> Told | None:
    if m.padding_mode != "zeros":
        return None
    return (m.stride, m.padding, m.dilation, m.groups)


def _conv_transpose(m: Any) -> Told | None:
    return (m.stride, m.padding, m.output_padding, m.groups, m.dilation)


def _batch_norm(m: Any) -> Told | None:
    if m.momentum is None or m._buffers.get("running_mean") is None:
        return None
    return (m.training, m.momentum, m.eps)


def _shaped(x: Any, arrays: Told, told: Told) -> Told:
    """What is told first stands before the arrays, the rest behind them."""
    return (x, told[0], *arrays, *told[1:])


def _nothing(m: Any) -> Told:
    return ()


def _max_pool(m: Any) -> Told | None:
    if m.return_indices:
        return None
    return (m.kernel_size, m.stride, m.padding, m.dilation, m.ceil_mode)


def _avg_pool(m: Any) -> Told | None:
    if getattr(m, "divisor_override", None) is not None:
        return None
    return (m.kernel_size, m.stride, m.padding, m.ceil_mode, m.count_include_pad)


def _adaptive(m: Any) -> Told | None:
    size = m.output_size
    if size is None or (not isinstance(size, int) and None in size):
        return None
    return (size,)


def _softmax(m: Any) -> Told | None:
    return None if m.dim is None else (m.dim,)


def _embedding(m: Any) -> Told | None:
    return () if m.max_norm is None and not m.sparse else None


def _layer_norm(m: Any) -> Told:
    return (tuple(m.normalized_shape), m.eps)


CONV = ("weight", "bias")
LEAVES: dict[str, Leaf] = {
    **{f"Conv{n}d": Leaf(f"conv{n}d", _conv, CONV) for n in (1, 2, 3)},
    **{f"ConvTranspose{n}d": Leaf(f"conv_transpose{n}d", _conv_transpose, CONV) for n in (1, 2, 3)},
    "Linear": Leaf("linear", _nothing, CONV),
    **{
        f"BatchNorm{n}d": Leaf("batch_norm", _batch_norm, CONV, ("running_mean", "running_var"))
        for n in (1, 2, 3)
    },
    "LayerNorm": Leaf("layer_norm", _layer_norm, CONV, arguments=_shaped),
    "GroupNorm": Leaf("group_norm", lambda m: (m.num_groups, m.eps), CONV, arguments=_shaped),
    "Embedding": Leaf(
        "embedding", _embedding, ("weight",), arguments=lambda x, arrays, told: (*arrays, x)
    ),
    **{f"MaxPool{n}d": Leaf(f"max_pool{n}d", _max_pool) for n in (1, 2, 3)},
    **{f"AvgPool{n}d": Leaf(f"avg_pool{n}d", _avg_pool) for n in (1, 2, 3)},
    **{f"AdaptiveAvgPool{n}d": Leaf(f"adaptive_avg_pool{n}d", _adaptive) for n in (1, 2, 3)},
    "ReLU": Leaf("relu", _nothing, in_place=True),
    "ReLU6": Leaf("hardtanh", lambda m: (m.min_val, m.max_val), in_place=True),
    "Hardtanh": Leaf("hardtanh", lambda m: (m.min_val, m.max_val), in_place=True),
    "SiLU": Leaf("silu", _nothing, in_place=True),
    "Hardswish": Leaf("hardswish", _nothing, in_place=True),
    "Hardsigmoid": Leaf("hardsigmoid", _nothing, in_place=True),
    "LeakyReLU": Leaf("leaky_relu", lambda m: (m.negative_slope,), in_place=True),
    "ELU": Leaf("elu", lambda m: (m.alpha,), in_place=True),
    "Mish": Leaf("mish", _nothing, in_place=True),
    "Sigmoid": Leaf("sigmoid", _nothing),
    "Tanh": Leaf("tanh", _nothing),
    "GELU": Leaf("gelu", lambda m: (m.approximate,)),
    "Softmax": Leaf("softmax", _softmax),
    "Dropout": Leaf("dropout", lambda m: (m.p, m.training), in_place=True),
}


# Types whose line of a module print their node tells as well.
PRINTED = frozenset((
    "Conv1d", "Conv2d", "Conv3d", "Linear", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d",
    "LayerNorm", "MaxPool2d", "ReLU", "ReLU6", "SiLU", "Sigmoid", "GELU", "Dropout", "Hardswish",
))  # fmt: skip


def exact_leaves(torch: Any) -> dict[Any, Leaf]:
    """The types themselves, but for those whose forward somebody has put another in place of."""
    found = {}
    home = torch.nn.Module.__module__.partition(".")[0] + ".nn."
    for name, leaf in LEAVES.items():
        kind = getattr(torch.nn, name, None)
        if kind is not None and kind.forward.__module__.startswith(home):
            found[kind] = leaf
    return found
