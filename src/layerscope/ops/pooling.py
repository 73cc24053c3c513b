"""Pooling under a window, over everything, or into bins: maxima, means, norms, weighted means."""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd

from layerscope.errors import ShapeError
from layerscope.graph.attributes import AdaptivePool, GlobalPool, Pool, Pyramid, Window
from layerscope.graph.types import Shape, elements
from layerscope.ops.access_map import SAME, AccessMap, Bins, Map, keep
from layerscope.ops.autograd import FIRST, NOTHING, Saved, SavedRule
from layerscope.ops.convolution import window_access
from layerscope.ops.spec import FREE, BackwardRule, Call, Ops, OpSpec, OpsRule, need_rank
from layerscope.tables import merge_tables

MOST_LEVELS = 20


def _max(outputs: int, positions: int, p: int) -> Ops:
    return Ops(comp=positions - outputs)


def _average(outputs: int, positions: int, p: int) -> Ops:
    return Ops(add=positions - outputs, div=outputs)


def _lp(outputs: int, positions: int, p: int) -> Ops:
    """Magnitudes (if p is odd) to the power p, their sum, its root."""
    sums = Ops(comp=positions if p % 2 else 0, add=positions - outputs)
    if p == 1:
        return sums
    if p == 2:
        return sums + Ops(mul=positions, exp=outputs)
    return sums + Ops(exp=positions + outputs)


def _stochastic(outputs: int, positions: int, p: int) -> Ops:
    """At inference the mean weighted by the values themselves: their squares' sum by their sum."""
    return Ops(mul=positions, add=2 * (positions - outputs), div=outputs)


KINDS = {"max": _max, "avg": _average, "lp": _lp, "stochastic": _stochastic}


def _window_shape(call: Call) -> tuple[Shape, ...]:
    need_rank(call, 3, "pooling")
    a: Pool = call.attributes
    shape = (*call.x[:2], *a.window.slide(call.x[2:]))
    return (shape, shape) if a.indices else (shape,)


def _window_ops(kind: str) -> OpsRule:
    def ops(call: Call) -> Ops:
        a: Pool = call.attributes
        outputs = elements(call.y)
        return KINDS[kind](outputs, outputs * a.window.positions, a.p)

    return ops


def _window_access(call: Call) -> tuple[AccessMap, ...]:
    """As a convolution's, but each channel for itself."""
    access: AccessMap = {**window_access(call)[0], 1: (1, SAME)}
    return (access,) * max(len(call.outputs), 1)


def _global_shape(call: Call) -> tuple[Shape, ...]:
    need_rank(call, 3, "global pooling")
    return ((*call.x[:2], *(1 for _ in call.x[2:])),)


def _global_ops(kind: str) -> OpsRule:
    return lambda call: KINDS[kind](
        elements(call.y), elements(call.x), getattr(call.attributes, "p", 2)
    )


def _adaptive_shape(call: Call) -> tuple[Shape, ...]:
    a: AdaptivePool = call.attributes
    need_rank(call, len(a.output) + 1, "adaptive pooling")
    lead = len(call.x) - len(a.output)
    bins = tuple(
        size if bins is None else bins for bins, size in zip(a.output, call.x[lead:], strict=True)
    )
    if min(bins, default=0) < 1:
        raise ShapeError(f"adaptive pooling into {bins}, expected at least 1 everywhere")
    shape = (*call.x[:lead], *bins)
    return (shape, shape) if a.indices else (shape,)


def _adaptive_positions(call: Call) -> int:
    """Input positions read by all bins together: bins may overlap by one."""
    positions = 1
    for size, bins in zip(call.x, call.y, strict=True):
        if size != bins:
            size = bin_positions(size, bins)
        positions *= size
    return positions


def bin_positions(size: int, bins: int) -> int:
    """Positions of an axis that its bins read together: one that two bins share counts twice."""
    return size + bins - gcd(size, bins)


def _adaptive_ops(kind: str) -> OpsRule:
    return lambda call: KINDS[kind](elements(call.y), _adaptive_positions(call), 2)


def _adaptive_access(call: Call) -> tuple[AccessMap, ...]:
    access: dict[int, tuple[int, Map]] = {}
    for axis, (size, bins) in enumerate(zip(call.x, call.y, strict=True)):
        if size == bins:
            access[axis] = (axis, SAME)
        elif bins > 1:  # a single bin sees everything
            access[axis] = (axis, Bins(size, bins))
    return (access,) * max(len(call.outputs), 1)


def levels(call: Call) -> list[Window]:
    """The window of every level: as many bins as it has, partly over the edge where they must."""
    a: Pyramid = call.attributes
    if len(call.x) != 4 or not 1 <= a.levels <= MOST_LEVELS:
        raise ShapeError(f"a pyramid of {a.levels} levels over {call.x}, expected N x C x H x W")
    windows = []
    for level in range(a.levels):
        kernel = tuple(-(-size // 2**level) for size in call.x[2:])
        rest = (k * 2**level - size for k, size in zip(kernel, call.x[2:], strict=True))
        pads = tuple(((r + 1) // 2, (r + 1) // 2) for r in rest)
        windows.append(Window(kernel, kernel, pads, (1, 1), "caffe"))
    return windows


def _pyramid_shape(call: Call) -> tuple[Shape, ...]:
    bins = [window.slide(call.x[2:]) for window in levels(call)]
    if len(bins) == 1:
        return ((*call.x[:2], *bins[0]),)
    return ((call.x[0], call.x[1] * sum(map(elements, bins))),)


def _pyramid_ops(kind: str) -> OpsRule:
    def ops(call: Call) -> Ops:
        ops_sum = FREE
        for window in levels(call):
            outputs = elements(call.x[:2]) * elements(window.slide(call.x[2:]))
            ops_sum += KINDS[kind](outputs, outputs * window.positions, 2)
        return ops_sum

    return ops


def _backward(kind: str) -> BackwardRule:
    """Max: each gradient is added where its maximum was. Average, Lp: it is spread over the bin."""

    def backward(call: Call) -> tuple[Ops, Ops]:
        if kind == "max":
            return Ops(add=elements(call.y)), FREE
        scaled = Ops(div=elements(call.y), add=elements(call.x))
        return scaled + Ops(mul=elements(call.x) if kind == "lp" else 0), FREE

    return backward


def _saves(kind: str) -> SavedRule:
    """Max keeps where each maximum was. A mean over everything needs no tensor at all."""

    def saves(call: Call) -> Saved:
        if kind == "max":
            if len(call.outputs) > 1:
                return Saved(inputs=(0,), outputs=(1,))
            return Saved(inputs=(0,), extra=((elements(call.y), "int64"),))
        if kind == "avg" and set(call.y[2:]) == {1} and not isinstance(call.attributes, Pool):
            return NOTHING
        if kind == "lp":  # several operators: powers, sum and root
            return Saved(inputs=(0,), extra=((elements(call.x) + 4 * elements(call.y), ""),))
        return FIRST

    return saves


# Names of these ops in other systems; see `OpSpec.names`.
NAMES: Mapping[str, Mapping[str, str]] = {
    "max_pool": {
        "torch": "MaxPool{}d",
        "torch_function": "max_pool{}d",
        "caffe": "Pooling",
        "matconvnet": "mpool",
        "dagnn": "Pooling",
        "keras": "MaxPooling{}D",
    },
    "global_max_pool": {
        "torch": "AdaptiveMaxPool{}d",
        "torch_function": "adaptive_max_pool{}d",
        "caffe": "Pooling",
        "matconvnet": "mpool",
        "dagnn": "GlobalPooling",
        "keras": "GlobalMaxPooling{}D",
    },
    "avg_pool": {
        "torch": "AvgPool{}d",
        "torch_function": "avg_pool{}d",
        "caffe": "Pooling",
        "matconvnet": "apool",
        "dagnn": "Pooling",
        "keras": "AveragePooling{}D",
    },
    "global_avg_pool": {
        "torch": "AdaptiveAvgPool{}d",
        "torch_function": "adaptive_avg_pool{}d",
        "caffe": "Pooling",
        "matconvnet": "apool",
        "dagnn": "GlobalPooling",
        "keras": "GlobalAveragePooling{}D",
    },
    "adaptive_max_pool": {
        "torch": "AdaptiveMaxPool{}d",
        "torch_function": "adaptive_max_pool{}d",
        "caffe": "Pooling",
        "matconvnet": "mpool",
    },
    "adaptive_avg_pool": {
        "torch": "AdaptiveAvgPool{}d",
        "torch_function": "adaptive_avg_pool{}d",
        "caffe": "Pooling",
        "matconvnet": "apool",
    },
}

SPECS: dict[str, OpSpec] = merge_tables(
    "pools",
    *(
        {
            f"{kind}_pool": OpSpec(
                family="pooling",
                attributes=Pool,
                names=NAMES.get(f"{kind}_pool", {}),
                shape=_window_shape,
                ops=_window_ops(kind),
                access_map=_window_access,
                backward=_backward(kind),
                saved_for_backward=_saves(kind),
                out_dtypes=("input", "index"),
            ),
            f"global_{kind}_pool": OpSpec(
                family="pooling",
                attributes=GlobalPool,
                names=NAMES.get(f"global_{kind}_pool", {}),
                shape=_global_shape,
                ops=_global_ops(kind),
                access_map=lambda call: (keep((0, 1)),),
                backward=_backward(kind),
                saved_for_backward=_saves(kind),
            ),
        }
        for kind in KINDS
    ),
    {
        f"adaptive_{kind}_pool": OpSpec(
            family="pooling",
            attributes=AdaptivePool,
            names=NAMES[f"adaptive_{kind}_pool"],
            shape=_adaptive_shape,
            ops=_adaptive_ops(kind),
            access_map=_adaptive_access,
            backward=_backward(kind),
            saved_for_backward=_saves(kind),
            out_dtypes=("input", "int64"),
        )
        for kind in ("max", "avg")
    },
    {
        f"pyramid_{kind}_pool": OpSpec(
            family="pooling",
            attributes=Pyramid,
            shape=_pyramid_shape,
            ops=_pyramid_ops(kind),
            access_map=lambda call: (keep((0,)),),
            backward=_backward(kind),
            saved_for_backward=_saves(kind),
        )
        for kind in ("max", "avg", "stochastic")
    },
)
