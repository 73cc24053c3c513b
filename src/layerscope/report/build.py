"""The report of a graph whose shapes are bound."""

from __future__ import annotations

from msgspec.structs import replace

from layerscope.analysis.costs import costs
from layerscope.analysis.fields import Fields
from layerscope.analysis.memory import liveness
from layerscope.analysis.shapes import Shapes, infer
from layerscope.conventions import convention
from layerscope.graph.types import Graph
from layerscope.report.types import Report
from layerscope.version import __version__


def report_of(
    graph: Graph, inferred: Shapes | None = None, *, like: str = "exact", in_place: bool = False
) -> Report:
    """All figures of a graph; `inferred` are its shapes, if they are known already."""
    shapes = infer(graph) if inferred is None else inferred
    return Report(
        graph=graph,
        shapes=shapes,
        costs=costs(graph, shapes),
        fields=Fields(graph, shapes),
        memory=liveness(graph, shapes, in_place=in_place),
        convention=convention(like),
        version=__version__,
    )


def with_needed_pairs(report: Report) -> Report:
    """The report with the operations of pairs of attention that masks and windows leave."""
    from layerscope.report.attention_pairs import needed_costs

    if report.attention == "needed":
        return report
    changed = needed_costs(report.graph, report.shapes, report.costs)
    return replace(report, costs=changed, attention="needed")
