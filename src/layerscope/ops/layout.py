"""Moving, naming and repeating elements without arithmetic: shapes, axes, padding, copies."""

from __future__ import annotations

from msgspec.structs import replace

from layerscope.errors import ShapeError
from layerscope.graph.attributes import (
    ChannelShuffle,
    DeclaredOutputs,
    Dropout,
    Expand,
    Flatten,
    Flip,
    Pad,
    Permute,
    Repeat,
    Reshape,
    ReverseSequence,
    Tile,
)
from layerscope.graph.types import Shape, elements
from layerscope.ops.access_map import SAME, AccessMap, Map, WindowMap, keep, pointwise
from layerscope.ops.autograd import FIRST, NOTHING, Saved, every_input, nothing
from layerscope.ops.spec import (
    FREE,
    AccessRule,
    Call,
    Ops,
    OpSpec,
    ShapeRule,
    axis_of,
    broadcast,
    free,
    need_rank,
    no_inputs,
    passes,
    same,
    shown,
)


def _reshaped(a: Reshape, rank: int) -> tuple[int, int]:
    """The range of axes that a new shape replaces."""
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
            raise ShapeError(f"reshape {a.shape} keeps axis {n} of {shown(call.x)}, which has none")
    sizes = [call.x[n] if size == 0 else size for n, size in enumerate(a.shape, start)]
    shape = [*call.x[:start], *sizes, *call.x[end:]]
    if shape.count(-1) > 1 or any(size < -1 for size in shape):
        raise ShapeError(f"reshape to {a.shape}: at most one -1, nothing below it")
    if -1 in shape:
        rest = -elements(tuple(shape))
        if rest == 0 or total % rest:
            raise ShapeError(f"{shown(call.x)} cannot be reshaped to {a.shape}")
        shape[shape.index(-1)] = total // rest
    if elements(tuple(shape)) != total:
        raise ShapeError(f"{shown(call.x)} cannot be reshaped to {shown(tuple(shape))}")
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


def _same_elements_access(call: Call) -> tuple[AccessMap, ...]:
    """An axis is still itself if as many elements stand before it and after it as did."""
    axes = {}
    for m, size in enumerate(call.y):
        axes[(elements(call.y[:m]), size)] = m
    access: dict[int, tuple[int, Map]] = {}
    for n, size in enumerate(call.x):
        axis = axes.get((elements(call.x[:n]), size))
        if axis is not None and size > 1:
            access[n] = (axis, SAME)
    return (access,)


def _permute_shape(call: Call) -> tuple[Shape, ...]:
    order = call.attributes.order
    if sorted(order) != list(range(len(call.x))):
        raise ShapeError(f"order {order} of a tensor with {len(call.x)} axes")
    return (tuple(call.x[n] for n in order),)


def _permute_access(call: Call) -> tuple[AccessMap, ...]:
    a: Permute = call.attributes
    return ({n: (m, SAME) for m, n in enumerate(a.order)},)


def _pad_shape(call: Call) -> tuple[Shape, ...]:
    a: Pad = call.attributes
    if len(a.pads) != len(call.x):
        raise ShapeError(f"pads for {len(a.pads)} axes of a tensor with {len(call.x)}")
    shape = tuple(
        size + before + after for size, (before, after) in zip(call.x, a.pads, strict=True)
    )
    if min(shape, default=1) < 1:
        raise ShapeError(f"padding {shown(call.x)} by {a.pads} leaves {shown(shape)}")
    return (shape,)


def _pad_access(call: Call) -> tuple[AccessMap, ...]:
    a: Pad = call.attributes
    return ({n: (n, WindowMap(begin=before)) for n, (before, _) in enumerate(a.pads)},)


def _expand_shape(call: Call) -> tuple[Shape, ...]:
    a: Expand = call.attributes
    new = a.shape[: max(len(a.shape) - len(call.x), 0)]
    if any(size < 1 for size in new):
        raise ShapeError(f"{shown(call.x)} cannot be expanded to {a.shape}: new axes need sizes")
    padded = (1,) * (len(a.shape) - len(call.x)) + call.x
    wanted = tuple(
        have if want in (0, -1) else want for have, want in zip(padded, a.shape, strict=False)
    )
    if len(padded) != len(a.shape) or broadcast((padded, wanted)) != wanted:
        raise ShapeError(f"{shown(call.x)} cannot be expanded to {a.shape}")
    return (wanted,)


def _tile_shape(call: Call) -> tuple[Shape, ...]:
    a: Tile = call.attributes
    axis = axis_of(a.axis, len(call.x))
    if a.times < 1:
        raise ShapeError(f"{a.times} copies, expected at least 1")
    return ((*call.x[:axis], call.x[axis] * a.times, *call.x[axis + 1 :]),)


def _repeat_shape(call: Call) -> tuple[Shape, ...]:
    times = call.attributes.times
    if len(times) != len(call.x) or min(times, default=1) < 1:
        raise ShapeError(f"{times} copies of {shown(call.x)}, expected at least 1 for every axis")
    return (tuple(size * n for size, n in zip(call.x, times, strict=True)),)


def _repeat_access(call: Call) -> tuple[AccessMap, ...]:
    """Axes that are not repeated stay; of the others any part may be looked at."""
    times = call.attributes.times
    return (keep(tuple(axis for axis, n in enumerate(times) if n == 1)),)


def _flip_access(call: Call) -> tuple[AccessMap, ...]:
    axes = {axis_of(axis, len(call.x)) for axis in call.attributes.axes}
    access: dict[int, tuple[int, Map]] = {}
    for n, size in enumerate(call.x):
        access[n] = (n, WindowMap(stride=-1, begin=1 - size) if n in axes else SAME)
    return (access,)


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
        shapes = " by ".join(map(shown, call.inputs))
        raise ShapeError(
            f"turning sequences of {shapes}: expected a length for each of axis {batch}"
        )
    return same(call)


def _reverse_access(call: Call) -> tuple[AccessMap, ...]:
    batch, steps = _sequence_axes(call)
    return (*_without(steps, call), {0: (batch, SAME)})


def _shuffle_shape(call: Call) -> tuple[Shape, ...]:
    groups = call.attributes.groups
    if len(call.x) < 2 or groups < 1 or call.x[1] % groups:
        raise ShapeError(f"channels of {shown(call.x)} cannot be shuffled in {groups} groups")
    return same(call)


def _without(axis: int, call: Call) -> tuple[AccessMap, ...]:
    axis = axis_of(axis, len(call.x))
    return (keep(tuple(n for n in range(len(call.x)) if n != axis)),)


def _dropout_saves(call: Call) -> Saved:
    """In training a factor for each element, zero or 1 / (1 − p); with p = 0 nothing happens."""
    a: Dropout = call.attributes or Dropout()
    if a.p == 0 or a.evaluated:
        return NOTHING
    masked = call.x[:2] if a.channels else call.x
    return Saved(extra=((1 if a.p == 1 else elements(masked), ""),))


def _view(shape: ShapeRule, access: AccessRule, attributes: type | None = None) -> OpSpec:
    """An op whose output is its input under another name: nothing moves."""
    return OpSpec(
        family="shaping",
        attributes=attributes,
        shape=shape,
        ops=free,
        access_map=access,
        input_elements=no_inputs,
        backward=passes,
        saved_for_backward=nothing,
        view=True,
    )


def _declared(call: Call) -> tuple[Shape, ...]:
    a: DeclaredOutputs = call.attributes
    return a.shapes


def _declared_access(call: Call) -> tuple[AccessMap, ...]:
    if len(call.inputs) == len(call.outputs) == 1 and call.x == call.y:
        return pointwise(call.inputs, call.y)
    return ({},) * max(len(call.inputs), len(call.outputs))


SPECS = {
    # the same storage by other strides, or as numbers of another dtype
    "view": replace(
        _view(_declared, _declared_access, DeclaredOutputs),
        arity=(1, None),
        out_dtypes=("attribute",),
    ),
    "complex": OpSpec(
        family="shaping",
        shape=lambda call: (broadcast(call.inputs),),
        ops=free,
        backward=passes,
        saved_for_backward=every_input,
        out_dtypes=("complex",),
        arity=(2, 2),
    ),
    "reshape": replace(
        _view(_reshape_shape, _same_elements_access, Reshape),
        names={"caffe": "Reshape", "dagnn": "Reshape", "keras": "Reshape"},
    ),
    "flatten": replace(
        _view(_flatten_shape, _same_elements_access, Flatten),
        names={"caffe": "Flatten", "dagnn": "Flatten", "keras": "Flatten"},
    ),
    "identity": replace(
        _view(same, lambda call: pointwise(call.inputs, call.y)),
        names={"keras": "Identity"},
    ),
    "dropout": replace(
        _view(same, lambda call: pointwise(call.inputs, call.y), Dropout),
        names={
            "torch": "Dropout",
            "torch_function": "dropout",
            "caffe": "Dropout",
            "dagnn": "DropOut",
            "keras": "Dropout",
        },
        saved_for_backward=_dropout_saves,
    ),
    "permute": OpSpec(
        family="shaping",
        attributes=Permute,
        names={"caffe": "Permute", "dagnn": "Permute", "keras": "Permute"},
        shape=_permute_shape,
        ops=free,
        access_map=_permute_access,
        backward=passes,
        saved_for_backward=nothing,
    ),
    "expand": OpSpec(
        family="indexing",
        attributes=Expand,
        shape=_expand_shape,
        ops=free,
        access_map=lambda call: pointwise(call.inputs, call.y),
        backward=lambda call: (Ops(add=call.out_elements - call.in_elements), FREE),
        saved_for_backward=nothing,
    ),
    "tile": OpSpec(
        family="shaping",
        attributes=Tile,
        shape=_tile_shape,
        ops=free,
        access_map=lambda call: _without(call.attributes.axis, call),
        backward=lambda call: (Ops(add=call.out_elements - call.in_elements), FREE),
        saved_for_backward=nothing,
    ),
    "repeat": OpSpec(
        family="shaping",
        attributes=Repeat,
        shape=_repeat_shape,
        ops=free,
        access_map=_repeat_access,
        backward=lambda call: (Ops(add=call.out_elements - call.in_elements), FREE),
        saved_for_backward=nothing,
    ),
    "flip": OpSpec(
        family="shaping",
        attributes=Flip,
        shape=_flip_shape,
        ops=free,
        access_map=_flip_access,
        backward=passes,
        saved_for_backward=nothing,
    ),
    # zeros on one side of the diagonal of the last two axes
    "trilu": OpSpec(
        family="shaping",
        shape=_trilu_shape,
        ops=free,
        backward=passes,
        saved_for_backward=nothing,
    ),
    "reverse_sequence": OpSpec(
        family="shaping",
        attributes=ReverseSequence,
        shape=_reverse_shape,
        ops=free,
        access_map=_reverse_access,
        backward=passes,
        saved_for_backward=lambda call: Saved(inputs=(1,)),
        arity=(2, 2),
    ),
    "channel_shuffle": OpSpec(
        family="shaping",
        attributes=ChannelShuffle,
        shape=_shuffle_shape,
        ops=free,
        access_map=lambda call: _without(1, call),
        backward=passes,
        saved_for_backward=nothing,
    ),
    "pad": OpSpec(
        family="shaping",
        attributes=Pad,
        names={"keras": "ZeroPadding{}D"},
        shape=_pad_shape,
        ops=free,
        access_map=_pad_access,
        backward=passes,
        saved_for_backward=lambda call: NOTHING if call.attributes.mode == "constant" else FIRST,
    ),
}
