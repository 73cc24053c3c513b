"""What a convention is: a named way to recount exact costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from layerscope.analysis.costs import Cost
from layerscope.graph.types import Node, Tensor
from layerscope.ops import Call, Ops

if TYPE_CHECKING:
    from layerscope.conventions.sites import Site

Recount = Callable[[Call, Ops], Ops]


def no_figure(ops: Ops) -> int | None:
    """The system prints no count of operations."""
    return None


class Convention(Struct, frozen=True):
    """How one system counts, None where it does as we do.

    Ops without an entry in `ops` are counted by `other`.
    """

    name: str
    says: str  # one line for the stamp
    figure: str  # what the system calls its one figure; "" if it prints none
    headline: Callable[[Ops], int | None]
    ops: Mapping[str, Recount] = {}
    other: Recount | None = None
    params: Callable[[Node, Call | None, Cost], int] | None = None  # all that is learned, once
    activations: Callable[[Node, Call, int], int] | None = None  # new storage: none for a view
    counts_inputs: bool = False  # whether the network's inputs are among its activations
    input_activations: Callable[[Tensor], int] = lambda tensor: tensor.elements
    seen: Callable[[Site], Ops] | None = None  # of systems that look at modules and functions
    seen_params: Callable[[Site], int] | None = None
    seen_activations: Callable[[Site], int] | None = None
    learned: Literal["used", "all", "trainable"] = "used"  # which of a model's parameters
    twice: bool = False  # whether its figure has two for a multiply-add
    caveats: Callable[[Iterable[Site]], tuple[str, ...]] | None = None  # where it has other figures
    why: Mapping[str, str] = {}  # known causes of what it misses, in explain's words

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        """Pickled by name: it is made of functions."""
        from layerscope.conventions import convention

        return convention, (self.name,)

    def recount(self, op: str, call: Call, ops: Ops) -> Ops:
        """Operations of one node as this system counts them."""
        counted = self.ops.get(op, self.other)
        return ops if counted is None else counted(call, ops)
