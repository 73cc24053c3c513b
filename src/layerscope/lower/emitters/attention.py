"""Attention and rotary positions operator by operator, and products told by letters."""

from __future__ import annotations

import math
from collections.abc import Callable

from layerscope.graph.attributes import Attention, Einsum, Rotary
from layerscope.graph.types import Shape
from layerscope.lower.builder import Array, Op, Site, Writer

BASE = 10000.0  # of the angles of rotary positions: the graph does not tell
LOWEST = {"fp16": -65504.0, "fp32": -3.4e38, "fp64": -1.7e308}


def attention(s: Site) -> str:
    """softmax(Q·Kᵀ·scale + mask)·V; the cache of a decoding step is an input of the model."""
    a: Attention = s.attributes
    packed = s.rank == 3
    kv_heads = a.kv_heads or a.heads
    q = _heads(s, 0, a.heads)
    k, v = (_keys(s, n, kv_heads) for n in (1, 2))
    size, keys = s.shape[-1] // (a.heads if packed else 1), s.call.inputs[1][-2] + a.past
    scores = s.add("MatMul", q, s.add("Transpose", k, perm=[0, 1, 3, 2], part="keys"))
    if a.scaled:
        scores = s.add("Mul", scores, s.number(1 / math.sqrt(size)), part="scale")
    if a.softcap:
        scores = s.add("Tanh", s.add("Div", scores, s.number(a.softcap)), part="cap")
        scores = s.add("Mul", scores, s.number(a.softcap), part="capped")
    if len(s.inputs) == 4:
        scores = _masked(s, scores)
    if a.causal:
        scores = s.add("Add", scores, _causal(s, s.shape[-2], keys), part="causal")
    y = s.add("MatMul", s.add("Softmax", scores, axis=-1), v, part="values")
    if not packed:
        return y
    y = s.add("Transpose", y, perm=[0, 2, 1, 3])
    return s.reshape(y, (0, 0, -1))


def _heads(s: Site, n: int, heads: int) -> str:
    """The n-th input as N x heads x T x size."""
    if len(s.call.inputs[n]) == 4:
        return s.inputs[n]
    part = "qkv"[n]
    apart = s.add("Reshape", s.inputs[n], s.ints(0, 0, heads, -1), part=f"{part}_heads")
    return s.add("Transpose", apart, perm=[0, 2, 1, 3], part=part)


def _keys(s: Site, n: int, heads: int) -> str:
    """Keys or values, behind those of earlier steps, each repeated for the queries it serves."""
    a: Attention = s.attributes
    y = _heads(s, n, heads)
    shape = s.call.inputs[n]
    batch, length, size = shape[0], shape[-2], shape[-1] // (heads if len(shape) == 3 else 1)
    if a.past:
        before = s.outer_input(f"past_{'qkv'[n]}", (batch, heads, a.past, size))
        y = s.add("Concat", before, y, axis=2)
    if heads == a.heads:
        return y
    each = a.heads // heads
    y = s.add("Unsqueeze", y, s.ints(2))
    y = s.add("Expand", y, s.ints(batch, heads, each, length + a.past, size))
    return s.reshape(y, (batch, a.heads, length + a.past, size))


def _masked(s: Site, scores: str) -> str:
    """A mask is added; one of flags takes away what it does not allow."""
    if s.dtype_of(3) == "bool" or s.attributes.mask == "bool":
        return s.add("Where", s.operand(3, "bool"), scores, s.number(LOWEST[s.dtype]), part="mask")
    return s.add("Add", scores, s.operand(3, s.dtype), part="mask")


def _causal(s: Site, queries: int, keys: int) -> str:
    """Minus infinity where a key comes after the query, made once for all nodes alike."""
    draft, dtype = s.draft, s.dtype
    sizes = s.ints(queries, keys)
    after = s.number(s.attributes.past + 1, "int64")
    lowest = Array((LOWEST[dtype],), (1,), dtype)

    def make(name: str) -> list[Op]:
        full = draft.fresh(f"{name}/full")
        return [
            Op("ConstantOfShape", full, [sizes], [full], {"value": lowest}),
            Op("Trilu", name, [full, after], [name], {"upper": 1}),
        ]

    key = ("causal", queries, keys, s.attributes.past, dtype)
    return draft.shared(key, f"constants/causal_{queries}x{keys}", make)


def einsum(s: Site) -> str:
    a: Einsum = s.attributes
    left, arrow, right = a.equation.partition("->")
    if "..." in left and arrow and "..." not in right:
        raise s.refuse(f"{a.equation!r} sums axes under an ellipsis, which ONNX does not")
    names = [s.operand(n, s.dtype) for n in range(len(s.inputs))]
    return s.add("Einsum", *names, equation=a.equation)


def angle(position: int, pair: int, pairs: int) -> float:
    """How far a pair of features is turned."""
    return position * math.pow(BASE, -pair / pairs)


def _waves(s: Site, length: int, half: int, shape: Shape) -> list[str]:
    """Tables of cosines and sines, a row a position, made once for all nodes alike."""
    tables = []
    for name, wave in (("cos", math.cos), ("sin", math.sin)):

        def make(table: str, wave: Callable[[float], float] = wave) -> list[Op]:
            rows = ([wave(angle(t, i, half)) for i in range(half)] for t in range(length))
            values = tuple(value for row in rows for value in row * 2)
            return [Op("Constant", table, [], [table], {"value": Array(values, shape, s.dtype)})]

        key = (name, shape, s.dtype)
        tables.append(s.draft.shared(key, f"constants/{name}_{length}x{2 * half}", make))
    return tables


def rotary(s: Site) -> str:
    """x·cos + turned(x)·sin, a feature's partner half a head away."""
    a: Rotary = s.attributes
    packed = s.rank == 3
    length, size = s.shape[-2], s.shape[-1] // (a.heads if packed else 1)
    half = size // 2
    x = s.reshape(s.x, (0, 0, a.heads, size)) if packed else s.x
    shape = (length, 1, size) if packed else (length, size)
    cosines, sines = _waves(s, length, half, shape)
    first = s.add("Slice", x, s.ints(0), s.ints(half), s.ints(3))
    second = s.add("Slice", x, s.ints(half), s.ints(size), s.ints(3))
    turned = s.add("Concat", s.add("Neg", second), first, axis=3)
    y = s.add("Add", s.add("Mul", x, cosines), s.add("Mul", turned, sines))
    return s.reshape(y, (0, 0, -1)) if packed else y


WRITERS: dict[str, Writer] = {"attention": attention, "einsum": einsum, "rotary": rotary}
