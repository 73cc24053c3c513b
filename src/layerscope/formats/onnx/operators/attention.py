"""Attention in all the ways that operators write it: projected, packed, cached, masked, grouped."""

from __future__ import annotations

from collections.abc import Sequence

from layerscope.errors import ShapeError
from layerscope.formats.onnx.attending import (
    Way,
    attend,
    by_heads,
    grown,
    mask_of,
    masks,
    output,
    view,
)
from layerscope.formats.onnx.known import Known
from layerscope.formats.onnx.operators.quantized import scales
from layerscope.formats.onnx.operators.rotary import rotated
from layerscope.formats.onnx.site import Convert, Site
from layerscope.graph import attributes as at
from layerscope.graph.types import Shape

UNTOLD_LENGTH = "only the run tells the length of the cache: all of it counted"
PACKED = "sequences counted at the length of the longest"


def _scaled(s: Site) -> bool:
    return s.real("scale") != 1.0


def _heads(s: Site, name: str = "num_heads") -> int:
    heads = s.whole(name)
    if heads < 1:
        raise ShapeError(f"{heads} heads")
    return heads


def projected(s: Site) -> None:
    """Attention of com.microsoft: one matrix makes queries, keys and values."""
    quantized = s.op == "QAttention"
    x, w = s.given(0), s.shape(1)
    if x.shape is None or len(x.shape) != 3 or len(w) != 2 or w[0] != x.shape[2]:
        raise ShapeError(f"attention of {x.shape} by {w}")
    masked, old = (5, 8) if quantized else (3, 4)
    qkv = _projection(s, x, quantized)
    sizes = s.wholes("qkv_hidden_sizes") or (w[1] // 3,) * 3
    q, k, v = s.emit("split", (qkv,), at.Split(2, sizes), part="heads")
    heads = _heads(s)
    if s.whole("do_rotary"):
        q, k = (rotated(s, x, heads, s.whole("rotary_embedding_dim"), n) for x, n in _pair(q, k))
    past = s.given(old) if s.has(old) else None
    batch, steps = x.shape[:2]
    share = bool(s.whole("past_present_share_buffer"))
    total, note = _length(s, past, 3, steps, 6 if not quantized else -1, share)
    name = output(s, 1)
    if past is not None or name:
        k, v = by_heads(s, k, heads, "keys"), by_heads(s, v, heads, "values")
        sides = _sides(s, past)
        k = grown(s, sides[0], k, total, "all_keys", "")
        v = grown(s, sides[1], v, total, "all_values", "")
        if name:
            assert k.shape is not None
            kept = past.shape if share and past is not None else (2, *k.shape)
            told = at.DeclaredOutputs((kept or (),), (k.dtype,))
            s.emit("select", (k, v), told, part="present", outputs=[name])
    scores = (batch, heads, steps, total)
    places = (masked,) if quantized else (masked, 5)
    way = Way(heads, causal=bool(s.whole("unidirectional")), scaled=_scaled(s), note=note)
    attend(s, q, k, v, way, masks(s, places, scores))


def _projection(s: Site, x: Known, quantized: bool) -> Known:
    w = s.shape(1)
    more = scales(s, 3, 4, 6, 7) if quantized else ()
    if s.stored(1):
        params = [s.param(1, "weight", "weight")]
        stored = s.stored(2)
        if stored:
            params.append(s.param(2, "bias", "bias"))
        told = at.Linear(w[1], bias=stored)
        made = s.emit("linear", (x,), told, params=(*params, *more), part="qkv")[0]
    else:
        stored = False
        made = s.emit("matmul", (x, s.given(1)), params=more, part="qkv")[0]
    if quantized:
        told_type = at.Quantize(x.dtype)
        made = s.emit("dequantize", (made,), told_type, params=(), part="dequantize")[0]
    if s.has(2) and not stored:
        made = s.emit("add", (made, s.given(2)), part="bias", roles="bias")[0]
    return made


def _pair(q: Known, k: Known) -> tuple[tuple[Known, str], tuple[Known, str]]:
    return (q, "query"), (k, "key")


def _sides(s: Site, past: Known | None) -> tuple[Known | None, Known | None]:
    """Keys and values of a cache that has both in one."""
    if past is None:
        return None, None
    shape = past.shape
    if shape is None or len(shape) != 5 or shape[0] != 2:
        raise ShapeError(f"a cache of {shape}, expected 2 x N x heads x steps x size")
    return view(s, past, shape[1:], "past_keys"), view(s, past, shape[1:], "past_values")


def _length(
    s: Site, past: Known | None, axis: int, steps: int, told: int, share: bool
) -> tuple[int, str]:
    """Keys in all; of a buffer that is not full only the run may know."""
    if past is None or past.shape is None:
        return steps, ""
    room = past.shape[axis]
    if not share:
        return room + steps, ""
    value = s.value(told) if told >= 0 else None
    if value is None:
        return room, UNTOLD_LENGTH
    return min(int(value.item) + steps, room), ""


def _bias_parts(s: Site, n: int, sizes: Sequence[int]) -> Sequence[Known | None]:
    """A bias of queries, keys and values in one."""
    if not s.has(n):
        return (None, None, None)
    told = at.Split(0, tuple(sizes))
    return s.emit("split", (s.given(n),), told, part="biases", roles="bias")


def _given_heads(s: Site, heads: int) -> tuple[Known, Known, Known]:
    """Queries, keys and values: each for itself, keys with values, or all in one."""
    q = s.given(0)
    assert q.shape is not None
    if len(q.shape) in (4, 5) and q.shape[-2] == 3 and not s.has(1):
        lead = q.shape[:-3] if len(q.shape) == 5 else q.shape[:1]
        axis = len(q.shape) - 2
        pieces = s.emit("split", (q,), at.Split(axis, parts=3), part="packed")
        flat = (*lead, q.shape[-3] * q.shape[-1])
        made = [view(s, p, flat, n) for p, n in zip(pieces, ("query", "key", "value"), strict=True)]
        return made[0], made[1], made[2]
    k = s.given(1)
    assert k.shape is not None
    if len(k.shape) == 5:
        pieces = s.emit("split", (k,), at.Split(3, parts=2), part="packed")
        flat = (*k.shape[:2], k.shape[2] * k.shape[4])
        return q, view(s, pieces[0], flat, "key"), view(s, pieces[1], flat, "value")
    return q, k, s.given(2)


def multi_head(s: Site) -> None:
    """MultiHeadAttention, and the one for decoding a step at a time."""
    decoding = s.op == "DecoderMaskedMultiHeadAttention"
    bias, masked, more, old, told = (10, 3, 4, 5, 7) if decoding else (3, 4, 5, 6, 8)
    heads = _heads(s)
    if decoding and not s.has(1):  # all in one
        width = s.shape(0)[2] // 3
        q, k, v = s.emit("split", (s.given(0),), at.Split(2, (width,) * 3), part="packed")
    else:
        q, k, v = _given_heads(s, heads)
    assert q.shape is not None
    assert k.shape is not None
    assert v.shape is not None
    if len(q.shape) != 3:
        raise ShapeError(f"attention of {q.shape}")
    across = len(k.shape) == 4  # keys and values as an earlier run left them
    widths = [q.shape[2], *[_width(side.shape) for side in (k, v)]]
    biases = _bias_parts(s, bias, widths)
    names = ("query", "key", "value")
    sides = [q, k, v]
    for n, known in enumerate(biases):
        if known is not None and not (across and n):
            sides[n] = s.emit("add", (sides[n], known), part=f"{names[n]}_bias")[0]
    q, k, v = sides
    assert q.shape is not None
    assert k.shape is not None
    assert v.shape is not None
    batch, steps = q.shape[:2]
    past = s.given(old) if s.has(old) and not across else None
    new = k.shape[2] if across else k.shape[1]
    share = bool(s.whole("past_present_share_buffer")) or (s.has(told) and past is not None)
    total, note = _length(s, past, 2, new, told, share)
    if past is not None or output(s, 1) or output(s, 2):
        k, v = by_heads(s, k, heads, "keys"), by_heads(s, v, heads, "values")
        before = s.given(old + 1) if past is not None else None
        room = past.shape[2] if share and past is not None and past.shape else total
        k = grown(s, past, k, room, "all_keys", output(s, 1))
        v = grown(s, before, v, room, "all_values", output(s, 2))
        if room != total:
            assert k.shape is not None
            assert v.shape is not None
            k = view(s, k, (*k.shape[:2], total, k.shape[3]), "filled_keys")
            v = view(s, v, (*v.shape[:2], total, v.shape[3]), "filled_values")
    scores = (batch, heads, steps, total)
    way = Way(
        heads, causal=bool(s.whole("unidirectional")), scaled=_scaled(s), note=note,
        scores=output(s, 3), stage=3 if decoding else 0,
    )  # fmt: skip
    attend(s, q, k, v, way, masks(s, (masked, more), scores))


def _width(shape: Shape | None) -> int:
    assert shape is not None
    return shape[1] * shape[3] if len(shape) == 4 else shape[2]


def packed(s: Site) -> None:
    """Attention of sequences without padding between them: tokens x features."""
    heads = _heads(s)
    own = s.op == "PackedAttention"
    offsets = s.shape(3 if own else 4)
    if len(offsets) != 2:
        raise ShapeError(f"offsets of {offsets}, expected sequences x tokens")
    if own:
        made = _projection(s, s.given(0), False)
        sizes = s.wholes("qkv_hidden_sizes") or (s.shape(1)[1] // 3,) * 3
        sides = s.emit("split", (made,), at.Split(1, sizes), part="heads")
    else:
        sides = list(_given_heads(s, heads))
        widths = [side.shape[-1] for side in sides if side.shape]
        for n, known in enumerate(_bias_parts(s, 3, widths)):
            if known is not None:
                sides[n] = s.emit("add", (sides[n], known), part=f"bias{n}")[0]
    tokens = s.shape(0)[0]
    q, k, v = (
        view(s, side, (*offsets, side.shape[-1]), f"padded{n}")
        for n, side in enumerate(sides)
        if side.shape
    )
    way = Way(heads, scaled=_scaled(s), note=PACKED)
    scores = (offsets[0], heads, offsets[1], offsets[1])
    made = attend(s, q, k, v, way, mask_of(s, 5 if own else 6, scores), part="attention")
    assert made.shape is not None
    view(s, made, (tokens, made.shape[2]), "", s.operator.outputs[:1])


def grouped(s: Site) -> None:
    """GroupQueryAttention, and SparseAttention as if it were dense."""
    sparse = s.op == "SparseAttention"
    heads, kv_heads = _heads(s), _heads(s, "kv_num_heads")
    x = s.given(0)
    if x.shape is None or len(x.shape) != 3:
        raise ShapeError(f"attention of {x.shape}")
    batch, steps = x.shape[:2]
    if s.has(1):
        q, k, v = x, s.given(1), s.given(2)
        size = x.shape[2] // heads
    else:
        size = x.shape[2] // (heads + 2 * kv_heads)
        sizes = (heads * size, kv_heads * size, kv_heads * size)
        q, k, v = s.emit("split", (x,), at.Split(2, sizes), part="packed")
    q, k = _normed(s, q, k, heads, kv_heads)
    tables = (9, 10) if sparse else (7, 8)
    if s.whole("do_rotary"):
        turned = 2 * s.shape(tables[0])[-1] if s.has(tables[0]) else size
        q = rotated(s, q, heads, turned, "query", tables)
        k = rotated(s, k, kv_heads, turned, "key", tables)
    past = s.given(3) if s.has(3) else None
    room = past.shape[2] if past is not None and past.shape is not None else 0
    told = s.value(7 if sparse else 6)
    note = ""
    if told is not None and told.values:
        total = max(int(told.values[0]), 1)
    else:
        total = room + steps
        note = "only the run tells how many keys there are: the cache and the new ones counted"
        note = note if room else ""
    if sparse:
        note = "a bound: blocks that are left out are counted"
    held = max(room, total)
    k, v = by_heads(s, k, kv_heads, "keys"), by_heads(s, v, kv_heads, "values")
    k = grown(s, past, k, held, "all_keys", output(s, 1))
    v = grown(s, s.given(4) if s.has(4) else None, v, held, "all_values", output(s, 2))
    assert k.shape is not None
    assert v.shape is not None
    total = min(total, k.shape[2])
    if k.shape[2] != total:
        k = view(s, k, (*k.shape[:2], total, k.shape[3]), "filled_keys")
        v = view(s, v, (*v.shape[:2], total, v.shape[3]), "filled_values")
    scores = (batch, heads, steps, total)
    way = Way(
        heads, kv_heads, causal=bool(s.whole("causal", 1)), scaled=_scaled(s),
        softcap=s.real("softcap"), note=note, scores="" if sparse else output(s, 3),
    )  # fmt: skip
    for n in () if sparse else (11,):
        if s.stored(n):  # one more score a head, learned
            s.reader.input_name(s.given(n))
    attend(s, q, k, v, way, None if sparse else mask_of(s, 10, scores))


def _normed(s: Site, q: Known, k: Known, heads: int, kv_heads: int) -> tuple[Known, Known]:
    """Queries and keys divided by their lengths, where the operator has weights for that."""
    made = []
    for side, n, count, name in ((q, 14, heads, "query"), (k, 15, kv_heads, "key")):
        if s.op == "SparseAttention" or not s.has(n):
            made.append(side)
            continue
        assert side.shape is not None
        shape = (*side.shape[:2], count, side.shape[2] // count)
        apart = view(s, side, shape, f"{name}_heads")
        params = (s.param(n, "weight", "scale"),) if s.stored(n) else ()
        given = () if s.stored(n) else (s.given(n),)
        normed = s.emit(
            "rms_norm", (apart, *given), at.RMSNorm(-1), params=params, part=f"{name}_norm"
        )[0]
        made.append(view(s, normed, side.shape, f"{name}_joined"))
    return made[0], made[1]


def plain(s: Site) -> None:
    """Attention of the default domain, since opset 23."""
    q, k, v = s.given(0), s.given(1), s.given(2)
    assert q.shape is not None
    assert k.shape is not None
    assert v.shape is not None
    flat = len(q.shape) == 3
    heads = s.whole("q_num_heads") if flat else q.shape[1]
    kv_heads = s.whole("kv_num_heads") if flat else k.shape[1]
    if heads < 1 or kv_heads < 1:
        raise ShapeError(f"{heads} and {kv_heads} heads")
    batch, steps = (q.shape[0], q.shape[1] if flat else q.shape[2])
    past = s.given(4) if s.has(4) else None
    new = k.shape[1] if flat else k.shape[2]
    total = new + (past.shape[2] if past is not None and past.shape else 0)
    if past is not None or output(s, 1) or output(s, 2):
        k, v = by_heads(s, k, kv_heads, "keys"), by_heads(s, v, kv_heads, "values")
        k = grown(s, past, k, total, "all_keys", output(s, 1))
        v = grown(s, s.given(5) if s.has(5) else None, v, total, "all_values", output(s, 2))
    mask: Known | None = None
    if s.has(3):
        mask = s.given(3)
        assert mask.shape is not None
        if mask.shape[-1] != total and mask.shape[-1] != 1:
            mask = view(s, mask, (*mask.shape[:-1], total), "mask_filled")
        elif mask.entry is not None:  # a mask that is written out is not learned
            s.reader.uses(mask)
            mask = s.told_node(
                "select", (mask,), (mask.shape or (),), (mask.dtype,), part="mask", roles="constant"
            )[0]
    way = Way(
        heads, kv_heads, causal=bool(s.whole("is_causal")), scaled=_scaled(s),
        softcap=s.real("softcap"), scores=output(s, 3), stage=s.whole("qk_matmul_output_mode"),
    )  # fmt: skip
    if s.has(6):
        lengths = mask_of(s, 6, (batch, heads, steps, total))
        known = [known for known in (mask, lengths) if known is not None]
        mask = s.emit("add", known, part="masks")[0] if len(known) > 1 else lengths
    attend(s, q, k, v, way, mask)


OPERATORS: dict[tuple[str, str], Convert] = {
    ("", "Attention"): plain,
    ("com.microsoft", "Attention"): projected,
    ("com.microsoft", "QAttention"): projected,
    ("com.microsoft", "DecoderMaskedSelfAttention"): projected,
    ("com.microsoft", "MultiHeadAttention"): multi_head,
    ("com.microsoft", "DecoderMaskedMultiHeadAttention"): multi_head,
    ("com.microsoft", "GroupQueryAttention"): grouped,
    ("com.microsoft", "SparseAttention"): grouped,
    ("com.microsoft", "PackedAttention"): packed,
    ("com.microsoft", "PackedMultiHeadAttention"): packed,
}
