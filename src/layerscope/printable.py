"""The Report that `analyze` returns: the data type of `report/` with methods that print it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from layerscope import report
from layerscope.analysis.costs import storage_of
from layerscope.analysis.training import STATES, Training, training
from layerscope.errors import UnknownName

if TYPE_CHECKING:
    from pandas import DataFrame

    from layerscope.export.table import TableOptions, TableView


class Report(report.Report, frozen=True, dict=True):
    """The per-layer figures of a network; `str()` is the table."""

    def __str__(self) -> str:
        from layerscope.export.text import write

        return write(self)

    def _repr_html_(self) -> str:
        from layerscope.export.footer import footer
        from layerscope.export.html import write

        return write(self) + footer(self, "html")

    def to_text(self, *, width: int | None = None, **view: Unpack[TableOptions]) -> str:
        """A text table, fitted to `width` characters; options as in `to_markdown`."""
        from layerscope.export.text import write

        return write(self, _view(view), width=width)

    def to_markdown(self, **view: Unpack[TableOptions]) -> str:
        """A Markdown table; options `columns`, `depth`, `sort`, `top`, `by`, `all` as in `show`."""
        from layerscope.export.markdown import write

        return write(self, _view(view))

    def to_csv(self, **view: Unpack[TableOptions]) -> str:
        """A csv table with one line per layer and exact numbers; options as in `to_markdown`."""
        from layerscope.export.csv import write

        return write(self, _view(view))

    def to_latex(self, **view: Unpack[TableOptions]) -> str:
        """A LaTeX tabular in the booktabs style; options as in `to_markdown`."""
        from layerscope.export.latex import write

        return write(self, _view(view))

    def to_html(self, **view: Unpack[TableOptions]) -> str:
        """An HTML table; options as in `to_markdown`."""
        from layerscope.export.html import write

        return write(self, _view(view))

    def to_json(self) -> str:
        """The whole report as JSON; docs/report.schema.json is its schema."""
        from layerscope.export.json import write

        return write(self)

    def to_pandas(self, **view: Unpack[TableOptions]) -> DataFrame:
        """A DataFrame with one row per layer (needs the extra `frame`)."""
        from layerscope.export.frame import write

        return write(self, _view(view))

    def to_notation(self, name: str, **options: Any) -> str:
        """The table in the notation of another tool: netscope, matconvnet, cs231n …"""
        from layerscope.notations import write

        return write(self, name, **options)

    def training(
        self, optimizer: str = "adam", *, mixed: bool = False, checkpoint: bool = False
    ) -> Training:
        """Memory of one training step; optimizers are sgd, momentum and adam.

        `mixed` is mixed precision and needs a report in fp16 or bf16; `checkpoint` is activation
        checkpointing.
        """
        if optimizer not in STATES:
            raise UnknownName("optimizer", optimizer, STATES, f"; choose from {', '.join(STATES)}")
        return training(
            self.graph,
            self.shapes,
            self.costs,
            optimizer=optimizer,
            mixed=mixed,
            checkpoint=checkpoint,
        )

    @property
    def total_params(self) -> int:
        """Number of parameters, including those that this forward pass does not use."""
        return self.totals.params + self._unused_params

    @property
    def trainable_params(self) -> int:
        """Number of parameters that are not frozen."""
        frozen = self.graph.frozen
        fixed = sum([param.elements for param in self.graph.unused if param.storage in frozen])
        for node in self.graph.nodes if frozen else ():
            for param in self.costs[node.name].first:
                if param.learnable and storage_of(node, param, node.ties) in frozen:
                    fixed += param.elements
        return self.total_params - fixed

    @property
    def _unused_params(self) -> int:
        if self.convention.learned != "used":  # the totals include them
            return 0
        return sum([param.elements for param in self.graph.unused])

    @property
    def total_macs(self) -> int:
        """Number of multiply-adds."""
        return self.totals.macs

    @property
    def total_flops(self) -> int:
        """Number of FLOPs: 2 per multiply-add, 1 per other operation."""
        return self.totals.flops

    def findings(self) -> tuple[str, ...]:
        """Sentences on the layers with most parameters, MACs and memory, and on the peak."""
        from layerscope.report.findings import findings

        return findings(self)


def _view(options: TableOptions) -> TableView:
    from layerscope.export.table import TableView

    return TableView(**options)
