"""Constants, choices, counters and drawn numbers, from their definitions.

A graph does not tell the numbers of a constant: noughts if they are whole, else ones.
"""

from __future__ import annotations

from layerscope.graph.attributes import DeclaredOutputs
from tests.brute.arrays import Array, Index, Run, fill
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


BRUTE = {
    "constant": constant,
    "select": select,
    "range": count,
    "random": random,
    "shape_of": shape_of,
}
