"""Attention operators of ONNX and onnxruntime: projected, packed, cached, masked, grouped."""

from __future__ import annotations

from collections.abc import Sequence

from layerscope.errors import ShapeError
from layerscope.formats.onnx.converters.attention_core import (
    QKV,
    AttentionConfig,
    append_cache,
    attend,
    by_heads,
    cache_length,
    filled,
    mask_of,
    masks,
    output,
    past_sides,
    view,
)
from layerscope.formats.onnx.converters.normalization import arrays
from layerscope.formats.onnx.converters.quantization import scales
from layerscope.formats.onnx.converters.rotary import rotated
from layerscope.formats.onnx.node import Converter, ConverterTable, OnnxNode
from layerscope.formats.onnx.tensor_info import TensorInfo
from layerscope.graph import attributes as at
from layerscope.graph.types import Shape

SIDES = ("query", "key", "value")
PACKED = "sequences counted at the length of the longest"


def _scaled(node: OnnxNode) -> bool:
    return node.float_attr("scale") != 1.0


def _heads(node: OnnxNode, name: str = "num_heads") -> int:
    heads = node.int_attr(name)
    if heads < 1:
        raise ShapeError(f"{heads} heads")
    return heads


def projected(node: OnnxNode) -> None:
    """Attention of com.microsoft: one matrix projects to queries, keys and values."""
    quantized = node.op == "QAttention"
    x, w = node.input("input"), node.shape(1)
    if x.shape is None or len(x.shape) != 3 or len(w) != 2 or w[0] != x.shape[2]:
        raise ShapeError(f"attention of {x.shape} by {w}")
    qkv = _projection(node, x, quantized)
    sizes = node.ints_attr("qkv_hidden_sizes") or (w[1] // 3,) * 3
    q, k, v = node.emit("split", (qkv,), at.Split(2, sizes), part="heads")
    heads = _heads(node)
    if node.int_attr("do_rotary"):
        rotary_dim = node.int_attr("rotary_embedding_dim")
        q = rotated(node, q, heads, rotary_dim, "query")
        k = rotated(node, k, heads, rotary_dim, "key")
    past = node.optional("past")
    batch, steps = x.shape[:2]
    share = bool(node.int_attr("past_present_share_buffer"))
    total, note = cache_length(node, past, 3, steps, share)
    present = output(node, 1)
    if past is not None or present:
        k, v = by_heads(node, k, heads, "keys"), by_heads(node, v, heads, "values")
        sides = past_sides(node, past)
        k = append_cache(node, sides[0], k, total, ("all_keys", ""))
        v = append_cache(node, sides[1], v, total, ("all_values", ""))
        if present:
            assert k.shape is not None
            kept = past.shape if share and past is not None else (2, *k.shape)
            attrs = at.DeclaredOutputs((kept or (),), (k.dtype,))
            node.emit("select", (k, v), attrs, part="present", outputs=[present])
    scores = (batch, heads, steps, total)
    config = AttentionConfig(
        heads, causal=bool(node.int_attr("unidirectional")), scaled=_scaled(node), note=note
    )
    attend(node, QKV(q, k, v), config, masks(node, ("mask_index", "attention_bias"), scores))


def _projection(node: OnnxNode, x: TensorInfo, quantized: bool) -> TensorInfo:
    """The product with the weights of queries, keys and values."""
    w = node.shape(1)
    names = ("input_scale", "weight_scale", "input_zero_point", "weight_zero_point")
    more = scales(node, *names) if quantized else ()
    if node.stored(1):
        params = [node.param(1, "weight", "weight")]
        stored = node.stored("bias")
        if stored:
            params.append(node.param("bias", "bias", "bias"))
        linear = at.Linear(w[1], bias=stored)
        y = node.emit("linear", (x,), linear, params=(*params, *more), part="qkv")[0]
    else:
        stored = False
        y = node.emit("matmul", (x, node.input(1)), params=more, part="qkv")[0]
    if quantized:
        attrs = at.Quantize(x.dtype)
        y = node.emit("dequantize", (y,), attrs, params=(), part="dequantize")[0]
    if node.has("bias") and not stored:
        y = node.emit("add", (y, node.input("bias")), part="bias", roles="bias")[0]
    return y


def _split_bias(node: OnnxNode, sizes: Sequence[int]) -> Sequence[TensorInfo | None]:
    """The bias of queries, keys and values, which is one tensor."""
    bias = node.optional("bias")
    if bias is None:
        return (None, None, None)
    attrs = at.Split(0, tuple(sizes))
    return node.emit("split", (bias,), attrs, part="biases", roles="bias")


def _qkv(node: OnnxNode) -> QKV:
    """Queries, keys and values: three inputs, keys packed with values, or all packed in one."""
    q = node.input("query")
    assert q.shape is not None
    if len(q.shape) in (4, 5) and q.shape[-2] == 3 and not node.has("key"):
        lead = q.shape[:-3] if len(q.shape) == 5 else q.shape[:1]
        axis = len(q.shape) - 2
        pieces = node.emit("split", (q,), at.Split(axis, parts=3), part="packed")
        flat = (*lead, q.shape[-3] * q.shape[-1])
        return QKV(*[view(node, p, flat, n) for p, n in zip(pieces, SIDES, strict=True)])
    k = node.input("key")
    assert k.shape is not None
    if len(k.shape) == 5:
        pieces = node.emit("split", (k,), at.Split(3, parts=2), part="packed")
        flat = (*k.shape[:2], k.shape[2] * k.shape[4])
        return QKV(q, view(node, pieces[0], flat, "key"), view(node, pieces[1], flat, "value"))
    return QKV(q, k, node.input("value"))


def multi_head(node: OnnxNode) -> None:
    """MultiHeadAttention, and DecoderMaskedMultiHeadAttention for one step of decoding."""
    decoding = node.op == "DecoderMaskedMultiHeadAttention"
    heads = _heads(node)
    qkv, across = _with_biases(node, _projected_heads(node, decoding))
    q, k, v = qkv
    assert q.shape is not None
    assert k.shape is not None
    batch, steps = q.shape[:2]
    past = None if across else node.optional("past_key")
    new = k.shape[2] if across else k.shape[1]
    share = bool(node.int_attr("past_present_share_buffer")) or (
        node.has("past_sequence_length") and past is not None
    )
    total, note = cache_length(node, past, 2, new, share)
    if past is not None or output(node, 1) or output(node, 2):
        k, v = by_heads(node, k, heads, "keys"), by_heads(node, v, heads, "values")
        past_value = node.input("past_value") if past is not None else None
        room = past.shape[2] if share and past is not None and past.shape else total
        k = append_cache(node, past, k, room, ("all_keys", output(node, 1)))
        v = append_cache(node, past_value, v, room, ("all_values", output(node, 2)))
        if room != total:
            k, v = filled(node, k, v, total)
    scores = (batch, heads, steps, total)
    config = AttentionConfig(
        heads, causal=bool(node.int_attr("unidirectional")), scaled=_scaled(node), note=note,
        scores=output(node, 3), stage=3 if decoding else 0,
    )  # fmt: skip
    mask = masks(node, ("mask_index", "key_padding_mask", "attention_bias"), scores)
    attend(node, QKV(q, k, v), config, mask)


def _projected_heads(node: OnnxNode, decoding: bool) -> QKV:
    """The inputs as queries, keys and values; for decoding, all may be packed in one."""
    if decoding and not node.has("key"):
        width = node.shape("query")[2] // 3
        split = at.Split(2, (width,) * 3)
        qkv = QKV(*node.emit("split", (node.input("query"),), split, part="packed"))
    else:
        qkv = _qkv(node)
    assert qkv.q.shape is not None
    if len(qkv.q.shape) != 3:
        raise ShapeError(f"attention of {qkv.q.shape}")
    return qkv


def _with_biases(node: OnnxNode, qkv: QKV) -> tuple[QKV, bool]:
    """Biases added; and whether it is cross attention, with keys and values of an earlier run."""
    assert qkv.k.shape is not None
    across = len(qkv.k.shape) == 4
    biases = _split_bias(node, [_width(side.shape) for side in qkv])
    sides = list(qkv)
    for n, bias in enumerate(biases):
        if bias is not None and not (across and n):
            sides[n] = node.emit("add", (sides[n], bias), part=f"{SIDES[n]}_bias")[0]
    return QKV(*sides), across


def _width(shape: Shape | None) -> int:
    assert shape is not None
    return shape[1] * shape[3] if len(shape) == 4 else shape[2]


def packed(node: OnnxNode) -> None:
    """PackedAttention, PackedMultiHeadAttention: sequences without padding, tokens x features."""
    heads = _heads(node)
    projects = node.op == "PackedAttention"
    offsets = node.shape("token_offset")
    if len(offsets) != 2:
        raise ShapeError(f"offsets of {offsets}, expected sequences x tokens")
    if projects:
        y = _projection(node, node.input("input"), False)
        sizes = node.ints_attr("qkv_hidden_sizes") or (node.shape("weights")[1] // 3,) * 3
        sides = node.emit("split", (y,), at.Split(1, sizes), part="heads")
    else:
        sides = list(_qkv(node))
        widths = [side.shape[-1] for side in sides if side.shape]
        for n, bias in enumerate(_split_bias(node, widths)):
            if bias is not None:
                sides[n] = node.emit("add", (sides[n], bias), part=f"bias{n}")[0]
    tokens = node.shape()[0]
    qkv = QKV(
        *[
            view(node, side, (*offsets, side.shape[-1]), f"padded{n}")
            for n, side in enumerate(sides)
            if side.shape
        ]
    )
    config = AttentionConfig(heads, scaled=_scaled(node), note=PACKED)
    scores = (offsets[0], heads, offsets[1], offsets[1])
    y = attend(node, qkv, config, mask_of(node, "attention_bias", scores), part="attention")
    assert y.shape is not None
    view(node, y, (tokens, y.shape[2]), "", node.outputs[:1])


def grouped(node: OnnxNode) -> None:
    """GroupQueryAttention, and SparseAttention as if it were dense."""
    sparse = node.op == "SparseAttention"
    heads, kv_heads = _heads(node), _heads(node, "kv_num_heads")
    x = node.input("query")
    if x.shape is None or len(x.shape) != 3:
        raise ShapeError(f"attention of {x.shape}")
    batch, steps = x.shape[:2]
    if node.has("key"):
        q, k, v = x, node.input("key"), node.input("value")
        size = x.shape[2] // heads
    else:
        size = x.shape[2] // (heads + 2 * kv_heads)
        sizes = (heads * size, kv_heads * size, kv_heads * size)
        q, k, v = node.emit("split", (x,), at.Split(2, sizes), part="packed")
    q, k = _normed(node, q, k, heads, kv_heads)
    if node.int_attr("do_rotary"):
        rotary_dim = 2 * node.shape("cos_cache")[-1] if node.has("cos_cache") else size
        q = rotated(node, q, heads, rotary_dim, "query")
        k = rotated(node, k, kv_heads, rotary_dim, "key")
    past = node.optional("past_key")
    room = past.shape[2] if past is not None and past.shape is not None else 0
    length = node.value("total_sequence_length")
    note = ""
    if length is not None and length.values:
        total = max(int(length.values[0]), 1)
    else:
        total = room + steps
        note = "the number of keys is run-time data: the whole cache and the new ones are counted"
        note = note if room else ""
    if sparse:
        note = "a bound: blocks that are left out are counted"
    buffer = max(room, total)
    k, v = by_heads(node, k, kv_heads, "keys"), by_heads(node, v, kv_heads, "values")
    past_value = node.optional("past_value")
    k = append_cache(node, past, k, buffer, ("all_keys", output(node, 1)))
    v = append_cache(node, past_value, v, buffer, ("all_values", output(node, 2)))
    assert k.shape is not None
    total = min(total, k.shape[2])
    if k.shape[2] != total:
        k, v = filled(node, k, v, total)
    scores = (batch, heads, steps, total)
    config = AttentionConfig(
        heads, kv_heads, causal=bool(node.int_attr("causal", 1)), scaled=_scaled(node),
        softcap=node.float_attr("softcap"), note=note, scores="" if sparse else output(node, 3),
    )  # fmt: skip
    if node.stored("head_sink"):  # one more score a head, learned
        node.reader.input_name(node.input("head_sink"))
    mask = mask_of(node, "attention_bias", scores)
    attend(node, QKV(q, k, v), config, mask)


def _normed(
    node: OnnxNode, q: TensorInfo, k: TensorInfo, heads: int, kv_heads: int
) -> tuple[TensorInfo, TensorInfo]:
    """Queries and keys after an RMS norm, if the operator has weights for that."""
    sides = []
    for side, count, name in ((q, heads, "query"), (k, kv_heads, "key")):
        weight = f"{name[0]}_norm_weight"
        if not node.has(weight):
            sides.append(side)
            continue
        assert side.shape is not None
        shape = (*side.shape[:2], count, side.shape[2] // count)
        split_heads = view(node, side, shape, f"{name}_heads")
        params, given = arrays(node, ((weight, "weight", "scale"),))
        normed = node.emit(
            "rms_norm", (split_heads, *given), at.RMSNorm(-1), params=params, part=f"{name}_norm"
        )[0]
        sides.append(view(node, normed, side.shape, f"{name}_joined"))
    return sides[0], sides[1]


def attention(node: OnnxNode) -> None:
    """Attention of ai.onnx, since opset 23."""
    q, k, v = node.input("Q"), node.input("K"), node.input("V")
    assert q.shape is not None
    assert k.shape is not None
    flat = len(q.shape) == 3
    heads = node.int_attr("q_num_heads") if flat else q.shape[1]
    kv_heads = node.int_attr("kv_num_heads") if flat else k.shape[1]
    if heads < 1 or kv_heads < 1:
        raise ShapeError(f"{heads} and {kv_heads} heads")
    batch, steps = (q.shape[0], q.shape[1] if flat else q.shape[2])
    past = node.optional("past_key")
    new = k.shape[1] if flat else k.shape[2]
    total = new + (past.shape[2] if past is not None and past.shape else 0)
    if past is not None or output(node, 1) or output(node, 2):
        k, v = by_heads(node, k, kv_heads, "keys"), by_heads(node, v, kv_heads, "values")
        past_value = node.optional("past_value")
        k = append_cache(node, past, k, total, ("all_keys", output(node, 1)))
        v = append_cache(node, past_value, v, total, ("all_values", output(node, 2)))
    mask = _attn_mask(node, total)
    config = AttentionConfig(
        heads, kv_heads, causal=bool(node.int_attr("is_causal")), scaled=_scaled(node),
        softcap=node.float_attr("softcap"), scores=output(node, 3),
        stage=node.int_attr("qk_matmul_output_mode"),
    )  # fmt: skip
    if node.has("nonpad_kv_seqlen"):
        lengths = mask_of(node, "nonpad_kv_seqlen", (batch, heads, steps, total))
        found = [each for each in (mask, lengths) if each is not None]
        mask = node.emit("add", found, part="masks")[0] if len(found) > 1 else lengths
    attend(node, QKV(q, k, v), config, mask)


def _attn_mask(node: OnnxNode, keys: int) -> TensorInfo | None:
    """The mask, over so many keys."""
    mask = node.optional("attn_mask")
    if mask is None:
        return None
    assert mask.shape is not None
    if mask.shape[-1] != keys and mask.shape[-1] != 1:
        return view(node, mask, (*mask.shape[:-1], keys), "mask_filled")
    if mask.initializer is None:
        return mask
    node.reader.mark_constant(mask)  # a stored mask is not learned
    shapes, dtypes = (mask.shape or (),), (mask.dtype,)
    return node.emit_shaped("select", (mask,), shapes, dtypes, part="mask", roles="constant")[0]


OPERATORS: ConverterTable = {
    ("", "Attention"): Converter(attention, "Q K V attn_mask past_key past_value nonpad_kv_seqlen"),
    ("com.microsoft", "Attention"): Converter(
        projected, "input weights bias mask_index past attention_bias past_sequence_length"
    ),
    ("com.microsoft", "QAttention"): Converter(
        projected,
        "input weight bias input_scale weight_scale mask_index input_zero_point weight_zero_point "
        "past",
    ),
    ("com.microsoft", "DecoderMaskedSelfAttention"): Converter(
        projected,
        "input weights bias mask_index past attention_bias past_sequence_length beam_width "
        "cache_indirection",
    ),
    ("com.microsoft", "MultiHeadAttention"): Converter(
        multi_head,
        "query key value bias key_padding_mask attention_bias past_key past_value "
        "past_sequence_length cache_indirection",
    ),
    ("com.microsoft", "DecoderMaskedMultiHeadAttention"): Converter(
        multi_head,
        "query key value mask_index attention_bias past_key past_value past_sequence_length "
        "beam_width cache_indirection bias",
    ),
    ("com.microsoft", "GroupQueryAttention"): Converter(
        grouped,
        "query key value past_key past_value seqlens_k total_sequence_length cos_cache sin_cache "
        "position_ids attention_bias head_sink k_scale v_scale q_norm_weight k_norm_weight",
    ),
    ("com.microsoft", "SparseAttention"): Converter(
        grouped,
        "query key value past_key past_value block_row_indices block_col_indices "
        "total_sequence_length key_total_sequence_lengths cos_cache sin_cache",
    ),
    ("com.microsoft", "PackedAttention"): Converter(
        packed, "input weights bias token_offset cumulative_sequence_length attention_bias"
    ),
    ("com.microsoft", "PackedMultiHeadAttention"): Converter(
        packed, "query key value bias token_offset cumulative_sequence_length attention_bias"
    ),
}
