"""ONNX models of concatenation, splits, slices and crops."""

from __future__ import annotations

from layerscope.graph.attributes import Crop, Slice
from tests.brute.engine import Model, Writer


def concat(m: Model) -> str:
    names = [m.of(n) for n in range(len(m.inputs))]
    return m.node("Concat", *names, axis=m.attributes.axis if m.attributes else 1)


def split(m: Model) -> tuple[str, ...]:
    a = m.attributes
    return m.several("Split", m.x, m.ints(*a.sizes), outputs=len(a.sizes), axis=a.axis)


def cut(m: Model) -> str:
    a = m.attributes
    steps = a.steps or (1,) * len(a.axes)
    return m.node("Slice", m.x, *(m.ints(*each) for each in (a.starts, a.ends, a.axes, steps)))


def crop(m: Model) -> str:
    a: Crop = m.attributes or Crop()
    axes = range(a.axis % len(m.shape), len(m.shape))
    offsets = a.offsets if len(a.offsets) == len(axes) else a.offsets * len(axes)
    sizes = [m.inputs[1].shape[axis] for axis in axes]
    ends = [o + s for o, s in zip(offsets, sizes, strict=True)]
    return m.node("Slice", m.x, m.ints(*offsets), m.ints(*ends), m.ints(*axes))


def insert(m: Model) -> str:
    a: Slice = m.attributes
    axis, size = a.axes[0] % len(m.shape), m.shape[a.axes[0]]
    taken = range(size)[slice(a.starts[0], a.ends[0], (a.steps or (1,))[0])]
    line = [len(taken) if n == axis else 1 for n in range(len(m.shape))]
    row = m.node("Reshape", m.ints(*taken), m.ints(*line))
    places = m.node("Expand", row, m.ints(*m.inputs[1].shape))
    return m.node("ScatterElements", m.x, places, m.of(1), axis=axis)


MODELS: dict[str, Writer] = {
    "concat": concat,
    "split": split,
    "slice": cut,
    "crop": crop,
    "insert": insert,
}
