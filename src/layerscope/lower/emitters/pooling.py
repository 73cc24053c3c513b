"""Pooling; roundings that ONNX lacks are written as padding at the end."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod
from typing import Any

from layerscope.graph.attributes import AdaptivePool, Pool, Pyramid, Window
from layerscope.graph.types import Shape
from layerscope.lower.builder import Site, Writer, plain
from layerscope.lower.emitters.convolution import explicit_pads, told
from layerscope.ops.pooling import levels

LOWEST = {"fp16": -65504.0, "fp32": -3.4028234663852886e38, "fp64": -1.7976931348623157e308}
TINY = {"fp16": 6e-8, "fp32": 1e-37, "fp64": 1e-300}  # keeps a sum of noughts from dividing

Under = Callable[[Site, str, Pool, Shape], str]  # pooling of a tensor under a window


def _placed(
    s: Site, x: str, window: Window, sizes: Shape, value: float
) -> tuple[str, dict[str, Any]]:
    """The input, and the window over it; padding of a whole kernel is put on beforehand."""
    pads = explicit_pads(window, sizes)
    if any(max(pair) >= k for pair, k in zip(pads, window.kernel, strict=True)):
        x = _extended(s, x, pads, value)
        pads = [(0, 0)] * window.rank
    return x, told(window, pads)


def _extended(s: Site, x: str, pads: list[tuple[int, int]], value: float) -> str:
    """Padding joined on; onnxruntime would put a Pad back into the pool, and refuse it there."""
    shape = list(s.shape)
    for axis, pair in enumerate(pads, 2):
        ends = [s.full((*shape[:axis], n, *shape[axis + 1 :]), value) if n else "" for n in pair]
        parts = [part for part in (ends[0], x, ends[1]) if part]
        if len(parts) > 1:
            x = s.add("Concat", *parts, axis=axis)
            shape[axis] += sum(pair)
    return x


def _max_under(s: Site, x: str, a: Pool, sizes: Shape) -> str:
    x, frame = _placed(s, x, a.window, sizes, LOWEST[s.dtype])
    return s.add("MaxPool", x, **frame)


def _lp_under(s: Site, x: str, a: Pool, sizes: Shape) -> str:
    x, frame = _placed(s, x, a.window, sizes, 0.0)
    return s.add("LpPool", x, p=a.p, **frame)


def _mean_under(s: Site, x: str, a: Pool, sizes: Shape) -> str:
    """Where not all of a kernel is counted, the mean of all of it is scaled."""
    x, frame = _placed(s, x, a.window, sizes, 0.0)
    y = s.add("AveragePool", x, count_include_pad=1, **frame)
    factors = _factors(a, sizes)
    if set(factors) == {1.0}:
        return y
    return s.add("Mul", y, s.numbers(factors, a.window.slide(sizes)))


def _factors(a: Pool, sizes: Shape) -> list[float]:
    """For every placement, the kernel's positions by those that count: what hangs over does not."""
    w = a.window
    counts = w.slide(sizes)
    along = []
    for n, (begin, end) in enumerate(w.resolve(sizes)):
        low, high = (-begin, sizes[n] + end) if a.count_include_pad else (0, sizes[n])
        starts = [i * w.stride[n] - begin for i in range(counts[n])]
        taps = [[start + t * w.dilation[n] for t in range(w.kernel[n])] for start in starts]
        along.append([sum(low <= tap < high for tap in each) for each in taps])
    return [w.positions / max(prod(counted), 1) for counted in product(*along)]


def _stochastic_under(s: Site, x: str, a: Pool, sizes: Shape) -> str:
    """At inference the mean weighted by the values themselves."""
    means = []
    for each in (s.add("Mul", x, x), x):
        each, frame = _placed(s, each, a.window, sizes, 0.0)
        means.append(s.add("AveragePool", each, count_include_pad=1, **frame))
    return s.add("Div", means[0], s.add("Add", means[1], s.number(TINY[s.dtype])))


UNDER: dict[str, Under] = {
    "max": _max_under,
    "avg": _mean_under,
    "lp": _lp_under,
    "stochastic": _stochastic_under,
}


def window_pool(kind: str) -> Writer:
    """Pooling under a window; what ONNX says in one operator stays one."""

    def write(s: Site) -> str | tuple[str, ...]:
        a: Pool = s.attributes
        sizes = s.shape[2:]
        if a.indices:
            return _with_places(s, a)
        if kind == "avg" and a.window.rounding == "floor" and not a.count_include_pad:
            pads = explicit_pads(a.window, sizes)
            if all(max(pair) < k for pair, k in zip(pads, a.window.kernel, strict=True)):
                return s.add("AveragePool", s.x, count_include_pad=0, **told(a.window, pads))
        return UNDER[kind](s, s.x, a, sizes)

    return write


def _with_places(s: Site, a: Pool) -> tuple[str, ...]:
    """Where each maximum was in its plane; ONNX counts through the whole input."""
    x, frame = _placed(s, s.x, a.window, s.shape[2:], LOWEST[s.dtype])
    if x != s.x:
        raise s.refuse("places of maxima under a window wholly in padding")
    y, places = s.several("MaxPool", x, outputs=2, **frame)
    within = s.add("Mod", places, s.number(prod(s.shape[2:]), "int64"))
    kind = s.draft.shapes.tensors[s.node.outputs[1]].dtype
    return y, within if kind == "int64" else s.cast(within, kind)


def global_stochastic(s: Site) -> str:
    squares = s.add("GlobalAveragePool", s.add("Mul", s.x, s.x))
    mean = s.add("GlobalAveragePool", s.x)
    return s.add("Div", squares, s.add("Add", mean, s.number(TINY[s.dtype])))


def adaptive(kind: str) -> Writer:
    """Bins of one size are a window, one bin a global pool; others are cut out axis by axis."""
    op = {"max": "Max", "avg": "Average"}[kind]

    def write(s: Site) -> str | tuple[str, ...]:
        a: AdaptivePool = s.attributes
        lead = s.rank - len(a.output)
        sizes = s.shape[lead:]
        bins = [b or size for b, size in zip(a.output, sizes, strict=True)]
        if a.indices:
            if lead != 2 or any(size % b for size, b in zip(sizes, bins, strict=True)):
                raise s.refuse("places of maxima in bins of several sizes")
            each = tuple(size // b for size, b in zip(sizes, bins, strict=True))
            window = Window(each, each, ((0, 0),) * len(bins), (1,) * len(bins))
            return _with_places(s, Pool(window))
        if lead == 2 and set(bins) == {1}:
            return s.add(f"Global{op}Pool", s.x)
        if lead == 2 and not any(size % b for size, b in zip(sizes, bins, strict=True)):
            kernel = [size // b for size, b in zip(sizes, bins, strict=True)]
            return s.add(f"{op}Pool", s.x, kernel_shape=kernel, strides=kernel)
        y = s.x
        for axis, (size, count) in enumerate(zip(sizes, bins, strict=True), lead):
            y = _binned(s, y, f"Reduce{op.replace('Average', 'Mean')}", axis, size, count)
        return y

    return write


def _binned(s: Site, x: str, op: str, axis: int, size: int, count: int) -> str:
    if size == count:
        return x
    parts = []
    for i in range(count):
        start, end = i * size // count, -(-(i + 1) * size // count)
        part = s.add("Slice", x, s.ints(start), s.ints(end), s.ints(axis))
        parts.append(s.add(op, part, s.ints(axis), keepdims=1))
    return s.add("Concat", *parts, axis=axis)


def pyramid(kind: str) -> Writer:
    """Every level pooled and made flat, one after the other."""

    def write(s: Site) -> str:
        a: Pyramid = s.attributes
        made = [UNDER[kind](s, s.x, Pool(window), s.shape[2:]) for window in levels(s.call)]
        if a.levels == 1:
            return made[0]
        return s.add("Concat", *(s.add("Flatten", each, axis=1) for each in made), axis=1)

    return write


def global_lp(s: Site) -> str:
    return s.add("GlobalLpPool", s.x, p=getattr(s.attributes, "p", 2))


WRITERS: dict[str, Writer] = {
    **{f"{kind}_pool": window_pool(kind) for kind in UNDER},
    **{f"adaptive_{kind}_pool": adaptive(kind) for kind in ("max", "avg")},
    **{f"pyramid_{kind}_pool": pyramid(kind) for kind in ("max", "avg", "stochastic")},
    "global_max_pool": plain("GlobalMaxPool"),
    "global_avg_pool": plain("GlobalAveragePool"),
    "global_lp_pool": global_lp,
    "global_stochastic_pool": global_stochastic,
}
