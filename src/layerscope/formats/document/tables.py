"""Any table whose headings are recognised, as the rows of a network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layerscope.documents.headings import Meaning
from layerscope.documents.reader import read as read_tables
from layerscope.documents.types import Table
from layerscope.formats.document.matconvnet_tables import tables as displays
from layerscope.formats.document.names import bare
from layerscope.formats.document.rows import Amount, LayerRow, PrintedNetwork
from layerscope.graph.types import Shape
from layerscope.limits import DOCUMENT_ROWS
from layerscope.sheets.attach import attach
from layerscope.sheets.corrections import correct_kinds
from layerscope.sheets.kernels import infer
from layerscope.sheets.sheet import Sheet, SheetRow, sheet_of
from layerscope.sheets.structure import RowLayer, layers_of

COUNTED: tuple[Meaning, ...] = (
    "params", "weights", "macs", "flops", "comparisons", "additions",
)  # fmt: skip


def read(lines: Sequence[str]) -> Iterator[PrintedNetwork]:
    """A network for each table of layers; tables of models or of results are none."""
    for table in (*tables_in(lines), *displays(lines)):
        sheet = sheet_of(table)
        network = None if sheet is None else network_of_sheet(sheet)
        if network is not None:
            yield network


def tables_in(lines: Sequence[str], titles: tuple[str, ...] = ()) -> list[Table]:
    """The tables in some lines, or those with these headings; FormatError for too many rows."""
    found, count = [], 0
    for table in read_tables("\n".join(lines)):
        if not titles or tuple(cell.text for cell in table.heading.cells) == titles:
            count += len(table.rows)
            DOCUMENT_ROWS.check(count, f"line {table.line}")
            found.append(table)
    return found


def network_of_sheet(sheet: Sheet, *, notation: bool = False) -> PrintedNetwork | None:
    """The rows of a sheet as layers; None if no row says a kind of layer or a window.

    In a notation every row is a layer, and what its cells leave open is not taken from others.
    """
    layers = layers_of(sheet)
    list(correct_kinds(layers))
    branched = False
    if not notation:
        if not any(
            each.kind not in ("input", "unknown") or "kh" in each.printed for each in layers
        ):
            return None
        branched = attach(layers)
        infer(layers, branched=branched)
    table = sheet.table
    rows = tuple(_row(sheet, layer) for layer in layers)
    last = max(table.last, table.line)
    return PrintedNetwork(rows, line=table.line, last=last, branched=branched)


def _row(sheet: Sheet, layer: RowLayer) -> LayerRow:
    sizes = layer.sizes
    batch = sizes["batch"].value if "batch" in sizes else 1
    named = _name(sheet, layer.row)
    window = {name: layer.get(f"{name}h", f"{name}w") for name in "kspd"}
    pads = window["p"]
    groups = layer.get("groups")
    filters = layer.get("cout")
    return LayerRow(
        named,
        layer.kind,
        type=layer.row.named if layer.row.named != named else "",
        key=str(layer.row.at),
        given=_shape(layer, "in", batch) if {"cin", "hin", "win"} <= {*layer.printed} else None,
        output=_shape(layer, "out", batch),
        filters=filters[0] if filters and layer.kind in ("conv", "deconv", "fc") else None,
        kernel=window["k"],
        stride=window["s"],
        pads=None if pads is None else tuple((p, p) for p in pads),
        dilation=window["d"],
        groups=groups[0] if groups else None,
        amounts=_amounts(layer.row),
        inferred=tuple(
            part
            for part, size in (("kernel", "kh"), ("groups", "groups"))
            if size in sizes and size not in layer.printed
        ),
        line=layer.row.line,
        column=layer.row.cells[0].column if layer.row.cells else 1,
    )


def _name(sheet: Sheet, row: SheetRow) -> str:
    """The name of a row: the cell under a heading that means it, else the first that has text."""
    column = sheet.column("name")
    if column is not None and column < len(row.cells) and row.cells[column].text:
        return bare(row.cells[column].text)
    return bare(row.named or row.label)


def _shape(layer: RowLayer, side: str, batch: int) -> Shape | None:
    found = layer.get(f"c{side}", f"h{side}", f"w{side}")
    return None if found is None else (batch, *found)


def _amounts(row: SheetRow) -> dict[Meaning, Amount]:
    found: dict[Meaning, Amount] = {}
    for claim in row.claims:
        figure = claim.figure
        if figure is not None and claim.meaning in COUNTED and figure.unit != "%":
            found.setdefault(claim.meaning, Amount(figure, claim.heading.scale))
    return found
