"""What training keeps of a layer until its gradient is computed.

The rules say what PyTorch's autograd saves on a CPU, where that can be checked to the byte.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

# elements and dtype; "" is the dtype of the layer's own output
Kept = tuple[int, str]


class Saved(Struct, frozen=True, gc=False):
    """Inputs kept (by place), whether the output is, and what else: masks, indices, statistics."""

    inputs: tuple[int, ...] = ()
    output: bool = False
    extra: tuple[Kept, ...] = ()


SavesRule = Callable[[Any], Saved]  # of a Call

NOTHING = Saved()
FIRST = Saved(inputs=(0,))
RESULT = Saved(output=True)


def nothing(call: Any) -> Saved:
    """Its gradient needs no tensor."""
    return NOTHING


def first_input(call: Any) -> Saved:
    """The first input; parameters are kept anyway."""
    return FIRST


def result(call: Any) -> Saved:
    """The output."""
    return RESULT


def every_input(call: Any) -> Saved:
    """All inputs, as a product of them needs."""
    return Saved(inputs=tuple(range(len(call.inputs))))
