"""Reshapes, permutations, copies and padding."""

from __future__ import annotations

from layerscope.graph.attributes import (
    ChannelShuffle,
    Expand,
    Flatten,
    Flip,
    Pad,
    Reshape,
    ReverseSequence,
    Tile,
)
from layerscope.lower.builder import NO_COMPLEX, Emitter, NodeEmitter, plain
from layerscope.lower.emitters.convolution import flat_pads


def flatten(node: NodeEmitter) -> str:
    """ONNX's Flatten returns a matrix; other ranges of axes need a Reshape."""
    a: Flatten = node.attributes or Flatten()
    if (a.start, a.end % node.rank) == (1, node.rank - 1):
        return node.add("Flatten", node.x, axis=1)
    if a.start == node.rank:
        return node.reshape(node.x, (*node.shape, 1))
    first, last = a.start % node.rank, a.end % node.rank
    return node.reshape(node.x, (*node.shape[:first], -1, *node.shape[last + 1 :]))


def reshape(node: NodeEmitter) -> str:
    """A reshape of some axes needs the whole output shape."""
    a: Reshape = node.attributes
    return node.reshape(node.x, a.shape if (a.axis, a.axes) == (0, -1) else node.call.y)


def pad(node: NodeEmitter) -> str:
    a: Pad = node.attributes
    return node.add("Pad", node.x, node.ints(*flat_pads(list(a.pads))), mode=a.mode)


def expand(node: NodeEmitter) -> str:
    """A size of 1 keeps an axis in ONNX."""
    a: Expand = node.attributes
    return node.add(
        "Expand", node.x, node.ints(*(1 if size in (0, -1) else size for size in a.shape))
    )


def tile(node: NodeEmitter) -> str:
    a: Tile = node.attributes
    times = [1] * node.rank
    times[a.axis] = a.times
    return node.add("Tile", node.x, node.ints(*times))


def flip(node: NodeEmitter) -> str:
    a: Flip = node.attributes
    back, end = node.ints(*[-1] * len(a.axes)), node.ints(*[-(2**31)] * len(a.axes))
    return node.add("Slice", node.x, back, end, node.ints(*a.axes), back)


def reverse_sequence(node: NodeEmitter) -> str:
    a: ReverseSequence = node.attributes or ReverseSequence()
    lengths = node.operand(1, "int64")
    batch, steps = a.batch_axis % node.rank, a.time_axis % node.rank
    if {batch, steps} != {0, 1}:
        raise node.refuse(
            f"sequences along axis {steps} of a batch along {batch}, ONNX has 0 and 1"
        )
    return node.add("ReverseSequence", node.x, lengths, batch_axis=batch, time_axis=steps)


def channel_shuffle(node: NodeEmitter) -> str:
    a: ChannelShuffle = node.attributes
    batch, channels, *rest = node.shape
    grouped = node.reshape(node.x, (batch, a.groups, channels // a.groups, *rest))
    shuffled = node.add("Transpose", grouped, perm=[0, 2, 1, *range(3, 3 + len(rest))])
    return node.reshape(shuffled, node.shape)


EMITTERS: dict[str, Emitter] = {
    "reshape": reshape,
    "flatten": flatten,
    "identity": plain("Identity"),
    "dropout": plain("Dropout"),
    "permute": lambda node: node.add("Transpose", node.x, perm=node.attributes.order),
    "pad": pad,
    "expand": expand,
    "tile": tile,
    "repeat": lambda node: node.add("Tile", node.x, node.ints(*node.attributes.times)),
    "flip": flip,
    "trilu": plain("Trilu"),
    "reverse_sequence": reverse_sequence,
    "channel_shuffle": channel_shuffle,
}

REFUSED = {
    "view": "a graph does not contain the strides of a view",
    "complex": NO_COMPLEX,
}
