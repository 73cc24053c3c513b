"""The table of the CS231n course notes, as a text block or as Markdown, with products written out.

Groups and dilations are in the names; a name without them has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from layerscope.documents.lines import tables as line_tables
from layerscope.formats.document.names import unescaped
from layerscope.formats.document.rows import LayerRow, PrintedNetwork
from layerscope.formats.document.sheet import PRODUCT, SheetForm, claimed, pool_op, sheets
from layerscope.formats.document.tables import network_of_sheet
from layerscope.sheets.kinds import is_total
from layerscope.sheets.sheet import SheetRow, sheet_of

LINE = re.compile(
    r"(?P<label>[^:]{1,200}): \[(?P<shape>[\dx?]{1,100}|scalar)\] +memory: +(?P<memory>\S+)"
    r" +weights: (?P<weights>[^\n]{1,200})"
)
TITLES = ("label", "shape", "memory", "weights")
GROUPS = re.compile(r"\((?:(?P<groups>\d{1,9}) groups|(?P<depthwise>depthwise))")
DILATION = re.compile(r"dilation (?P<sizes>\d{1,9}(?:x\d{1,9}){0,5})")
FILTER = re.compile(r"\((?P<filter>\d+(?:\\?\*\d+)*)\)\\?\*(?P<filters>\d+)")
ENDS = ("TOTAL memory:", "TOTAL params:", "- ")


def read(lines: Sequence[str]) -> Iterator[PrintedNetwork]:
    """A network for each table and each block of lines."""
    yield from sheets(lines, FORM)
    for table in line_tables(lines):
        sheet = sheet_of(table)
        network = None if sheet is None else network_of_sheet(sheet)
        if sheet is None or network is None:
            continue
        by_line = {row.line: row for row in sheet.rows}
        rows = []
        for row in network.rows:
            match = LINE.fullmatch(lines[row.line - 1].strip())
            texts = [match[title] for title in TITLES] if match else []
            own = by_line[row.line]
            rows.append(_refine(replace(row, cells=claimed(TEXT, texts)), own))
        totals, last = _ends(lines, rows[-1].line if rows else table.last)
        yield replace(
            network,
            rows=tuple(rows),
            notation="cs231n",
            totals=totals,
            branched=True,
            last=max(network.last, last),
        )


def _ends(lines: Sequence[str], last: int) -> tuple[tuple[str, ...], int]:
    """The totals and findings below the rows, and the last line of them."""
    found = []
    for number in range(last, min(last + 12, len(lines))):
        text = lines[number].rstrip()
        if text.startswith(ENDS) and text.isprintable() and len(text) < 400:
            found.append(text)
            last = number + 1
        elif text and not is_total(text):
            break
    return tuple(found), last


def _refine(row: LayerRow, own: SheetRow) -> LayerRow:
    name = unescaped(row.name)
    if row.kind in ("pool", "max_pool", "avg_pool"):
        op = pool_op(name)
        return replace(row, op=op) if op else row
    if row.kind not in ("conv", "depthwise", "deconv"):
        return row
    groups, dilated = GROUPS.search(name), DILATION.search(name)
    product = next((m for cell in own.cells if (m := FILTER.search(cell.text))), None)
    sizes: Mapping[str, object] = {}
    if dilated is not None and row.kernel is not None:
        steps = tuple(map(int, dilated["sizes"].split("x")))
        rank = len(row.kernel)
        sizes = {"dilation": steps * rank if len(steps) == 1 else steps}
    channels = None if product is None else int(re.findall(r"\d+", product["filter"])[-1])
    if row.kind == "deconv":
        return replace(row, **sizes)
    count = int(groups["groups"]) if groups and groups["groups"] else 1
    fixed = {"groups": None} if groups and groups["depthwise"] else {"groups": count}
    kind = "conv" if not (groups and groups["depthwise"]) else "depthwise"
    return replace(row, kind=kind, group_channels=channels, **fixed, **sizes)


FORM = SheetForm(
    "cs231n",
    ("Layer", "Number of Activations (Memory)", "Parameters (Compute)"),
    {
        "Layer": r"[^|]{1,200}",
        "Number of Activations (Memory)": PRODUCT,
        "Parameters (Compute)": PRODUCT,
    },
    (),
    (),
    _refine,
)
TEXT = SheetForm(
    "cs231n",
    TITLES,
    {"label": r"[^|]{1,200}", "shape": r"[\dx?]+|scalar", "memory": PRODUCT, "weights": PRODUCT},
    (),
    (),
    _refine,
)
