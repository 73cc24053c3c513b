"""The Convention type: how one system counts operations, parameters and activations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from layerscope.graph.types import Tensor
from layerscope.ops import Ops

if TYPE_CHECKING:
    from layerscope.conventions.counted_nodes import CountedNode

Sees = Literal["ops", "functions", "modules"]
CountedParams = Literal["used", "all", "trainable"]


def no_figure(ops: Ops) -> int | None:
    """The headline of a system that prints no count of operations."""
    return None


class Convention(Struct, frozen=True, kw_only=True):
    """How one system counts a network.

    `count`, `params` and `activations` are rules. Each takes one node and returns its figure; a
    rule that is None keeps the exact figure. See docs/decisions/0014-conventions.md.
    """

    name: str
    says: str  # one line for the stamp
    figure: str  # what the system calls the one figure it prints; "" if it prints none
    headline: Callable[[Ops], int | None]  # that figure, from operations by kind

    # What the rules may look at: ops and shapes alone; also the PyTorch functions that are called;
    # or also the classes of modules, so that a function called outside a module is not counted.
    sees: Sees = "ops"
    count: Callable[[CountedNode], Ops] | None = None  # operations of one run of the node
    params: Callable[[CountedNode], int] | None = None  # learnable elements, each array once
    activations: Callable[[CountedNode], int] | None = None  # elements

    counts_inputs: bool = False  # whether the network's inputs are among its activations
    input_activations: Callable[[Tensor], int] = lambda tensor: tensor.elements
    counted_params: CountedParams = "used"  # by this forward pass, all, or all not frozen
    two_per_mac: bool = False  # whether its figure counts 2 per multiply-add
    prints_flops: bool = False  # whether it also prints FLOPs, beside a figure of multiply-adds
    equals_macs: bool = False  # whether its figure is always the exact number of multiply-adds

    caveats: Callable[[Iterable[CountedNode]], tuple[str, ...]] | None = None  # notes on a network
    why: Mapping[str, str] = {}  # group of layers as `explain` names it -> why it is miscounted

    @property
    def is_exact(self) -> bool:
        """Whether this is the default convention, which changes no figure."""
        return self.name == "exact"

    def __reduce__(self) -> tuple[Callable[[str], Convention], tuple[str]]:
        """Pickle by name, because lambdas cannot be pickled."""
        from layerscope.conventions import convention

        return convention, (self.name,)
