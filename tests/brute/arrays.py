"""Tensors as dictionaries from index to scalar, and one run of an op over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from layerscope.graph.types import Shape
from tests.brute.scalar import BORDER, Scalar, Tally

Index = tuple[int, ...]


def places(shape: Shape) -> Iterator[Index]:
    """Every index of a tensor, the last axis fastest."""
    return product(*map(range, shape))


@dataclass(frozen=True)
class Array:
    """A tensor; an index that is not in `cells` is outside it."""

    shape: Shape
    cells: dict[Index, Scalar]

    def __getitem__(self, index: Index) -> Scalar:
        return self.cells[index]

    def get(self, index: Index, outside: Scalar) -> Scalar:
        return self.cells.get(index, outside)

    def values(self) -> list[float]:
        """Row by row."""
        return [self.cells[index].value for index in places(self.shape)]


def fill(shape: Shape, cell: Callable[[Index], Scalar]) -> Array:
    return Array(shape, {index: cell(index) for index in places(shape)})


@dataclass
class Run:
    """One run of an op: what it was told, what it reads, and the tally of what it does."""

    attributes: Any
    inputs: list[Array]
    params: dict[str, Array] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)

    @property
    def x(self) -> Array:
        return self.inputs[0]

    def number(self, value: float) -> Scalar:
        return Scalar(value, self.tally)

    def border(self, value: float = 0.0) -> Scalar:
        """What padding holds."""
        return Scalar(value, self.tally, BORDER)


def total(values: Iterable[Scalar]) -> Scalar:
    """The sum of n numbers: n − 1 additions."""
    numbers = iter(values)
    result = next(numbers)
    for number in numbers:
        result = result + number
    return result


def accumulate(start: Scalar, values: Iterable[Scalar]) -> Scalar:
    """The sum of n numbers onto an accumulator: n additions."""
    for number in values:
        start = start + number
    return start


def greatest(values: Iterable[Scalar]) -> Scalar:
    """The largest of n numbers: n − 1 comparisons."""
    numbers = iter(values)
    result = next(numbers)
    for number in numbers:
        result = result.larger(number)
    return result


def split_axes(shape: Shape, axes: Iterable[int]) -> Iterator[list[Index]]:
    """The indices of a tensor in groups that differ only along `axes`."""
    inner = sorted(axes)
    outer = [axis for axis in range(len(shape)) if axis not in inner]
    for fixed in product(*(range(shape[axis]) for axis in outer)):
        group = []
        for moving in product(*(range(shape[axis]) for axis in inner)):
            index = [0] * len(shape)
            for axis, place in (*zip(outer, fixed, strict=True), *zip(inner, moving, strict=True)):
                index[axis] = place
            group.append(tuple(index))
        yield group
