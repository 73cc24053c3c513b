"""Loops and cases of Caffe's recurrent layers."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from layerscope.graph import attributes as at
from tests.brute.activation import sigmoid, tanh
from tests.brute.arrays import Array, Index, Run, places
from tests.brute.case import Case
from tests.brute.scalar import Scalar


def _product(run: Run, weight: str, row: int, numbers: Iterable[Scalar]) -> Scalar:
    result = run.number(0.0)
    for k, number in enumerate(numbers):
        result = result.mac(number, run.params[weight][(row, k)])
    return result


def _steps(run: Run, step: Callable[[int, int, list[Scalar], Scalar], list[Scalar]]) -> list[Array]:
    """Every step of every sequence: `step(t, n, joined, mark)` from joined gates to the output."""
    a: at.Unrolled = run.attributes
    x, marks = run.inputs[:2]
    steps, batch = x.shape[:2]
    rows = run.params["bias"].shape[0]
    out: dict[Index, Scalar] = {}
    for n in range(batch):
        state = [run.number(0.0)] * a.hidden
        static: list[Scalar] = []
        if a.static:
            seen = [run.inputs[2][(n, *i)] for i in places(run.inputs[2].shape[1:])]
            static = [_product(run, "weight_static", row, seen) for row in range(rows)]
        for t in range(steps):
            mark = marks[(t, n)]
            marked = [h * mark for h in state]
            given = [x[(t, n, *i)] for i in places(x.shape[2:])]
            joined = []
            for row in range(rows):
                number = _product(run, "weight_x", row, given) + run.params["bias"][(row,)]
                number = number + _product(run, "weight_h", row, marked)
                joined.append(number + static[row] if static else number)
            made = step(t, n, joined, mark)
            state = made[: a.hidden]
            for unit, number in enumerate(made[-a.hidden :]):
                out[(t, n, unit)] = number
    return [Array((steps, batch, a.hidden), out)]


def lstm(run: Run) -> list[Array]:
    size = run.attributes.hidden
    cells: dict[int, list[Scalar]] = {}

    def step(t: int, n: int, joined: list[Scalar], mark: Scalar) -> list[Scalar]:
        before = cells.get(n, [run.number(0.0)] * size)
        made, states = [], []
        for unit in range(size):
            i, f, o = (sigmoid(joined[unit + gate * size]) for gate in range(3))
            g = tanh(joined[unit + 3 * size])
            cell = f * mark * before[unit] + i * g
            states.append(cell)
            made.append(o * tanh(cell))
        cells[n] = states
        return made

    return _steps(run, step)


def rnn(run: Run) -> list[Array]:
    def step(t: int, n: int, joined: list[Scalar], mark: Scalar) -> list[Scalar]:
        state = [tanh(number) for number in joined]
        out = [
            tanh(_product(run, "weight_o", row, state) + run.params["bias_o"][(row,)])
            for row in range(len(state))
        ]
        return [*state, *out]

    return _steps(run, step)


BRUTE: dict[str, Callable[[Run], list[Array]]] = {
    "caffe_lstm": lstm,
    "caffe_rnn": rnn,
}

CASES: list[Case] = [
    *(Case(op, at.Unrolled(3, len(shapes) == 3), shapes, note)
      for op in ("caffe_lstm", "caffe_rnn")
      for shapes, note in [
          (((4, 2, 3), (4, 2)), "plain"), (((2, 3, 2, 2), (2, 3)), "maps"),
          (((3, 2, 2), (3, 2), (2, 5)), "static"),
      ]),
]  # fmt: skip
