"""Loops and cases of elementwise ops of several tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

from layerscope.graph import attributes as at
from layerscope.graph.attributes import Sum
from tests.brute.arrays import Array, Index, Run, fill
from tests.brute.case import MAP, Case
from tests.brute.scalar import Scalar


def _special(x: Scalar, *others: Scalar) -> Scalar:
    return x.once("exp", lambda v, *more: math.lgamma(abs(v) + sum(map(abs, more))), *others)


def pointwise(work: Callable[..., Scalar]) -> Callable[[Run], list[Array]]:
    """A function of the elements at the same place, of the first input's shape."""

    def run_it(run: Run) -> list[Array]:
        return [
            fill(
                run.x.shape,
                lambda i: work(*[x[i[len(i) - len(x.shape) :]] for x in run.inputs]),
            )
        ]

    return run_it


def power(run: Run) -> list[Array]:
    a: at.Power = run.attributes

    def cell(index: Index) -> Scalar:
        number = run.x[index]
        number = number * a.scale if a.scale != 1 else number
        number = number + a.shift if a.shift != 0 else number
        return number**a.power if a.power != 1 else number

    return [fill(run.x.shape, cell)]


def axpy(run: Run) -> list[Array]:
    scale, x, y = run.inputs

    def cell(index: Index) -> Scalar:
        return x[index] * scale[(*index[:2], *(0 for _ in scale.shape[2:]))] + y[index]

    return [fill(x.shape, cell)]


PAIRS: dict[str, Callable[[Scalar, Scalar], Scalar]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "pow": lambda x, y: x**y,
    "max": lambda x, y: x.larger(y),
    "min": lambda x, y: x.smaller(y),
    "compare": lambda x, y: x.above(y, 1.0, 0.0),
    "logical": lambda x, y: x.once("comp", lambda a, b: bool(a and b), y),
    "bitwise": lambda x, y: x.once("comp", lambda a, b: int(a) & int(b), y),
    "mod": lambda x, y: x.once("div", math.fmod, y),
    "floor_div": lambda x, y: x.once("div", lambda a, b: a // b, y),
    "atan2": lambda x, y: (x / y).apply(math.atan),
    "mean": lambda x, y: x + y,
}

CONSTANT = 1.5  # what a lone operand meets

MARK = 5  # and what its bits do


def elementwise(op: str) -> Callable[[Run], list[Array]]:
    def run_it(run: Run) -> list[Array]:
        rank = max(len(x.shape) for x in run.inputs)
        wide = [(1,) * (rank - len(x.shape)) + x.shape for x in run.inputs]
        shape = tuple(max(sizes) for sizes in zip(*wide, strict=True))

        def cell(index: Index) -> Scalar:
            operands = []
            for x in run.inputs:
                own = index[rank - len(x.shape) :]
                operands.append(x[tuple(i % n for i, n in zip(own, x.shape, strict=True))])
            if isinstance(run.attributes, Sum):
                scaled = run.attributes.scaled
                operands[:scaled] = [operand * CONSTANT for operand in operands[:scaled]]
            if len(operands) == 1 and op != "mean":
                operands.append(run.number(MARK if op == "bitwise" else CONSTANT))
            joined = reduce(PAIRS[op], operands)
            return joined / float(len(operands)) if op == "mean" else joined

        return [fill(shape, cell)]

    return run_it


BRUTE: dict[str, Callable[[Run], list[Array]]] = {
    "special": pointwise(_special),
    "power": power,
    "axpy": axpy,
    **{op: elementwise(op) for op in PAIRS},
}

CASES: list[Case] = [
    *(Case(op, None, shapes)
      for op in ("add", "sub", "mul", "div", "pow", "max", "min", "compare")
      for shapes in [
          ((2, 3, 4), (2, 3, 4)),
          ((2, 3, 4, 5), (3, 1, 1)),
          ((4, 1), (2, 1, 5)),
          ((1, 3), ()),
          ((2, 3, 4),),
      ]),
    *(Case(op, None, shapes, f"{len(shapes)}-inputs")
      for op in ("add", "mul", "max", "min")
      for shapes in [((2, 3),) * 3, ((2, 1, 4), (3, 1), (4,), (1, 1, 1))]),
    *(Case("power", a, (MAP,), note)
      for a, note in [
          (at.Power(2.0, 0.5, 1.5), "all"), (at.Power(shift=-1.0), "shift"),
          (at.Power(scale=-1.0), "scale"), (at.Power(3.0), "power"), (at.Power(), "neutral"),
      ]),
    Case("axpy", None, ((2, 3), MAP, MAP)),
    Case("axpy", None, ((2, 3, 1, 1), MAP, MAP), "as-a-map"),
    *(Case(f"{op}", at.Sum(scaled), (MAP,) * count, f"{scaled}-of-{count}")
      for op, scaled, count in [("add", 1, 2), ("add", 3, 3), ("add", 0, 2)]),
    *(Case(op, None, shapes)
      for op in ("logical", "bitwise", "mod", "floor_div", "atan2", "mean")
      for shapes in [((2, 3, 4), (2, 3, 4)), ((2, 3, 4), (3, 1)), ((4, 1), (2, 1, 5)), ((2, 3),)]),
    Case("mean", None, ((2, 1, 4), (3, 1), (4,)), "3-inputs"),
    Case("special", None, ((2, 3),)),
    Case("special", None, ((2, 3), (3,)), "two"),
]  # fmt: skip
