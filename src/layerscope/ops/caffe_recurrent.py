"""Caffe's recurrent layers: steps unrolled, states multiplied by marks of where sequences go on."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.graph.attributes import Unrolled
from layerscope.graph.types import Param, Shape, elements
from layerscope.ops.access_map import SAME, AccessMap, keep
from layerscope.ops.autograd import Saved, SavedRule
from layerscope.ops.recurrent import SIGMOID, TANH
from layerscope.ops.spec import BackwardRule, Call, Ops, OpSpec, OpsRule, ParamsRule, param

GATES = {"caffe_lstm": 4, "caffe_rnn": 1}
STATES = {"caffe_lstm": 2, "caffe_rnn": 1}  # kept of every step besides the gates


class Steps:
    """Sizes of one use: steps, batch, features, and those of the static input."""

    def __init__(self, call: Call) -> None:
        a: Unrolled = call.attributes
        if len(call.inputs) != 2 + a.static or len(call.x) < 3 or call.inputs[1] != call.x[:2]:
            shapes = ", ".join("x".join(map(str, shape)) for shape in call.inputs)
            raise ShapeError(f"unrolling {shapes}, expected T x N x features, T x N and no more")
        if a.hidden < 1:
            raise ShapeError(f"{a.hidden} hidden units, expected at least 1")
        self.steps, self.batch = call.x[:2]
        self.features = elements(call.x[2:])
        self.static = elements(call.inputs[2][1:]) if a.static else 0
        if a.static and call.inputs[2][0] != self.batch:
            raise ShapeError(f"a static input {call.inputs[2]} for a batch of {self.batch}")


def _shape(call: Call) -> tuple[Shape, ...]:
    run = Steps(call)
    return ((run.steps, run.batch, call.attributes.hidden),)


def _ops(kind: str) -> OpsRule:
    def ops(call: Call) -> Ops:
        """Per step and unit: the marked state, its product joined to the input's, then the cell."""
        a: Unrolled = call.attributes
        run = Steps(call)
        rows = GATES[kind] * a.hidden
        steps = run.steps * run.batch
        joined = Ops(add=rows * (2 + a.static), mac=rows * (run.features + a.hidden))
        once = Ops(mac=rows * run.static * run.batch)
        if kind == "caffe_lstm":  # c = mark·f·c + i·g, h = o·tanh(c)
            cell = SIGMOID * 3 + TANH * 2 + Ops(mul=5, add=1)
        else:  # h = tanh(…), o = tanh(W·h + b)
            cell = TANH * 2 + Ops(mul=1, add=1, mac=a.hidden)
        return once + (joined + cell * a.hidden) * steps

    return ops


def _params(kind: str) -> ParamsRule:
    def params(call: Call) -> tuple[Param, ...]:
        a: Unrolled = call.attributes
        run = Steps(call)
        rows = GATES[kind] * a.hidden
        params = [param("weight_x", (rows, run.features), "weight"), param("bias", (rows,), "bias")]
        if a.static:
            params.append(param("weight_static", (rows, run.static), "weight"))
        params.append(param("weight_h", (rows, a.hidden), "weight"))
        if kind == "caffe_rnn":
            params.append(param("weight_o", (a.hidden, a.hidden), "weight"))
            params.append(param("bias_o", (a.hidden,), "bias"))
        return tuple(params)

    return params


def _backward(kind: str) -> BackwardRule:
    def backward(call: Call) -> tuple[Ops, Ops]:
        """The forward products twice, and the cells twice, as for other recurrent layers."""
        a: Unrolled = call.attributes
        run = Steps(call)
        forward = _ops(kind)(call)
        cells = Ops(mul=2 * (forward.mul + forward.div), add=2 * forward.add)
        entry = GATES[kind] * a.hidden * run.features * run.steps * run.batch
        return Ops(mac=entry), Ops(mac=2 * forward.mac - entry) + cells

    return backward


def _saves(kind: str) -> SavedRule:
    """The input, and at every step all gates and states."""

    def saves(call: Call) -> Saved:
        a: Unrolled = call.attributes
        run = Steps(call)
        units = a.hidden * run.steps * run.batch
        return Saved(inputs=(0,), extra=((units * (GATES[kind] + STATES[kind]), ""),))

    return saves


def _access(call: Call) -> tuple[AccessMap, ...]:
    """Every step may see all steps of its own sequence."""
    static: AccessMap = {0: (1, SAME)}
    return (keep((1,)), keep((1,)), static)[: len(call.inputs)]


SPECS = {
    kind: OpSpec(
        family="recurrent",
        attributes=Unrolled,
        shape=_shape,
        ops=_ops(kind),
        params=_params(kind),
        access_map=_access,
        backward=_backward(kind),
        saved_for_backward=_saves(kind),
        arity=(2, 3),
    )
    for kind in GATES
}
