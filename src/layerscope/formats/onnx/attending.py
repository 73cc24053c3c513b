"""What attends: queries to keys, by heads, with masks and caches, whatever operator asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from layerscope.errors import ShapeError
from layerscope.formats.onnx.known import Known
from layerscope.formats.onnx.numbers import FLOATS
from layerscope.formats.onnx.site import Site
from layerscope.graph import attributes as at
from layerscope.graph.types import Shape


class Way(Struct, frozen=True):
    """How scores become weights, besides by softmax."""

    heads: int
    kv_heads: int = 0  # 0: as many as heads
    causal: bool = False
    scaled: bool = True
    softcap: float = 0.0
    scores: str = ""  # the output that wants them, and how far on the way they are taken
    stage: int = 0  # 0: products, 1: with the mask, 2: capped, 3: weights
    note: str = ""  # why it is a bound


def view(
    s: Site, known: Known, shape: Shape, part: str, outputs: Sequence[str] | None = None
) -> Known:
    """The same elements under another shape."""
    if known.shape == shape and not outputs:
        return known
    told = at.DeclaredOutputs((shape,), (known.dtype,))
    return s.emit("select", (known,), told, part=part, outputs=outputs, roles="constant")[0]


def by_heads(s: Site, known: Known, heads: int, part: str) -> Known:
    """N x T x (heads · size) as N x heads x T x size."""
    shape = known.shape
    assert shape is not None
    if len(shape) == 4:
        return known
    if len(shape) != 3 or shape[2] % heads:
        raise ShapeError(f"{shape} cut into {heads} heads")
    return view(s, known, (shape[0], heads, shape[1], shape[2] // heads), part)


def attend(
    s: Site, q: Known, k: Known, v: Known, way: Way, mask: Known | None = None, *, part: str = ""
) -> Known:
    """Queries by keys by values; in one node if nothing is asked of it on its way."""
    kv_heads = way.kv_heads or way.heads
    assert q.shape is not None
    assert k.shape is not None
    assert v.shape is not None
    flat = len(q.shape) == 3
    if flat and (len(k.shape) == 4 or len(v.shape) == 4):
        q = by_heads(s, q, way.heads, "queries")
        k, v = by_heads(s, k, kv_heads, "keys"), by_heads(s, v, kv_heads, "values")
    assert q.shape is not None
    assert k.shape is not None
    assert v.shape is not None
    kind = _kind(mask) if mask is not None else ""
    told = at.Attention(
        way.heads, way.kv_heads, causal=way.causal, scaled=way.scaled, mask=kind,
        softcap=way.softcap,
    )  # fmt: skip
    apart = flat and len(q.shape) == 4
    inside = "attention" if apart else part
    more = (mask,) if mask is not None else ()
    if not way.scores:
        made = s.emit(
            "attention", (q, k, v, *more), told, part=inside,
            outputs=None if inside else s.operator.outputs[:1],
            estimate=bool(way.note), note=way.note,
        )[0]  # fmt: skip
    else:
        q = by_heads(s, q, way.heads, "queries")
        k, v = by_heads(s, k, kv_heads, "keys"), by_heads(s, v, kv_heads, "values")
        apart = flat
        made = _by_steps(s, q, k, v, way, mask, part="context" if apart else part)
    if not apart:
        return made
    assert made.shape is not None
    batch, heads, steps, size = made.shape
    outputs = None if part else s.operator.outputs[:1]
    return view(s, made, (batch, steps, heads * size), part, outputs)


def _kind(mask: Known) -> Literal["add", "bool"]:
    """Floats are added to scores, flags choose among them."""
    return "add" if mask.dtype in FLOATS else "bool"


def _by_steps(
    s: Site, q: Known, k: Known, v: Known, way: Way, mask: Known | None, *, part: str
) -> Known:
    """All that happens between queries and result, one after the other."""
    assert q.shape is not None
    assert k.shape is not None
    assert v.shape is not None
    batch, heads, steps, size = q.shape
    kv_heads, keys = k.shape[1], k.shape[2]
    shared = heads // kv_heads
    scores: Shape = (batch, heads, steps, keys)
    if shared > 1:
        q = view(s, q, (batch, kv_heads, shared, steps, size), "groups")
        k = view(s, k, (batch, kv_heads, 1, keys, size), "keys_of_groups")
        v = view(s, v, (batch, kv_heads, 1, keys, v.shape[3]), "values_of_groups")
    made = s.emit("matmul", (q, k), at.MatMul(False, True), part="scores")[0]
    made = view(s, made, scores, "of_heads")
    if way.scaled:
        made = s.emit("mul", (made,), part="scale")[0]
    _hand_out(s, made, way, 0)
    if way.softcap:
        made = s.emit("div", (made,), part="cap_in")[0]
        made = s.emit("tanh", (made,), part="cap")[0]
        made = s.emit("mul", (made,), part="cap_out")[0]
    _hand_out(s, made, way, 2)
    if mask is not None:
        if _kind(mask) == "add":
            made = s.emit("add", (made, mask), part="mask")[0]
        else:
            made = s.emit("where", (mask, made, made), part="mask")[0]
    if way.causal:
        made = s.emit("trilu", (made,), part="causal")[0]
    _hand_out(s, made, way, 1)
    made = s.emit("softmax", (made,), at.Softmax(-1), part="softmax")[0]
    _hand_out(s, made, way, 3)
    if shared > 1:
        made = view(s, made, (batch, kv_heads, shared, steps, keys), "weights_of_groups")
    whole = shared == 1
    outputs = None if part or not whole else s.operator.outputs[:1]
    made = s.emit("matmul", (made, v), part=part if whole else "product", outputs=outputs)[0]
    if whole:
        return made
    assert made.shape is not None
    outputs = None if part else s.operator.outputs[:1]
    return view(s, made, (batch, heads, steps, made.shape[-1]), part, outputs)


def _hand_out(s: Site, made: Known, way: Way, stage: int) -> None:
    if way.scores and way.stage == stage:
        s.emit("identity", (made,), part="handed_out", outputs=[way.scores])


def output(s: Site, n: int) -> str:
    """The name of the n-th output, if anybody wants it."""
    names = s.operator.outputs
    return names[n] if n < len(names) else ""


def grown(s: Site, past: Known | None, new: Known, length: int, part: str, name: str) -> Known:
    """A cache with new steps behind the old ones, `length` of them in all."""
    assert new.shape is not None
    outputs = [name] if name else None
    if past is None or past.shape is None or 0 in past.shape:
        return view(s, new, new.shape, part, outputs)
    batch, heads, steps, size = new.shape
    if past.shape != (batch, heads, past.shape[2], size):
        raise ShapeError(f"a cache of {past.shape} for {new.shape}")
    if length == past.shape[2] + steps:
        return s.emit("concat", (past, new), at.Concat(2), part=part, outputs=outputs)[0]
    told = at.DeclaredOutputs(((batch, heads, length, size),), (new.dtype,))
    return s.emit("select", (past, new), told, part=part, outputs=outputs)[0]


def mask_of(s: Site, n: int, scores: Shape) -> Known | None:
    """A mask on scores of batch x heads x queries x keys, however it is written."""
    if not s.has(n):
        return None
    known = s.given(n)
    shape = known.shape
    assert shape is not None
    batch, _, steps, keys = scores
    if len(shape) == 1:  # lengths: compared with places
        lengths = view(s, known, (batch, 1, 1, 1), "lengths")
        places = s.emit(
            "constant", (), at.DeclaredOutputs(((keys,),), (known.dtype,)), part="places"
        )[0]
        return s.emit("compare", (lengths, places), part="mask_of_lengths")[0]
    if len(shape) == 2:
        return view(s, known, (shape[0], 1, 1, keys), f"mask{n}")
    if len(shape) == 3:
        return view(s, known, (shape[0], 1, steps, keys), f"mask{n}")
    return view(s, known, (*shape[:2], min(shape[2], steps), keys), f"mask{n}")


def masks(s: Site, places: Sequence[int], scores: Shape) -> Known | None:
    """All masks and biases of the scores, added up."""
    found = [mask for n in places if (mask := mask_of(s, n, scores)) is not None]
    if len(found) < 2:
        return found[0] if found else None
    return s.emit("add", found, part="masks")[0]
