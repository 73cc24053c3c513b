"""The stages joined: load a network, analyze it. The only file that calls every stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from layerscope import report
from layerscope.analysis.costs import costs
from layerscope.analysis.fields import fields
from layerscope.analysis.memory import liveness
from layerscope.analysis.shapes import infer
from layerscope.conventions import convention
from layerscope.graph import Graph, Shape
from layerscope.graph.edits import bind
from layerscope.version import __version__

Input = Shape | Mapping[str, Shape]


class Report(report.Report, frozen=True, dict=True):
    """The account of a network, with every way to print it."""

    def __str__(self) -> str:
        from layerscope.export.text import write

        return write(self)

    def _repr_html_(self) -> str:
        from layerscope.export.html import write

        return write(self)

    def to_text(self, *, width: int | None = None, **view: Any) -> str:
        """The table people read, within `width` columns."""
        from layerscope.export.text import write

        return write(self, _view(view), width=width)

    def to_markdown(self, **view: Any) -> str:
        """A Markdown table; `columns`, `depth`, `sort` and `top` as on the command line."""
        from layerscope.export.markdown import write

        return write(self, _view(view))

    def to_csv(self, **view: Any) -> str:
        """A layer a line, figures in full."""
        from layerscope.export.csv import write

        return write(self, _view(view))

    def to_latex(self, **view: Any) -> str:
        """A LaTeX tabular in the booktabs style."""
        from layerscope.export.latex import write

        return write(self, _view(view))

    def to_html(self, **view: Any) -> str:
        """An HTML table."""
        from layerscope.export.html import write

        return write(self, _view(view))

    def to_json(self) -> str:
        """The whole account as JSON; docs/report.schema.json describes it."""
        from layerscope.export.json import write

        return write(self)

    def to_pandas(self, **view: Any) -> Any:
        """A DataFrame with a layer a row (extra `frame`)."""
        from layerscope.export.frame import write

        return write(self, _view(view))

    def to_notation(self, name: str, **options: Any) -> str:
        """The table in a notation others use: netscope, matconvnet, cs231n …"""
        from layerscope.notations import write

        return write(self, name, **options)

    def findings(self) -> tuple[str, ...]:
        """Which layers hold most, and where memory peaks, in words."""
        from layerscope.report.findings import findings

        return findings(self)


def _view(options: dict[str, Any]) -> Any:
    from layerscope.export.table import View

    columns: Sequence[str] = options.pop("columns", ())
    return View(columns=tuple(columns), **options)


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
