"""New shapes, new orders, cuts and joins."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.arrays import axes_of, parts, reshaped, slices, squeezed, unsqueezed
from layerscope.formats.onnx.numbers import cast_dtype
from layerscope.formats.onnx.site import Convert, Site
from layerscope.graph import attributes as at
from layerscope.graph.types import Shape, elements
from layerscope.ops.spec import axis_of, broadcast


def moved_shape(s: Site) -> tuple[Shape, str]:
    """Shape and type after an operator that leaves the numbers as they are."""
    shape, dtype = s.shape(0), s.dtype(0)
    if s.op == "Cast":
        return shape, cast_dtype(s.told.get("to", 0)) or dtype
    if s.op == "CastLike":
        return shape, s.dtype(1)
    if s.op == "Transpose":
        return tuple(shape[n] for n in order(s)), dtype
    if s.op == "Reshape":
        return reshaped(shape, wanted(s), bool(s.whole("allowzero"))), dtype
    if s.op == "Squeeze":
        return squeezed(shape, _axes(s)), dtype
    if s.op == "Unsqueeze":
        return unsqueezed(shape, _axes(s) or ()), dtype
    if s.op == "Flatten":
        axis = s.whole("axis", 1)
        axis = axis + len(shape) if axis < 0 else axis
        return (elements(shape[:axis]), elements(shape[axis:])), dtype
    return shape, dtype


def wanted(s: Site) -> tuple[int, ...]:
    """The shape that a Reshape is told."""
    return s.wholes("shape") if "shape" in s.told else s.need(1).ints()


def _axes(s: Site) -> tuple[int, ...] | None:
    if "axes" not in s.told and s.has(1):
        s.need(1)
    return axes_of(s.told, [None, s.value(1)])


def order(s: Site) -> tuple[int, ...]:
    """The order of axes that a Transpose is told."""
    rank = len(s.shape(0))
    told = s.wholes("perm") or tuple(reversed(range(rank)))
    if sorted(told) != list(range(rank)):
        raise ShapeError(f"an order {told} of {rank} axes")
    return told


def reshape(s: Site) -> None:
    """Reshape and what amounts to it; sizes that are left open stay so where ours can say it."""
    shape, _ = moved_shape(s)
    if s.op == "Reshape" and not s.whole("allowzero"):
        told = wanted(s)
        if all(size != 0 or n < len(s.shape(0)) for n, size in enumerate(told)) and elements(shape):
            s.emit("reshape", (s.given(0),), at.Reshape(told))
            return
    s.emit("reshape", (s.given(0),), at.Reshape(shape))


def transpose(s: Site) -> None:
    """Transpose."""
    s.emit("permute", (s.given(0),), at.Permute(order(s)))


def identity(s: Site) -> None:
    """The same tensor, or sequence, under another name."""
    known = s.given(0)
    if not known.tensor:
        s.env[s.operator.outputs[0]] = known
        return
    s.alias(known)


def concat(s: Site) -> None:
    """Concat; parts without elements are left out, as engines leave them."""
    known = [known for known in s.inputs if known is not None]
    kept = [k for k in known if k.shape is None or elements(k.shape)] or known[:1]
    s.emit("concat", kept, at.Concat(s.whole("axis", 1)))


def split(s: Site) -> None:
    """Split."""
    x = s.shape(0)
    axis = axis_of(s.whole("axis"), len(x))
    sizes = s.need(1).ints() if s.has(1) else s.wholes("split")
    count = len(s.operator.outputs)
    cut = parts(x[axis], sizes, s.whole("num_outputs", count))
    if sum(cut) != x[axis] or min(cut) < 0 or len(cut) != count:
        raise ShapeError(f"an axis of {x[axis]} cut into {cut}, {count} outputs")
    s.emit("split", (s.given(0),), at.Split(axis, cut))


def slice_(s: Site) -> None:
    """Slice."""
    x = s.shape(0)
    more = [] if "starts" in s.told else [s.need(n) if s.has(n) else None for n in range(1, 5)]
    axes, starts, ends, steps = slices(s.told, more, len(x))
    axes = tuple(axis_of(axis, len(x)) for axis in axes)
    shape = list(x)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        shape[axis] = len(range(shape[axis])[start:end:step])
    if 0 in shape:  # nothing is left of it
        s.told_node("constant", (), (tuple(shape),), (s.dtype(0),))
        return
    told = at.Slice(axes, starts, ends, () if set(steps) == {1} else steps)
    s.emit("slice", (s.given(0),), told)


FILLINGS: dict[str, at.Filling] = {
    "constant": "constant",
    "reflect": "reflect",
    "edge": "edge",
    "wrap": "wrap",
}


def pad(s: Site) -> None:
    """Pad; since opset 18 it may name its axes."""
    rank = len(s.shape(0))
    pads = s.wholes("pads") or s.wholes("paddings") or s.need(1).ints()
    s.value(2)
    named = s.value(3)
    axes = named.ints() if named is not None else tuple(range(rank))
    if len(pads) != 2 * len(axes):
        raise ShapeError(f"{len(pads)} pads for {len(axes)} axes")
    each = [(0, 0)] * rank
    for n, axis in enumerate(axes):
        each[axis_of(axis, rank)] = (pads[n], pads[n + len(axes)])
    mode = s.text("mode", "constant")
    if mode not in FILLINGS:
        raise ShapeError(f"mode {mode!r}, expected {', '.join(FILLINGS)}")
    s.emit("pad", (s.given(0),), at.Pad(tuple(each), FILLINGS[mode]))


def tile(s: Site) -> None:
    """Tile."""
    times = s.need(1).ints()
    if s.opset < 6:
        axis, count = int(s.need(2).item), int(s.need(1).item)
        times = tuple(count if n == axis else 1 for n in range(len(s.shape(0))))
    s.emit("repeat", (s.given(0),), at.Repeat(times))


def expand(s: Site) -> None:
    """Expand: broadcast both ways."""
    shape = broadcast((s.shape(0), s.need(1).ints()))
    if 0 in shape:
        s.told_node("constant", (), (shape,), (s.dtype(0),))
        return
    s.emit("expand", (s.given(0),), at.Expand(shape))


def shuffle(s: Site) -> None:
    """DepthToSpace and back."""
    told = at.PixelShuffle(s.whole("blocksize", 1), inverse=s.op == "SpaceToDepth")
    s.emit("pixel_shuffle", (s.given(0),), told)


def shape_of(s: Site) -> None:
    """The shape of a tensor whose shape only the run knows."""
    s.unknown()


def trilu(s: Site) -> None:
    """A triangle of a matrix."""
    s.value(1)
    s.emit("trilu", (s.given(0),), roles="constant")  # a stored one is a mask


def crop_pad(s: Site) -> None:
    """CenterCropPad: to a size, from the middle."""
    x = s.shape(0)
    sizes = s.need(1).ints()
    axes = s.wholes("axes") or tuple(range(len(x)))
    starts, ends, pads = [], [], [(0, 0)] * len(x)
    for axis, size in zip(axes, sizes, strict=True):
        axis = axis_of(axis, len(x))
        cut, more = max(x[axis] - size, 0), max(size - x[axis], 0)
        starts.append(cut // 2)
        ends.append(cut // 2 + min(size, x[axis]))
        pads[axis] = (more // 2, more - more // 2)
    told = at.Slice(tuple(axis_of(axis, len(x)) for axis in axes), tuple(starts), tuple(ends))
    made = s.emit("slice", (s.given(0),), told, part="crop")[0]
    s.emit("pad", (made,), at.Pad(tuple(pads)))


OPERATORS: dict[tuple[str, str], Convert] = {
    ("", "Reshape"): reshape,
    ("", "Flatten"): reshape,
    ("", "Squeeze"): reshape,
    ("", "Unsqueeze"): reshape,
    ("", "Transpose"): transpose,
    ("", "Identity"): identity,
    ("", "Concat"): concat,
    ("", "Split"): split,
    ("", "Slice"): slice_,
    ("", "Pad"): pad,
    ("", "Tile"): tile,
    ("", "Expand"): expand,
    ("", "DepthToSpace"): shuffle,
    ("", "SpaceToDepth"): shuffle,
    ("", "Shape"): shape_of,
    ("", "Size"): shape_of,
    ("", "Trilu"): trilu,
    ("com.microsoft", "Trilu"): trilu,
    ("", "CenterCropPad"): crop_pad,
}
