"""The audit of torchstat's table: every row by torchstat's own rules, inputs, and totals.

torchstat prints each size several times: a row of a convolution says its weights four times. So a
row is taken as right if the rules of some kind give all its cells, and otherwise each cell in turn
is left open: the ones without which the others agree are suspect.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import prod

from msgspec import Struct

from layerscope.auditing.figure_equations import text_of
from layerscope.auditing.findings import AuditedColumn, AuditedTable, Finding
from layerscope.auditing.torchstat_rules import (
    BYTES,
    COUNTED,
    Figures,
    Number,
    Shape,
    explains,
    explanations,
)
from layerscope.documents.figures import read
from layerscope.documents.types import Cell
from layerscope.sheets.sheet import Sheet, SheetRow

COLUMNS = {
    "module name": "name", "input shape": "input", "output shape": "output", "params": "params",
    "memory(mb)": "memory", "madd": "madd", "flops": "flops", "memread(b)": "read",
    "memwrite(b)": "written", "memr+w(b)": "moved",
}  # fmt: skip
SUMMED = ("params", "memory", "madd", "flops", "read", "written", "moved")
SHAPE = re.compile(r"\d{1,12}(?:\s+\d{1,12}){0,3}")
REASON = "no kind of module has these figures by torchstat's rules"
MEBI = 1024 * 1024
TRUSTED = 2  # a row that is right for each so many, or the table is not judged
FEW = 3  # cells that may be wrong instead of a total
LISTED = 50  # rows whose cells are left open in turn
CHAIN = 6  # rows of a chain, at least


class StatCells(Struct):
    """A row of the table: its cells by name, its shapes and its figures."""

    row: SheetRow
    cells: Mapping[str, Cell]
    given: Shape | None
    out: Shape | None
    figures: dict[str, Number | None]
    memory: tuple[Fraction, Fraction] | None

    def agrees(self, given: Shape, out: Shape, figures: Figures, *, memory: bool = True) -> bool:
        """Whether some kind explains the row with these shapes and figures."""
        counted = {name: figures.get(name) for name in COUNTED}
        moved, read_, written = (figures.get(name) for name in ("moved", "read", "written"))
        if moved is not None and read_ is None and written is not None:
            counted["read"] = moved - written
        elif moved is not None and written is None and read_ is not None:
            counted["written"] = moved - read_
        elif None not in (moved, read_, written) and moved != (read_ or 0) + (written or 0):
            return False
        if memory and not self.stores(out):
            return False
        return explains(given, out, counted)

    def stores(self, out: Shape) -> bool:
        """Whether the column of memory has the bytes of an output, in MB of 1024."""
        if self.memory is None:
            return True
        return self.memory[0] <= Fraction(BYTES * prod(out), MEBI) <= self.memory[1]


class _Fault(Struct):
    """A cell that contradicts others, what it should be, and cells that are equally suspect."""

    row: StatCells
    name: str
    expected: str
    also: tuple[tuple[StatCells, str], ...] = ()
    reason: str = REASON


def is_torchstat(sheet: Sheet) -> bool:
    """Whether a table has the headings of torchstat's."""
    headings = {cell.text.lower() for cell in sheet.table.heading.cells}
    return headings.issuperset(COLUMNS)


def audit_torchstat(sheet: Sheet, number: int) -> tuple[AuditedTable, list[Finding]]:
    """The conventions and findings of a table of torchstat; `number` counts the tables."""
    names = [COLUMNS.get(cell.text.lower(), "") for cell in sheet.table.heading.cells]
    every = [_row(row, names) for row in sheet.rows]
    rows = [row for row in every if row.row.kind != "total"]
    totals = [row for row in every if row.row.kind == "total"]
    wrong = [
        at for at, row in enumerate(rows)
        if row.given and row.out and not row.agrees(row.given, row.out, row.figures)
    ]  # fmt: skip
    faults: list[_Fault] = []
    notes = []
    if len(wrong) * TRUSTED > len(rows):
        notes.append("too many rows do not follow torchstat's rules: its figures are not checked")
    elif len(wrong) > LISTED:
        notes.append(f"too much contradicts: {len(wrong):,} rows, which are not listed")
    else:
        faults = [fault for at in wrong for fault in _faults(rows, at, totals)]
        mended = {(id(fault.row), fault.name): fault.expected for fault in faults}
        faults += _inputs(rows, mended)
        faults += _totals(rows, totals, mended)
    headings = {
        name: cell.text for name, cell in zip(names, sheet.table.heading.cells, strict=True)
    }
    findings = [_finding(fault, number, headings) for fault in faults]
    bad = {(id(fault.row), fault.name) for fault in faults}
    columns = []
    for name in SUMMED:
        filled = [row for row in every if row.figures.get(name) is not None]
        right = 0 if notes else sum((id(row), name) not in bad for row in filled)
        meaning = "no convention found" if notes else "by torchstat's rules"
        columns.append(AuditedColumn(headings[name], meaning, right, len(filled)))
    text = f"{len(rows)} layer{'' if len(rows) == 1 else 's'}"
    table = AuditedTable(sheet.table.line, text, tuple(columns), tuple(notes))
    return table, sorted(findings, key=lambda finding: (finding.line, finding.column))


def _row(row: SheetRow, names: Sequence[str]) -> StatCells:
    cells = {name: cell for name, cell in zip(names, row.cells, strict=False) if name}
    figures: dict[str, Number | None] = {}
    memory = None
    for name in SUMMED:
        figure = read(cells[name].text.removesuffix("+ ?").strip()) if name in cells else None
        if figure is not None and name == "memory":
            memory = figure.interval()
            figures[name] = 0
        elif figure is not None:
            number = figure.value()
            figures[name] = int(number) if number.denominator == 1 else number
    shapes = [_shape(cells[name].text) if name in cells else None for name in ("input", "output")]
    return StatCells(row, cells, shapes[0], shapes[1], figures, memory)


def _number_text(number: Number) -> str:
    return text_of(Fraction(number))


def _shape(text: str) -> Shape | None:
    return tuple(map(int, text.split())) if SHAPE.fullmatch(text.strip()) else None


def _faults(rows: Sequence[StatCells], at: int, totals: Sequence[StatCells]) -> Iterator[_Fault]:
    """What is wrong in one row: the cells without which the others agree."""
    row = rows[at]
    found = {name: _fitting(rows, row, totals, name, tried) for name, tried in _suspects(rows, at)}
    if not found:
        yield from _nearest(row)
        return
    if len(found) > 1:
        found = _unsupported(rows, at, totals, found)
    first, *others = found
    yield _Fault(row, first, found[first], tuple((row, name) for name in others))


def _fitting(
    rows: Sequence[StatCells],
    row: StatCells,
    totals: Sequence[StatCells],
    name: str,
    tried: Sequence[str],
) -> str:
    """The value of a cell with which its column adds up to its total, else the first."""
    for text in tried if name in SUMMED and len(tried) > 1 else ():
        if all(_adds_up(rows, total, name, {(id(row), name): text}) for total in totals):
            return text
    return tried[0] if tried else ""


def _suspects(rows: Sequence[StatCells], at: int) -> Iterator[tuple[str, list[str]]]:
    """Cells of a row without which the others agree, and what they may be."""
    row = rows[at]
    given, out = row.given or (), row.out or ()
    for shape in _shapes(rows, at, given):
        if row.agrees(shape, out, row.figures):
            yield "input", [_text(shape)]
            break
    for shape in _shapes(rows, at, out):
        if row.agrees(given, shape, row.figures):
            yield "output", [_text(shape)]
            break
    for name in row.figures:
        figures = {**row.figures, name: None}
        if name == "memory" and row.agrees(given, out, row.figures, memory=False):
            yield name, [f"{BYTES * prod(out) / MEBI:.2f}"]
        elif name != "memory" and row.agrees(given, out, figures):
            yield name, list(dict.fromkeys(_expected(given, out, figures, name)))


def _text(shape: Shape) -> str:
    return " ".join(map(str, shape))


def _expected(given: Shape, out: Shape, figures: Figures, name: str) -> Iterator[str]:
    """What a figure may be by the others of its row."""
    if name == "moved":
        yield _number_text(sum(figures.get(each) or 0 for each in ("read", "written")))
        return
    for right in explanations(given, out, {n: figures.get(n) for n in COUNTED}):
        if name in right and all(figures.get(n) in (None, value) for n, value in right.items()):
            yield _number_text(right[name])


def _shapes(rows: Sequence[StatCells], at: int, printed: Shape) -> Iterator[Shape]:
    """Shapes that may stand in a cell instead: of near rows, or one axis from the figures."""
    row = rows[at]
    near = rows[max(at - 8, 0) : at + 9]
    found = [s for each in near for s in (each.given, each.out) if s is not None and s != printed]
    sizes = {n for shape in found for n in shape}
    elements: set[Number] = {
        n // BYTES for name in ("read", "written") if (n := row.figures.get(name)) is not None
    }
    params = row.figures.get("params")
    if params is not None and (taken := row.figures.get("read")) is not None:
        elements.add(taken // BYTES - params)
    for axis in range(len(printed)):
        others = prod(printed[:axis] + printed[axis + 1 :])
        more = {n // others for n in elements if others and n > 0 and not n % others}
        found += [(*printed[:axis], int(n), *printed[axis + 1 :]) for n in sorted(more | sizes)]
    yield from dict.fromkeys(found)


def _unsupported(
    rows: Sequence[StatCells], at: int, totals: Sequence[StatCells], found: dict[str, str]
) -> dict[str, str]:
    """The suspects that no other row supports; all if each is supported."""
    row = rows[at]
    near = rows[max(at - 24, 0) : at + 25]
    supported = set()
    if any(row.given == each.out for each in near if each is not row):
        supported.add("input")
    if any(row.out == each.given for each in near if each is not row):
        supported.add("output")
    for name in found:
        if any(_adds_up(rows, total, name) for total in totals):
            supported.add(name)
    left = {name: expected for name, expected in found.items() if name not in supported}
    return left or found


def _nearest(row: StatCells) -> Iterator[_Fault]:
    """The cells that contradict the kind that explains most of a row."""
    given, out = row.given or (), row.out or ()
    counted = {name: row.figures.get(name) for name in COUNTED}
    best: dict[str, int] | None = None
    for right in explanations(given, out, counted):
        faults = {n: v for n, v in right.items() if counted[n] not in (None, v)}
        if best is None or len(faults) < len(best):
            best = faults
    for name, value in (best or {}).items():
        yield _Fault(row, name, _number_text(value))
    if not row.stores(out):
        yield _Fault(row, "memory", f"{BYTES * prod(out) / MEBI:.2f}")
    parts = [row.figures.get(name) for name in ("read", "written")]
    moved = row.figures.get("moved")
    if moved is not None and None not in parts and moved != sum(n for n in parts if n):
        yield _Fault(row, "moved", _number_text(sum(n for n in parts if n)))


def _inputs(rows: Sequence[StatCells], mended: Mapping[tuple[int, str], str]) -> Iterator[_Fault]:
    """The one input of a chain that the row above does not give."""
    strange: list[int] = []
    for at in range(1, len(rows)):
        given, above = _right(rows[at], "input", mended), _right(rows[at - 1], "output", mended)
        if given is None or above is None:
            return
        flat = len(given) == 1 and given[0] in (prod(above), above[0], above[-1])
        turned = len(given) != len(above) and min(len(given), len(above)) > 1  # into a sequence
        if given != above and not flat and not turned:
            strange.append(at)
    if len(strange) != 1 or len(rows) < CHAIN:
        return
    below, above_it = rows[strange[0]], rows[strange[0] - 1]
    if _right(below, "input", mended) == _right(above_it, "input", mended):
        return  # branches: both take the same row
    cells = [(row, name) for row, name in ((below, "input"), (above_it, "output"))
             if not _is_checked(row)]  # fmt: skip
    given, above = _right(below, "input", mended), _right(above_it, "output", mended)
    if cells and given is not None and above is not None:
        (row, name), *others = cells
        reason = f"the row above gives {_text(above)}, and this row takes {_text(given)}"
        expected = _text(above if name == "input" else given)
        yield _Fault(row, name, "" if others else expected, tuple(others), reason)


def _right(row: StatCells, name: str, mended: Mapping[tuple[int, str], str]) -> Shape | None:
    """A shape of a row, corrected if it is wrong."""
    expected = mended.get((id(row), name))
    return (row.given if name == "input" else row.out) if expected is None else _shape(expected)


def _is_checked(row: StatCells) -> bool:
    """Whether the figures of a row say its shapes."""
    return bool(row.figures.get("read") and row.figures.get("written"))


def _adds_up(
    rows: Sequence[StatCells],
    total: StatCells,
    name: str,
    mended: Mapping[tuple[int, str], str] | None = None,
) -> bool:
    """Whether a column adds up to its total, with the right figures for those that are wrong."""
    low = high = Fraction()
    for row in rows:
        expected = (mended or {}).get((id(row), name))
        if name == "memory":
            least, most = row.memory or (Fraction(), Fraction())
            if expected is not None:
                least, most = Fraction(expected), Fraction(expected)
            low, high = low + least, high + most
        else:
            value = row.figures.get(name) or 0
            if expected is not None:
                value = int(expected.replace(",", "") or value)
            low, high = low + value, high + value
    if name == "memory":
        least, most = total.memory or (low, high)
        return least <= high and low <= most
    return total.figures.get(name) in (None, low)


def _totals(
    rows: Sequence[StatCells],
    totals: Sequence[StatCells],
    mended: Mapping[tuple[int, str], str],
) -> Iterator[_Fault]:
    for total in totals:
        for name in SUMMED:
            if name not in total.figures or any(column == name for _, column in mended):
                continue  # without its wrong cells a column says nothing of its total
            if _adds_up(rows, total, name):
                continue
            open_ = [(row, name) for row in rows
                     if row.figures.get(name) and not _is_checked(row)]  # fmt: skip
            expected = sum(row.figures.get(name) or 0 for row in rows)
            yield _Fault(
                total, name, "" if name == "memory" or open_ else _number_text(expected),
                tuple(open_) if len(open_) <= FEW else (), "the column does not add up to it",
            )  # fmt: skip


def _finding(fault: _Fault, number: int, headings: Mapping[str, str]) -> Finding:
    cell = fault.row.cells[fault.name]
    also = tuple(f"{headings[name]} in line {row.cells[name].line}" for row, name in fault.also)
    return Finding(
        number, cell.line, fault.row.row.label, headings[fault.name],
        "total" if fault.row.row.kind == "total" else "figure", cell.text,
        fault.expected, fault.reason, also,
    )  # fmt: skip
