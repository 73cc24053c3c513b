"""What training keeps of a layer until its gradient is computed.

The rules say what PyTorch's autograd saves on a CPU, where that can be checked to the byte. They
follow its table of derivatives: a tensor that only the gradient of one input needs is kept only
where that gradient is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from layerscope.graph.types import Shape

if TYPE_CHECKING:
    from layerscope.ops.spec import Call

# elements and dtype; "" is the dtype of the layer's own output
Kept = tuple[int, str]
WEIGHT = -1  # in `Saved.crossed`: the gradient of the layer's own weight


class Fold(Struct, frozen=True, gc=False):
    """An input kept permuted, broadcast and reshaped: a copy where its strides do not allow it."""

    input: int
    wide: Shape  # broadcast to, after the permutation
    flat: Shape
    order: tuple[int, ...] = ()  # of the axes; () for as they are
    copies: int = 1  # how often, where it is copied


class Saved(Struct, frozen=True, gc=False):
    """Inputs and outputs kept, by index, and what else: masks, indices, statistics."""

    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    extra: tuple[Kept, ...] = ()
    crossed: tuple[tuple[int, int], ...] = ()  # input kept, input whose gradient needs it
    contiguous: tuple[tuple[int, bool], ...] = ()  # inputs copied first unless they are; True:
    # channels may be last
    folds: tuple[Fold, ...] = ()  # how inputs kept are reshaped first
    note: str = ""  # why this is an estimate, if it is


SavedRule = Callable[["Call"], Saved]

NOTHING = Saved()
FIRST = Saved(inputs=(0,))
RESULT = Saved(outputs=(0,))
BOTH = Saved(inputs=(0,), outputs=(0,))


def nothing(call: Call) -> Saved:
    """Its gradient needs no tensor."""
    return NOTHING


def first_input(call: Call) -> Saved:
    """The first input; parameters are kept anyway."""
    return FIRST


def result(call: Call) -> Saved:
    """The output."""
    return RESULT


def both(call: Call) -> Saved:
    """The first input and the output."""
    return BOTH


def every_input(call: Call) -> Saved:
    """All inputs."""
    return Saved(inputs=tuple(range(len(call.inputs))))


def product(call: Call) -> Saved:
    """Each input for the gradients of the others; one multiplied by a number is not kept."""
    count = range(len(call.inputs))
    return Saved(crossed=tuple([(a, b) for a in count for b in count if a != b]))
