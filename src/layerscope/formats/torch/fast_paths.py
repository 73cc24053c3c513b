"""Modules that are one operation, and the call each of them makes.

A module of exactly such a type, without hooks or a forward of its own, is answered without entering
PyTorch. Of each: the operator, the attributes that it is told by, the arrays it holds, and how
these make up the arguments of the operator.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any

Args = tuple[Any, ...]
Arguments = Callable[[Any, Args, Args], Args | None]


def _after(x: Any, arrays: Args, told: Args) -> Args:
    return (x, *arrays, *told)


class FastPath:
    """How a type of module is answered. `arguments` None: not with what this one is told."""

    __slots__ = ("arguments", "buffers", "gist", "in_place", "keeps", "operator", "params", "told")

    def __init__(
        self,
        operator: str,
        told: str = "",
        params: str = "",
        buffers: str = "",
        arguments: Arguments = _after,
        gist: Arguments | None = None,
    ) -> None:
        self.operator = operator
        self.told = _all_of(told)
        self.params = _all_of(params)
        self.buffers = _all_of(buffers)
        self.arguments = arguments
        self.gist = gist  # all that its step and its result depend on, of what it is given
        self.in_place = operator in MAY_BE_IN_PLACE  # has an `inplace` that must be looked at
        self.keeps = operator in KEEPS


def _all_of(names: str) -> Callable[[Any], Args] | None:
    """What fetches all these at once; None for none."""
    each = names.split()
    if len(each) == 1:
        [one] = each
        return lambda source: (source[one],)
    found: Callable[[Any], Args] | None = itemgetter(*each) if each else None
    return found


def _conv(x: Any, arrays: Args, told: Args) -> Args | None:
    mode, *rest = told
    return (x, *arrays, *rest) if mode == "zeros" else None


def _conv_gist(x: Any, arrays: Args, told: Args) -> Args | None:
    """All but the channels that it reads, which must be those that it has weights for."""
    size, weight = x.shape, arrays[0].shape
    if told[-1] != 1 or len(size) != len(weight) or size[1] != weight[1]:
        return None
    return (size[0], size[2:], weight[0], weight[2:])


def _linear_gist(x: Any, arrays: Args, told: Args) -> Args | None:
    weight = arrays[0].shape
    return (x.shape[:-1], weight[0]) if len(weight) == 2 and x.shape[-1:] == weight[1:] else None


def _batch_norm(rank: int) -> Arguments:
    axes = (2, 3) if rank == 1 else (rank + 2,)

    def arguments(x: Any, arrays: Args, told: Args) -> Args | None:
        # its statistics are counted in another way, or not kept, or it is refused
        if told[1] is None or arrays[2] is None or len(x.shape) not in axes:
            return None
        return (x, *arrays, *told)

    return arguments


def _shaped(x: Any, arrays: Args, told: Args) -> Args:
    """What is told first stands before the arrays, the rest behind them."""
    return (x, told[0], *arrays, *told[1:])


def _max_pool(x: Any, arrays: Args, told: Args) -> Args | None:
    indices, *rest = told
    return None if indices else (x, *rest)


def _avg_pool(x: Any, arrays: Args, told: Args) -> Args | None:
    divisor, *rest = told
    return (x, *rest) if divisor is None else None


def _adaptive(x: Any, arrays: Args, told: Args) -> Args | None:
    size = told[0]
    if size is None or (not isinstance(size, int) and None in size):
        return None
    return (x, size)


def _softmax(x: Any, arrays: Args, told: Args) -> Args | None:
    return None if told[0] is None else (x, *told)


def _embedding(x: Any, arrays: Args, told: Args) -> Args | None:
    longest, sparse = told
    return (*arrays, x) if longest is None and not sparse else None


MAY_BE_IN_PLACE = frozenset((
    "relu", "hardtanh", "silu", "hardswish", "hardsigmoid", "leaky_relu", "elu", "mish", "dropout",
))  # fmt: skip
# Args alike they are the same step on any shape of the same rank, and make a tensor of that shape.
KEEPS = frozenset((*MAY_BE_IN_PLACE, "sigmoid", "tanh", "gelu", "batch_norm"))
CONV = "weight bias"
WINDOW = "kernel_size stride padding"
FAST_PATHS: dict[str, FastPath] = {
    **{
        f"Conv{n}d": FastPath(
            f"conv{n}d", "padding_mode stride padding dilation groups", CONV,
            arguments=_conv, gist=_conv_gist,
        )
        for n in (1, 2, 3)
    },
    **{
        f"ConvTranspose{n}d": FastPath(
            f"conv_transpose{n}d", "stride padding output_padding groups dilation", CONV
        )
        for n in (1, 2, 3)
    },
    "Linear": FastPath("linear", "", CONV, gist=_linear_gist),
    **{
        f"BatchNorm{n}d": FastPath(
            "batch_norm", "training momentum eps", CONV, "running_mean running_var", _batch_norm(n)
        )
        for n in (1, 2, 3)
    },
    "LayerNorm": FastPath("layer_norm", "normalized_shape eps", CONV, arguments=_shaped),
    "GroupNorm": FastPath("group_norm", "num_groups eps", CONV, arguments=_shaped),
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


# Types whose line of a module print their node tells as well.
PRINTED = frozenset((
    "Conv1d", "Conv2d", "Conv3d", "Linear", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d",
    "LayerNorm", "MaxPool2d", "ReLU", "ReLU6", "SiLU", "Sigmoid", "GELU", "Dropout", "Hardswish",
))  # fmt: skip


def exact_fast_paths(torch: Any) -> dict[Any, FastPath]:
    """The types themselves, but for those whose forward somebody has put another in place of."""
    found = {}
    home = torch.nn.Module.__module__.partition(".")[0] + ".nn."
    for name, leaf in FAST_PATHS.items():
        kind = getattr(torch.nn, name, None)
        if kind is not None and kind.forward.__module__.startswith(home):
            found[kind] = leaf
    return found
