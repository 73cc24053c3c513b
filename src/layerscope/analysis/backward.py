"""Operations of the backward pass: gradients of parameters, and of inputs where needed."""

from __future__ import annotations

from layerscope.analysis.costs import Cost
from layerscope.analysis.shapes import Shapes
from layerscope.graph.types import Graph
from layerscope.ops import FREE, SPECS, Call, Ops
from layerscope.ops.complex_arithmetic import by_kind


def backward(graph: Graph, shapes: Shapes, costs: dict[str, Cost]) -> dict[str, Ops]:
    """Backward operations of every node; inputs of the network get no gradient."""
    needs: set[str] = {param.name for param in graph.params if param.learnable}
    counted: dict[Call, tuple[Ops, Ops]] = {}
    found: dict[str, Ops] = {}
    for node in graph.nodes:
        call = shapes.calls.get(node.name)
        learns = any(param.learnable for param in costs[node.name].params)
        flows = any(name in needs for name in node.inputs)
        if len(node.inputs) > 1 and flows and node.op in SPECS and SPECS[node.op].arrays:
            learns = learns or any(name in needs for name in node.inputs[1:])
            flows = node.inputs[0] in needs
        if learns or flows:
            needs.update(node.outputs)
        if call is None or not (learns or flows):
            found[node.name] = FREE
            continue
        parts = counted.get(call)
        if parts is None:
            parts = counted[call] = SPECS[node.op].backward(call)
        for_inputs, for_params = parts
        if costs[node.name].real_ops is not None:
            for_inputs, for_params = by_kind(for_inputs), by_kind(for_params)
        ops = (for_inputs if flows else FREE) + (for_params if learns else FREE)
        found[node.name] = ops if node.times == 1 else ops * node.times
    return found
