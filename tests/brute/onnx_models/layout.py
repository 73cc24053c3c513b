"""ONNX models of reshapes, permutations, copies and padding."""

from __future__ import annotations

import math

from layerscope.graph import attributes as at
from layerscope.graph.attributes import Expand, Flip, Pad, Reshape, ReverseSequence
from tests.brute.engine import Model, Writer, plain


def flatten(m: Model) -> str:
    """ONNX's Flatten makes a matrix; any other merging of axes is a Reshape."""
    a = m.attributes
    if a is None or (a.start, a.end) == (1, -1):
        return m.node("Flatten", m.x, axis=1)
    first, last = a.start % len(m.shape), a.end % len(m.shape)
    merged = math.prod(m.shape[first : last + 1])
    return m.node("Reshape", m.x, m.ints(*m.shape[:first], merged, *m.shape[last + 1 :]))


def reshape(m: Model) -> str:
    """A shape for some axes is put between the others."""
    a: Reshape = m.attributes
    first = a.axis if a.axis >= 0 else len(m.shape) + 1 + a.axis
    last = len(m.shape) if a.axes == -1 else first + a.axes
    own = [m.shape[first + n] if size == 0 and first else size for n, size in enumerate(a.shape)]
    return m.node("Reshape", m.x, m.ints(*m.shape[:first], *own, *m.shape[last:]))


def pad(m: Model) -> str:
    a: Pad = m.attributes
    begins, ends = zip(*a.pads, strict=True)
    return m.node("Pad", m.x, m.ints(*begins, *ends), mode=a.mode)


def expand(m: Model) -> str:
    """ONNX keeps an axis that is asked to be 1."""
    a: Expand = m.attributes
    return m.node("Expand", m.x, m.ints(*(1 if size in (0, -1) else size for size in a.shape)))


def tile(m: Model) -> str:
    a: at.Tile = m.attributes
    axis = a.axis % len(m.shape)
    return m.node("Tile", m.x, m.ints(*(a.times if n == axis else 1 for n in range(len(m.shape)))))


def channel_shuffle(m: Model) -> str:
    groups = m.attributes.groups
    batch, channels, *rest = m.shape
    order = [0, 2, 1, *range(3, len(m.shape) + 1)]
    apart = m.node("Reshape", m.x, m.ints(batch, groups, channels // groups, *rest))
    return m.node("Reshape", m.node("Transpose", apart, perm=order), m.ints(*m.shape))


def flip(m: Model) -> str:
    a: Flip = m.attributes
    count = len(a.axes)
    return m.node("Slice", m.x, m.ints(*[-1] * count), m.ints(*[-(2**31)] * count),
                  m.ints(*a.axes), m.ints(*[-1] * count))  # fmt: skip


def reverse_sequence(m: Model) -> str:
    a: ReverseSequence = m.attributes
    return m.node("ReverseSequence", m.x, m.of(1), batch_axis=a.batch_axis, time_axis=a.time_axis)


MODELS: dict[str, Writer] = {
    "reshape": reshape,
    "flatten": flatten,
    "identity": plain("Identity"),
    "dropout": plain("Dropout"),
    "permute": lambda m: m.node("Transpose", m.x, perm=m.attributes.order),
    "pad": pad,
    "expand": expand,
    "tile": tile,
    "channel_shuffle": channel_shuffle,
    "repeat": lambda m: m.node("Tile", m.x, m.ints(*m.attributes.times)),
    "flip": flip,
    "trilu": plain("Trilu"),
    "reverse_sequence": reverse_sequence,
}
