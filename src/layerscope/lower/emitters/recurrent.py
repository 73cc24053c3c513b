"""RNN, LSTM and GRU, layer by layer. ONNX has no projected LSTM, so that one is unrolled."""

from __future__ import annotations

from typing import Any

from layerscope.graph.attributes import Recurrent
from layerscope.lower.builder import Emitter, NodeEmitter

# Index of each ONNX gate among PyTorch's: rnn h; lstm i o f c of i f g o; gru z r h of r z n.
ORDER = {"rnn": (0,), "lstm": (0, 3, 1, 2), "gru": (1, 0, 2)}


def _gates(node: NodeEmitter, kind: str, name: str) -> str:
    """A parameter with gates in ONNX's order and a leading axis for the direction."""
    size = node.attributes.hidden
    rows = node.ints(*(gate * size + i for gate in ORDER[kind] for i in range(size)))
    return node.add("Unsqueeze", node.add("Gather", node.param(name), rows, axis=0), node.ints(0))


def stacked(node: NodeEmitter, parts: list[str], axis: int = 0) -> str:
    """Concatenated tensors; a single one is retransposed as it is."""
    return node.add("Concat", *parts, axis=axis) if len(parts) > 1 else parts[0]


def _states(node: NodeEmitter, layer: int, count: int) -> list[str]:
    """Initial states of a layer, after an empty sequence_lens; [] for zero states."""
    rows = node.ints(*range(layer * count, (layer + 1) * count))
    names = [node.operand(n, node.dtype) for n in range(1, len(node.inputs))]
    given = [node.add("Gather", name, rows, axis=0) for name in names]
    return ["", *given] if given else []


def _peepholes(node: NodeEmitter, tails: list[str]) -> str:
    """Peephole weights in ONNX's order i o f."""
    size = node.attributes.hidden
    rows = node.ints(*(gate * size + i for gate in (0, 2, 1) for i in range(size)))
    weights = [node.add("Gather", node.param(f"peephole{tail}"), rows, axis=0) for tail in tails]
    return stacked(node, [node.add("Unsqueeze", each, node.ints(0)) for each in weights])


def _layer(node: NodeEmitter, kind: str, x: str, tails: list[str], layer: int) -> tuple[str, ...]:
    """One layer: output T x directions x N x hidden, and the last states."""
    a: Recurrent = node.attributes
    names = [
        stacked(node, [_gates(node, kind, f"weight_{w}{t}") for t in tails]) for w in ("ih", "hh")
    ]
    if a.bias:
        both = [[_gates(node, kind, f"bias_{w}{t}") for w in ("ih", "hh")] for t in tails]
        names.append(stacked(node, [node.add("Concat", *pair, axis=1) for pair in both]))
    names += [""] * (not a.bias) + _states(node, layer, len(tails))
    if a.peepholes:
        names += [""] * (6 - len(names)) + [_peepholes(node, tails)]
    while not names[-1]:
        names.pop()
    attributes: dict[str, Any] = {"hidden_size": a.hidden}
    attributes["direction"] = "bidirectional" if len(tails) == 2 else "forward"
    if kind == "rnn":
        attributes["activations"] = [a.activation.capitalize()] * len(tails)
    if kind == "gru":
        attributes["linear_before_reset"] = int(a.reset_after)
    return node.add_multi(kind.upper(), x, *names, outputs=3 if kind == "lstm" else 2, **attributes)


def recurrent(kind: str) -> Emitter:
    """Emitter for all layers: the sequence, then the last states of every layer and direction."""

    def emit(node: NodeEmitter) -> tuple[str, ...]:
        a: Recurrent = node.attributes
        states_given = node.call.inputs[1:]
        if states_given and states_given != node.call.outputs[1:]:
            raise node.refuse("it has inputs besides its initial states, or only some of these")
        if a.projection and (states_given or a.peepholes):
            raise node.refuse("initial states or peepholes with a projection")
        x = node.add("Transpose", node.x, perm=[1, 0, 2]) if a.batch_first else node.x
        last: list[list[str]] = [[], []]
        for layer in range(a.layers):
            tails = [f"_l{layer}", f"_l{layer}_reverse"][: 1 + a.bidirectional]
            if a.projection:
                x, *states = _projected(node, x, tails)
            else:
                y, *states = _layer(node, kind, x, tails, layer)
                transposed = node.add("Transpose", y, perm=[0, 2, 1, 3])
                x = node.reshape(transposed, (0, 0, a.hidden * len(tails)))
            for kept, state in zip(last, states, strict=False):
                kept.append(state)
        y = node.add("Transpose", x, perm=[1, 0, 2]) if a.batch_first else x
        return (y, *(stacked(node, states) for states in last if states))

    return emit


def _projected(node: NodeEmitter, x: str, tails: list[str]) -> tuple[str, str, str]:
    """An LSTM layer whose output is projected."""
    a: Recurrent = node.attributes
    steps, batch = (node.shape[1], node.shape[0]) if a.batch_first else node.shape[:2]
    rows = (
        node.add_multi("Split", x, node.ints(*[1] * steps), outputs=steps, axis=0)
        if steps > 1
        else (x,)
    )
    sequences, last, cells = [], [], []
    for back, tail in enumerate(tails):
        h, c = node.full((batch, a.projection), 0.0), node.full((batch, a.hidden), 0.0)
        states = [""] * steps
        for t in reversed(range(steps)) if back else range(steps):
            row = node.add("Squeeze", rows[t], node.ints(0))
            biases = [node.param(f"bias_{w}{tail}") for w in ("ih", "hh")] if a.bias else []
            wide = node.add("Gemm", row, node.param(f"weight_ih{tail}"), *biases[:1], transB=1)
            deep = node.add("Gemm", h, node.param(f"weight_hh{tail}"), *biases[1:], transB=1)
            h, c = lstm_cell(node, node.add("Add", wide, deep), c, (0, 1, 3, 2))
            h = node.add("Gemm", h, node.param(f"weight_hr{tail}"), transB=1)
            states[t] = node.add("Unsqueeze", h, node.ints(0))
        sequences.append(stacked(node, states))
        last.append(node.add("Unsqueeze", h, node.ints(0)))
        cells.append(node.add("Unsqueeze", c, node.ints(0)))
    return stacked(node, sequences, 2), stacked(node, last), stacked(node, cells)


def lstm_cell(node: NodeEmitter, gates: str, c: str, order: tuple[int, ...]) -> tuple[str, str]:
    """New state and cell, h = o·tanh(c) and c = f·c + i·g, by gates; `order` indexes i f o g."""
    parts = node.add_multi("Split", gates, outputs=4, axis=1, num_outputs=4)
    i, f, o = (node.add("Sigmoid", parts[n]) for n in order[:3])
    new = node.add("Mul", i, node.add("Tanh", parts[order[3]]))
    c = node.add("Add", node.add("Mul", f, c), new)
    return node.add("Mul", o, node.add("Tanh", c)), c


EMITTERS: dict[str, Emitter] = {kind: recurrent(kind) for kind in ORDER}
