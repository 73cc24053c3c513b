"""Cuts and joins: parts of tensors, and tensors of parts."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.graph.attributes import Concat, Crop, Slice, Split
from layerscope.graph.types import Shape, elements
from layerscope.ops.access_map import NOT_READ, SAME, AccessMap, Map, SliceMap, WindowMap, keep
from layerscope.ops.autograd import nothing
from layerscope.ops.spec import Call, OpSpec, axis_of, free, passes, shown


def _concat_shape(call: Call) -> tuple[Shape, ...]:
    a: Concat = call.attributes or Concat()
    x = call.x
    axis = axis_of(a.axis, len(x))
    before, after = x[:axis], x[axis + 1 :]
    for shape in {*call.inputs}:  # often all inputs have the same shape
        if len(shape) != len(x) or shape[:axis] != before or shape[axis + 1 :] != after:
            shapes = ", ".join(map(shown, call.inputs))
            raise ShapeError(f"joining {shapes} along axis {axis}: the other axes do not agree")
    return ((*before, sum([shape[axis] for shape in call.inputs]), *after),)


def _concat_access(call: Call) -> tuple[AccessMap, ...]:
    axis = axis_of((call.attributes or Concat()).axis, len(call.x))
    start = 0
    maps: list[AccessMap] = []
    for shape in call.inputs:
        access: dict[int, tuple[int, Map]] = {a: (a, SAME) for a in range(len(shape)) if a != axis}
        access[axis] = (axis, SliceMap(start, shape[axis]))
        start += shape[axis]
        maps.append(access)
    return tuple(maps)


def _pieces(call: Call) -> tuple[int, tuple[int, ...]]:
    """The axis that is cut, and the size of every piece."""
    a: Split = call.attributes
    axis = axis_of(a.axis, len(call.x))
    whole = call.x[axis]
    sizes = a.sizes
    if not sizes:
        if a.parts < 1 or whole % a.parts:
            raise ShapeError(f"{whole} cannot be cut into {a.parts} equal parts")
        return axis, (whole // a.parts,) * a.parts
    if sizes.count(-1) == 1:
        rest = whole - sum(size for size in sizes if size != -1)
        sizes = tuple(rest if size == -1 else size for size in sizes)
    if sum(sizes) != whole or min(sizes, default=-1) < 0:
        raise ShapeError(f"cutting {whole} into {a.sizes}, which add up to {sum(sizes)}")
    return axis, sizes


def _split_shape(call: Call) -> tuple[Shape, ...]:
    axis, sizes = _pieces(call)
    return tuple((*call.x[:axis], size, *call.x[axis + 1 :]) for size in sizes)


def _split_access(call: Call) -> tuple[AccessMap, ...]:
    """One access map for each piece, which begins where the previous one ends."""
    axis, sizes = _pieces(call)
    start = 0
    maps: list[AccessMap] = []
    for size in sizes:
        access: dict[int, tuple[int, Map]] = {n: (n, SAME) for n in range(len(call.x))}
        access[axis] = (axis, WindowMap(begin=-start))
        start += size
        maps.append(access)
    return tuple(maps)


def _ranges(call: Call) -> dict[int, range]:
    a: Slice = call.attributes
    steps = a.steps or (1,) * len(a.axes)
    if not len(a.axes) == len(a.starts) == len(a.ends) == len(steps):
        raise ShapeError(
            f"a slice with {len(a.axes)} axes, {len(a.starts)} starts, {len(a.ends)} ends and "
            f"{len(steps)} steps"
        )
    ranges = {}
    for axis, start, end, step in zip(a.axes, a.starts, a.ends, steps, strict=True):
        if step == 0:
            raise ShapeError("a slice with step 0")
        n = axis_of(axis, len(call.x))
        ranges[n] = range(*slice(start, end, step).indices(call.x[n]))
        if not ranges[n]:
            raise ShapeError(f"slice {start}:{end}:{step} of {call.x[n]} elements is empty")
    return ranges


def _slice_shape(call: Call) -> tuple[Shape, ...]:
    ranges = _ranges(call)
    return (tuple(len(ranges[n]) if n in ranges else size for n, size in enumerate(call.x)),)


def _slice_access(call: Call) -> tuple[AccessMap, ...]:
    ranges = _ranges(call)
    access: dict[int, tuple[int, Map]] = {}
    for n in range(len(call.x)):
        taken = ranges.get(n)
        access[n] = (n, SAME if taken is None else WindowMap(stride=taken.step, begin=-taken.start))
    return (access,)


def _insert_shape(call: Call) -> tuple[Shape, ...]:
    whole, part = call.inputs
    if call.attributes is None:
        return (whole,)
    (room,) = _slice_shape(Call(call.attributes, (whole,)))
    if part != room:
        raise ShapeError(f"putting {shown(part)} into {shown(whole)} where {shown(room)} fits")
    return (whole,)


def _insert_access(call: Call) -> tuple[AccessMap, ...]:
    """The whole as it was, and the part from where it was put."""
    if call.attributes is None:
        return (keep(range(len(call.x))), {})
    ranges = _ranges(call)
    part: dict[int, tuple[int, Map]] = {}
    for n in range(len(call.x)):
        taken = ranges.get(n)
        if taken is None:
            part[n] = (n, SAME)
        elif taken.step == 1:
            part[n] = (n, SliceMap(taken.start, len(taken)))
    return (keep(range(len(call.x))), part)


def _crop_offsets(call: Call) -> dict[int, int]:
    a: Crop = call.attributes or Crop()
    axis = axis_of(a.axis, len(call.x))
    axes = range(axis, len(call.x))
    offsets = a.offsets if len(a.offsets) == len(axes) else a.offsets * len(axes)
    if len(offsets) != len(axes):
        raise ShapeError(f"{len(a.offsets)} crop offsets for {len(axes)} axes")
    return dict(zip(axes, offsets, strict=True))


def _crop_shape(call: Call) -> tuple[Shape, ...]:
    source, like = call.inputs
    if len(source) != len(like):
        raise ShapeError(f"cropping {shown(source)} to {shown(like)}: different numbers of axes")
    shape = list(source)
    fits = (call.attributes or Crop()).fits
    for axis, offset in _crop_offsets(call).items():
        if fits and (offset < 0 or offset + like[axis] > source[axis]):
            raise ShapeError(
                f"cropping {shown(source)} to {shown(like)}: axis {axis} has {source[axis]}, "
                f"{offset + like[axis]} needed"
            )
        shape[axis] = like[axis]
    return (tuple(shape),)


def _crop_access(call: Call) -> tuple[AccessMap, ...]:
    offsets = _crop_offsets(call)
    access: dict[int, tuple[int, Map]] = {
        n: (n, WindowMap(begin=-offsets.get(n, 0))) for n in range(len(call.x))
    }
    return (access, NOT_READ)


def _moved(call: Call) -> tuple[int, ...]:
    """What is kept of the first input; of a second only the shape matters."""
    return (call.out_elements, *[0 for _ in call.inputs[1:]])


SPECS = {
    "concat": OpSpec(
        family="shaping",
        attributes=Concat,
        names={"caffe": "Concat", "dagnn": "Concat", "keras": "Concatenate"},
        shape=_concat_shape,
        ops=free,
        access_map=_concat_access,
        backward=passes,
        saved_for_backward=nothing,
        arity=(1, None),
    ),
    "split": OpSpec(
        family="shaping",
        attributes=Split,
        names={"caffe": "Slice"},
        shape=_split_shape,
        ops=free,
        access_map=_split_access,
        backward=passes,
        saved_for_backward=nothing,
    ),
    "slice": OpSpec(
        family="shaping",
        attributes=Slice,
        names={"caffe": "Slice"},
        shape=_slice_shape,
        ops=free,
        access_map=_slice_access,
        input_elements=_moved,
        backward=passes,
        saved_for_backward=nothing,
    ),
    # the second input written into the first, in-place: only that part moves; without attributes
    # through a view whose strides decide where
    "insert": OpSpec(
        family="shaping",
        attributes=Slice,
        shape=_insert_shape,
        ops=free,
        access_map=_insert_access,
        input_elements=lambda call: (0, elements(call.inputs[1])),
        backward=passes,
        saved_for_backward=nothing,
        arity=(2, 2),
        view=True,
    ),
    "crop": OpSpec(
        family="shaping",
        attributes=Crop,
        names={"caffe": "Crop", "dagnn": "Crop"},
        shape=_crop_shape,
        ops=free,
        access_map=_crop_access,
        input_elements=_moved,
        backward=passes,
        saved_for_backward=nothing,
        arity=(2, 2),
    ),
}
