"""Joins, cuts, new shapes and padding."""

from __future__ import annotations

from layerscope.errors import CannotLower
from layerscope.graph.attributes import (
    ChannelShuffle,
    Concat,
    Crop,
    Flatten,
    Flip,
    Pad,
    Reshape,
    ReverseSequence,
    Slice,
    Split,
    Tile,
)
from layerscope.lower.builder import Site, Writer, plain
from layerscope.lower.emitters.convolution import flat


def concat(s: Site) -> str:
    names = [s.operand(n, s.dtype) for n in range(len(s.inputs))]
    return s.add("Concat", *names, axis=(s.attributes or Concat()).axis)


def split(s: Site) -> tuple[str, ...]:
    a: Split = s.attributes
    sizes = a.sizes
    if not sizes or -1 in sizes:
        sizes = tuple(shape[a.axis] for shape in s.call.outputs)
    return s.several("Split", s.x, s.ints(*sizes), outputs=len(sizes), axis=a.axis)


def cut(s: Site) -> str:
    a: Slice = s.attributes
    steps = a.steps or (1,) * len(a.axes)
    return s.add("Slice", s.x, *(s.ints(*each) for each in (a.starts, a.ends, a.axes, steps)))


def flatten(s: Site) -> str:
    """ONNX's Flatten makes a matrix; any other merging of axes is a Reshape."""
    a: Flatten = s.attributes or Flatten()
    if (a.start, a.end % s.rank) == (1, s.rank - 1):
        return s.add("Flatten", s.x, axis=1)
    if a.start == s.rank:
        return s.reshape(s.x, (*s.shape, 1))
    first, last = a.start % s.rank, a.end % s.rank
    return s.reshape(s.x, (*s.shape[:first], -1, *s.shape[last + 1 :]))


def reshape(s: Site) -> str:
    """In part of the axes the others are written out."""
    a: Reshape = s.attributes
    return s.reshape(s.x, a.shape if (a.axis, a.axes) == (0, -1) else s.call.y)


def pad(s: Site) -> str:
    a: Pad = s.attributes
    return s.add("Pad", s.x, s.ints(*flat(list(a.pads))), mode=a.mode)


def crop(s: Site) -> str:
    """A slice; where there is too little to cut from, noughts are put on."""
    a: Crop = s.attributes or Crop()
    axes = range(a.axis % s.rank, s.rank)
    offsets = a.offsets if len(a.offsets) == len(axes) else a.offsets * len(axes)
    sizes = [s.call.inputs[1][axis] for axis in axes]
    ends = [o + size for o, size in zip(offsets, sizes, strict=True)]
    if min(offsets) >= 0 and all(e <= s.shape[n] for e, n in zip(ends, axes, strict=True)):
        return s.add("Slice", s.x, s.ints(*offsets), s.ints(*ends), s.ints(*axes))
    pads = [(0, 0)] * axes.start
    pads += [(-o, e - s.shape[n]) for o, e, n in zip(offsets, ends, axes, strict=True)]
    return s.add("Pad", s.x, s.ints(*flat(pads)))


def tile(s: Site) -> str:
    a: Tile = s.attributes
    times = [1] * s.rank
    times[a.axis] = a.times
    return s.add("Tile", s.x, s.ints(*times))


def flip(s: Site) -> str:
    a: Flip = s.attributes
    back, end = s.ints(*[-1] * len(a.axes)), s.ints(*[-(2**31)] * len(a.axes))
    return s.add("Slice", s.x, back, end, s.ints(*a.axes), back)


def insert(s: Site) -> str:
    """Elements put in their places, whose numbers along the one axis are written out."""
    a: Slice | None = s.attributes
    if a is None:
        raise CannotLower(f"{s.node.name}: a write through a view whose strides are not known")
    (axis,) = a.axes
    step = a.steps[0] if a.steps else 1
    taken = range(*slice(a.starts[0], a.ends[0], step).indices(s.shape[axis]))
    part = s.call.inputs[1]
    line = [len(taken) if n == axis % s.rank else 1 for n in range(s.rank)]
    row = s.add("Reshape", s.ints(*taken), s.ints(*line))
    places = s.add("Expand", row, s.ints(*part))
    return s.add("ScatterElements", s.x, places, s.operand(1, s.dtype), axis=axis)


def reverse_sequence(s: Site) -> str:
    a: ReverseSequence = s.attributes or ReverseSequence()
    lengths = s.operand(1, "int64")
    batch, steps = a.batch_axis % s.rank, a.time_axis % s.rank
    if {batch, steps} != {0, 1}:
        raise s.refuse(f"sequences along axis {steps} of a batch along {batch}, ONNX has 0 and 1")
    return s.add("ReverseSequence", s.x, lengths, batch_axis=batch, time_axis=steps)


def channel_shuffle(s: Site) -> str:
    a: ChannelShuffle = s.attributes
    batch, channels, *rest = s.shape
    grouped = s.reshape(s.x, (batch, a.groups, channels // a.groups, *rest))
    dealt = s.add("Transpose", grouped, perm=[0, 2, 1, *range(3, 3 + len(rest))])
    return s.reshape(dealt, s.shape)


WRITERS: dict[str, Writer] = {
    "reshape": reshape,
    "flatten": flatten,
    "identity": plain("Identity"),
    "dropout": plain("Dropout"),
    "concat": concat,
    "split": split,
    "slice": cut,
    "permute": lambda s: s.add("Transpose", s.x, perm=s.attributes.order),
    "pad": pad,
    "crop": crop,
    "tile": tile,
    "repeat": lambda s: s.add("Tile", s.x, s.ints(*s.attributes.times)),
    "insert": insert,
    "flip": flip,
    "trilu": plain("Trilu"),
    "reverse_sequence": reverse_sequence,
    "channel_shuffle": channel_shuffle,
}
