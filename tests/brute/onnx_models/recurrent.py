"""ONNX models of RNN, LSTM and GRU."""

from __future__ import annotations

from layerscope.graph.attributes import Recurrent
from tests.brute.engine import Model, Writer

# Where ONNX's gates stand in torch's: rnn h; lstm i o f c of i f g o; gru z r h of r z n.
ORDER = {"rnn": (0,), "lstm": (0, 3, 1, 2), "gru": (1, 0, 2)}


def _gates(m: Model, kind: str, name: str) -> str:
    """A param with its gates in ONNX's order, and an axis for the direction in front."""
    size = m.attributes.hidden
    rows = [gate * size + i for gate in ORDER[kind] for i in range(size)]
    return m.node("Unsqueeze", m.node("Gather", name, m.ints(*rows), axis=0), m.ints(0))


def _stacked(m: Model, parts: list[str], axis: int = 0) -> str:
    return m.node("Concat", *parts, axis=axis) if len(parts) > 1 else parts[0]


def _states(m: Model, kind: str, layer: int, count: int) -> list[str]:
    """The first states of a layer, behind the lengths that nobody tells; none if all are nought."""
    rows = m.ints(*range(layer * count, (layer + 1) * count))
    given = [m.node("Gather", m.of(n), rows, axis=0) for n in range(1, len(m.inputs))]
    return ["", *given] if given else []


def _peepholes(m: Model, tails: list[str]) -> str:
    """ONNX has them in the order i o f."""
    size = m.attributes.hidden
    rows = m.ints(*(gate * size + i for gate in (0, 2, 1) for i in range(size)))
    made = [m.node("Gather", f"peephole{t}", rows, axis=0) for t in tails]
    return _stacked(m, [m.node("Unsqueeze", each, m.ints(0)) for each in made])


def _layer(m: Model, kind: str, x: str, tails: list[str], layer: int) -> tuple[str, ...]:
    """One layer in ONNX: T x directions x N x hidden, and the last states."""
    a: Recurrent = m.attributes
    names = [_stacked(m, [_gates(m, kind, f"weight_{w}{t}") for t in tails]) for w in ("ih", "hh")]
    if a.bias:
        both = [
            m.node("Concat", *(_gates(m, kind, f"bias_{w}{t}") for w in ("ih", "hh")), axis=1)
            for t in tails
        ]
        names.append(_stacked(m, both))
    names += [""] * (not a.bias) + _states(m, kind, layer, len(tails))
    if a.peepholes:
        names += [""] * (6 - len(names)) + [_peepholes(m, tails)]
    while not names[-1]:
        names.pop()
    told: dict[str, object] = {"hidden_size": a.hidden}
    told["direction"] = "bidirectional" if len(tails) == 2 else "forward"
    if kind == "rnn":
        told["activations"] = [a.activation.capitalize()] * len(tails)
    if kind == "gru":
        told["linear_before_reset"] = int(a.reset_after)
    return m.several(kind.upper(), x, *names, outputs=3 if kind == "lstm" else 2, **told)


def recurrent(kind: str) -> Writer:
    def write(m: Model) -> tuple[str, ...]:
        a: Recurrent = m.attributes
        x = m.node("Transpose", m.x, perm=[1, 0, 2]) if a.batch_first else m.x
        last: list[list[str]] = [[], []]
        for layer in range(a.layers):
            tails = [f"_l{layer}", f"_l{layer}_reverse"][: 1 + a.bidirectional]
            if a.projection:
                x, *states = _unrolled(m, x, tails)
            else:
                y, *states = _layer(m, kind, x, tails, layer)
                turned = m.node("Transpose", y, perm=[0, 2, 1, 3])
                x = m.node("Reshape", turned, m.ints(0, 0, a.hidden * len(tails)))
            for kept, state in zip(last, states, strict=False):
                kept.append(state)
        y = m.node("Transpose", x, perm=[1, 0, 2]) if a.batch_first else x
        return (y, *(_stacked(m, states) for states in last if states))

    return write


def _unrolled(m: Model, x: str, tails: list[str]) -> tuple[str, str, str]:
    """An LSTM layer whose output is projected, which ONNX does not have: all its steps in a row."""
    a: Recurrent = m.attributes
    steps, batch = (m.shape[1], m.shape[0]) if a.batch_first else m.shape[:2]
    sequences, last, cells = [], [], []
    for back, tail in enumerate(tails):
        h = m.tensor([0.0] * (batch * a.projection), (batch, a.projection))
        c = m.tensor([0.0] * (batch * a.hidden), (batch, a.hidden))
        made = [""] * steps
        for t in reversed(range(steps)) if back else range(steps):
            row = m.node("Gather", x, m.node("Squeeze", m.ints(t)), axis=0)
            biases = [f"bias_{w}{tail}" for w in ("ih", "hh")] if a.bias else ["", ""]
            wide = m.node("Gemm", row, f"weight_ih{tail}", biases[0], transB=1)
            deep = m.node("Gemm", h, f"weight_hh{tail}", biases[1], transB=1)
            gates = m.several("Split", m.node("Add", wide, deep), outputs=4, axis=1, num_outputs=4)
            i, f, o = (m.node("Sigmoid", gates[n]) for n in (0, 1, 3))
            new = m.node("Mul", i, m.node("Tanh", gates[2]))
            c = m.node("Add", m.node("Mul", f, c), new)
            hidden = m.node("Mul", o, m.node("Tanh", c))
            h = m.node("Gemm", hidden, f"weight_hr{tail}", transB=1)
            made[t] = m.node("Unsqueeze", h, m.ints(0))
        sequences.append(_stacked(m, made))
        last.append(m.node("Unsqueeze", h, m.ints(0)))
        cells.append(m.node("Unsqueeze", c, m.ints(0)))
    return _stacked(m, sequences, 2), _stacked(m, last), _stacked(m, cells)


MODELS: dict[str, Writer] = {
    **{kind: recurrent(kind) for kind in ORDER},
}
