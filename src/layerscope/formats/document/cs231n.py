"""The table of the CS231n course notes, as a text block or as Markdown, with products written out.

Groups and dilations are in the names; a name without them has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from layerscope.documents.lines import tables as line_tables
from layerscope.formats.document.names import unescaped
from layerscope.formats.document.rows import LayerRow, PrintedNetwork
from layerscope.formats.document.sheet import (
    PRODUCT,
    SheetForm,
    as_said,
    claimed,
    pool_op,
    pooled,
    sheets,
    unpadded,
)
from layerscope.formats.document.tables import network_of_sheet
from layerscope.limits import DOCUMENT_ROWS
from layerscope.sheets.kinds import is_total
from layerscope.sheets.sheet import SheetRow, sheet_of

LINE = re.compile(
    r"(?P<label>[^:]{1,200}): \[(?P<shape>[\dx?]{1,100}|scalar)\] +memory: +(?P<memory>\S+)"
    r" +weights: (?P<weights>[^\n]{1,200})"
)
HEADINGS = ("Layer", "Number of Activations (Memory)", "Parameters (Compute)")
TITLES = ("label", "shape", "memory", "weights")
LABEL = re.compile(
    r"(?P<kind>CONV|DECONV|POOL|AVGPOOL|LPPOOL)(?P<kernel>\d{1,9}(?:x\d{1,9}){0,5})?(?=[ -]|$)"
)
NUMBERS = re.compile(r"\d+")
GROUPS = re.compile(r"\((?:(?P<groups>\d{1,9}) groups|(?P<depthwise>depthwise))")
DILATION = re.compile(r"dilation (?P<sizes>\d{1,9}(?:x\d{1,9}){0,5})")
FILTER = re.compile(r"\((?P<filter>\d+(?:\\?\*\d+)*)\)\\?\*(?P<filters>\d+)")
ONE_IMAGE = "/ image ("  # in the total of the memory
ENDS = ("TOTAL memory:", "TOTAL params:", "- ")


def read(lines: Sequence[str]) -> Iterator[PrintedNetwork]:
    """A network for each table and each block of lines."""
    for network in sheets(lines, FORM):
        rows = unpadded([*_with_outputs(network.rows, HEADINGS[1])])
        yield replace(network, rows=tuple(map(_refined, rows)))
    for table in line_tables(lines):
        DOCUMENT_ROWS.check(len(table.rows), f"line {table.line}")
        sheet = sheet_of(table)
        block = None if sheet is None else network_of_sheet(sheet, notation=True)
        if block is None:
            continue
        rows = []
        for row in block.rows:
            match = LINE.fullmatch(lines[row.line - 1].strip())
            texts = [match[title] for title in TITLES] if match else []
            cells = claimed(TEXT, texts)
            # the product of a matrix is written with the map that was flattened before
            traced = cells[3:] if row.kind == "fc" else ()
            rows.append(replace(row, cells=cells, traced=traced))
        totals, last = _ends(lines, rows[-1].line if rows else table.last)
        single = any(ONE_IMAGE in text for text in totals)
        rows = [*_with_outputs(rows, "shape", single=single)]
        yield replace(
            block,
            rows=tuple(map(_refined, unpadded(rows))),
            notation="cs231n",
            totals=totals,
            branched=None,
            biased=False,
            last=max(block.last, last),
        )


def _with_outputs(
    rows: Sequence[LayerRow], title: str, *, single: bool = False
) -> Iterator[LayerRow]:
    """The rows with their outputs: sizes and channels, after the images if there are several.

    With `single` the document says that the input is one image.
    """
    found = []
    for row in rows:
        text = dict(cell.split("\t", 1) for cell in row.cells).get(title, "")
        product = text.partition("=")[0] if "=" in text or title == "shape" else text
        found.append([*map(int, NUMBERS.findall(product))] if "?" not in product else [])
    first = rows[0].kind == "input" and len(found[0]) > 1
    axes = len(found[0]) if first else max(map(len, found), default=0)
    full = [sizes for sizes in found if len(sizes) == axes]
    rank = _rank(rows)
    several = axes > 2 and len({sizes[0] for sizes in full}) == 1 and not single
    several = several and (_is_batch(full) if rank is None else rank == axes - 2)
    batch = full[0][0] if several else 1
    for row, sizes in zip(rows, found, strict=True):
        if not sizes or not row.cells:
            yield row
            continue
        own = len(sizes) == axes + 1  # images of this row alone
        *space, channels = sizes[1:] if own or (batch > 1 and len(sizes) > 1) else sizes
        space = [1] * (axes - (2 if batch > 1 else 1) - len(space)) + space
        yield replace(row, output=(sizes[0] if own else batch, channels, *space))


def _rank(rows: Sequence[LayerRow]) -> int | None:
    """The axes of the filters, which are printed with their channels, or of an oblong window."""
    for row in rows:
        for cell in row.cells:
            if product := FILTER.search(cell):
                return len(NUMBERS.findall(product["filter"])) - 1
    kernels = (match["kernel"] or "" for row in rows if (match := LABEL.match(row.name)))
    return next((kernel.count("x") + 1 for kernel in kernels if "x" in kernel), None)


def _is_batch(shapes: Sequence[Sequence[int]]) -> bool:
    """Whether the first size cannot be one of space: a later one changes, and it does not."""
    return any(shape[1:-1] != shapes[0][1:-1] for shape in shapes)


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


def _refined(row: LayerRow) -> LayerRow:
    """The row with what its label says: kernel, groups and dilation."""
    cells = dict(cell.split("\t", 1) for cell in row.cells)
    name = unescaped(cells.get("label") or cells.get(HEADINGS[0]) or row.name)
    if cells:
        row = as_said(row, name, cells.get("memory") or cells.get(HEADINGS[1]) or "")
    label = LABEL.match(name)
    if label is None:
        return row
    rank = len(row.output) - 2 if row.output is not None else 2
    row = replace(row, kernel=_sizes_of_axes(label["kernel"], rank), inferred=())
    if op := pool_op(label["kind"]):
        return pooled(row, op) if cells else replace(row, op=op)
    dilated = DILATION.search(name)
    row = replace(
        row, dilation=_sizes_of_axes(dilated["sizes"] if dilated is not None else "1", rank)
    )
    product = FILTER.search(cells.get("weights") or cells.get(HEADINGS[2]) or "")
    groups = GROUPS.search(name)
    if label["kind"] == "DECONV":
        count = int(groups["groups"] or 0) or None if groups else 1
        return replace(row, kind="deconv", groups=count)
    if product is None:
        return row
    channels = int(NUMBERS.findall(product["filter"])[-1])
    count = None if groups and groups["depthwise"] else int(groups["groups"]) if groups else 1
    return replace(row, kind="conv", groups=count, group_channels=channels)


def _sizes_of_axes(text: str | None, rank: int) -> tuple[int, ...] | None:
    """Sizes of every axis, of which equal ones are written once."""
    sizes = tuple(map(int, NUMBERS.findall(text or "")))
    return sizes * rank if len(sizes) == 1 else sizes if len(sizes) == rank else None


def _same(row: LayerRow, own: SheetRow) -> LayerRow:
    return row


FORM = SheetForm(
    "cs231n",
    HEADINGS,
    {
        "Layer": r"[^|]{1,200}",
        HEADINGS[1]: PRODUCT,
        HEADINGS[2]: PRODUCT,
    },
    (),
    (),
    _same,
)
TEXT = SheetForm(
    "cs231n",
    TITLES,
    {"label": r"[^|]{1,200}", "shape": r"[\dx?]+|scalar", "memory": PRODUCT, "weights": PRODUCT},
    (),
    (),
    _same,
)
