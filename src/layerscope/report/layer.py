"""One layer of a report: its exact figures, and those of the report's convention."""

from __future__ import annotations

from fractions import Fraction

from msgspec import Struct

from layerscope.analysis.costs import Cost, Status
from layerscope.analysis.fields import Field, Fields
from layerscope.conventions.convention import Convention
from layerscope.graph.types import Node, Shape, Tensor, is_floating, storage_bytes
from layerscope.ops import SPECS, Call, Gemm, Ops


class Layer(Struct, frozen=True, gc=False):
    """One node with its figures: exact, and as the report's convention counts them."""

    node: Node
    call: Call | None  # None: its shapes or its op are unknown
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    convention: Convention
    convention_kinds: Ops  # operations by kind, as the convention counts them
    params: int  # as the convention counts them
    activations: int  # elements of new storage
    activation_bytes: int  # of that storage, each tensor in its own dtype
    convention_activations: int  # elements, as the convention counts them
    cost: Cost
    fields: Fields  # of all tensors

    @property
    def ops(self) -> Ops:
        """Operations by kind, exact whatever the convention."""
        return self.cost.ops

    @property
    def convention_ops(self) -> int | None:
        """The figure that the convention's system prints for it, None if that prints none."""
        return self.convention.headline(self.convention_kinds)

    @property
    def field(self) -> Field | None:
        """Receptive field of its first output on the first input that it depends on."""
        return self.fields.first(self.node.outputs[0])

    @property
    def name(self) -> str:
        """Unique name."""
        return self.node.name

    @property
    def op(self) -> str:
        """The node's op."""
        return self.node.op

    @property
    def scope(self) -> tuple[str, ...]:
        """Modules around it, outermost first."""
        return self.node.scope

    @property
    def status(self) -> Status:
        """Whether its figures are exact, a bound or unknown."""
        return self.cost.status

    @property
    def has_estimated_sizes(self) -> bool:
        """Whether the sizes of its tensors are an estimate, and not only its operations."""
        if self.cost.status != "estimate":
            return False
        spec = SPECS.get(self.node.op)
        return self.node.estimate or (spec is not None and spec.data_sized)

    @property
    def has_estimated_count(self) -> bool:
        """Whether the convention's operations are an estimate: ours, or of estimated sizes."""
        if self.cost.status != "estimate":
            return False
        return self.convention_kinds == self.cost.ops or self.has_estimated_sizes

    @property
    def lacks_figures(self) -> bool:
        """Whether its figures are unknown and so missing from sums; not if it never runs."""
        return self.cost.status == "unknown" and bool(self.node.times)

    @property
    def output(self) -> Shape | None:
        """Shape of its first output."""
        return self.outputs[0].shape

    @property
    def gemm(self) -> Gemm | None:
        """The matrix product that computes it."""
        return self.cost.gemm

    @property
    def moved_bytes(self) -> int:
        """Bytes read and written, parameters included."""
        return self.cost.read_bytes + self.cost.write_bytes

    @property
    def param_bytes(self) -> int:
        """Bytes of the stored arrays first used here."""
        return self.cost.stored_bytes

    @property
    def precision(self) -> str:
        """Dtype of its multiplications: of its weights, else of its first input."""
        for param in self.cost.params:
            if param.role == "weight":
                return param.dtype
        return self.inputs[0].dtype if self.inputs else self.outputs[0].dtype

    @property
    def arithmetic_dtype(self) -> str:
        """Dtype of its arithmetic: of a floating-point output, else of a floating-point input."""
        for tensor in (*self.outputs[:1], *self.inputs):
            if is_floating(tensor.dtype):
                return tensor.dtype
        return self.inputs[0].dtype if self.inputs else self.outputs[0].dtype

    @property
    def convention_activation_bytes(self) -> int:
        """Bytes of the activations that the convention counts, each tensor in its own dtype."""
        count = self.convention_activations
        if count == self.activations:
            return self.activation_bytes
        if count == sum(tensor.elements for tensor in self.outputs):
            return sum(tensor.bytes for tensor in self.outputs)
        return storage_bytes(count, self.outputs[0].dtype)

    @property
    def intensity(self) -> Fraction | None:
        """FLOPs per byte moved."""
        return Fraction(self.ops.flops, self.moved_bytes) if self.moved_bytes else None
