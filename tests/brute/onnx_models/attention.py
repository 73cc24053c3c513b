"""ONNX models of attention and rotary embeddings."""

from __future__ import annotations

import math

from layerscope.graph.attributes import Attention, Rotary
from tests.brute.attention import angle, cache, cache_shape
from tests.brute.engine import NEWER, Model, Writer


def attention(m: Model) -> str:
    """Keys and values of earlier steps are inputs of ONNX's operator, here constants."""
    a: Attention = m.attributes
    m.opset = NEWER
    names = [m.of(n) for n in range(len(m.inputs))]
    if len(names) == 4 and m.inputs[3].shape[-2] == 1:  # onnxruntime wants a row for every query
        rank, queries = len(m.inputs[3].shape), m.shape[-2]
        names[3] = m.node("Expand", names[3], m.ints(*[1] * (rank - 2), queries, 1))
    if a.past:
        names += [""] * (4 - len(names))
        for n in (1, 2):
            shape = m.inputs[n].shape
            names.append(m.tensor(cache(a, shape, "qkv"[n]), cache_shape(a, shape)))
    if a.mask == "bool":
        names[3] = m.cast(names[3], "bool")
    told: dict[str, object] = {"is_causal": int(a.causal), "softcap": a.softcap}
    if len(m.shape) == 3:
        told.update(q_num_heads=a.heads, kv_num_heads=a.kv_heads or a.heads)
    return m.several("Attention", *names, outputs=3 if a.past else 1, **told)[0]


def rotary(m: Model) -> str:
    a: Rotary = m.attributes
    m.opset = NEWER
    packed = len(m.shape) == 3
    length, half = m.shape[-2], m.shape[-1] // (a.heads if packed else 1) // 2
    turns = [angle(t, i) for t in range(length) for i in range(half)]
    tables = [
        m.tensor([wave(turn) for turn in turns], (length, half)) for wave in (math.cos, math.sin)
    ]
    batch = [m.ints(*range(length)) for _ in range(m.shape[0])]
    places = m.node("Reshape", m.node("Concat", *batch, axis=0), m.ints(m.shape[0], length))
    told = {"num_heads": a.heads} if packed else {}
    return m.node("RotaryEmbedding", m.x, *tables, places, **told)


MODELS: dict[str, Writer] = {
    "attention": attention,
    "rotary": rotary,
}
