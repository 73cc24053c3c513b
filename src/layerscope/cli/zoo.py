"""layerscope zoo: the built-in networks."""

from __future__ import annotations

import click

from layerscope.cli.output import deliver, terminal
from layerscope.errors import UnknownName


@click.command(
    epilog="\b\nExamples:\n  layerscope zoo\n  layerscope zoo resnet\n  layerscope zoo --as csv\n"
)
@click.argument("text", required=False, default="")
@click.option(
    "--as", "form", metavar="FORM", default="text", help="text, csv or json.  [default: text]"
)
@click.option("--output", "-o", metavar="FILE", help="Write to FILE.")
def command(text: str, form: str, output: str | None) -> None:
    """List the built-in networks with params and MACs; TEXT filters them by name."""
    from layerscope.api import analyze
    from layerscope.graph.names import shape_text
    from layerscope.zoo import NAMES, describe

    if form not in ("text", "csv", "json"):
        raise UnknownName("form", form, ("text", "csv", "json"), "; choose from text, csv, json")
    names = [name for name in NAMES if text.lower() in name]
    if not names:
        raise UnknownName("network", text, NAMES, "; `layerscope zoo` lists them all")
    rows = []
    for name in names:
        report = analyze(name)
        totals = report.totals
        shape = shape_text(report.inputs[0].shape)
        rows.append((name, totals.params, totals.macs, shape, describe(name)))
    deliver(_print(rows, form, bool(output)), output, form)


def _print(rows: list[tuple[str, int, int, str, str]], form: str, to_file: bool) -> str:
    head = ("name", "params", "MACs", "input", "description")
    if form == "csv":
        import csv
        from io import StringIO

        out = StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(("name", "params", "macs", "input", "description"))
        writer.writerows(rows)
        return out.getvalue()
    if form == "json":
        from layerscope.escaping import json_text

        keys = ("name", "params", "macs", "input", "description")
        return json_text([dict(zip(keys, row, strict=True)) for row in rows])
    from layerscope.report.numbers import exact_text, short_text

    width, style = terminal(to_file)
    for number in (exact_text, short_text):
        cells = [(name, number(p), number(m), shape, what) for name, p, m, shape, what in rows]
        widths = [max(len(row[n]) for row in [head, *cells]) for n in range(4)]
        if width is None or sum(widths) + 8 + 20 <= width:
            break
    lines = []
    for row in [head, *cells]:
        left = f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}"
        line = f"{left}  {row[3]:<{widths[3]}}  {row[4]}"
        if width is not None and len(line) > width:
            line = line[: width - 1].rstrip() + "…"
        lines.append(style(line, "head" if row is head else "layer"))
    return "\n".join(lines) + "\n"
