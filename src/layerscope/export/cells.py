"""Cells of a report as arrays by column, with the texts that `show` prints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from msgspec.structs import replace

from layerscope.conventions import COUNTERS, convention
from layerscope.escaping import visible
from layerscope.export.json_types import CellsJson, ConventionJson
from layerscope.report.columns import COLUMNS, Column, cell
from layerscope.report.numbers import CellValue, cell_text
from layerscope.report.outline import Outline
from layerscope.report.tree import TableRow
from layerscope.report.types import Report

# columns whose figures depend on the convention
COUNTED = ("params", "params%", "convention_ops", "convention_ops%", "convention_activations")
LARGEST = 2**53 - 1  # whole number that every reader of JSON keeps
DIGITS = 6  # of a share or a ratio, whose texts have fewer


def cells(report: Report, rows: Sequence[TableRow], names: Iterable[str]) -> dict[str, CellsJson]:
    """Columns by name; one that is blank in every row is left out."""
    found = {name: _cells(report, rows, COLUMNS[name]) for name in names}
    return {name: column for name, column in found.items() if column is not None}


def _cells(report: Report, rows: Sequence[TableRow], column: Column) -> CellsJson | None:
    many = [cell(column, row, report) for row in rows]
    if not any(value is not None and value != "" for value in many):
        return None
    if column.kind == "text":
        return CellsJson(None, [visible(cell_text(value, "text")) for value in many])
    values = [_number(value) for value in many]
    if column.kind == "count" and all(map(_has_plain_text, many)):
        return CellsJson(values)
    return CellsJson(values, [cell_text(value, column.kind) for value in many])


def _has_plain_text(value: CellValue) -> bool:
    """Whether the text of a count is its digits, and readers of JSON keep all of them."""
    return value is None or (type(value) is int and value <= LARGEST)


def _number(value: CellValue) -> int | float | None:
    if isinstance(value, Fraction):
        return float(f"{float(value):.{DIGITS}g}")
    return int(value) if isinstance(value, int) else None


def convention_cells(
    report: Report, outlined: Outline, own: dict[str, CellsJson], names: Iterable[str]
) -> dict[str, ConventionJson]:
    """Figures of other conventions; `own` are the cells of the report's."""
    others = {name: replace(report, convention=convention(name)) for name in names}
    compared = _differences(report, [others[name] for name in COUNTERS if name in others])
    found = {}
    for name, other in others.items():
        theirs = cells(other, outlined.rows_of(other), COUNTED)
        differing = [each for each in COUNTED if theirs.get(each) != own.get(each)]
        difference, reasons = compared.get(name, ("", []))
        found[name] = ConventionJson(
            other.convention.figure,
            other.convention.says,
            difference,
            reasons,
            list(other.notes),
            {each: theirs.get(each, CellsJson()) for each in differing},
        )
    return found


def _differences(report: Report, others: list[Report]) -> dict[str, tuple[str, list[str]]]:
    """How figures of counters differ from the exact ones, and why, as `explain` prints it."""
    if not others:
        return {}
    from layerscope.export.explanation import differences
    from layerscope.report.explain import explain_counted

    exact = replace(report, convention=convention("exact"))
    return differences(explain_counted(exact, others))
