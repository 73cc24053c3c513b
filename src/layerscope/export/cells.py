"""Cells of a report as arrays by column, with the texts that `show` prints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from msgspec.structs import replace

from layerscope.conventions import COUNTERS, convention
from layerscope.escaping import visible
from layerscope.export.json_types import CellsJson, ConventionJson
from layerscope.ops import Ops
from layerscope.report.columns import COLUMNS, Column, cell
from layerscope.report.numbers import CellValue, cell_text
from layerscope.report.outline import Outline
from layerscope.report.tree import TableRow
from layerscope.report.types import Report

# columns whose figures depend on the convention
PARAMS = ("params", "params%")
OPS = ("convention_ops", "convention_ops%")
LARGEST = 2**53 - 1  # whole number that every reader of JSON keeps
DIGITS = 6  # of a share or a ratio, whose texts have fewer


def cells(report: Report, rows: Sequence[TableRow], names: Iterable[str]) -> dict[str, CellsJson]:
    """Columns by name; one that is blank in every row is left out."""
    found = {name: _cells(report, rows, COLUMNS[name]) for name in names}
    return {name: column for name, column in found.items() if column is not None}


def _cells(report: Report, rows: Sequence[TableRow], column: Column) -> CellsJson | None:
    many = _values(report, rows, column)
    if not any(value is not None and value != "" for value in many):
        return None
    if column.kind == "text":
        texts = {value: visible(cell_text(value, "text")) for value in dict.fromkeys(many)}
        return CellsJson(None, [texts[value] for value in many])
    if column.kind == "count" and all(map(_has_plain_text, many)):
        return CellsJson([_number(value) for value in many])
    # by identity: hashing a fraction takes longer than its text
    seen: dict[int, tuple[int | float | None, str]] = {}
    pairs = []
    for value in many:
        pair = seen.get(id(value))
        if pair is None:
            pair = seen[id(value)] = (_number(value), cell_text(value, column.kind))
        pairs.append(pair)
    return CellsJson([number for number, _ in pairs], [text for _, text in pairs])


def _values(report: Report, rows: Sequence[TableRow], column: Column) -> list[CellValue]:
    """The value of every row; layers with equal operations share one, if all are exact."""
    if not report.all_exact:
        return [cell(column, row, report) for row in rows]
    if column.name not in OPS:
        value = column.value
        return [value(row, report) for row in rows]
    seen: dict[Ops, CellValue] = {}
    many = []
    for row in rows:
        if row.kind != "layer":
            many.append(cell(column, row, report))
            continue
        kinds = row.members[0].convention_kinds
        if kinds not in seen:
            seen[kinds] = cell(column, row, report)
        many.append(seen[kinds])
    return many


def _has_plain_text(value: CellValue) -> bool:
    """Whether the text of a count is its digits, and readers of JSON keep all of them."""
    return value is None or (type(value) is int and value <= LARGEST)


def _number(value: CellValue) -> int | float | None:
    if value is None or type(value) is int:
        return value
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
        names = _recounted(report, other)
        theirs = cells(other, outlined.rows_of(other), names)
        differing = [each for each in names if theirs.get(each) != own.get(each)]
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


def _recounted(report: Report, other: Report) -> list[str]:
    """Columns that may have other figures under another convention."""
    names = list(OPS)
    if _figures(report, "params") != _figures(other, "params"):
        names = [*PARAMS, *names]
    if _figures(report, "convention_activations") != _figures(other, "convention_activations"):
        names.append("convention_activations")
    return names


def _figures(report: Report, name: str) -> list[int]:
    """A figure of every layer and its total."""
    return [getattr(report.totals, name), *[getattr(layer, name) for layer in report.layers]]


def _differences(report: Report, others: list[Report]) -> dict[str, tuple[str, list[str]]]:
    """How figures of counters differ from the exact ones, and why, as `explain` prints it."""
    if not others:
        return {}
    from layerscope.export.explanation import differences
    from layerscope.report.explain import explain_counted

    exact = replace(report, convention=convention("exact"))
    return differences(explain_counted(exact, others))
