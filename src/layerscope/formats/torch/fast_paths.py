"""Modules that are one operation, captured from their attributes without running them.

A module of exactly such a class, without hooks or a forward of its own, needs no call of PyTorch.
For each class: the operator, the attributes and parameters that it passes, and how these become
the arguments of the operator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from layerscope.formats.torch.torch_types import Args, Torch

if TYPE_CHECKING:
    from torch.nn import Module

    from layerscope.formats.torch.lowering import TensorRef
    from layerscope.formats.torch.tensors import TensorMeta

    Input = TensorRef | TensorMeta

Forward = Callable[..., object]
# (input, parameters, attributes) -> arguments of the operator; None: the module must be run
Arguments = Callable[[Any, Args, Args], Args | None]


def _after(x: Input, params: Args, attrs: Args) -> Args:
    return (x, *params, *attrs)


class FastPath:
    """How a class of modules is captured."""

    __slots__ = (
        "arguments", "attrs", "buffers", "in_place", "keeps_shape", "operator", "params",
        "shape_key",
    )  # fmt: skip

    def __init__(
        self,
        operator: str,
        attrs: str = "",
        params: str = "",
        *,
        arguments: Arguments = _after,
        shape_key: Arguments | None = None,
    ) -> None:
        self.operator = operator
        self.attrs = _getter(attrs)
        self.params = _getter(params)
        self.buffers = _getter(BUFFERS.get(operator, ""))
        self.arguments = arguments
        self.shape_key = shape_key  # the parts of its shapes that its node and result depend on
        self.in_place = operator in MAY_BE_IN_PLACE  # has an attribute `inplace`
        self.keeps_shape = operator in KEEPS_SHAPE


def _getter(names: str) -> Callable[[Mapping[str, Any]], Args] | None:
    """A function that gets all of these items at once; None for none."""
    each = names.split()
    if len(each) == 1:
        [one] = each
        return lambda source: (source[one],)
    getter: Callable[[Mapping[str, Any]], Args] | None = itemgetter(*each) if each else None
    return getter


def _conv(x: Input, params: Args, attrs: Args) -> Args | None:
    mode, *rest = attrs
    return (x, *params, *rest) if mode == "zeros" else None


def _conv_shape_key(x: Input, params: Args, attrs: Args) -> Args | None:
    """All sizes but the input channels, which must be those of the weight."""
    size, weight = x.shape, params[0].shape
    if attrs[-1] != 1 or len(size) != len(weight) or size[1] != weight[1]:
        return None
    return (size[0], size[2:], weight[0], weight[2:])


def _linear_shape_key(x: Input, params: Args, attrs: Args) -> Args | None:
    weight = params[0].shape
    return (x.shape[:-1], weight[0]) if len(weight) == 2 and x.shape[-1:] == weight[1:] else None


def _batch_norm(rank: int) -> Arguments:
    axes = (2, 3) if rank == 1 else (rank + 2,)

    def arguments(x: Input, params: Args, attrs: Args) -> Args | None:
        # without momentum or statistics it is counted otherwise; of another rank it is refused
        if attrs[1] is None or params[2] is None or len(x.shape) not in axes:
            return None
        return (x, *params, *attrs)

    return arguments


def _shaped(x: Input, params: Args, attrs: Args) -> Args:
    """The first attribute before the parameters, the others after them."""
    return (x, attrs[0], *params, *attrs[1:])


def _max_pool(x: Input, params: Args, attrs: Args) -> Args | None:
    indices, *rest = attrs
    return None if indices else (x, *rest)


def _avg_pool(x: Input, params: Args, attrs: Args) -> Args | None:
    divisor, *rest = attrs
    return (x, *rest) if divisor is None else None


def _adaptive(x: Input, params: Args, attrs: Args) -> Args | None:
    size = attrs[0]
    if size is None or (not isinstance(size, int) and None in size):
        return None
    return (x, size)


def _softmax(x: Input, params: Args, attrs: Args) -> Args | None:
    return None if attrs[0] is None else (x, *attrs)


def _embedding(x: Input, params: Args, attrs: Args) -> Args | None:
    longest, sparse = attrs
    return (*params, x) if longest is None and not sparse else None


MAY_BE_IN_PLACE = frozenset((
    "relu", "hardtanh", "silu", "hardswish", "hardsigmoid", "leaky_relu", "elu", "mish", "dropout",
))  # fmt: skip
# With equal attributes they have the same node for any shape of one rank, and return that shape.
KEEPS_SHAPE = frozenset((*MAY_BE_IN_PLACE, "sigmoid", "tanh", "gelu", "batch_norm"))
WEIGHT_BIAS = "weight bias"
BUFFERS = {"batch_norm": "running_mean running_var"}  # passed after the parameters
WINDOW = "kernel_size stride padding"
FAST_PATHS: dict[str, FastPath] = {
    **{
        f"Conv{n}d": FastPath(
            f"conv{n}d", "padding_mode stride padding dilation groups", WEIGHT_BIAS,
            arguments=_conv, shape_key=_conv_shape_key,
        )
        for n in (1, 2, 3)
    },
    **{
        f"ConvTranspose{n}d": FastPath(
            f"conv_transpose{n}d", "stride padding output_padding groups dilation", WEIGHT_BIAS
        )
        for n in (1, 2, 3)
    },
    "Linear": FastPath("linear", "", WEIGHT_BIAS, shape_key=_linear_shape_key),
    **{
        f"BatchNorm{n}d": FastPath(
            "batch_norm", "training momentum eps", WEIGHT_BIAS,
            arguments=_batch_norm(n),
        )
        for n in (1, 2, 3)
    },
    "LayerNorm": FastPath("layer_norm", "normalized_shape eps", WEIGHT_BIAS, arguments=_shaped),
    "GroupNorm": FastPath("group_norm", "num_groups eps", WEIGHT_BIAS, arguments=_shaped),
    "Embedding": FastPath("embedding", "max_norm sparse", "weight", arguments=_embedding),
    **{
        f"MaxPool{n}d": FastPath(
            f"max_pool{n}d", f"return_indices {WINDOW} dilation ceil_mode", arguments=_max_pool
        )
        for n in (1, 2, 3)
    },
    "AvgPool1d": FastPath("avg_pool1d", f"{WINDOW} ceil_mode count_include_pad"),
    **{
        f"AvgPool{n}d": FastPath(
            f"avg_pool{n}d", f"divisor_override {WINDOW} ceil_mode count_include_pad",
            arguments=_avg_pool,
        )
        for n in (2, 3)
    },
    **{
        f"AdaptiveAvgPool{n}d": FastPath(
            f"adaptive_avg_pool{n}d", "output_size", arguments=_adaptive
        )
        for n in (1, 2, 3)
    },
    "ReLU": FastPath("relu"),
    "ReLU6": FastPath("hardtanh", "min_val max_val"),
    "Hardtanh": FastPath("hardtanh", "min_val max_val"),
    "SiLU": FastPath("silu"),
    "Hardswish": FastPath("hardswish"),
    "Hardsigmoid": FastPath("hardsigmoid"),
    "LeakyReLU": FastPath("leaky_relu", "negative_slope"),
    "ELU": FastPath("elu", "alpha"),
    "Mish": FastPath("mish"),
    "Sigmoid": FastPath("sigmoid"),
    "Tanh": FastPath("tanh"),
    "GELU": FastPath("gelu", "approximate"),
    "Softmax": FastPath("softmax", "dim", arguments=_softmax),
    "Dropout": FastPath("dropout", "p training"),
}  # fmt: skip


# Classes whose line in a printed model can be restored from their node.
PRINTED = frozenset((
    "Conv1d", "Conv2d", "Conv3d", "Linear", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d",
    "LayerNorm", "MaxPool2d", "ReLU", "ReLU6", "SiLU", "Sigmoid", "GELU", "Dropout", "Hardswish",
))  # fmt: skip


def fast_paths(torch: Torch) -> Mapping[type, FastPath]:
    """Fast paths by class, without classes whose forward somebody has replaced."""
    return _of_forwards(torch, tuple([cls.forward for cls in _classes(torch)]))


@cache
def _classes(torch: Torch) -> dict[type[Module], FastPath]:
    """The classes of this PyTorch that have a fast path."""
    return {
        getattr(torch.nn, name): path
        for name, path in FAST_PATHS.items()
        if hasattr(torch.nn, name)
    }


@lru_cache(maxsize=2)
def _of_forwards(torch: Torch, forwards: tuple[Forward, ...]) -> Mapping[type, FastPath]:
    """Fast paths of the classes whose forward is PyTorch's own."""
    home = torch.nn.Module.__module__.partition(".")[0] + ".nn."
    pairs = zip(_classes(torch).items(), forwards, strict=True)
    return {cls: path for (cls, path), own in pairs if own.__module__.startswith(home)}
