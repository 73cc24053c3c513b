"""Features turned by their position, as operators of their own and inside of attention."""

from __future__ import annotations

from layerscope.formats.onnx.attending import view
from layerscope.formats.onnx.known import Known
from layerscope.formats.onnx.site import Convert, Site
from layerscope.graph import attributes as at


def rotated(
    s: Site, x: Known, heads: int, size: int, part: str, arrays: tuple[int, int] | None = None
) -> Known:
    """Features of each head turned by their position; only `size` of them if that is told."""
    params = []
    for n, name in zip(arrays or (), ("cos", "sin"), strict=False):
        if s.stored(n):
            params.append(s.param(n, name, "statistic"))
    shape = x.shape
    assert shape is not None
    width = shape[3] if len(shape) == 4 else shape[2] // heads
    part = f"rotated_{part}" if part else ""
    if not size or size == width:
        return s.emit("rotary", (x,), at.Rotary(heads), params=params, part=part)[0]
    inner = part or "rotated"
    lead = shape[:3] if len(shape) == 4 else (*shape[:2], heads)
    whole = view(s, x, (*lead, width), f"{inner}_heads")
    left, right = s.emit("split", (whole,), at.Split(3, (size, width - size)), part=f"{inner}_cut")
    told = at.Rotary(heads)
    left = s.emit("rotary", (left,), told, params=params, part=f"{inner}_part")[0]
    joined = s.emit("concat", (left, right), at.Concat(3), part=f"{inner}_joined")[0]
    return view(s, joined, shape, part, None if part else s.operator.outputs[:1])


def rotary(s: Site) -> None:
    """RotaryEmbedding of either domain."""
    own = bool(s.operator.domain)
    cos, sin, ids = (2, 3, 1) if own else (1, 2, 3)
    s.reader.uses(s.given(ids) if s.has(ids) else None)
    shape = s.shape(0)
    size = s.whole("rotary_embedding_dim")
    heads = s.whole("num_heads")
    if len(shape) == 4:
        heads = shape[1]
    elif not heads:
        heads = shape[2] // (2 * s.shape(cos)[-1])
    rotated(s, s.given(0), heads, size, "", (cos, sin))


def gemma_rotary(s: Site) -> None:
    """Sines and cosines of angles, then both sides turned by them."""
    emb, names = s.given(0), s.operator.outputs
    assert emb.shape is not None
    dtype = s.dtype(1)
    turned = []
    for op in ("sin", "cos"):
        made = s.emit(op, (emb,), part=op)[0]
        made = s.emit("cast", (made,), at.Cast(dtype), part=f"{op}_cast")[0]
        turned.append(view(s, made, (emb.shape[0], 1, *emb.shape[1:]), f"{op}_of_heads"))
    for n, (side, other) in enumerate(((1, 2), (3, 4))):
        left = s.emit("mul", (s.given(side), turned[1]), part=f"cos{n}")[0]
        right = s.emit("mul", (s.given(other), turned[0]), part=f"sin{n}")[0]
        part = "" if n else f"sum{n}"
        s.emit("add", (left, right), part=part, outputs=names[n : n + 1])


OPERATORS: dict[tuple[str, str], Convert] = {
    ("", "RotaryEmbedding"): rotary,
    ("com.microsoft", "RotaryEmbedding"): rotary,
    ("com.microsoft", "MRotaryEmbedding"): rotary,  # each feature by one of three positions
    ("com.microsoft", "GemmaRotaryEmbedding"): gemma_rotary,
}
