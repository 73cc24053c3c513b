"""Element-wise functions of several tensors, broadcast against each other, and of constants."""

from __future__ import annotations

from collections.abc import Mapping

from layerscope.errors import ShapeError
from layerscope.graph.attributes import Power, Sum
from layerscope.graph.types import Shape, elements
from layerscope.ops.access_map import SAME, AccessMap, keep
from layerscope.ops.autograd import FIRST, NOTHING, Saved, SavedRule, every_input, nothing, product
from layerscope.ops.spec import FREE, Call, Ops, OpSpec, OpsRule, broadcast, passes, same

KINDS = {
    "add": Ops(add=1),
    "sub": Ops(add=1),
    "mul": Ops(mul=1),
    "div": Ops(div=1),
    "pow": Ops(exp=1),
    "max": Ops(comp=1),
    "min": Ops(comp=1),
    "compare": Ops(comp=1),
    "logical": Ops(comp=1),
    "bitwise": Ops(comp=1),
    "mod": Ops(div=1),
    "floor_div": Ops(div=1),
    "atan2": Ops(div=1, exp=1),
    # gamma, Bessel, zeta and other functions of mathematics
    "special": Ops(exp=1),
}

ANY_NUMBER = ("add", "mul", "max", "min")
ANSWERS = ("compare", "logical")  # yes or no
NO_GRADIENT = (*ANSWERS, "bitwise", "floor_div")


def _shape(call: Call) -> tuple[Shape, ...]:
    return (broadcast(call.inputs),)


def _ops(unit: Ops) -> OpsRule:
    """N inputs take n − 1 operations per output element; a lone input meets a constant."""

    def ops(call: Call) -> Ops:
        ops = unit * (call.out_elements * max(len(call.inputs) - 1, 1))
        if isinstance(call.attributes, Sum):
            ops += Ops(mul=call.attributes.scaled * call.out_elements)
        return ops

    return ops


def _power_ops(call: Call) -> Ops:
    a: Power = call.attributes
    unit = Ops(mul=a.scale != 1, add=a.shift != 0, exp=a.power != 1)
    return unit * call.out_elements


def _axpy_shape(call: Call) -> tuple[Shape, ...]:
    scale, x, y = call.inputs
    if x != y or scale[:2] != x[:2] or elements(scale) != elements(x[:2]):
        shapes = ", ".join("x".join(map(str, shape)) for shape in call.inputs)
        raise ShapeError(f"scaling and adding {shapes}: expected N x C and twice N x C x …")
    return (x,)


def _axpy_access(call: Call) -> tuple[AccessMap, ...]:
    every = keep(range(len(call.y)))
    return ({0: (0, SAME), 1: (1, SAME)}, every, every)


def _backward(op: str) -> tuple[int, int]:
    """Operations per input and output element: mul, div."""
    return {"mul": (1, 0), "div": (1, 1), "pow": (2, 0), "atan2": (1, 1)}.get(op, (0, 0))


def _div_saves(call: Call) -> Saved:
    """The divisor, and for its own gradient the dividend; a number is not kept."""
    return Saved(inputs=(1,), crossed=((0, 1),)) if len(call.inputs) == 2 else NOTHING


def _pow_saves(call: Call) -> Saved:
    return Saved(inputs=(0, 1), outputs=(0,)) if len(call.inputs) == 2 else FIRST


def _mod_saves(call: Call) -> Saved:
    """Both for the gradient of the divisor."""
    return Saved(crossed=((0, 1), (1, 1))) if len(call.inputs) == 2 else NOTHING


SAVES: dict[str, SavedRule] = {
    "mul": product,
    "div": _div_saves,
    "pow": _pow_saves,
    "max": every_input,
    "min": every_input,
    "mod": _mod_saves,
    "atan2": every_input,
    "special": every_input,
}


# Names of these ops in other systems; see `OpSpec.names`.
NAMES: Mapping[str, Mapping[str, str]] = {
    "add": {"caffe": "Eltwise", "matconvnet": "sum", "dagnn": "Sum", "keras": "Add"},
    "sub": {"caffe": "Eltwise", "keras": "Subtract"},
    "mul": {"caffe": "Eltwise", "keras": "Multiply"},
    "pow": {"caffe": "Power"},
    "max": {"caffe": "Eltwise", "keras": "Maximum"},
    "min": {"keras": "Minimum"},
}


def _rule(op: str, unit: Ops) -> OpSpec:
    mul, div = _backward(op)
    backward = (
        passes
        if op in ("add", "sub", *NO_GRADIENT)
        else lambda call: (
            Ops(mul=mul or 1, div=div) * (call.out_elements * len(call.inputs)),
            FREE,
        )
    )
    return OpSpec(
        family="elementwise",
        attributes=Sum if op == "add" else None,
        names=NAMES.get(op, {}),
        shape=_shape,
        ops=_ops(unit),
        backward=backward,
        saved_for_backward=SAVES.get(op, nothing),
        arity=(1, None if op in ANY_NUMBER else 2),
        in_place=op not in ANSWERS,
        out_dtypes=("bool",) if op in ANSWERS else (),
    )


SPECS = {op: _rule(op, unit) for op, unit in KINDS.items()} | {
    "mean": OpSpec(
        family="elementwise",
        names={"keras": "Average"},
        shape=_shape,
        ops=lambda call: Ops(add=len(call.inputs) - 1, div=1) * call.out_elements,
        backward=lambda call: (Ops(div=call.out_elements), FREE),
        saved_for_backward=nothing,
        arity=(1, None),
        in_place=True,
    ),
    "power": OpSpec(
        family="elementwise",
        attributes=Power,
        shape=same,
        ops=_power_ops,
        backward=lambda call: (Ops(mul=2, exp=1) * call.out_elements, FREE),
        in_place=True,
    ),
    "axpy": OpSpec(
        family="elementwise",
        shape=_axpy_shape,
        ops=lambda call: Ops(mul=1, add=1) * call.out_elements,
        access_map=_axpy_access,
        backward=lambda call: (Ops(mul=2, add=1) * call.out_elements, FREE),
        saved_for_backward=every_input,
        arity=(3, 3),
    ),
}
