"""The stages joined: load a network, analyze it. The only file that calls every stage."""

from __future__ import annotations

from collections.abc import Mapping

from layerscope.analysis.costs import costs
from layerscope.analysis.fields import fields
from layerscope.analysis.memory import liveness
from layerscope.analysis.shapes import infer
from layerscope.conventions import convention
from layerscope.graph import Graph, Shape
from layerscope.graph.edits import bind
from layerscope.report import Report
from layerscope.version import __version__

Input = Shape | Mapping[str, Shape]


def load(network: str) -> Graph:
    """The network of that zoo name."""
    from layerscope.zoo import build

    return build(network)


def analyze(
    network: str | Graph,
    *,
    input: Input | None = None,
    batch: int | None = None,
    dtype: str | None = None,
    like: str = "exact",
    in_place: bool = False,
) -> Report:
    """The per-layer account of a network, counted by the convention `like`."""
    counted_by = convention(like)
    graph = load(network) if isinstance(network, str) else network
    shapes = input if isinstance(input, Mapping) or input is None else {"": tuple(input)}
    graph = bind(graph, shapes, batch, dtype)
    inferred = infer(graph)
    return Report(
        graph=graph,
        shapes=inferred,
        costs=costs(graph, inferred),
        fields=fields(graph, inferred),
        memory=liveness(graph, inferred, in_place=in_place),
        convention=counted_by,
        version=__version__,
    )
