"""Concatenation, splits, slices and crops."""

from __future__ import annotations

from layerscope.errors import CannotLower
from layerscope.graph.attributes import Concat, Crop, Slice, Split
from layerscope.lower.builder import Emitter, NodeEmitter
from layerscope.lower.emitters.convolution import flat_pads


def concat(node: NodeEmitter) -> str:
    names = [node.operand(n, node.dtype) for n in range(len(node.inputs))]
    return node.add("Concat", *names, axis=(node.attributes or Concat()).axis)


def split(node: NodeEmitter) -> tuple[str, ...]:
    a: Split = node.attributes
    sizes = a.sizes
    if not sizes or -1 in sizes:
        sizes = tuple(shape[a.axis] for shape in node.call.outputs)
    return node.add_multi("Split", node.x, node.ints(*sizes), outputs=len(sizes), axis=a.axis)


def slice_axes(node: NodeEmitter) -> str:
    a: Slice = node.attributes
    steps = a.steps or (1,) * len(a.axes)
    return node.add(
        "Slice", node.x, *(node.ints(*each) for each in (a.starts, a.ends, a.axes, steps))
    )


def crop(node: NodeEmitter) -> str:
    """A Slice, or a Pad with zeros where the input is smaller than the crop."""
    a: Crop = node.attributes or Crop()
    axes = range(a.axis % node.rank, node.rank)
    offsets = a.offsets if len(a.offsets) == len(axes) else a.offsets * len(axes)
    sizes = [node.call.inputs[1][axis] for axis in axes]
    ends = [o + size for o, size in zip(offsets, sizes, strict=True)]
    if min(offsets) >= 0 and all(e <= node.shape[n] for e, n in zip(ends, axes, strict=True)):
        return node.add("Slice", node.x, node.ints(*offsets), node.ints(*ends), node.ints(*axes))
    pads = [(0, 0)] * axes.start
    pads += [(-o, e - node.shape[n]) for o, e, n in zip(offsets, ends, axes, strict=True)]
    return node.add("Pad", node.x, node.ints(*flat_pads(pads)))


def insert(node: NodeEmitter) -> str:
    """Scatter the second input to the indices of the slice, which has one axis."""
    a: Slice | None = node.attributes
    if a is None:
        raise CannotLower(f"{node.name}: a write through a view with unknown strides")
    (axis,) = a.axes
    step = a.steps[0] if a.steps else 1
    taken = range(*slice(a.starts[0], a.ends[0], step).indices(node.shape[axis]))
    part = node.call.inputs[1]
    line = [len(taken) if n == axis % node.rank else 1 for n in range(node.rank)]
    row = node.add("Reshape", node.ints(*taken), node.ints(*line))
    indices = node.add("Expand", row, node.ints(*part))
    return node.add("ScatterElements", node.x, indices, node.operand(1, node.dtype), axis=axis)


EMITTERS: dict[str, Emitter] = {
    "concat": concat,
    "split": split,
    "slice": slice_axes,
    "insert": insert,
    "crop": crop,
}
