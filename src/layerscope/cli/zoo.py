"""layerscope zoo: the built-in networks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from layerscope.cli.output import (
    RESULT_FORMS,
    chosen_form,
    deliver,
    deliver_blocks,
    form_options,
)
from layerscope.errors import UnknownName

if TYPE_CHECKING:
    from layerscope.export.grid import Blocks

NAMES_OF_COLUMNS = ("name", "params", "macs", "input", "description")


@click.command(
    epilog="\b\nExamples:\n  layerscope zoo\n  layerscope zoo resnet\n  layerscope zoo --as csv\n"
)
@click.argument("text", required=False, default="")
@form_options(RESULT_FORMS)
def command(text: str, form: str | None, output: str | None) -> None:
    """List the built-in networks with params and MACs; TEXT filters them by name."""
    from layerscope.zoo import NAMES, describe
    from layerscope.zoo.figures import FIGURES

    form = chosen_form(form, output, RESULT_FORMS)
    names = [name for name in NAMES if text.lower() in name]
    if not names:
        raise UnknownName("network", text, NAMES, "; `layerscope zoo` lists them all")
    rows = [(name, *FIGURES[name], describe(name)) for name in names]
    if form != "json":
        deliver_blocks(_blocks(rows), form, output, "Networks that come with layerscope")
        return
    from layerscope.escaping import json_text

    listed = [dict(zip(NAMES_OF_COLUMNS, row, strict=True)) for row in rows]
    deliver(json_text({"kind": "zoo", "schema": 1, "networks": listed}), output, form)


def _blocks(rows: list[tuple[str, int, int, str, str]]) -> Blocks:
    from layerscope.export.grid import Cell, Grid, named
    from layerscope.report.numbers import exact_text, short_text

    head = [named("name"), Cell("params"), Cell("MACs"), named("input", 1), named("description", 2)]
    table = [head]
    for name, params, macs, shape, what in rows:
        counts = [Cell(exact_text(n), short=short_text(n), value=n) for n in (params, macs)]
        table.append([named(name), *counts, named(shape), named(what)])
    return [Grid(table, names=NAMES_OF_COLUMNS)]
