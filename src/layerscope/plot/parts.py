"""The parts of a network that bars show: modules or layers at one depth, or runs of layers."""

from __future__ import annotations

from fractions import Fraction

from msgspec import Struct

from layerscope.plot.bars import Bar
from layerscope.plot.theme import tone
from layerscope.report import Report
from layerscope.report.columns import COLUMNS, Column, cell
from layerscope.report.numbers import UNKNOWN, cell_text, counted, share_text
from layerscope.report.tree import TableRow, layer_rows, tree_rows, unused_rows

MOST = 40  # bars


class NetworkParts(Struct, frozen=True):
    """Rows that make up the whole network, in execution order, and what they are."""

    rows: tuple[TableRow, ...]
    what: str  # module, layer or run of layers
    says: str


class PartBars(Struct, frozen=True):
    """Bars that add up to a total, what each is, and notes on them."""

    bars: list[Bar]
    what: str
    notes: tuple[str, ...]


def bars_of(report: Report, column: Column, total: int) -> PartBars:
    """Bars of a column that can be summed, in execution order."""
    parts = _parts(report, column)
    numbers = {layer.name: n for n, layer in enumerate(report.layers)}
    found = [_bar(row, column, report, total, numbers) for row in parts.rows]
    shown = [bar for bar in found if bar.value != 0]
    idle = [row for row, bar in zip(parts.rows, found, strict=True) if bar.value == 0]
    notes = [f"{parts.says}, in execution order."]
    if idle:
        count = sum(len(row.members) for row in idle)
        notes.append(f"Not drawn: {counted(count, 'layer')} without {column.title}.")
    unknown = sum(1 for bar in shown if bar.value is None)
    if unknown:
        notes.append(f"{counted(unknown, 'bar')} marked ?: {column.title} unknown.")
    return PartBars(shown, parts.what, tuple(notes))


def _parts(report: Report, column: Column) -> NetworkParts:
    """The deepest level of the module tree with at most MOST bars, else runs of layers."""
    rows = tree_rows(report, fold=False)
    unused = tuple(unused_rows(report)) if column.name == "params" else ()
    chosen: NetworkParts | None = None
    for depth in range(1, 2 + max((row.depth for row in rows), default=0)):
        level = tuple([row for row in rows if _is_at(row, depth)])
        if sum(1 for row in level if cell(column, row, report) not in (0, None)) > MOST:
            break
        scopes = any(row.kind == "scope" for row in level)
        says = f"Modules and layers at depth {depth}" if scopes else "Layers"
        chosen = NetworkParts((*level, *unused), "module" if scopes else "layer", says)
        if not scopes:
            break
    return chosen or _runs(report, unused)


def _is_at(row: TableRow, depth: int) -> bool:
    return row.depth < depth if row.kind == "layer" else row.depth == depth - 1


def _runs(report: Report, unused: tuple[TableRow, ...]) -> NetworkParts:
    """At most MOST runs of consecutive layers, as many layers in each."""
    rows = layer_rows(report)
    size = -(-len(rows) // MOST)
    runs = [rows[n : n + size] for n in range(0, len(rows), size)]
    merged = [
        TableRow(
            f"{run[0].name} … {run[-1].name}",
            "",
            0,
            "scope",
            tuple([row.members[0] for row in run]),
        )
        for run in runs
    ]
    says = f"Runs of {size:,} consecutive layers, since there are {len(rows):,}"
    return NetworkParts((*merged, *unused), "run of layers", says)


def _bar(row: TableRow, column: Column, report: Report, total: int, numbers: dict[str, int]) -> Bar:
    found = cell(column, row, report)
    text = cell_text(found, column.kind) or "0"
    layers = tuple([numbers[layer.name] for layer in row.members])
    first = layers[0] if layers else None
    kind = row.layer.op if row.layer is not None else ""
    if text == UNKNOWN or isinstance(found, str):
        return Bar(row.name, None, UNKNOWN, "", "plain", kind, first, layers)
    value = int(found or 0)
    share = share_text(value, total, report.sign(column.name)) if total and value else ""
    shade = tone(Fraction(value, total or 1))
    return Bar(row.name, value, text, share, shade, kind, first, layers)


def layer_text(report: Report, number: int, name: str) -> str:
    """A column of one layer, as the command line prints it."""
    layer, column = report.layers[number], COLUMNS[name]
    row = TableRow(layer.name, layer.name, 0, "layer", (layer,))
    return cell_text(cell(column, row, report), column.kind)
