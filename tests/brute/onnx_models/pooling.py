"""ONNX models of pooling."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

from layerscope.graph.attributes import AdaptivePool, Pool
from tests.brute.engine import Model, Writer, plain
from tests.brute.onnx_models.convolution import window_attributes, window_kwargs
from tests.brute.pooling import level


def pool(op: str) -> Writer:
    def write(m: Model) -> str:
        a: Pool = m.attributes
        told = {**window_kwargs(a.window), "ceil_mode": int(a.window.rounding != "floor")}
        if op == "LpPool":
            told["p"] = a.p
        if op == "AveragePool":
            told["count_include_pad"] = int(a.count_include_pad)
        return m.node(op, m.x, dilations=a.window.dilation, **told)

    return write


def global_lp_pool(m: Model) -> str:
    return m.node("GlobalLpPool", m.x, p=m.attributes.p if m.attributes else 2)


def adaptive_pool(op: str) -> Writer:
    """Bin by bin: a slice reduced to one element, all of them put together again."""

    def write(m: Model) -> str:
        a: AdaptivePool = m.attributes
        axes = list(range(len(m.shape) - len(a.output), len(m.shape)))
        sizes = [m.shape[axis] for axis in axes]
        counts = [bins or size for bins, size in zip(a.output, sizes, strict=True)]
        parts = []
        for at in product(*map(range, counts)):
            starts = [i * n // b for i, n, b in zip(at, sizes, counts, strict=True)]
            ends = [math.ceil((i + 1) * n / b) for i, n, b in zip(at, sizes, counts, strict=True)]
            part = m.node("Slice", m.x, m.ints(*starts), m.ints(*ends), m.ints(*axes))
            parts.append(m.node(op, part, m.ints(*axes), keepdims=1))
        for n, axis in reversed(list(enumerate(axes))):
            step = counts[n]
            parts = [
                m.node("Concat", *parts[i : i + step], axis=axis)
                for i in range(0, len(parts), step)
            ]
        return parts[0]

    return write


def _pool(m: Model, kind: str, told: dict[str, Any]) -> str:
    if kind == "max":
        return m.node("MaxPool", m.x, **told)
    if kind == "avg":
        return m.node("AveragePool", m.x, count_include_pad=1, **told)
    squares = m.node("AveragePool", m.node("Mul", m.x, m.x), count_include_pad=1, **told)
    return m.node("Div", squares, m.node("AveragePool", m.x, count_include_pad=1, **told))


def stochastic_pool(m: Model) -> str:
    return _pool(m, "stochastic", window_attributes(m.attributes.window))


def global_stochastic_pool(m: Model) -> str:
    squares = m.node("GlobalAveragePool", m.node("Mul", m.x, m.x))
    return m.node("Div", squares, m.node("GlobalAveragePool", m.x))


def pyramid(kind: str) -> Writer:
    def write(m: Model) -> str:
        made = []
        for n in range(m.attributes.levels):
            told = window_attributes(level(m.shape[2:], n))
            odd = [
                (k * 2**n - size) % 2
                for k, size in zip(told["kernel_shape"], m.shape[2:], strict=True)
            ]
            pads = told["pads"]
            told["pads"] = [*pads[:2], *(p - o for p, o in zip(pads[2:], odd, strict=True))]
            made.append(_pool(m, kind, told))
        if len(made) == 1:
            return made[0]
        return m.node("Concat", *(m.node("Flatten", y, axis=1) for y in made), axis=1)

    return write


def max_pool_places(m: Model) -> tuple[str, ...]:
    """ONNX counts places through the whole input."""
    w = m.attributes.window
    begins, ends = zip(*w.pads, strict=True)
    told = {"kernel_shape": w.kernel, "strides": w.stride, "pads": (*begins, *ends)}
    y, places = m.several("MaxPool", m.x, outputs=2, **told)
    return y, m.node("Mod", places, m.ints(math.prod(m.shape[2:])))


def adaptive_places(m: Model) -> tuple[str, ...]:
    kernel = [size // b for size, b in zip(m.shape[2:], m.attributes.output, strict=True)]
    y, places = m.several("MaxPool", m.x, outputs=2, kernel_shape=kernel, strides=kernel)
    return y, m.node("Mod", places, m.ints(math.prod(m.shape[2:])))


def with_indices(plain_model: Writer, indices_model: Writer) -> Writer:
    return lambda m: (indices_model if m.attributes.indices else plain_model)(m)


MODELS: dict[str, Writer] = {
    "avg_pool": pool("AveragePool"),
    "lp_pool": pool("LpPool"),
    "global_max_pool": plain("GlobalMaxPool"),
    "global_avg_pool": plain("GlobalAveragePool"),
    "global_lp_pool": global_lp_pool,
    "adaptive_avg_pool": adaptive_pool("ReduceMean"),
    "stochastic_pool": stochastic_pool,
    "global_stochastic_pool": global_stochastic_pool,
    **{f"pyramid_{kind}_pool": pyramid(kind) for kind in ("max", "avg", "stochastic")},
    "max_pool": with_indices(pool("MaxPool"), max_pool_places),
    "adaptive_max_pool": with_indices(adaptive_pool("ReduceMax"), adaptive_places),
}
