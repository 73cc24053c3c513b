"""Steps inside one operator of a file: their values are neither read from memory nor written."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from layerscope import Builder, Report, analyze
from layerscope.analysis.costs import COSTS, WORKS
from layerscope.graph.types import Graph

BYTES = 4 * 8 * 16 * 16  # of every tensor


def steps() -> Graph:
    """An add and two activations, on two inputs."""
    b = Builder("steps")
    x, y = (b.input(name, (1, 8, 16, 16)) for name in ("x", "y"))
    return b.build(b.activation("sigmoid", b.relu(b.add(x, y))))


def fused(graph: Graph) -> Graph:
    """The same as one operator: all nodes but the last are steps inside of it."""
    nodes = [*[replace(node, inner=True) for node in graph.nodes[:-1]], graph.nodes[-1]]
    return replace(graph, nodes=tuple(nodes))


def moved(report: Report) -> list[tuple[int, int]]:
    """Bytes that each node reads and writes, in tensors."""
    costs = [report.costs[node.name] for node in report.graph.nodes]
    return [(cost.read_bytes // BYTES, cost.write_bytes // BYTES) for cost in costs]


@pytest.mark.parametrize("first", ["plain", "fused"])
def test_bytes_of_steps_do_not_depend_on_what_was_analyzed_before(first: str) -> None:
    COSTS.clear()
    WORKS.clear()
    graphs = {"plain": steps(), "fused": fused(steps())}
    other = "fused" if first == "plain" else "plain"
    found = {name: moved(analyze(graphs[name])) for name in (first, other)}
    assert found["plain"] == [(2, 1), (1, 1), (1, 1)]
    assert found["fused"] == [(2, 0), (0, 0), (0, 1)]


def test_operations_of_steps_are_those_of_layers() -> None:
    plain, inside = analyze(steps()).totals, analyze(fused(steps())).totals
    assert plain.ops == inside.ops
