"""Figures and parameters of a report by the path of a module, as PyTorch names them."""

from __future__ import annotations

from layerscope.analysis.costs import storage_of
from layerscope.graph.types import Param
from layerscope.report.layer import Layer
from layerscope.report.types import Report


def figure_of_layer(layer: Layer) -> int:
    """Multiply-adds, or the figure of the layer's convention if it is not exact and has one."""
    counted = layer.convention_ops
    return layer.ops.mac if layer.convention.name == "exact" or counted is None else counted


def paths_of(layer: Layer) -> list[str]:
    """Paths of all modules around a layer, from the model "" to the innermost."""
    parts = layer.node.module.split(".") if layer.node.module else list(layer.scope)
    return [".".join(parts[:end]) for end in range(len(parts) + 1)]


def parameters_by_path(report: Report) -> dict[str, Param]:
    """Parameters by their path in the model, tied ones once, in the order of `named_parameters()`.

    That is the order of the modules that have them; a module's own are in the order of their use.
    """
    graph = report.graph
    found: dict[str, Param] = {}
    for layer in report.layers:
        for param in layer.cost.params:
            found.setdefault(storage_of(layer.node, param, layer.node.ties), param)
    for param in (*graph.params, *graph.unused):
        found.setdefault(param.storage or param.name, param)
    numbers = {path: n for n, path in enumerate(graph.modules)}

    def number(path: str) -> int:
        return numbers.get(path.rpartition(".")[0], len(numbers))

    return {path: found[path] for path in sorted(found, key=number) if found[path].learnable}
