"""Constants, branches, ranges, random numbers, custom operators and shapes."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.graph.attributes import CustomCost, DeclaredOutputs
from layerscope.graph.types import Shape
from layerscope.ops.access_map import NOT_READ, AccessMap, everything, pointwise
from layerscope.ops.autograd import every_input, nothing
from layerscope.ops.spec import FREE, Call, Ops, OpSpec, free, no_inputs, passes, per_output


def _declared_shapes(call: Call) -> tuple[Shape, ...]:
    a: DeclaredOutputs | CustomCost = call.attributes
    if not a.shapes or len(a.shapes) != len(a.dtypes):
        raise ShapeError(f"{len(a.shapes)} shapes and {len(a.dtypes)} number types")
    return a.shapes


def _counted(call: Call) -> Ops:
    a: CustomCost = call.attributes
    return Ops(a.mac, a.add, a.mul, a.comp, a.div, a.exp)


def _unread(call: Call) -> tuple[AccessMap, ...]:
    return (NOT_READ,) * max(len(call.inputs), len(call.outputs))


def _chosen_access(call: Call) -> tuple[AccessMap, ...]:
    """One of the inputs as it is, where they are of its shape; else any part of them."""
    if len(call.outputs) > 1:
        return everything(call.outputs)
    same_shape = all(shape == call.y for shape in call.inputs)
    return pointwise(call.inputs, call.y) if same_shape else everything(call.inputs)


SPECS = {
    # worked out before the run, from shapes and constants alone
    "constant": OpSpec(
        family="control",
        attributes=DeclaredOutputs,
        shape=_declared_shapes,
        ops=free,
        access_map=_unread,
        input_elements=no_inputs,
        backward=passes,
        saved_for_backward=nothing,
        out_dtypes=("attribute",),
        arity=(0, None),
        folded=True,
    ),
    # the result of one of several branches, or an output of a loop
    "select": OpSpec(
        family="control",
        attributes=DeclaredOutputs,
        shape=_declared_shapes,
        ops=free,
        access_map=_chosen_access,
        input_elements=no_inputs,
        backward=passes,
        saved_for_backward=nothing,
        out_dtypes=("attribute",),
        arity=(0, None),
        view=True,
    ),
    "range": OpSpec(
        family="control",
        attributes=DeclaredOutputs,
        shape=_declared_shapes,
        ops=per_output(add=1),
        access_map=lambda call: everything(call.inputs),
        backward=passes,
        saved_for_backward=nothing,
        out_dtypes=("attribute",),
        arity=(0, None),
    ),
    "random": OpSpec(
        family="control",
        attributes=DeclaredOutputs,
        shape=_declared_shapes,
        ops=lambda call: Ops(mul=1, add=1) * call.out_elements,
        access_map=_unread,
        input_elements=no_inputs,
        backward=passes,
        saved_for_backward=nothing,
        out_dtypes=("attribute",),
        arity=(0, None),
        estimate="a generator's step for each number drawn",
    ),
    # an operator of somebody's own, counted as its owner says
    "custom": OpSpec(
        family="control",
        attributes=CustomCost,
        shape=_declared_shapes,
        ops=_counted,
        access_map=lambda call: everything(call.inputs if len(call.outputs) == 1 else call.outputs),
        backward=lambda call: (_counted(call) * 2, FREE),
        saved_for_backward=every_input,
        out_dtypes=("attribute",),
        arity=(0, None),
    ),
    "shape_of": OpSpec(
        family="control",
        shape=lambda call: ((len(call.x),),),
        ops=free,
        access_map=lambda call: (NOT_READ,),
        input_elements=no_inputs,
        backward=passes,
        saved_for_backward=nothing,
        out_dtypes=("int64",),
    ),
}
