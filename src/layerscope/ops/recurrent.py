"""RNN, LSTM and GRU: several layers, both directions, the last step as well as the sequence."""

from __future__ import annotations

from collections.abc import Mapping

from layerscope.errors import ShapeError
from layerscope.graph.attributes import Recurrent
from layerscope.graph.types import Param, Shape
from layerscope.ops.access_map import SAME, AccessMap, keep
from layerscope.ops.autograd import Fold, Saved, SavedRule
from layerscope.ops.spec import (
    BackwardRule,
    Call,
    Ops,
    OpSpec,
    OpsRule,
    ParamsRule,
    ShapeRule,
    param,
)

GATES = {"rnn": 1, "lstm": 4, "gru": 3}

SIGMOID = Ops(exp=1, add=1, div=1)
TANH = Ops(exp=1, add=2, div=1)
RELU = Ops(comp=1)


class RecurrentRun:
    """Sizes of one use: steps, batch, directions, and the features each layer reads."""

    def __init__(self, call: Call) -> None:
        a: Recurrent = call.attributes
        if len(call.x) != 3:
            raise ShapeError(f"a recurrent layer takes T x N x features, got {call.x}")
        if a.hidden < 1 or a.layers < 1 or not 0 <= a.projection < a.hidden:
            raise ShapeError(
                f"{a.layers} layers of {a.hidden} projected to {a.projection}, expected at least 1"
            )
        self.batch, self.steps = call.x[:2] if a.batch_first else (call.x[1], call.x[0])
        self.directions = 2 if a.bidirectional else 1
        self.state = a.projection or a.hidden
        inner = self.state * self.directions
        self.features = (call.x[2], *[inner] * (a.layers - 1))


def _shape(kind: str) -> ShapeRule:
    def shape(call: Call) -> tuple[Shape, ...]:
        """The sequence, the last state of every layer and direction, and for LSTM the cells."""
        a: Recurrent = call.attributes
        run = RecurrentRun(call)
        if a.projection and kind != "lstm":
            raise ShapeError(f"a projection of {kind}, which only lstm has")
        if a.peepholes and kind != "lstm":
            raise ShapeError(f"peepholes of {kind}, which only lstm has")
        lead = (run.batch, run.steps) if a.batch_first else (run.steps, run.batch)
        states = a.layers * run.directions
        shapes = ((*lead, run.state * run.directions), (states, run.batch, run.state))
        return (*shapes, (states, run.batch, a.hidden)) if kind == "lstm" else shapes

    return shape


def _macs(kind: str, call: Call) -> int:
    """The matrices of all gates, layers and directions, at every step."""
    a: Recurrent = call.attributes
    run = RecurrentRun(call)
    per_step = 0
    for features in run.features:
        per_step += GATES[kind] * a.hidden * (features + run.state) + a.hidden * a.projection
    return per_step * run.directions * run.steps * run.batch


def _cell(kind: str, a: Recurrent) -> Ops:
    """Per hidden unit and step: both products joined, biases, gates, and the new state."""
    if kind == "rnn":
        ops = Ops(add=1) + (TANH if a.activation == "tanh" else RELU)
    elif kind == "lstm":  # c = f·c + i·g, h = o·tanh(c)
        ops = Ops(add=4) + SIGMOID * 3 + TANH * 2 + Ops(mul=3, add=1)
        if a.peepholes:
            ops += Ops(mul=3, add=3)
    else:  # n = tanh(x + r·h), h = (1 − z)·n + z·h; a reset before the product costs the same
        ops = Ops(add=3) + SIGMOID * 2 + TANH + Ops(mul=3, add=2)
    return ops + Ops(add=2 * GATES[kind]) if a.bias else ops


def _ops(kind: str) -> OpsRule:
    def ops(call: Call) -> Ops:
        a: Recurrent = call.attributes
        run = RecurrentRun(call)
        cells = a.hidden * a.layers * run.directions * run.steps * run.batch
        return Ops(mac=_macs(kind, call)) + _cell(kind, a) * cells

    return ops


def _params(kind: str) -> ParamsRule:
    def params(call: Call) -> tuple[Param, ...]:
        a: Recurrent = call.attributes
        run = RecurrentRun(call)
        rows = GATES[kind] * a.hidden
        params = []
        for layer, features in enumerate(run.features):
            for end in ("", "_reverse")[: run.directions]:
                tail = f"_l{layer}{end}"
                params.append(param(f"weight_ih{tail}", (rows, features), "weight"))
                params.append(param(f"weight_hh{tail}", (rows, run.state), "weight"))
                if a.bias:
                    params.append(param(f"bias_ih{tail}", (rows,), "bias"))
                    params.append(param(f"bias_hh{tail}", (rows,), "bias"))
                if a.peepholes:
                    params.append(param(f"peephole{tail}", (3 * a.hidden,), "weight"))
                if a.projection:
                    params.append(param(f"weight_hr{tail}", (a.projection, a.hidden), "weight"))
        return tuple(params)

    return params


def _backward(kind: str) -> BackwardRule:
    def backward(call: Call) -> tuple[Ops, Ops]:
        """The forward products twice, and the cells twice.

        The input's own gradient is only that of the first layer's input matrices: what goes back
        through time and from layer to layer, the params need as well.
        """
        a: Recurrent = call.attributes
        run = RecurrentRun(call)
        forward = _ops(kind)(call)
        cells = Ops(mul=2 * (forward.mul + forward.div), add=2 * forward.add)
        entry = GATES[kind] * a.hidden * run.features[0] * run.directions * run.steps * run.batch
        return Ops(mac=entry), Ops(mac=2 * forward.mac - entry) + cells

    return backward


def _saves(kind: str) -> SavedRule:
    """The input, what each step computes, and the sequence between layers, as without oneDNN.

    Per unit and step: RNN keeps the state; GRU the gates of the state's product, both gates, the
    candidate and the state; LSTM all gates, the cell, its tanh and the state.
    """

    def saves(call: Call) -> Saved:
        a: Recurrent = call.attributes
        run = RecurrentRun(call)
        cells = run.batch * a.layers * run.directions
        kept = cells * (a.hidden * (run.steps + 1 if kind == "rnn" else 7 * run.steps))
        kept += cells * run.steps * a.projection
        between = run.steps * run.batch * run.state * run.directions * (a.layers - 1)
        kept += between * (2 if a.dropout else 1)
        order = (1, 0, 2) if a.batch_first else ()
        wide = (run.steps, run.batch, call.x[2])
        fold = Fold(0, wide, (run.steps * run.batch, call.x[2]), order, run.directions)
        return Saved(inputs=(0,), extra=((kept, ""),), folds=(fold,))

    return saves


def _access(call: Call) -> tuple[AccessMap, ...]:
    """Every step sees all steps and features of its own sequence."""
    batch = 0 if call.attributes.batch_first else 1
    states: AccessMap = {batch: (1, SAME)}
    return (keep((batch,)), *[states] * (len(call.outputs) - 1))


# Names of these ops in other systems; see `OpSpec.names`.
NAMES: Mapping[str, Mapping[str, str]] = {
    "rnn": {"torch": "RNN", "torch_function": "rnn_tanh", "keras": "SimpleRNN"},
    "lstm": {"torch": "LSTM", "torch_function": "lstm", "keras": "LSTM"},
    "gru": {"torch": "GRU", "torch_function": "gru", "keras": "GRU"},
}

SPECS = {
    kind: OpSpec(
        family="recurrent",
        attributes=Recurrent,
        names=NAMES[kind],
        shape=_shape(kind),
        ops=_ops(kind),
        params=_params(kind),
        access_map=_access,
        backward=_backward(kind),
        saved_for_backward=_saves(kind),
        arity=(1, None),  # first states, lengths, arrays that are not stored
    )
    for kind in GATES
}
