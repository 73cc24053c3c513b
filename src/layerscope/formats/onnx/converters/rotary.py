"""Rotary position embeddings, as operators of their own and inside of attention."""

from __future__ import annotations

from layerscope.formats.onnx.converters.attention_core import view
from layerscope.formats.onnx.node import Converter, ConverterTable, OnnxNode
from layerscope.formats.onnx.tensor_info import TensorInfo
from layerscope.graph import attributes as at


def rotated(node: OnnxNode, x: TensorInfo, heads: int, size: int, part: str) -> TensorInfo:
    """The first `size` features of each head rotated by their position; 0: all of them."""
    params = [
        node.param(f"{name}_cache", name, "statistic")
        for name in ("cos", "sin")
        if node.stored(f"{name}_cache")
    ]
    shape = x.shape
    assert shape is not None
    width = shape[3] if len(shape) == 4 else shape[2] // heads
    part = f"rotated_{part}" if part else ""
    if not size or size == width:
        return node.emit("rotary", (x,), at.Rotary(heads), params=params, part=part)[0]
    inner = part or "rotated"
    lead = shape[:3] if len(shape) == 4 else (*shape[:2], heads)
    whole = view(node, x, (*lead, width), f"{inner}_heads")
    left, right = node.emit(
        "split", (whole,), at.Split(3, (size, width - size)), part=f"{inner}_cut"
    )
    attrs = at.Rotary(heads)
    left = node.emit("rotary", (left,), attrs, params=params, part=f"{inner}_part")[0]
    joined = node.emit("concat", (left, right), at.Concat(3), part=f"{inner}_joined")[0]
    return view(node, joined, shape, part, None if part else node.outputs[:1])


def rotary(node: OnnxNode) -> None:
    """RotaryEmbedding of either domain."""
    node.mark_constant("position_ids")
    shape = node.shape()
    size = node.int_attr("rotary_embedding_dim")
    heads = node.int_attr("num_heads")
    if len(shape) == 4:
        heads = shape[1]
    elif not heads:
        heads = shape[2] // (2 * node.shape("cos_cache")[-1])
    rotated(node, node.input(), heads, size, "")


def gemma_rotary(node: OnnxNode) -> None:
    """GemmaRotaryEmbedding: sines and cosines of angles, then queries and keys rotated by them."""
    emb, names = node.input("emb"), node.outputs
    assert emb.shape is not None
    dtype = node.dtype("q")
    turned = []
    for op in ("sin", "cos"):
        y = node.emit(op, (emb,), part=op)[0]
        y = node.emit("cast", (y,), at.Cast(dtype), part=f"{op}_cast")[0]
        turned.append(view(node, y, (emb.shape[0], 1, *emb.shape[1:]), f"{op}_of_heads"))
    for n, (side, other) in enumerate((("q", "q_rot"), ("k", "k_rot"))):
        left = node.emit("mul", (node.input(side), turned[1]), part=f"cos{n}")[0]
        right = node.emit("mul", (node.input(other), turned[0]), part=f"sin{n}")[0]
        part = "" if n else f"sum{n}"
        node.emit("add", (left, right), part=part, outputs=names[n : n + 1])


OPERATORS: ConverterTable = {
    ("", "RotaryEmbedding"): Converter(rotary, "X cos_cache sin_cache position_ids"),
    ("com.microsoft", "RotaryEmbedding"): Converter(
        rotary, "input position_ids cos_cache sin_cache"
    ),
    # each feature by one of three positions
    ("com.microsoft", "MRotaryEmbedding"): Converter(
        rotary, "input position_ids cos_cache sin_cache"
    ),
    ("com.microsoft", "GemmaRotaryEmbedding"): Converter(gemma_rotary, "emb q q_rot k k_rot"),
}
