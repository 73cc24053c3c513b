"""Node data for Google's Model Explorer: one figure of every node, by the ids of its own graphs.

Model Explorer draws ONNX models and exported programs of PyTorch itself and takes figures from JSON
files, one figure in each. Its ids are the names of the nodes in the file of the model. Several
layers that one node is converted to are added up; a node with an unknown figure is left out.
"""

from __future__ import annotations

from collections.abc import Mapping

from layerscope.errors import UnknownName
from layerscope.escaping import json_text
from layerscope.report.columns import COLUMNS, cell
from layerscope.report.tree import layer_rows
from layerscope.report.types import Layer, Report

FIGURES = ("params", "macs", "flops", "activations", "memory")  # columns, a file for each
TIME = "time"
# from no share of the largest figure to all of it
GRADIENT = (("#ffffff", 0), ("#f4dfb7", 0.1), ("#e06537", 1))


def write(report: Report, figure: str = "macs", times: Mapping[str, float] | None = None) -> str:
    """The node data of one figure."""
    choices = FIGURES if times is None else (*FIGURES, TIME)
    if figure not in choices:
        raise UnknownName("figure", figure, choices, f"; choose from {', '.join(choices)}")
    values: dict[str, float | None] = {}
    for layer, value in _values(report, figure, times or {}):
        node = node_id(layer)
        before = values.get(node, 0)
        values[node] = None if value is None or before is None else before + value
    results = {node: {"value": value} for node, value in values.items() if value is not None}
    gradient = [{"stop": stop, "bgColor": colour} for colour, stop in GRADIENT]
    return json_text({"results": results, "gradient": gradient})


def files(report: Report, times: Mapping[str, float] | None = None) -> dict[str, str]:
    """A file for each figure."""
    names = FIGURES if times is None else (*FIGURES, TIME)
    return {f"{name}.json": write(report, name, times) for name in names}


def node_id(layer: Layer) -> str:
    """The name of the node that a layer comes from, in the file of the model."""
    source = layer.node.source
    return source.name if source is not None and source.name else layer.name


def _values(
    report: Report, figure: str, times: Mapping[str, float]
) -> list[tuple[Layer, float | None]]:
    """The figure of every layer, None where it is unknown; layers without a time have none."""
    if figure == TIME:
        return [(x, times[x.name]) for x in report.layers if x.name in times]
    column = COLUMNS[figure]
    cells = [cell(column, row, report) for row in layer_rows(report)]
    return [
        (layer, int(value) if isinstance(value, int) else None)
        for layer, value in zip(report.layers, cells, strict=True)
    ]
