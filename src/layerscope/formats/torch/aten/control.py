"""Constants: filled tensors, and the scalars that other converters need as inputs."""

from __future__ import annotations

from layerscope.formats.torch.aten.signatures import Converter, Operand
from layerscope.formats.torch.lowering import Lowering, TensorRef, Unsupported
from layerscope.graph import attributes as at
from layerscope.graph.types import Shape


def constant(d: Lowering, shape: Shape, dtype: str) -> TensorRef:
    """A constant tensor; its values are not recorded."""
    return d.add("constant", at=at.DeclaredOutputs((shape,), (dtype,)))


def scalar_constant(d: Lowering, dtype: str) -> TensorRef:
    """A constant of rank 0."""
    return constant(d, (), dtype)


def fill(d: Lowering, self: TensorRef, value: Operand = 0) -> TensorRef:
    if isinstance(value, TensorRef) and value.rank:
        raise Unsupported("a fill value that is not a scalar")
    return constant(d, self.shape, self.dtype)


TABLE: dict[str, Converter] = {
    "fill": fill,
    "zero": fill,
}
