"""Pooling. Roundings that ONNX lacks become padding at the end."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod

from layerscope.graph.attributes import AdaptivePool, Pool, Pyramid, Window
from layerscope.graph.types import Shape
from layerscope.lower.builder import Emitter, NodeEmitter, plain
from layerscope.lower.emitters.convolution import WindowAttributes, explicit_pads, window_attributes
from layerscope.ops.pooling import levels

LOWEST = {"fp16": -65504.0, "fp32": -3.4028234663852886e38, "fp64": -1.7976931348623157e308}
TINY = {"fp16": 6e-8, "fp32": 1e-37, "fp64": 1e-300}  # added to a divisor that may be zero

PoolTensor = Callable[[NodeEmitter, str, Pool, Shape], str]  # pools one tensor under a window


def _framed(
    node: NodeEmitter, x: str, window: Window, sizes: Shape, value: float
) -> tuple[str, WindowAttributes]:
    """The input and the window's attributes; padding as large as the kernel is added beforehand."""
    pads = explicit_pads(window, sizes)
    if any(max(pair) >= k for pair, k in zip(pads, window.kernel, strict=True)):
        x = _extended(node, x, pads, value)
        pads = [(0, 0)] * window.rank
    return x, window_attributes(window, pads)


def _extended(node: NodeEmitter, x: str, pads: list[tuple[int, int]], value: float) -> str:
    """Pad with Concat: onnxruntime would fuse a Pad into the pool and then reject it."""
    shape = list(node.shape)
    for axis, pair in enumerate(pads, 2):
        ends = [node.full((*shape[:axis], n, *shape[axis + 1 :]), value) if n else "" for n in pair]
        parts = [part for part in (ends[0], x, ends[1]) if part]
        if len(parts) > 1:
            x = node.add("Concat", *parts, axis=axis)
            shape[axis] += sum(pair)
    return x


def _max_under(node: NodeEmitter, x: str, a: Pool, sizes: Shape) -> str:
    x, frame = _framed(node, x, a.window, sizes, LOWEST[node.dtype])
    return node.add("MaxPool", x, **frame)


def _lp_under(node: NodeEmitter, x: str, a: Pool, sizes: Shape) -> str:
    x, frame = _framed(node, x, a.window, sizes, 0.0)
    return node.add("LpPool", x, p=a.p, **frame)


def _mean_under(node: NodeEmitter, x: str, a: Pool, sizes: Shape) -> str:
    """The mean over the whole kernel, scaled where only some positions count."""
    x, frame = _framed(node, x, a.window, sizes, 0.0)
    y = node.add("AveragePool", x, count_include_pad=1, **frame)
    factors = _factors(a, sizes)
    if set(factors) == {1.0}:
        return y
    return node.add("Mul", y, node.numbers(factors, a.window.slide(sizes)))


def _factors(a: Pool, sizes: Shape) -> list[float]:
    """For every position of the window, kernel size divided by the elements that count."""
    w = a.window
    counts = w.slide(sizes)
    along = []
    for n, (begin, end) in enumerate(w.resolve(sizes)):
        low, high = (-begin, sizes[n] + end) if a.count_include_pad else (0, sizes[n])
        starts = [i * w.stride[n] - begin for i in range(counts[n])]
        taps = [[start + t * w.dilation[n] for t in range(w.kernel[n])] for start in starts]
        along.append([sum(low <= tap < high for tap in each) for each in taps])
    return [w.positions / max(prod(counted), 1) for counted in product(*along)]


def _stochastic_under(node: NodeEmitter, x: str, a: Pool, sizes: Shape) -> str:
    """At inference: the mean of x weighted by x."""
    means = []
    for each in (node.add("Mul", x, x), x):
        each, frame = _framed(node, each, a.window, sizes, 0.0)
        means.append(node.add("AveragePool", each, count_include_pad=1, **frame))
    return node.add("Div", means[0], node.add("Add", means[1], node.number(TINY[node.dtype])))


POOLS: dict[str, PoolTensor] = {
    "max": _max_under,
    "avg": _mean_under,
    "lp": _lp_under,
    "stochastic": _stochastic_under,
}


def window_pool(kind: str) -> Emitter:
    """Emitter for pooling under a window, by one ONNX operator where there is one."""

    def emit(node: NodeEmitter) -> str | tuple[str, ...]:
        a: Pool = node.attributes
        sizes = node.shape[2:]
        if a.indices:
            return _with_indices(node, a)
        if kind == "avg" and a.window.rounding == "floor" and not a.count_include_pad:
            pads = explicit_pads(a.window, sizes)
            if all(max(pair) < k for pair, k in zip(pads, a.window.kernel, strict=True)):
                return node.add(
                    "AveragePool", node.x, count_include_pad=0, **window_attributes(a.window, pads)
                )
        return POOLS[kind](node, node.x, a, sizes)

    return emit


def _with_indices(node: NodeEmitter, a: Pool) -> tuple[str, ...]:
    """Also the index of each maximum within its plane; ONNX's index is within the whole input."""
    x, frame = _framed(node, node.x, a.window, node.shape[2:], LOWEST[node.dtype])
    if x != node.x:
        raise node.refuse("indices of maxima under a window that lies in the padding")
    y, indices = node.add_multi("MaxPool", x, outputs=2, **frame)
    within = node.add("Mod", indices, node.number(prod(node.shape[2:]), "int64"))
    kind = node.builder.shapes.tensors[node.outputs[1]].dtype
    return y, within if kind == "int64" else node.cast(within, kind)


def global_stochastic(node: NodeEmitter) -> str:
    squares = node.add("GlobalAveragePool", node.add("Mul", node.x, node.x))
    mean = node.add("GlobalAveragePool", node.x)
    return node.add("Div", squares, node.add("Add", mean, node.number(TINY[node.dtype])))


def adaptive(kind: str) -> Emitter:
    """Emitter: a window for bins of one size, a global pool for one bin, else slices per axis."""
    op = {"max": "Max", "avg": "Average"}[kind]

    def emit(node: NodeEmitter) -> str | tuple[str, ...]:
        a: AdaptivePool = node.attributes
        lead = node.rank - len(a.output)
        sizes = node.shape[lead:]
        bins = [b or size for b, size in zip(a.output, sizes, strict=True)]
        if a.indices:
            if lead != 2 or any(size % b for size, b in zip(sizes, bins, strict=True)):
                raise node.refuse("indices of maxima in bins of several sizes")
            each = tuple(size // b for size, b in zip(sizes, bins, strict=True))
            window = Window(each, each, ((0, 0),) * len(bins), (1,) * len(bins))
            return _with_indices(node, Pool(window))
        if lead == 2 and set(bins) == {1}:
            return node.add(f"Global{op}Pool", node.x)
        if lead == 2 and not any(size % b for size, b in zip(sizes, bins, strict=True)):
            kernel = [size // b for size, b in zip(sizes, bins, strict=True)]
            return node.add(f"{op}Pool", node.x, kernel_shape=kernel, strides=kernel)
        y = node.x
        for axis, count in enumerate(bins, lead):
            y = _binned(node, y, f"Reduce{op.replace('Average', 'Mean')}", axis, count)
        return y

    return emit


def _binned(node: NodeEmitter, x: str, op: str, axis: int, count: int) -> str:
    """Reduce each of `count` bins along one axis."""
    size = node.shape[axis]
    if size == count:
        return x
    parts = []
    for i in range(count):
        start, end = i * size // count, -(-(i + 1) * size // count)
        part = node.add("Slice", x, node.ints(start), node.ints(end), node.ints(axis))
        parts.append(node.add(op, part, node.ints(axis), keepdims=1))
    return node.add("Concat", *parts, axis=axis)


def pyramid(kind: str) -> Emitter:
    """Emitter that pools and flattens every level, then concatenates them."""

    def emit(node: NodeEmitter) -> str:
        a: Pyramid = node.attributes
        pooled = [
            POOLS[kind](node, node.x, Pool(window), node.shape[2:]) for window in levels(node.call)
        ]
        if a.levels == 1:
            return pooled[0]
        return node.add("Concat", *(node.add("Flatten", each, axis=1) for each in pooled), axis=1)

    return emit


def global_lp(node: NodeEmitter) -> str:
    return node.add("GlobalLpPool", node.x, p=getattr(node.attributes, "p", 2))


EMITTERS: dict[str, Emitter] = {
    **{f"{kind}_pool": window_pool(kind) for kind in POOLS},
    **{f"adaptive_{kind}_pool": adaptive(kind) for kind in ("max", "avg")},
    **{f"pyramid_{kind}_pool": pyramid(kind) for kind in ("max", "avg", "stochastic")},
    "global_max_pool": plain("GlobalMaxPool"),
    "global_avg_pool": plain("GlobalAveragePool"),
    "global_lp_pool": global_lp,
    "global_stochastic_pool": global_stochastic,
}
