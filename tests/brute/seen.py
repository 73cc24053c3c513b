"""Receptive fields by experiment: the brute-force interpreters run on numbers that remember.

Every position of an input is one bit. What an element depends on is what its number has seen,
exactly, whatever the values. Padding, and inputs that would stand outside a tensor, leave the bit
BORDER.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from layerscope.analysis.fields import Field, FieldAxis, Stretch, fields
from layerscope.analysis.shapes import infer
from layerscope.graph.types import Graph, Shape
from layerscope.ops import SPECS
from tests.brute import BRUTE
from tests.brute.arrays import Array, Index, Run, fill, places
from tests.brute.case import given_arrays
from tests.brute.scalar import BORDER, Scalar, Tally


def run_graph(graph: Graph) -> dict[str, Array]:
    """Every tensor of the graph, on inputs of which each position is one bit."""
    tally = Tally()
    shapes = infer(graph)
    made: dict[str, Array] = {}
    first = 1  # bit 0 is BORDER
    for tensor in graph.inputs:
        assert tensor.shape is not None
        made[tensor.name] = _bits(tensor.shape, first, tally)
        first += _positions(tensor.shape)
    for node in graph.nodes:
        call = shapes.calls[node.name]
        params = {
            param.name: fill(param.shape, lambda index: Scalar(1.0, tally))
            for param in SPECS[node.op].params(call)
        }
        inputs = [made[name] for name in node.inputs]
        params = {**given_arrays(node.op, call, inputs), **params}
        results = BRUTE[node.op](Run(node.attributes, inputs, params, tally))
        made.update(zip(node.outputs, results, strict=True))
        assert tuple(array.shape for array in results) == call.outputs
    return made


def _positions(shape: Shape) -> int:
    return len(list(places(shape[2:])))


def _bits(shape: Shape, first: int, tally: Tally) -> Array:
    number = {at: n for n, at in enumerate(places(shape[2:]))}
    return fill(shape, lambda index: Scalar(1.0, tally, 1 << (first + number[index[2:]])))


def hull(seen: int, first: int, spatial: Shape, axis: int) -> Stretch:
    """First and last place along an axis of an input of which any position was seen."""
    found = [place for place, slab in enumerate(_slabs(first, spatial, axis)) if seen & slab]
    return (min(found), max(found)) if found else None


@cache
def _slabs(first: int, spatial: Shape, axis: int) -> tuple[int, ...]:
    """The bits of all positions at each place along an axis."""
    slabs = [0] * spatial[axis]
    for n, at in enumerate(places(spatial)):
        slabs[at[axis]] |= 1 << (first + n)
    return tuple(slabs)


def clipped(stretch: Stretch, length: int) -> Stretch:
    """What of a predicted stretch lies on the input."""
    if stretch is None or stretch[1] < 0 or stretch[0] >= length:
        return None
    return max(stretch[0], 0), min(stretch[1], length - 1)


def within(inner: Stretch, outer: Stretch) -> bool:
    if inner is None:
        return True
    return outer is not None and outer[0] <= inner[0] and inner[1] <= outer[1]


def by_place(array: Array, axes: Iterable[FieldAxis]) -> dict[Index, int]:
    """What was seen from each place along the axes' carriers, from all other axes together."""
    carriers = sorted({axis.carrier for axis in axes if axis.carrier is not None})
    seen: dict[Index, int] = {}
    for index, number in array.cells.items():
        place = tuple(index[carrier] for carrier in carriers)
        seen[place] = seen.get(place, 0) | number.seen
    return seen


def check_fields(graph: Graph) -> tuple[int, int]:
    """Assert that every field is what was seen; return how many places were compared.

    The first number counts places from which no padding was seen: there the predicted stretch must
    be exactly the hull of what was seen. From the others (the second number) less may be seen than
    predicted, since a prediction tells padding and input alike, but never more.
    """
    shapes = infer(graph)
    made = run_graph(graph)
    exact = loose = 0
    found = fields(graph, shapes)
    for name in [name for node in graph.nodes for name in node.outputs]:
        for field in found[name]:
            counts = _check(graph, name, made[name], field)
            exact += counts[0]
            loose += counts[1]
    return exact, loose


def _check(graph: Graph, name: str, array: Array, field: Field) -> tuple[int, int]:
    first, spatial = _input(graph, field.input)
    carriers = sorted({axis.carrier for axis in field.axes if axis.carrier is not None})
    exact = loose = 0
    for place, seen in by_place(array, field.axes).items():
        along = dict(zip(carriers, place, strict=True))
        told = [axis.at(along.get(axis.carrier or 0, 0)) for axis in field.axes]
        for n, axis in enumerate(field.axes):
            predicted = clipped(told[n], axis.length)
            measured = hull(seen, first, spatial, n)
            where = f"{graph.name}: {name} at {place}, axis {n}: predicted {told[n]}, {axis}"
            if seen & BORDER:
                assert within(measured, predicted), f"{where}, saw {measured} at a border"
                loose += 1
            else:
                assert measured == predicted, f"{where}, saw {measured}"
                exact += 1
    return exact, loose


def _input(graph: Graph, name: str) -> tuple[int, Shape]:
    first = 1
    for tensor in graph.inputs:
        assert tensor.shape is not None
        if tensor.name == name:
            return first, tensor.shape[2:]
        first += _positions(tensor.shape)
    raise AssertionError(name)
