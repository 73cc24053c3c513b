"""Constants: filled tensors, and the scalars that other converters need as inputs."""

from __future__ import annotations

from layerscope.formats.torch.aten.signatures import Converter, Operand
from layerscope.formats.torch.draft import Draft, NoWords, Ref
from layerscope.graph import attributes as at
from layerscope.graph.types import Shape


def constant(d: Draft, shape: Shape, dtype: str) -> Ref:
    """A constant tensor; its values are not recorded."""
    return d.add("constant", at=at.DeclaredOutputs((shape,), (dtype,)))


def scalar_constant(d: Draft, dtype: str) -> Ref:
    """A constant of rank 0."""
    return constant(d, (), dtype)


def fill(d: Draft, self: Ref, value: Operand = 0) -> Ref:
    if isinstance(value, Ref) and value.rank:
        raise NoWords("a fill value that is not a scalar")
    return constant(d, self.shape, self.dtype)


TABLE: dict[str, Converter] = {
    "fill": fill,
    "zero": fill,
}
