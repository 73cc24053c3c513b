"""Loops and cases of RNN, LSTM and GRU."""

from __future__ import annotations

from collections.abc import Callable

from layerscope.graph import attributes as at
from layerscope.graph.attributes import Recurrent
from tests.brute.activation import sigmoid, tanh
from tests.brute.arrays import Array, Run, fill
from tests.brute.case import Case
from tests.brute.scalar import Scalar

Vector = list[Scalar]

State = tuple[Vector, Vector]  # what goes out, and what only LSTM keeps


def _product(run: Run, weight: Array, x: Vector) -> Vector:
    made = []
    for row in range(weight.shape[0]):
        result = run.number(0.0)
        for column, number in enumerate(x):
            result = result.mac(number, weight[(row, column)])
        made.append(result)
    return made


def _affine(
    run: Run, which: str, tail: str, x: Vector, start: int = 0, end: int | None = None
) -> Vector:
    """One of the two products of a step, with its own bias vector, or some rows of it."""
    weight = run.params[f"weight_{which}{tail}"]
    rows = range(weight.shape[0])[start:end]
    made = _product(run, fill((len(rows), len(x)), lambda i: weight[(rows[i[0]], i[1])]), x)
    if not run.attributes.bias:
        return made
    bias = run.params[f"bias_{which}{tail}"]
    return [number + bias[(row,)] for row, number in zip(rows, made, strict=True)]


def _rnn(run: Run, tail: str, x: Vector, state: State) -> State:
    """h = f(Wx + Uh)."""
    pairs = zip(_affine(run, "ih", tail, x), _affine(run, "hh", tail, state[0]), strict=True)
    relu = run.attributes.activation == "relu"
    return [(a + b).larger(0.0) if relu else tanh(a + b) for a, b in pairs], state[1]


def _lstm(run: Run, tail: str, x: Vector, state: State) -> State:
    """c = f·c + i·g, h = o·tanh(c), which is projected where that is asked for."""
    size = run.attributes.hidden
    pairs = zip(_affine(run, "ih", tail, x), _affine(run, "hh", tail, state[0]), strict=True)
    gates = [a + b for a, b in pairs]
    given, kept, made, out = (gates[n * size : (n + 1) * size] for n in range(4))
    peepholes = run.params.get(f"peephole{tail}")

    def seen(numbers: Vector, place: int, cells: Vector) -> Vector:
        if peepholes is None:
            return numbers
        return [
            number + peepholes[(place * size + i,)] * cell
            for i, (number, cell) in enumerate(zip(numbers, cells, strict=True))
        ]

    given, kept = seen(given, 0, state[1]), seen(kept, 1, state[1])
    cells = [
        sigmoid(f) * c + sigmoid(i) * tanh(g)
        for i, f, g, c in zip(given, kept, made, state[1], strict=True)
    ]
    out = seen(out, 2, cells)
    hidden = [sigmoid(o) * tanh(c) for o, c in zip(out, cells, strict=True)]
    if run.attributes.projection:
        hidden = _product(run, run.params[f"weight_hr{tail}"], hidden)
    return hidden, cells


def _gru(run: Run, tail: str, x: Vector, state: State) -> State:
    """n = tanh(Wx + r·Uh), h = (1 − z)·n + z·h; or with the reset first, n = tanh(Wx + U(r·h))."""
    size = run.attributes.hidden
    wide, deep = _affine(run, "ih", tail, x), _affine(run, "hh", tail, state[0], 0, 2 * size)
    resets = [sigmoid(wide[i] + deep[i]) for i in range(size)]
    if run.attributes.reset_after:
        news = _affine(run, "hh", tail, state[0], 2 * size)
        news = [reset * new for reset, new in zip(resets, news, strict=True)]
    else:
        left = [reset * h for reset, h in zip(resets, state[0], strict=True)]
        news = _affine(run, "hh", tail, left, 2 * size)
    hidden = []
    for i, before in enumerate(state[0]):
        update = sigmoid(wide[size + i] + deep[size + i])
        new = tanh(wide[2 * size + i] + news[i])
        hidden.append((1.0 - update) * new + update * before)
    return hidden, state[1]


STEPS = {"rnn": _rnn, "lstm": _lstm, "gru": _gru}


def recurrent(kind: str) -> Callable[[Run], list[Array]]:
    def run_it(run: Run) -> list[Array]:
        a: Recurrent = run.attributes
        first, second, features = run.x.shape
        steps, batch = (second, first) if a.batch_first else (first, second)

        def place(t: int, n: int, i: int) -> tuple[int, int, int]:
            return (n, t, i) if a.batch_first else (t, n, i)

        size = a.projection or a.hidden
        wide = size * (1 + a.bidirectional)
        sequence: dict[tuple[int, ...], Scalar] = {}
        last: dict[tuple[int, ...], Scalar] = {}
        cells: dict[tuple[int, ...], Scalar] = {}
        for n in range(batch):
            rows = [[run.x[place(t, n, i)] for i in range(features)] for t in range(steps)]
            for layer in range(a.layers):
                made: list[Vector] = [[] for _ in range(steps)]
                for back in range(1 + a.bidirectional):
                    tail = f"_l{layer}" + "_reverse" * back
                    blank = [run.number(0.0) for _ in range(a.hidden)]
                    number = layer * (1 + a.bidirectional) + back
                    state = (blank[:size], blank)
                    if len(run.inputs) > 1:
                        h, c = run.inputs[1], run.inputs[-1]
                        state = (
                            [h[(number, n, i)] for i in range(size)],
                            [c[(number, n, i)] for i in range(a.hidden)] if kind == "lstm" else [],
                        )
                    for t in reversed(range(steps)) if back else range(steps):
                        state = STEPS[kind](run, tail, rows[t], state)
                        made[t] += state[0]
                    last.update({(number, n, i): h for i, h in enumerate(state[0])})
                    cells.update({(number, n, i): c for i, c in enumerate(state[1])})
                rows = made
            sequence.update({place(t, n, i): rows[t][i] for t in range(steps) for i in range(wide)})
        states = a.layers * (1 + a.bidirectional)
        made_all = [
            Array((*run.x.shape[:2], wide), sequence),
            Array((states, batch, size), last),
            Array((states, batch, a.hidden), cells),
        ]
        return made_all if kind == "lstm" else made_all[:2]

    return run_it


BRUTE: dict[str, Callable[[Run], list[Array]]] = {
    **{kind: recurrent(kind) for kind in STEPS},
}

V = at.Recurrent
CASES: list[Case] = [
    *(Case(kind, a, (shape,), note)
      for kind in ("rnn", "lstm", "gru")
      for a, shape, note in [
          (at.Recurrent(3), (4, 2, 2), "plain"),
          (at.Recurrent(2, bias=False), (3, 2, 4), "no-bias"),
          (at.Recurrent(3, bidirectional=True), (3, 2, 2), "both-ways"),
          (at.Recurrent(2, layers=3), (3, 1, 4), "deep"),
          (at.Recurrent(2, 2, True, batch_first=True), (2, 3, 3), "deep-both-ways-batch-first"),
      ]),
    Case("rnn", at.Recurrent(3, activation="relu"), ((3, 2, 2),), "relu"),
    Case("rnn", at.Recurrent(2, 2, True, activation="relu"), ((3, 2, 2),), "relu-deep-both-ways"),
    Case("lstm", at.Recurrent(4, projection=2), ((3, 2, 3),), "projected"),
    Case("lstm", at.Recurrent(3, 2, True, False, True, 2), ((2, 3, 3),), "projected-deep"),
    Case("lstm", at.Recurrent(3, 2, True, projection=1), ((2, 1, 2),), "projected-both-ways"),
    Case("gru", V(3, reset_after=False), ((4, 2, 2),), "reset-before"),
    Case("gru", V(2, 2, True, False, reset_after=False), ((3, 1, 4),), "reset-before-deep"),
    Case("lstm", V(3, peepholes=True), ((4, 2, 2),), "peepholes"),
    Case("lstm", V(2, 2, True, False, peepholes=True), ((3, 2, 2),), "peepholes-deep"),
    Case("rnn", V(3), ((4, 2, 2), (1, 2, 3)), "states"),
    Case("gru", V(3, bidirectional=True), ((3, 2, 2), (2, 2, 3)), "states"),
    Case("lstm", V(3, 2, bias=False), ((3, 2, 2), (2, 2, 3), (2, 2, 3)), "states"),
    Case("lstm", V(2, peepholes=True, batch_first=True), ((2, 3, 2), (1, 2, 2), (1, 2, 2)),
         "states-peepholes"),
]  # fmt: skip
