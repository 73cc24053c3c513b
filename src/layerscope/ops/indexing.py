"""Choosing and placing elements by index: no arithmetic, only bytes."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.graph.attributes import (
    Embedding,
    Gather,
    GatherND,
    OneHot,
    Scatter,
    Table,
)
from layerscope.graph.types import Param, Shape, elements
from layerscope.ops.access_map import NOT_READ, SAME, AccessMap, Map, SliceMap, keep
from layerscope.ops.autograd import Saved, first_input, nothing
from layerscope.ops.spec import (
    FREE,
    Call,
    Ops,
    OpSpec,
    axis_of,
    broadcast,
    free,
    no_inputs,
    param,
    passes,
    same,
    with_param_inputs,
)


def _text(shape: Shape) -> str:
    return "x".join(map(str, shape)) or "a scalar"


def _gather_shape(call: Call) -> tuple[Shape, ...]:
    a: Gather = call.attributes or Gather()
    data, indices = call.inputs
    axis = axis_of(a.axis, len(data))
    if not a.elements:
        return ((*data[:axis], *indices, *data[axis + 1 :]),)
    if len(indices) != len(data):
        raise ShapeError(f"gathering {_text(data)} by {_text(indices)}: different numbers of axes")
    _need_room(data, indices, axis)
    return (indices,)


def _need_room(data: Shape, indices: Shape, axis: int) -> None:
    """Only along its own axis may there be more indices than data."""
    for n, (size, count) in enumerate(zip(data, indices, strict=True)):
        if n != axis and count > size:
            raise ShapeError(f"indices {_text(indices)} do not fit {_text(data)} on axis {n}")


def _gather_access(call: Call) -> tuple[AccessMap, ...]:
    """Which slice is taken, data decides; the other axes stay, those behind it moved."""
    a: Gather = call.attributes or Gather()
    data, indices = call.inputs
    axis = axis_of(a.axis, len(data))
    others = tuple(n for n in range(len(data)) if n != axis)
    if a.elements:
        return (keep(others), keep(range(len(indices))))
    moved = len(indices) - 1
    return (
        {n: (n if n < axis else n + moved, SAME) for n in others},
        {n: (axis + n, SAME) for n in range(len(indices))},
    )


def _axes_indexed(data: Shape, indices: Shape, batch: int) -> int:
    """Number of axes of the data that the last axis of the indices indexes."""
    shapes = f"{_text(indices)} as indices into {_text(data)}"
    if not data or not indices or not 0 <= batch < min(len(data), len(indices)):
        raise ShapeError(f"{shapes} behind {batch} axes")
    if not 1 <= indices[-1] <= len(data) - batch or data[:batch] != indices[:batch]:
        raise ShapeError(f"{shapes} behind {batch} axes: they do not agree")
    return batch + indices[-1]


def _gather_nd_shape(call: Call) -> tuple[Shape, ...]:
    data, indices = call.inputs
    deep = _axes_indexed(data, indices, (call.attributes or GatherND()).batch)
    return ((*indices[:-1], *data[deep:]),)


def _gather_nd_access(call: Call) -> tuple[AccessMap, ...]:
    """Indices depend on data; the axes before and after the indexed ones correspond."""
    data, indices = call.inputs
    batch = (call.attributes or GatherND()).batch
    deep = _axes_indexed(data, indices, batch)
    behind: AccessMap = {n: (n - deep + len(indices) - 1, SAME) for n in range(deep, len(data))}
    return ({**keep(range(batch)), **behind}, keep(range(len(indices) - 1)))


def _scatter_nd_shape(call: Call) -> tuple[Shape, ...]:
    data, indices, updates = call.inputs
    deep = _axes_indexed(data, indices, 0)
    if updates != (*indices[:-1], *data[deep:]):
        shapes = ", ".join(map(_text, call.inputs))
        raise ShapeError(f"scattering {shapes}: indices and updates do not agree")
    return (data,)


def _scatter_nd_access(call: Call) -> tuple[AccessMap, ...]:
    data, indices, updates = call.inputs
    deep, lead = indices[-1], len(indices) - 1
    behind: AccessMap = {n: (n - lead + deep, SAME) for n in range(lead, len(updates))}
    return (keep(range(len(data))), {}, behind)


def _added(call: Call) -> Ops:
    """Updates that are combined with the elements there instead of replacing them."""
    a: Scatter = call.attributes or Scatter()
    count = elements(call.inputs[2])
    if a.reduce == "mean":  # sums, and how many there are of each
        return Ops(add=2 * count, div=elements(call.x))
    if a.reduce == "mul":
        return Ops(mul=count)
    return Ops(comp=count) if a.reduce else Ops(add=count if a.add else 0)


def _one_hot_axis(call: Call) -> int:
    return axis_of(call.attributes.axis, len(call.x) + 1)


def _one_hot_shape(call: Call) -> tuple[Shape, ...]:
    a: OneHot = call.attributes
    if a.depth < 1:
        raise ShapeError(f"one of {a.depth}, expected at least 1")
    axis = _one_hot_axis(call)
    return ((*call.x[:axis], a.depth, *call.x[axis:]),)


def _one_hot_access(call: Call) -> tuple[AccessMap, ...]:
    axis = _one_hot_axis(call)
    return ({n: (n + (n >= axis), SAME) for n in range(len(call.x))},)


def _scatter_shape(call: Call) -> tuple[Shape, ...]:
    a: Scatter = call.attributes or Scatter()
    data, indices, updates = call.inputs
    axis = axis_of(a.axis, len(data))
    if indices != updates or len(indices) != len(data):
        shapes = ", ".join(map(_text, call.inputs))
        raise ShapeError(f"scattering {shapes}: indices and updates do not agree")
    _need_room(data, indices, axis)
    return (data,)


def _scatter_access(call: Call) -> tuple[AccessMap, ...]:
    """Where along its axis an update goes, data decides."""
    a: Scatter = call.attributes or Scatter()
    data, indices, _ = call.inputs
    axis = axis_of(a.axis, len(data))
    written: AccessMap = {
        n: (n, SAME if count == data[n] else SliceMap(0, count))
        for n, count in enumerate(indices)
        if n != axis
    }
    return (keep(range(len(data))), written, written)


def _where_shape(call: Call) -> tuple[Shape, ...]:
    return (broadcast(call.inputs),)


def _embedding_shape(call: Call) -> tuple[Shape, ...]:
    a: Embedding = call.attributes
    if a.rows < 1 or a.features < 1:
        raise ShapeError(f"a table of {a.rows} x {a.features}, expected at least 1 each")
    return ((*call.x, a.features),)


def _embedding_params(call: Call) -> tuple[Param, ...]:
    a: Embedding = call.attributes
    return (param("weight", (a.rows, a.features), "embedding"),)


def _table_shape(call: Call) -> tuple[Shape, ...]:
    a: Table = call.attributes
    if not a.shape or min(a.shape) < 1:
        raise ShapeError(f"a table of {_text(a.shape)}, expected at least 1 everywhere")
    if a.batched and not call.x:
        raise ShapeError(f"a table of {_text(a.shape)} repeated for a batch, expected a batch axis")
    if a.batched and a.shape[0] != 1:
        raise ShapeError(f"a table of {_text(a.shape)} repeated for a batch, expected 1 in front")
    return ((call.x[0], *a.shape[1:]) if a.batched else a.shape,)


def _table_params(call: Call) -> tuple[Param, ...]:
    return (param("weight", call.attributes.shape, "embedding"),)


def _positions_shape(call: Call) -> tuple[Shape, ...]:
    if len(call.x) < 2:
        raise ShapeError(f"positions of {_text(call.x)}, expected N x T")
    return ((1, call.x[1]),)


def _roll_access(call: Call) -> tuple[AccessMap, ...]:
    access: dict[int, tuple[int, Map]] = {0: (0, SAME)}
    return (access,)


SPECS = {
    "gather": OpSpec(
        family="indexing",
        attributes=Gather,
        shape=_gather_shape,
        ops=free,
        access_map=_gather_access,
        input_elements=lambda call: (call.out_elements, elements(call.inputs[1])),
        backward=lambda call: (Ops(add=call.out_elements), FREE),
        arity=(2, 2),
        saved_for_backward=lambda call: Saved(inputs=(0, 1) if call.attributes.elements else (1,)),
    ),
    "scatter": OpSpec(
        family="indexing",
        attributes=Scatter,
        shape=_scatter_shape,
        ops=_added,
        saved_for_backward=lambda call: Saved(inputs=(1,)),
        access_map=_scatter_access,
        backward=passes,
        arity=(3, 3),
    ),
    "gather_nd": OpSpec(
        family="indexing",
        attributes=GatherND,
        shape=_gather_nd_shape,
        ops=free,
        access_map=_gather_nd_access,
        input_elements=lambda call: (call.out_elements, elements(call.inputs[1])),
        backward=lambda call: (Ops(add=call.out_elements), FREE),
        arity=(2, 2),
        saved_for_backward=lambda call: Saved(inputs=(1,)),
    ),
    "scatter_nd": OpSpec(
        family="indexing",
        attributes=Scatter,
        shape=_scatter_nd_shape,
        ops=_added,
        access_map=_scatter_nd_access,
        backward=passes,
        arity=(3, 3),
        saved_for_backward=lambda call: Saved(inputs=(1,)),
    ),
    # every position of the new axis is compared with the index
    "one_hot": OpSpec(
        family="indexing",
        attributes=OneHot,
        shape=_one_hot_shape,
        ops=lambda call: Ops(comp=call.out_elements),
        access_map=_one_hot_access,
        backward=passes,
        out_dtypes=("attribute",),
        saved_for_backward=nothing,
    ),
    "where": OpSpec(
        family="indexing",
        shape=_where_shape,
        ops=lambda call: Ops(comp=call.out_elements),
        backward=passes,
        arity=(3, 3),
        out_dtypes=("second",),  # the first input is the condition
        saved_for_backward=first_input,
    ),
    "embedding": with_param_inputs(
        OpSpec(
            family="indexing",
            attributes=Embedding,
            names={
                "torch": "Embedding",
                "torch_function": "embedding",
                "keras": "Embedding",
            },
            shape=_embedding_shape,
            ops=free,
            params=_embedding_params,
            access_map=lambda call: (keep(range(len(call.x))),),
            param_elements=lambda call: call.out_elements,
            backward=lambda call: (FREE, Ops(add=call.out_elements)),
            out_dtypes=("float",),
            saved_for_backward=first_input,
        ),
        1,
    ),
    # a learned array, such as a class token or a table of positions, read as it is
    "table": OpSpec(
        family="indexing",
        attributes=Table,
        shape=_table_shape,
        ops=free,
        params=_table_params,
        access_map=lambda call: (NOT_READ,),
        input_elements=no_inputs,
        param_elements=lambda call: elements(call.attributes.shape),
        backward=lambda call: (FREE, FREE),
        out_dtypes=("float",),
        saved_for_backward=nothing,
    ),
    "positions": OpSpec(
        family="indexing",
        shape=_positions_shape,
        ops=free,
        access_map=lambda call: (NOT_READ,),
        input_elements=no_inputs,
        backward=passes,
        out_dtypes=("int64",),
        saved_for_backward=nothing,
    ),
    "roll": OpSpec(
        family="indexing",
        shape=same,
        ops=free,
        access_map=_roll_access,
        backward=passes,
        saved_for_backward=nothing,
    ),
}
