"""Loops and cases of attention and rotary embeddings."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from layerscope.graph import attributes as at
from layerscope.graph.attributes import Attention, Rotary, Softmax
from layerscope.graph.types import Shape, elements
from tests.brute.activation import softmax, tanh
from tests.brute.arrays import Array, Index, Run, fill, places
from tests.brute.case import Case
from tests.brute.scalar import Scalar


def cache(a: Attention, shape: Shape, which: str) -> list[float]:
    """The keys or values of earlier steps, which are no input of the op."""
    luck = random.Random(which)
    return [luck.randint(-128, 128) / 64 for _ in range(elements(cache_shape(a, shape)))]


def cache_shape(a: Attention, shape: Shape) -> Shape:
    """That of N x heads x T x size for the keys or values of this shape, packed or not."""
    heads = a.kv_heads or a.heads
    return (shape[0], heads, a.past, shape[-1] // (heads if len(shape) == 3 else 1))


def unpacked(x: Array, heads: int) -> Array:
    """N x T x (heads · size) as N x heads x T x size."""
    if len(x.shape) == 4:
        return x
    n, length, width = x.shape
    size = width // heads
    return fill((n, heads, length, size), lambda i: x[(i[0], i[2], i[1] * size + i[3])])


def _with_past(run: Run, x: Array, which: str) -> Array:
    """Earlier keys or values in front of the given ones."""
    a: Attention = run.attributes
    now = unpacked(x, a.kv_heads or a.heads)
    before = cache_shape(a, x.shape)
    numbers = zip(places(before), cache(a, x.shape, which), strict=True)
    cells = {index: run.number(value) for index, value in numbers}
    for (n, h, t, i), number in now.cells.items():
        cells[(n, h, t + a.past, i)] = number
    return Array((*now.shape[:2], now.shape[2] + a.past, now.shape[3]), cells)


def attention(run: Run) -> list[Array]:
    """softmax(Q·Kᵀ·scale + mask)·V: all scores are made, also those that are masked."""
    a: Attention = run.attributes
    q = unpacked(run.inputs[0], a.heads)
    k, v = (_with_past(run, run.inputs[n], "qkv"[n]) for n in (1, 2))
    shared = a.heads // (a.kv_heads or a.heads)
    scale = 1 / math.sqrt(q.shape[3])

    def score(index: Index) -> Scalar:
        n, h, t, s = index
        result = run.number(0.0)
        for i in range(q.shape[3]):
            result = result.mac(q[(n, h, t, i)], k[(n, h // shared, s, i)])
        result = result * scale
        if a.softcap:
            result = tanh(result / a.softcap) * a.softcap
        if len(run.inputs) == 4:
            mask = run.inputs[3]
            own = index[4 - len(mask.shape) :]
            told = mask[tuple(i % m for i, m in zip(own, mask.shape, strict=True))]
            flags = a.mask == "bool"
            result = told.above(0.5, result, -math.inf) if flags else result + told
        if a.causal:
            result = run.number(s).above(t + a.past, -math.inf, result)
        return result

    scores = fill((*q.shape[:3], k.shape[2]), score)
    (weights,) = softmax(Run(Softmax(-1), [scores], {}, run.tally))

    def cell(index: Index) -> Scalar:
        n, h, t, i = index
        result = run.number(0.0)
        for s in range(k.shape[2]):
            result = result.mac(weights[(n, h, t, s)], v[(n, h // shared, s, i)])
        return result

    y = fill((*q.shape[:3], v.shape[3]), cell)
    if len(run.x.shape) == 4:
        return [y]
    n, heads, length, size = y.shape
    return [fill((n, length, heads * size), lambda i: y[(i[0], i[2] // size, i[1], i[2] % size)])]


def angle(position: int, pair: int) -> float:
    """How far a pair of features is turned; nowhere by nought, so that every term counts."""
    return (position + 1) * 0.5 / (pair + 1)


def rotary(run: Run) -> list[Array]:
    """x·cos + turned(x)·sin, a feature's partner half a head away; the tables are made before."""
    a: Rotary = run.attributes
    x = run.x
    size = x.shape[-1] // (a.heads if len(x.shape) == 3 else 1)
    half = size // 2

    def cell(index: Index) -> Scalar:
        *lead, i = index
        within = i % size
        partner = i + half if within < half else i - half
        turn = angle(index[-2], within % half)
        sine = -math.sin(turn) if within < half else math.sin(turn)
        return x[index] * math.cos(turn) + x[(*lead, partner)] * sine

    return [fill(x.shape, cell)]


BRUTE: dict[str, Callable[[Run], list[Array]]] = {
    "attention": attention,
    "rotary": rotary,
}

A = at.Attention
CASES: list[Case] = [
    Case("attention", A(2), ((2, 3, 8),) * 3, "packed"),
    Case("attention", A(2), ((2, 2, 3, 4),) * 3, "heads-apart"),
    Case("attention", A(1), ((1, 4, 3),) * 3, "one-head"),
    Case("attention", A(4, 2), ((2, 3, 8), (2, 3, 4), (2, 3, 4)), "packed-grouped"),
    Case("attention", A(4, 1), ((1, 4, 3, 2), (1, 1, 3, 2), (1, 1, 3, 2)), "one-head-of-keys"),
    Case("attention", A(2), ((2, 3, 4), (2, 5, 4), (2, 5, 4)), "cross"),
    Case("attention", A(2), ((1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 3)), "values-of-other-size"),
    Case("attention", A(2), ((1, 3, 8), (1, 4, 8), (1, 4, 6)), "packed-values-of-other-size"),
    Case("attention", A(2, causal=True), ((1, 4, 6),) * 3, "causal"),
    Case("attention", A(2), ((2, 3, 4), (2, 5, 4), (2, 5, 4), (3, 5)), "masked"),
    Case("attention", A(2), ((2, 2, 3, 2),) * 3 + ((2, 1, 3, 3),), "masked-by-image"),
    Case("attention", A(2), ((2, 2, 3, 2),) * 3 + ((2, 1, 1, 3),), "masked-keys"),
    Case("attention", A(2, causal=True), ((1, 3, 4),) * 3 + ((3, 3),), "masked-causal"),
    Case("attention", A(2, past=3), ((2, 2, 2, 3),) * 3, "cached"),
    Case("attention", A(2, past=2, causal=True), ((1, 2, 3, 2),) * 3, "cached-causal"),
    Case("attention", A(1, causal=True), ((1, 3, 2), (1, 5, 2), (1, 5, 2)), "cross-causal"),
    Case("attention", A(4, 2, True, True, 4), ((1, 1, 8), (1, 1, 4), (1, 1, 4)), "cached-step"),
    Case("attention", A(2, past=2), ((1, 2, 3, 2), (1, 2, 3, 2), (1, 2, 3, 4), (3, 5)),
         "cached-masked"),
    Case("rotary", at.Rotary(2), ((2, 3, 8),), "packed"),
    Case("rotary", at.Rotary(3), ((2, 3, 4, 6),), "heads-apart"),
    Case("rotary", at.Rotary(1), ((1, 2, 2),), "one-pair"),
    Case("attention", A(2, mask="add"), ((2, 3, 4), (2, 5, 4), (2, 5, 4), (3, 5)), "mask-added"),
    Case("attention", A(2, mask="bool"), ((2, 3, 4), (2, 5, 4), (2, 5, 4), (3, 5)), "flags"),
    Case("attention", A(4, 2, mask="bool"), ((1, 4, 3, 2), (1, 2, 5, 2), (1, 2, 5, 3),
                                            (1, 1, 3, 5)), "flags-grouped"),
    Case("attention", A(2, softcap=1.5), ((1, 3, 8), (1, 4, 8), (1, 4, 6)), "capped"),
    Case("attention", A(2, causal=True, softcap=2.0), ((1, 2, 3, 4),) * 3, "capped-causal"),
]  # fmt: skip
