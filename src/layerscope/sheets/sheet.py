"""A table as rows of layers: what each cell claims, under which heading, and the rows' layout."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from math import prod

from msgspec import Struct
from msgspec.structs import replace

from layerscope.documents.figures import Figure, read
from layerscope.documents.headings import Heading, Meaning, meaning_of
from layerscope.documents.types import Cell, Row, Table
from layerscope.limits import DOCUMENT_ROWS
from layerscope.sheets.alignment import LABELLED, LABELLED_UNDER, aligned
from layerscope.sheets.described import described
from layerscope.sheets.kinds import Kind, is_total, kind_of, plain
from layerscope.sheets.shapes import axes

# words before a figure in the cells of Netscope's table
LABELS: dict[str, Meaning] = {
    "macc": "macs", "mac": "macs", "comp": "comparisons", "add": "additions", "div": "divisions",
    "exp": "exponentials", "activation": "activations", "param": "params",
}  # fmt: skip
LEADING = re.compile(r"\s*[~≈]?\s*\d[\d,.]*\s?(?:[KMGT](?![A-Za-z]))?")
AREA = re.compile(r"\W*(\d+)\s*(?:[x×*]|\\times)\s*\d+\W*")  # 5x5 as the size of a receptive field
PAIR = re.compile(r"\s*(\d[\d,]*)\s*/\s*\d[\d,]*\s*")  # parameters and their bytes: 160/280
TYPE = re.compile(r"[A-Za-z]\w*(?:\(\d+\))?")  # reduce_mean, submodule(21)
BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
FIGURES = (
    "params", "weights", "param_memory", "memory", "activations", "macs", "flops", "madds", "share",
    "time", "comparisons", "additions", "divisions", "exponentials", "read", "written", "traffic",
)  # fmt: skip
COUNTED = ("params", "weights")  # headings of counts, which may have words below them
OPERATIONS = ("macs", "flops", "madds")
NAMELESS = (*FIGURES, "ops", "connected")  # columns that do not say what a row itself is
WHOLE_SHAPES: dict[Meaning, Meaning] = {"in_size": "input", "out_size": "output"}
MANY_SHAPES = 3  # from which on a column that contradicts them is another one
TYPED = 10  # of so many descriptions all but one say a kind, if they are types
FIELDS = ("field", "jump", "jump_in", "offset")
WORDS = ("name", "type", "description")
EMPTY = ("", "-", "–", "—", "n/a", "none", "/", "--", "nan")


# words of a total below a table -> meanings of the columns that may add up to it
STATED: dict[str, tuple[Meaning, ...]] = {
    "param": ("params",), "weight": ("weights",), "mac": ("macs",), "flop": ("flops",),
}  # fmt: skip


class Claim(Struct, frozen=True):
    """A figure of a cell, and the meaning that its heading or label gives it."""

    row: int
    column: int
    part: int  # 0, or the number of the label in a cell with several
    meaning: Meaning
    heading: Heading
    cell: Cell
    figure: Figure | None  # None: a cell without a figure
    labelled: bool = False  # a word in the cell says the meaning

    @property
    def cell_part(self) -> tuple[int, int, int]:
        """Row, column and part."""
        return self.row, self.column, self.part


MOST_ROWS = DOCUMENT_ROWS.most  # of a table: an audit checks these and says so
WHOLE = -1  # as the part of a cell: all of them


class Blank:
    """Parts of cells that are not used."""

    def __init__(self, parts: Iterable[tuple[int, int, int]] = ()) -> None:
        self.parts = frozenset(parts)
        self.rows = {part[0] for part in self.parts}

    def __contains__(self, part: tuple[int, int, int]) -> bool:
        return bool(self.parts) and (part in self.parts or (*part[:2], WHOLE) in self.parts)


class SheetRow(Struct, frozen=True):
    """A row, its label, its kind, and its claims by meaning."""

    at: int
    line: int
    label: str  # the first cell that is not empty
    kind: Kind
    cells: tuple[Cell, ...]
    claims: tuple[Claim, ...]
    named: str = ""  # the cell that says the kind

    def text(self, column: int | None) -> str:
        """The text of a cell; nothing where the row ends before it."""
        return "" if column is None or column >= len(self.cells) else self.cells[column].text


class RaggedRow(Struct, frozen=True):
    """A row with too few or too many cells."""

    line: int
    label: str
    cells: int
    expected: int


class Sheet(Struct, frozen=True):
    """A table whose headings are recognised."""

    table: Table
    headings: tuple[Heading | None, ...]
    rows: tuple[SheetRow, ...]
    layout: tuple[RaggedRow, ...]
    blank: Blank = Blank()
    tried: tuple[tuple[int, int, int], int] | None = None  # another size in a part of a cell
    cut: int = 0  # rows that are not read, beyond the most

    def column(self, meaning: Meaning) -> int | None:
        """The first column with that meaning."""
        return next((n for n, h in enumerate(self.headings) if h and h.meaning == meaning), None)


def is_sheet(table: Table) -> bool:
    """Whether two headings are recognised."""
    return sum(meaning_of(cell.text) is not None for cell in table.heading.cells) > 1


def sheet_of(table: Table) -> Sheet | None:
    """The sheet of a table; None if fewer than two headings are recognised."""
    headings = _by_cells(table, [meaning_of(cell.text) for cell in table.heading.cells])
    fact = [heading for heading in headings if heading is not None]
    if len(fact) < 2:
        return None
    width = len(headings)
    cut = max(0, len(table.rows) - MOST_ROWS)
    if cut:
        gap = (*table.left_out, table.rows[MOST_ROWS].line)
        table = replace(table, rows=table.rows[:MOST_ROWS], left_out=gap, totals=())
    rows: list[SheetRow] = []
    layout: list[RaggedRow] = []
    naming = _naming_order(table.rows, headings)
    for row, cells in aligned(table.rows, headings):
        if not any(cell.text for cell in cells):
            continue
        label = next(cell.text for cell in cells if cell.text)
        if len(row) != width:
            layout.append(RaggedRow(row.line, label, len(row), width))
        claims: list[Claim] = []
        for column, cell in enumerate(cells):
            heading = headings[column] if column < width else None
            found = _claims(cell, heading, total=is_total(label))
            for part, claim in enumerate(found, 1):
                claims.append(Claim(len(rows), column, part if len(found) > 1 else 0, *claim))
        named = _naming(cells, headings, naming)
        rows.append(
            SheetRow(
                len(rows),
                row.line,
                label,
                _kind(cells, headings, named, label),
                tuple(cells),
                tuple(claims),
                named,
            )
        )
    rows += _stated(table, headings, rows)
    return Sheet(table, headings, tuple(rows), tuple(layout), cut=cut)


def _stated(
    table: Table, headings: Sequence[Heading | None], rows: Sequence[SheetRow]
) -> Iterator[SheetRow]:
    """Totals in the lines below a table, as rows with one figure in the column that they add up."""
    done = {claim.column for row in rows if row.kind == "total" for claim in row.claims}
    number = len(rows)
    for label, figure in (row.cells for row in table.totals):
        meanings = next((m for word, m in STATED.items() if word in label.text.lower()), ())
        columns = [n for n, h in enumerate(headings) if h and h.meaning in meanings]
        heading = headings[columns[0]] if len(columns) == 1 else None
        if heading is None or columns[0] in done or not columns[0]:
            continue
        blank = Cell("", label.line, label.column)
        cells = [label, *[blank] * (columns[0] - 1), figure]
        bare = replace(heading, scale=1, unit="")
        claim = Claim(number, columns[0], 0, heading.meaning, bare, figure, read(figure.text))
        yield SheetRow(number, label.line, label.text, "total", tuple(cells), (claim,))
        done.add(columns[0])
        number += 1


def _by_cells(table: Table, headings: list[Heading | None]) -> tuple[Heading | None, ...]:
    """The headings, where the cells below them decide what they mean."""
    columns = [
        [row.cells[n].text for row in table.rows if n < len(row)] for n in range(len(headings))
    ]
    for n, heading in enumerate(headings):
        if heading and heading.meaning in WHOLE_SHAPES and _are_shapes(columns[n]):
            headings[n] = replace(heading, meaning=WHOLE_SHAPES[heading.meaning])
    outputs = [n for n, h in enumerate(headings) if h and h.meaning == "output"]
    if len(outputs) == 2:
        _tell_apart(table, headings, columns, outputs)
    for n, heading in enumerate(headings):
        if heading and heading.meaning == "out_channels" and outputs[:1]:
            headings[n] = heading if _are_channels(table.rows, n, outputs[0]) else None
    first = table.heading.cells[0].text
    if (
        not _has_heading(headings, "name", "type")
        and headings[0] is None
        and _are_names(first, columns[0])
    ):
        headings[0] = Heading(first, "name")
    if not _has_heading(headings, "description"):
        open_ = (n for n, h in enumerate(headings) if h is None or h.meaning in COUNTED)
        for n in [n for n in open_ if _are_described(columns[n])][:1]:
            headings[n] = Heading(table.heading.cells[n].text, "description")
    return tuple(headings)


def _are_shapes(texts: Sequence[str]) -> bool:
    """Whether most cells have more axes than height and width."""
    return 2 * sum(len(axes(text)) > 3 for text in texts) > len(texts)


def _has_heading(headings: Sequence[Heading | None], *meanings: Meaning) -> bool:
    return any(heading is not None and heading.meaning in meanings for heading in headings)


def _tell_apart(
    table: Table,
    headings: list[Heading | None],
    columns: Sequence[Sequence[str]],
    outputs: Sequence[int],
) -> None:
    """Of two columns of outputs, one with single numbers has the elements or the channels."""
    for n, other in (outputs, outputs[::-1]):
        heading = headings[n]
        given = [text for text in columns[n] if plain(text) not in EMPTY]
        if heading and _are_elements(table.rows, n, other):
            headings[n] = replace(heading, meaning="activations")
            return
        if heading and given and all(re.fullmatch(r"\W*\d+\W*", text) for text in given):
            headings[n] = replace(heading, meaning="out_channels")
            return


def _are_channels(rows: Sequence[Row], column: int, shapes: int) -> bool:
    """Whether numbers below `depth` are channels of the shapes beside them, and not of layers."""
    right = of = 0
    for row in rows:
        shape = axes(row.cells[shapes].text) if max(column, shapes) < len(row) else ()
        given = axes(row.cells[column].text) if len(shape) == 3 and 1 not in shape else ()
        of += len(given) == 1
        right += len(given) == 1 and given[0] in shape
    return of < MANY_SHAPES or 2 * right >= of


def _are_names(heading: str, texts: Sequence[str]) -> bool:
    """Whether most cells below a blank heading say kinds of layers."""
    kinds = sum(kind_of(text) != "unknown" for text in texts)
    return plain(heading) in EMPTY and 2 * kinds > len(texts)


def _are_elements(rows: Sequence[Row], column: int, shapes: int) -> bool:
    """Whether numbers of a column are the elements of the shapes in another: `Activation size`."""
    right = of = 0
    for row in rows:
        shape = axes(row.cells[shapes].text) if max(column, shapes) < len(row) else ()
        figure = read(row.cells[column].text) if len(shape) > 1 and None not in shape else None
        if figure is not None:
            of += 1
            right += figure.value() == prod(size for size in shape if size is not None)
    return right > 1 and 2 * right > of


def _are_described(texts: Sequence[str]) -> bool:
    """Whether most cells of a column say sizes in words, and nearly none is a figure."""
    given = [text for text in texts if plain(text) not in EMPTY]
    sized = sum(
        bool(described(text)) and re.search(r"[^\W\d_]{2}", text) is not None for text in given
    )
    figures = sum(read(text) is not None and not described(text) for text in given)
    return sized > 1 and 2 * sized >= len(given) and 4 * figures < len(given)


def sheet_without(sheet: Sheet, parts: Iterable[tuple[int, int, int]]) -> Sheet:
    """The sheet as if some parts of cells were blank."""
    out = Blank(parts)
    rows = tuple(
        replace(row, claims=tuple(c for c in row.claims if c.cell_part not in out))
        if row.at in out.rows
        else row
        for row in sheet.rows
    )
    return replace(sheet, rows=rows, blank=out)


def sheet_with(sheet: Sheet, part: tuple[int, int, int], size: int) -> Sheet:
    """The sheet as if a part of a cell said another size."""
    return replace(sheet, tried=(part, size))


def is_after_gap(sheet: Sheet, above: SheetRow, row: SheetRow) -> bool:
    """Whether a line of dots, which stands for rows, is between two rows."""
    left_out = sheet.table.left_out  # in the order of lines
    after = bisect_right(left_out, above.line)
    return after < len(left_out) and left_out[after] < row.line


def _claims(
    cell: Cell, heading: Heading | None, *, total: bool
) -> list[tuple[Meaning, Heading, Cell, Figure | None, bool]]:
    """What a cell claims: one figure, or one for each label in it."""
    parts = [part for part in BREAK.split(cell.text) if part.strip()]
    found: list[tuple[Meaning, Heading, Cell, Figure | None, bool]] = []
    for part in parts:
        match = LABELLED.match(part.strip().replace("\t", " "))
        if match and (heading is None or heading.meaning in LABELLED_UNDER):
            meaning = LABELS[match[1].lower()]
            text = heading.text if heading else match[1]
            found.append(
                (
                    meaning,
                    Heading(text, meaning),
                    Cell(part.strip(), cell.line, cell.column),
                    read(match[2]),
                    True,
                )
            )
    if found or heading is None:
        return found
    if heading.meaning == "params_bytes" and (pair := PAIR.fullmatch(cell.text)):
        counted = replace(heading, meaning="params")
        return [("params", counted, Cell(pair[1], cell.line, cell.column), read(pair[1]), False)]
    if heading.meaning in FIGURES or heading.meaning in FIELDS:
        area = AREA.fullmatch(cell.text.strip())
        in_pixels = area is not None and heading.meaning in FIELDS[:3]
        figure = read(area[1] if area is not None and in_pixels else cell.text)
        if figure is None and total and (first := LEADING.match(cell.text)):
            figure = read(first[0])  # `138M parameters`, `24M * 4 bytes ~= 93MB / image`
        if figure is not None and heading.meaning in OPERATIONS and _is_bare_byte(figure):
            figure = replace(figure, power=3, prefix="B", unit="")  # 1.2 B: billions
        found.append((heading.meaning, heading, cell, figure, False))
    return found


def _is_bare_byte(figure: Figure) -> bool:
    return figure.unit == "byte" and not figure.power and figure.scale == 1


def _naming_order(rows: Sequence[Row], headings: Sequence[Heading | None]) -> tuple[Meaning, ...]:
    """The columns that say kinds, the first of them first: the type, else the name.

    Descriptions are types where nearly all of them say a kind: `Conv2d k=1 s=2`.
    """
    at = next((n for n, h in enumerate(headings) if h and h.meaning == "description"), None)
    given = [row.cells[at].text for row in rows if at is not None and at < len(row)]
    typed = sum(kind_of(text) != "unknown" for text in given)
    if typed and typed * TYPED >= len(given) * (TYPED - 1):
        return "type", "description", "name"
    return "type", "name", "description"


def _naming(
    cells: list[Cell], headings: tuple[Heading | None, ...], order: Sequence[Meaning]
) -> str:
    """The cell that says the kind of a layer."""
    for meaning in order:
        for cell, heading in zip(cells, headings, strict=False):
            if heading is not None and heading.meaning == meaning and cell.text:
                return cell.text
    return ""


def _is_text(cell: Cell, heading: Heading | None) -> bool:
    """Whether a cell has words that may say a kind: `Conv2d k=3 s=4` is no figure."""
    if heading is not None and heading.meaning in WORDS:
        return True
    return (heading is None or heading.meaning not in NAMELESS) and not read(cell.text)


def _kind(cells: list[Cell], headings: tuple[Heading | None, ...], named: str, label: str) -> Kind:
    """What a row is: by its type or name, else by a cell that has no figures."""
    if is_total(label):
        return "total"
    found = kind_of(named)
    given = list(zip(cells, (*headings, *(None for _ in cells)), strict=False))
    typed = any(h and h.meaning == "type" and c.text == named for c, h in given)
    if found != "unknown" or (typed and TYPE.fullmatch(named)):
        return found
    others = (kind_of(cell.text) for cell, heading in given if _is_text(cell, heading))
    return next((kind for kind in others if kind != "unknown"), "unknown")
