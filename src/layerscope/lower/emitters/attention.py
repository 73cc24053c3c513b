"""Attention and rotary embeddings as single operators."""

from __future__ import annotations

import math
from collections.abc import Callable

from layerscope.graph.attributes import Attention, Rotary
from layerscope.graph.types import Shape
from layerscope.lower.builder import Emitter, NodeEmitter, OnnxConstant, Op

BASE = 10000.0  # of the angles of rotary embeddings, which a graph does not contain
LOWEST = {"fp16": -65504.0, "fp32": -3.4e38, "fp64": -1.7e308}


def attention(node: NodeEmitter) -> str:
    """softmax(Q·Kᵀ·scale + mask)·V; the key-value cache of a decoding step is a model input."""
    a: Attention = node.attributes
    packed = node.rank == 3
    kv_heads = a.kv_heads or a.heads
    q = _heads(node, 0, a.heads)
    k, v = (_keys(node, n, kv_heads) for n in (1, 2))
    size, keys = node.shape[-1] // (a.heads if packed else 1), node.call.inputs[1][-2] + a.past
    scores = node.add("MatMul", q, node.add("Transpose", k, perm=[0, 1, 3, 2], part="keys"))
    if a.scaled:
        scores = node.add("Mul", scores, node.number(1 / math.sqrt(size)), part="scale")
    if a.softcap:
        scores = node.add("Tanh", node.add("Div", scores, node.number(a.softcap)), part="cap")
        scores = node.add("Mul", scores, node.number(a.softcap), part="capped")
    if len(node.inputs) == 4:
        scores = _masked(node, scores)
    if a.causal:
        scores = node.add("Add", scores, _causal(node, node.shape[-2], keys), part="causal")
    y = node.add("MatMul", node.add("Softmax", scores, axis=-1), v, part="values")
    if not packed:
        return y
    y = node.add("Transpose", y, perm=[0, 2, 1, 3])
    return node.reshape(y, (0, 0, -1))


def _heads(node: NodeEmitter, n: int, heads: int) -> str:
    """The n-th input as N x heads x T x size."""
    if len(node.call.inputs[n]) == 4:
        return node.inputs[n]
    part = "qkv"[n]
    apart = node.add("Reshape", node.inputs[n], node.ints(0, 0, heads, -1), part=f"{part}_heads")
    return node.add("Transpose", apart, perm=[0, 2, 1, 3], part=part)


def _keys(node: NodeEmitter, n: int, heads: int) -> str:
    """Keys or values after those of the cache, each head repeated for its query heads."""
    a: Attention = node.attributes
    y = _heads(node, n, heads)
    shape = node.call.inputs[n]
    batch, length, size = shape[0], shape[-2], shape[-1] // (heads if len(shape) == 3 else 1)
    if a.past:
        before = node.outer_input(f"past_{'qkv'[n]}", (batch, heads, a.past, size))
        y = node.add("Concat", before, y, axis=2)
    if heads == a.heads:
        return y
    each = a.heads // heads
    y = node.add("Unsqueeze", y, node.ints(2))
    y = node.add("Expand", y, node.ints(batch, heads, each, length + a.past, size))
    return node.reshape(y, (batch, a.heads, length + a.past, size))


def _masked(node: NodeEmitter, scores: str) -> str:
    """Add the mask; with a boolean mask, set scores to the lowest number where it is False."""
    if node.dtype_of(3) == "bool" or node.attributes.mask == "bool":
        return node.add(
            "Where", node.operand(3, "bool"), scores, node.number(LOWEST[node.dtype]), part="mask"
        )
    return node.add("Add", scores, node.operand(3, node.dtype), part="mask")


def _causal(node: NodeEmitter, queries: int, keys: int) -> str:
    """A causal mask: the lowest number where a key follows the query. Equal masks are shared."""
    builder, dtype = node.builder, node.dtype
    sizes = node.ints(queries, keys)
    after = node.number(node.attributes.past + 1, "int64")
    lowest = OnnxConstant((LOWEST[dtype],), (1,), dtype)

    def make(name: str) -> list[Op]:
        full = builder.fresh(f"{name}/full")
        return [
            Op("ConstantOfShape", full, [sizes], [full], {"value": lowest}),
            Op("Trilu", name, [full, after], [name], {"upper": 1}),
        ]

    key = ("causal", queries, keys, node.attributes.past, dtype)
    return builder.shared(key, f"constants/causal_{queries}x{keys}", make)


def angle(position: int, pair: int, pairs: int) -> float:
    """Angle in radians by which a pair of features is rotated."""
    return position * math.pow(BASE, -pair / pairs)


def _waves(node: NodeEmitter, length: int, half: int, shape: Shape) -> list[str]:
    """Tables of cosines and sines, one row per position. Equal tables are shared."""
    tables = []
    for name, wave in (("cos", math.cos), ("sin", math.sin)):

        def make(table: str, wave: Callable[[float], float] = wave) -> list[Op]:
            rows = ([wave(angle(t, i, half)) for i in range(half)] for t in range(length))
            values = tuple(value for row in rows for value in row * 2)
            return [
                Op(
                    "Constant",
                    table,
                    [],
                    [table],
                    {"value": OnnxConstant(values, shape, node.dtype)},
                )
            ]

        key = (name, shape, node.dtype)
        tables.append(node.builder.shared(key, f"constants/{name}_{length}x{2 * half}", make))
    return tables


def rotary(node: NodeEmitter) -> str:
    """x·cos + rotate_half(x)·sin."""
    a: Rotary = node.attributes
    packed = node.rank == 3
    length, size = node.shape[-2], node.shape[-1] // (a.heads if packed else 1)
    half = size // 2
    x = node.reshape(node.x, (0, 0, a.heads, size)) if packed else node.x
    shape = (length, 1, size) if packed else (length, size)
    cosines, sines = _waves(node, length, half, shape)
    first = node.add("Slice", x, node.ints(0), node.ints(half), node.ints(3))
    second = node.add("Slice", x, node.ints(half), node.ints(size), node.ints(3))
    rotated = node.add("Concat", node.add("Neg", second), first, axis=3)
    y = node.add("Add", node.add("Mul", x, cosines), node.add("Mul", rotated, sines))
    return node.reshape(y, (0, 0, -1)) if packed else y


EMITTERS: dict[str, Emitter] = {"attention": attention, "rotary": rotary}
