"""As many results as data decides: the most there can be, unless a run has found how many."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.graph.attributes import Compress, DeclaredOutputs, Unique
from layerscope.graph.types import Shape, elements
from layerscope.ops.access_map import everything
from layerscope.ops.autograd import Saved, nothing
from layerscope.ops.spec import Call, Ops, OpSpec, axis_of, passes


def _kept_shape(call: Call) -> tuple[Shape, ...]:
    if isinstance(call.attributes, DeclaredOutputs):
        return call.attributes.shapes
    a: Compress = call.attributes or Compress()
    count = elements(call.inputs[1])
    if a.axis is None:
        return ((min(count, elements(call.x)),),)
    axis = axis_of(a.axis, len(call.x))
    return ((*call.x[:axis], min(count, call.x[axis]), *call.x[axis + 1 :]),)


def _items(call: Call) -> tuple[int, int]:
    """Number of slices that are compared, and the elements of each."""
    if isinstance(call.attributes, DeclaredOutputs):  # slices of the axis that the inverse counts
        count = max([elements(shape) for shape in call.outputs[1:]], default=elements(call.x))
        return (count, elements(call.x) // count) if count else (elements(call.x), 1)
    a: Unique = call.attributes or Unique()
    if a.axis is None:
        return elements(call.x), 1
    count = call.x[axis_of(a.axis, len(call.x))]
    return count, elements(call.x) // max(count, 1)


def _unique_shape(call: Call) -> tuple[Shape, ...]:
    if isinstance(call.attributes, DeclaredOutputs):
        return call.attributes.shapes
    a: Unique = call.attributes or Unique()
    if not 1 <= a.outputs <= 4:
        raise ShapeError(f"{a.outputs} outputs of what is unique, expected 1 to 4")
    count, _ = _items(call)
    first = (count,) if a.axis is None else call.x
    return (first, *[(count,)] * (a.outputs - 1))


def _unique_ops(call: Call) -> Ops:
    """Sorted, then each against the one before it."""
    count, size = _items(call)
    return Ops(comp=(count * (count - 1).bit_length() + count - 1) * size)


def _places_shape(call: Call) -> tuple[Shape, ...]:
    if isinstance(call.attributes, DeclaredOutputs):
        return call.attributes.shapes
    return ((len(call.x), elements(call.x)),)


SPECS = {
    "non_zero": OpSpec(
        family="indexing",
        shape=_places_shape,
        ops=lambda call: Ops(comp=elements(call.x)),
        access_map=lambda call: everything(call.inputs),
        backward=passes,
        saved_for_backward=nothing,
        out_dtypes=("int64",),
        sized=True,
        data_sized=True,
        estimate="every element, though data decides how many are not nought",
    ),
    "compress": OpSpec(
        family="indexing",
        attributes=Compress,
        shape=_kept_shape,
        ops=lambda call: Ops(comp=sum(map(elements, call.inputs[1:]))),
        access_map=lambda call: everything(call.inputs),
        backward=passes,
        saved_for_backward=lambda call: Saved(inputs=tuple(range(1, len(call.inputs)))),
        arity=(2, None),
        sized=True,
        data_sized=True,
        estimate="all of it, though data decides how much is kept",
    ),
    "unique": OpSpec(
        family="indexing",
        attributes=Unique,
        shape=_unique_shape,
        ops=_unique_ops,
        access_map=lambda call: everything(call.outputs if len(call.outputs) > 1 else call.inputs),
        backward=passes,
        saved_for_backward=nothing,
        out_dtypes=("input", "int64", "int64", "int64"),
        data_sized=True,
        estimate="sorted by n·⌈log2 n⌉ comparisons, and all of it unlike",
    ),
}
