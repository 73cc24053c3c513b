"""What every result can do: print itself, and convert itself to each form.

The printers are in export/, which imports this package; see `printing`.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct

from layerscope.report.printing import printer
from layerscope.report.view_options import checked

if TYPE_CHECKING:
    from pandas import DataFrame

    from layerscope.plot.chart import Chart


class Result(Struct, frozen=True):
    """A result of the Python API. Its printer has `headline(result)`, a few words on it."""

    printed_by: ClassVar[str] = ""  # a name in `printing.PRINTERS`

    def _printer(self) -> ModuleType:
        return printer(self.printed_by)

    @property
    def headline(self) -> str:
        """The result in a few words, as `repr` prints it."""
        text: str = self._printer().headline(self)
        return text

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.headline}>"


class PlottedResult(Result, frozen=True):
    """A result with charts, which are Vega-Lite specifications."""

    plotted_by: ClassVar[str] = ""  # a function of the printer `plots`

    def plot(
        self, of: str | None = None, *, on: str | None = None, theme: str | None = None
    ) -> Chart:
        """A chart that notebooks draw and `save` writes; `on` is a machine with its roofs.

        `of` is memory, costs, params, activations, roofline, time or throughput.
        """
        draw = getattr(printer("plots"), self.plotted_by)
        chart: Chart = draw(self, on=on, theme=theme, **({} if of is None else {"of": of}))
        return chart


class TableResult(Result, frozen=True):
    """A result that is printed from blocks. Options of its methods choose rows and columns.

    Its printer also has `blocks(result, **view)` and `write_json(result, **view)`; the options of
    each are its keyword arguments with defaults.
    """

    def blocks(self, form: str = "text", **view: Any) -> Any:
        """Tables and lines of a form: csv and data frames may have columns of their own."""
        found = self._printer()
        exact = form in ("csv", "frame") and hasattr(found, "csv_blocks")
        write = found.csv_blocks if exact else found.blocks
        return write(self, **checked(view, write.__kwdefaults__ or {}))

    def _render(self, form: str, view: dict[str, Any], **options: object) -> str:
        text: str = printer("render").render(self.blocks(form, **view), form, **options)
        return text

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_text(self, *, width: int | None = None, **view: Any) -> str:
        """Text as the command line prints it, within `width` columns."""
        return self._render("text", view, width=width)

    def to_markdown(self, **view: Any) -> str:
        """Markdown tables."""
        return self._render("markdown", view)

    def to_csv(self, **view: Any) -> str:
        """The main table with exact values."""
        return self._render("csv", view)

    def to_latex(self, **view: Any) -> str:
        """LaTeX tables; needs the LaTeX package booktabs."""
        return self._render("latex", view)

    def to_html(self, **view: Any) -> str:
        """HTML tables for a notebook or a page; every name is escaped."""
        return self._render("html", view)

    def to_json(self, **view: Any) -> str:
        """The result as JSON."""
        write = self._printer().write_json
        text: str = write(self, **checked(view, write.__kwdefaults__ or {}))
        return text

    def to_pandas(self, **view: Any) -> DataFrame:
        """The main table as a DataFrame; needs the extra `frame`."""
        frame: DataFrame = printer("render").to_frame(self.blocks("frame", **view))
        return frame
