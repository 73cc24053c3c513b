"""Moving and naming elements without arithmetic: joins, cuts, new shapes, padding."""

from __future__ import annotations

from msgspec.structs import replace

from layerscope.errors import ShapeError
from layerscope.graph.attributes import (
    Concat,
    Crop,
    Flatten,
    Pad,
    Permute,
    Reshape,
    ReverseSequence,
    Slice,
    Split,
    Tile,
)
from layerscope.graph.types import Shape, elements
from layerscope.ops.reach import NOT_READ, SAME, Map, Reach, Segment, Slide, keep, pointwise
from layerscope.ops.rule import (
    FREE,
    Call,
    Ops,
    ReachRule,
    Rule,
    ShapeRule,
    axis_of,
    free,
    need_rank,
    no_inputs,
    passes,
    same,
)
from layerscope.ops.saved import Saved, nothing


def _text(shape: Shape) -> str:
    return "x".join(map(str, shape)) or "a scalar"


def _concat_shape(call: Call) -> tuple[Shape, ...]:
    a: Concat = call.attributes or Concat()
    x = call.x
    axis = axis_of(a.axis, len(x))
    before, after = x[:axis], x[axis + 1 :]
    for shape in {*call.inputs}:  # most parts of many are alike
        if len(shape) != len(x) or shape[:axis] != before or shape[axis + 1 :] != after:
            told = ", ".join(map(_text, call.inputs))
            raise ShapeError(f"joining {told} along axis {axis}: the other axes do not agree")
    return ((*before, sum([shape[axis] for shape in call.inputs]), *after),)


def _concat_reach(call: Call) -> tuple[Reach, ...]:
    axis = axis_of((call.attributes or Concat()).axis, len(call.x))
    start = 0
    reaches: list[Reach] = []
    for shape in call.inputs:
        reach: dict[int, tuple[int, Map]] = {a: (a, SAME) for a in range(len(shape)) if a != axis}
        reach[axis] = (axis, Segment(start, shape[axis]))
        start += shape[axis]
        reaches.append(reach)
    return tuple(reaches)


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
    if sum(sizes) != whole or min(sizes) < 1:
        raise ShapeError(f"cutting {whole} into {a.sizes}, which add up to {sum(sizes)}")
    return axis, sizes


def _split_shape(call: Call) -> tuple[Shape, ...]:
    axis, sizes = _pieces(call)
    return tuple((*call.x[:axis], size, *call.x[axis + 1 :]) for size in sizes)


def _split_reach(call: Call) -> tuple[Reach, ...]:
    """One reach a piece: each begins where the one before it ends."""
    axis, sizes = _pieces(call)
    start = 0
    reaches: list[Reach] = []
    for size in sizes:
        reach: dict[int, tuple[int, Map]] = {n: (n, SAME) for n in range(len(call.x))}
        reach[axis] = (axis, Slide(begin=-start))
        start += size
        reaches.append(reach)
    return tuple(reaches)


def _ranges(call: Call) -> dict[int, range]:
    a: Slice = call.attributes
    steps = a.steps or (1,) * len(a.axes)
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


def _slice_reach(call: Call) -> tuple[Reach, ...]:
    ranges = _ranges(call)
    reach: dict[int, tuple[int, Map]] = {}
    for n in range(len(call.x)):
        taken = ranges.get(n)
        reach[n] = (n, SAME if taken is None else Slide(stride=taken.step, begin=-taken.start))
    return (reach,)


def _insert_shape(call: Call) -> tuple[Shape, ...]:
    whole, part = call.inputs
    (room,) = _slice_shape(Call(call.attributes, (whole,)))
    if part != room:
        raise ShapeError(f"putting {_text(part)} into {_text(whole)} where {_text(room)} fits")
    return (whole,)


def _insert_reach(call: Call) -> tuple[Reach, ...]:
    """The whole as it was, and the part from where it was put."""
    ranges = _ranges(call)
    part: dict[int, tuple[int, Map]] = {}
    for n in range(len(call.x)):
        taken = ranges.get(n)
        if taken is None:
            part[n] = (n, SAME)
        elif taken.step == 1:
            part[n] = (n, Segment(taken.start, len(taken)))
    return (keep(range(len(call.x))), part)


def _reshaped(a: Reshape, rank: int) -> tuple[int, int]:
    """The range of axes that a new shape takes the place of."""
    start = a.axis + rank + 1 if a.axis < 0 else a.axis
    end = rank if a.axes == -1 else start + a.axes
    if not 0 <= start <= end <= rank:
        raise ShapeError(f"reshaping {a.axes} axes from {a.axis} on of a tensor with {rank}")
    return start, end


def _reshape_shape(call: Call) -> tuple[Shape, ...]:
    a: Reshape = call.attributes
    total = elements(call.x)
    start, end = _reshaped(a, len(call.x))
    for n, size in enumerate(a.shape, start):
        if size == 0 and n >= len(call.x):
            raise ShapeError(f"reshape {a.shape} keeps axis {n} of {_text(call.x)}, which has none")
    made = [call.x[n] if size == 0 else size for n, size in enumerate(a.shape, start)]
    shape = [*call.x[:start], *made, *call.x[end:]]
    if shape.count(-1) > 1 or any(size < -1 for size in shape):
        raise ShapeError(f"reshape to {a.shape}: at most one -1, nothing below it")
    if -1 in shape:
        known = -elements(tuple(shape))
        if known == 0 or total % known:
            raise ShapeError(f"{_text(call.x)} cannot be reshaped to {a.shape}")
        shape[shape.index(-1)] = total // known
    if elements(tuple(shape)) != total:
        raise ShapeError(f"{_text(call.x)} cannot be reshaped to {_text(tuple(shape))}")
    return (tuple(shape),)


def _flatten_shape(call: Call) -> tuple[Shape, ...]:
    a: Flatten = call.attributes or Flatten()
    rank = len(call.x)
    if a.start == rank:  # nothing to merge: an axis of one is added
        return ((*call.x, 1),)
    start, end = axis_of(a.start, rank), axis_of(a.end, rank)
    if start > end:
        raise ShapeError(f"flattening from axis {start} to {end}")
    return ((*call.x[:start], elements(call.x[start : end + 1]), *call.x[end + 1 :]),)


def _same_elements_reach(call: Call) -> tuple[Reach, ...]:
    """An axis is still itself if as many elements stand before it and after it as did."""
    places = {}
    for m, size in enumerate(call.y):
        places[(elements(call.y[:m]), size)] = m
    reach: dict[int, tuple[int, Map]] = {}
    for n, size in enumerate(call.x):
        place = places.get((elements(call.x[:n]), size))
        if place is not None and size > 1:
            reach[n] = (place, SAME)
    return (reach,)


def _permute_shape(call: Call) -> tuple[Shape, ...]:
    order = call.attributes.order
    if sorted(order) != list(range(len(call.x))):
        raise ShapeError(f"order {order} of a tensor with {len(call.x)} axes")
    return (tuple(call.x[n] for n in order),)


def _permute_reach(call: Call) -> tuple[Reach, ...]:
    a: Permute = call.attributes
    return ({n: (m, SAME) for m, n in enumerate(a.order)},)


def _pad_shape(call: Call) -> tuple[Shape, ...]:
    a: Pad = call.attributes
    if len(a.pads) != len(call.x):
        raise ShapeError(f"pads for {len(a.pads)} axes of a tensor with {len(call.x)}")
    shape = tuple(
        size + before + after for size, (before, after) in zip(call.x, a.pads, strict=True)
    )
    if min(shape) < 1:
        raise ShapeError(f"padding {_text(call.x)} by {a.pads} leaves {_text(shape)}")
    return (shape,)


def _pad_reach(call: Call) -> tuple[Reach, ...]:
    a: Pad = call.attributes
    return ({n: (n, Slide(begin=before)) for n, (before, _) in enumerate(a.pads)},)


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
        raise ShapeError(f"cropping {_text(source)} to {_text(like)}: different numbers of axes")
    shape = list(source)
    fits = (call.attributes or Crop()).fits
    for axis, offset in _crop_offsets(call).items():
        if fits and (offset < 0 or offset + like[axis] > source[axis]):
            raise ShapeError(
                f"cropping {_text(source)} to {_text(like)}: axis {axis} has {source[axis]}, "
                f"{offset + like[axis]} needed"
            )
        shape[axis] = like[axis]
    return (tuple(shape),)


def _crop_reach(call: Call) -> tuple[Reach, ...]:
    offsets = _crop_offsets(call)
    reach: dict[int, tuple[int, Map]] = {
        n: (n, Slide(begin=-offsets.get(n, 0))) for n in range(len(call.x))
    }
    return (reach, NOT_READ)


def _tile_shape(call: Call) -> tuple[Shape, ...]:
    a: Tile = call.attributes
    axis = axis_of(a.axis, len(call.x))
    if a.times < 1:
        raise ShapeError(f"{a.times} copies, expected at least 1")
    return ((*call.x[:axis], call.x[axis] * a.times, *call.x[axis + 1 :]),)


def _repeat_shape(call: Call) -> tuple[Shape, ...]:
    times = call.attributes.times
    if len(times) != len(call.x) or min(times, default=1) < 1:
        raise ShapeError(f"{times} copies of {_text(call.x)}, expected at least 1 for every axis")
    return (tuple(size * n for size, n in zip(call.x, times, strict=True)),)


def _repeat_reach(call: Call) -> tuple[Reach, ...]:
    """Axes that are not repeated stay; of the others any part may be looked at."""
    times = call.attributes.times
    return (keep(tuple(axis for axis, n in enumerate(times) if n == 1)),)


def _flip_reach(call: Call) -> tuple[Reach, ...]:
    axes = {axis_of(axis, len(call.x)) for axis in call.attributes.axes}
    reach: dict[int, tuple[int, Map]] = {}
    for n, size in enumerate(call.x):
        reach[n] = (n, Slide(stride=-1, begin=1 - size) if n in axes else SAME)
    return (reach,)


def _flip_shape(call: Call) -> tuple[Shape, ...]:
    for axis in call.attributes.axes:
        axis_of(axis, len(call.x))
    return same(call)


def _trilu_shape(call: Call) -> tuple[Shape, ...]:
    need_rank(call, 2, "a triangle")
    return same(call)


def _sequence_axes(call: Call) -> tuple[int, int]:
    a: ReverseSequence = call.attributes or ReverseSequence()
    return axis_of(a.batch_axis, len(call.x)), axis_of(a.time_axis, len(call.x))


def _reverse_shape(call: Call) -> tuple[Shape, ...]:
    batch, steps = _sequence_axes(call)
    if batch == steps or call.inputs[1] != (call.x[batch],):
        told = " by ".join(map(_text, call.inputs))
        raise ShapeError(f"turning sequences of {told}: expected a length for each of axis {batch}")
    return same(call)


def _reverse_reach(call: Call) -> tuple[Reach, ...]:
    batch, steps = _sequence_axes(call)
    return (*_without(steps, call), {0: (batch, SAME)})


def _shuffle_shape(call: Call) -> tuple[Shape, ...]:
    groups = call.attributes.groups
    if len(call.x) < 2 or groups < 1 or call.x[1] % groups:
        raise ShapeError(f"channels of {_text(call.x)} cannot be shuffled in {groups} groups")
    return same(call)


def _without(axis: int, call: Call) -> tuple[Reach, ...]:
    axis = axis_of(axis, len(call.x))
    return (keep(tuple(n for n in range(len(call.x)) if n != axis)),)


def _view(shape: ShapeRule, reach: ReachRule) -> Rule:
    """An op whose output is its input under another name: nothing moves."""
    return Rule(
        family="shaping",
        shape=shape,
        ops=free,
        reach=reach,
        reads=no_inputs,
        backward=passes,
        saves=nothing,
        view=True,
    )


def _moved(call: Call) -> tuple[int, ...]:
    """What is kept of the first input; of a second only the shape matters."""
    return (call.out_elements, *[0 for _ in call.inputs[1:]])


RULES = {
    "reshape": _view(_reshape_shape, _same_elements_reach),
    "flatten": _view(_flatten_shape, _same_elements_reach),
    "identity": _view(same, lambda call: pointwise(call.inputs, call.y)),
    "dropout": replace(
        _view(same, lambda call: pointwise(call.inputs, call.y)),
        # in training a factor for each element, zero or 1 / (1 − p)
        saves=lambda call: Saved(extra=((elements(call.x), ""),)),
    ),
    "concat": Rule(
        family="shaping",
        shape=_concat_shape,
        ops=free,
        reach=_concat_reach,
        backward=passes,
        saves=nothing,
        arity=(1, None),
    ),
    "split": Rule(
        family="shaping",
        shape=_split_shape,
        ops=free,
        reach=_split_reach,
        backward=passes,
        saves=nothing,
    ),
    "slice": Rule(
        family="shaping",
        shape=_slice_shape,
        ops=free,
        reach=_slice_reach,
        reads=_moved,
        backward=passes,
        saves=nothing,
    ),
    # the second input written into the first, in place: only the part moves
    "insert": Rule(
        family="shaping",
        shape=_insert_shape,
        ops=free,
        reach=_insert_reach,
        reads=lambda call: (0, elements(call.inputs[1])),
        backward=passes,
        saves=nothing,
        arity=(2, 2),
        view=True,
    ),
    "permute": Rule(
        family="shaping",
        shape=_permute_shape,
        ops=free,
        reach=_permute_reach,
        backward=passes,
        saves=nothing,
    ),
    "tile": Rule(
        family="shaping",
        shape=_tile_shape,
        ops=free,
        reach=lambda call: _without(call.attributes.axis, call),
        backward=lambda call: (Ops(add=call.out_elements - call.in_elements), FREE),
        saves=nothing,
    ),
    "repeat": Rule(
        family="shaping",
        shape=_repeat_shape,
        ops=free,
        reach=_repeat_reach,
        backward=lambda call: (Ops(add=call.out_elements - call.in_elements), FREE),
        saves=nothing,
    ),
    "flip": Rule(
        family="shaping",
        shape=_flip_shape,
        ops=free,
        reach=_flip_reach,
        backward=passes,
        saves=nothing,
    ),
    # noughts on one side of the diagonal of the last two axes
    "trilu": Rule(
        family="shaping",
        shape=_trilu_shape,
        ops=free,
        backward=passes,
        saves=nothing,
    ),
    "reverse_sequence": Rule(
        family="shaping",
        shape=_reverse_shape,
        ops=free,
        reach=_reverse_reach,
        backward=passes,
        saves=lambda call: Saved(inputs=(1,)),
        arity=(2, 2),
    ),
    "channel_shuffle": Rule(
        family="shaping",
        shape=_shuffle_shape,
        ops=free,
        reach=lambda call: _without(1, call),
        backward=passes,
        saves=nothing,
    ),
    "pad": Rule(
        family="shaping",
        shape=_pad_shape,
        ops=free,
        reach=_pad_reach,
        backward=passes,
        saves=nothing,
    ),
    "crop": Rule(
        family="shaping",
        shape=_crop_shape,
        ops=free,
        reach=_crop_reach,
        reads=_moved,
        backward=passes,
        saves=nothing,
        arity=(2, 2),
    ),
}
