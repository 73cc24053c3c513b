"""RNN, LSTM and GRU, layer by layer; a projected LSTM, which ONNX has not, step by step."""

from __future__ import annotations

from typing import Any

from layerscope.graph.attributes import Recurrent
from layerscope.lower.builder import Site, Writer

# Where ONNX's gates stand in torch's: rnn h; lstm i o f c of i f g o; gru z r h of r z n.
ORDER = {"rnn": (0,), "lstm": (0, 3, 1, 2), "gru": (1, 0, 2)}


def _gates(s: Site, kind: str, name: str) -> str:
    """An array with its gates in ONNX's order, and an axis for the direction in front."""
    size = s.attributes.hidden
    rows = s.ints(*(gate * size + i for gate in ORDER[kind] for i in range(size)))
    return s.add("Unsqueeze", s.add("Gather", s.param(name), rows, axis=0), s.ints(0))


def stacked(s: Site, parts: list[str], axis: int = 0) -> str:
    """Tensors joined, where there are several."""
    return s.add("Concat", *parts, axis=axis) if len(parts) > 1 else parts[0]


def _states(s: Site, layer: int, count: int) -> list[str]:
    """The first states of a layer, behind the lengths that nobody tells; none if all are nought."""
    rows = s.ints(*range(layer * count, (layer + 1) * count))
    names = [s.operand(n, s.dtype) for n in range(1, len(s.inputs))]
    given = [s.add("Gather", name, rows, axis=0) for name in names]
    return ["", *given] if given else []


def _peepholes(s: Site, tails: list[str]) -> str:
    """ONNX has them in the order i o f."""
    size = s.attributes.hidden
    rows = s.ints(*(gate * size + i for gate in (0, 2, 1) for i in range(size)))
    made = [s.add("Gather", s.param(f"peephole{tail}"), rows, axis=0) for tail in tails]
    return stacked(s, [s.add("Unsqueeze", each, s.ints(0)) for each in made])


def _layer(s: Site, kind: str, x: str, tails: list[str], layer: int) -> tuple[str, ...]:
    """One layer in ONNX: T x directions x N x hidden, and the last states."""
    a: Recurrent = s.attributes
    names = [stacked(s, [_gates(s, kind, f"weight_{w}{t}") for t in tails]) for w in ("ih", "hh")]
    if a.bias:
        both = [[_gates(s, kind, f"bias_{w}{t}") for w in ("ih", "hh")] for t in tails]
        names.append(stacked(s, [s.add("Concat", *pair, axis=1) for pair in both]))
    names += [""] * (not a.bias) + _states(s, layer, len(tails))
    if a.peepholes:
        names += [""] * (6 - len(names)) + [_peepholes(s, tails)]
    while not names[-1]:
        names.pop()
    told: dict[str, Any] = {"hidden_size": a.hidden}
    told["direction"] = "bidirectional" if len(tails) == 2 else "forward"
    if kind == "rnn":
        told["activations"] = [a.activation.capitalize()] * len(tails)
    if kind == "gru":
        told["linear_before_reset"] = int(a.reset_after)
    return s.several(kind.upper(), x, *names, outputs=3 if kind == "lstm" else 2, **told)


def recurrent(kind: str) -> Writer:
    """All layers: the sequence, then the last states of every layer and direction."""

    def write(s: Site) -> tuple[str, ...]:
        a: Recurrent = s.attributes
        states_given = s.call.inputs[1:]
        if states_given and states_given != s.call.outputs[1:]:
            raise s.refuse("it is given more than its first states, or some of them")
        if a.projection and (states_given or a.peepholes):
            raise s.refuse("first states or peepholes beside a projection")
        x = s.add("Transpose", s.x, perm=[1, 0, 2]) if a.batch_first else s.x
        last: list[list[str]] = [[], []]
        for layer in range(a.layers):
            tails = [f"_l{layer}", f"_l{layer}_reverse"][: 1 + a.bidirectional]
            if a.projection:
                x, *states = _projected(s, x, tails)
            else:
                y, *states = _layer(s, kind, x, tails, layer)
                turned = s.add("Transpose", y, perm=[0, 2, 1, 3])
                x = s.reshape(turned, (0, 0, a.hidden * len(tails)))
            for kept, state in zip(last, states, strict=False):
                kept.append(state)
        y = s.add("Transpose", x, perm=[1, 0, 2]) if a.batch_first else x
        return (y, *(stacked(s, states) for states in last if states))

    return write


def _projected(s: Site, x: str, tails: list[str]) -> tuple[str, str, str]:
    """An LSTM layer whose output is projected."""
    a: Recurrent = s.attributes
    steps, batch = (s.shape[1], s.shape[0]) if a.batch_first else s.shape[:2]
    rows = s.several("Split", x, s.ints(*[1] * steps), outputs=steps, axis=0) if steps > 1 else (x,)
    sequences, last, cells = [], [], []
    for back, tail in enumerate(tails):
        h, c = s.full((batch, a.projection), 0.0), s.full((batch, a.hidden), 0.0)
        made = [""] * steps
        for t in reversed(range(steps)) if back else range(steps):
            row = s.add("Squeeze", rows[t], s.ints(0))
            biases = [s.param(f"bias_{w}{tail}") for w in ("ih", "hh")] if a.bias else []
            wide = s.add("Gemm", row, s.param(f"weight_ih{tail}"), *biases[:1], transB=1)
            deep = s.add("Gemm", h, s.param(f"weight_hh{tail}"), *biases[1:], transB=1)
            h, c = lstm_cell(s, s.add("Add", wide, deep), c, (0, 1, 3, 2))
            h = s.add("Gemm", h, s.param(f"weight_hr{tail}"), transB=1)
            made[t] = s.add("Unsqueeze", h, s.ints(0))
        sequences.append(stacked(s, made))
        last.append(s.add("Unsqueeze", h, s.ints(0)))
        cells.append(s.add("Unsqueeze", c, s.ints(0)))
    return stacked(s, sequences, 2), stacked(s, last), stacked(s, cells)


def lstm_cell(s: Site, gates: str, c: str, order: tuple[int, ...]) -> tuple[str, str]:
    """New state and cell, h = o·tanh(c) and c = f·c + i·g, of gates whose places are i f o g."""
    parts = s.several("Split", gates, outputs=4, axis=1, num_outputs=4)
    i, f, o = (s.add("Sigmoid", parts[n]) for n in order[:3])
    new = s.add("Mul", i, s.add("Tanh", parts[order[3]]))
    c = s.add("Add", s.add("Mul", f, c), new)
    return s.add("Mul", o, s.add("Tanh", c)), c


WRITERS: dict[str, Writer] = {kind: recurrent(kind) for kind in ORDER}
