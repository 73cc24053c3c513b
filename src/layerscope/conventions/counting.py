"""Figures of every node under a convention other than the exact one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from layerscope.analysis.costs import Cost, storage_of
from layerscope.analysis.shapes import Shapes
from layerscope.conventions.convention import Convention
from layerscope.conventions.counted_nodes import CountedNode, counted_nodes
from layerscope.graph.types import Graph
from layerscope.ops import FREE, Ops


class NodeCount(NamedTuple):
    """What a convention counts for one node, all runs of a loop included."""

    ops: Ops
    params: int
    activations: int


def count_nodes(
    convention: Convention,
    graph: Graph,
    shapes: Shapes,
    costs: Mapping[str, Cost],
    written: Mapping[str, int],
) -> dict[str, NodeCount]:
    """Figures of every node by name; `written` has the exact number of activations.

    A node of unknown shape has no operations and no activations. Its stored arrays may be known,
    so its parameters are counted.
    """
    count, activations = convention.count, convention.activations
    frozen = graph.frozen if convention.counted_params == "trainable" else frozenset[str]()
    found = {}
    for node in counted_nodes(graph, shapes, costs, convention.sees):
        ops, elements = FREE, 0
        if node.inferred_call is not None:
            ops = node.cost.ops if count is None else count(node) * node.node.times
            elements = written[node.name] if activations is None else activations(node)
        found[node.name] = NodeCount(ops, _params(convention, node, frozen), elements)
    return found


def _params(convention: Convention, node: CountedNode, frozen: frozenset[str]) -> int:
    if convention.params is not None:
        return convention.params(node)
    if not frozen:
        return node.cost.param_count
    return sum(
        param.elements
        for param in node.cost.first
        if param.learnable and storage_of(node.node, param, node.node.ties) not in frozen
    )
