"""Loops and cases of constants, ranges, random numbers and shapes."""

from __future__ import annotations

from collections.abc import Callable

from layerscope.graph import attributes as at
from layerscope.graph.attributes import DeclaredOutputs
from tests.brute.arrays import Array, Index, Run, fill
from tests.brute.case import Case
from tests.brute.scalar import Scalar

FACTOR, STEP = 0.625, 0.25  # of a generator that nobody should use


def constant(run: Run) -> list[Array]:
    a: DeclaredOutputs = run.attributes
    made = []
    for shape, dtype in zip(a.shapes, a.dtypes, strict=True):
        value = 1.0 if dtype.startswith("fp") else 0
        made.append(fill(shape, lambda index, value=value: run.number(value)))  # type: ignore[misc]
    return made


def select(run: Run) -> list[Array]:
    """The first of the branches was taken."""
    return run.inputs[: len(run.attributes.shapes)]


def count(run: Run) -> list[Array]:
    """Nought, and one more each time; the first is added to a start."""
    (shape,) = run.attributes.shapes
    number = run.number(-1.0)
    cells: dict[Index, Scalar] = {}
    for n in range(shape[0]):
        number = number + 1.0
        cells[(n,)] = number
    return [Array(shape, cells)]


def random(run: Run) -> list[Array]:
    (shape,) = run.attributes.shapes
    return [fill(shape, lambda index: run.number(0.5) * FACTOR + STEP)]


def shape_of(run: Run) -> list[Array]:
    shape = run.x.shape
    return [fill((len(shape),), lambda index: Scalar(shape[index[0]], run.tally))]


BRUTE: dict[str, Callable[[Run], list[Array]]] = {
    "constant": constant,
    "select": select,
    "range": count,
    "random": random,
    "shape_of": shape_of,
}

CASES: list[Case] = [
    Case("constant", at.DeclaredOutputs(((2, 3),), ("fp32",)), (), "floats"),
    Case("constant", at.DeclaredOutputs(((4,), ()), ("int64", "fp32")), (), "two"),
    Case("select", at.DeclaredOutputs(((2, 3),), ("fp32",)), ((2, 3), (2, 3))),
    Case("select", at.DeclaredOutputs(((2, 3), (4,)), ("fp32", "fp32")), ((2, 3), (4,)), "two"),
    Case("range", at.DeclaredOutputs(((5,),), ("int64",)), ()),
    Case("random", at.DeclaredOutputs(((2, 3),), ("fp32",)), ()),
    Case("shape_of", None, ((2, 3, 4),)),
]  # fmt: skip
