"""A sheet with its layers, conventions and equations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from msgspec import Struct
from msgspec.structs import replace

from layerscope.auditing.conventions import (
    ColumnConvention,
    Key,
    Way,
    agreed,
    by_slips,
    choices,
    choose,
    narrowest,
    way_of,
)
from layerscope.auditing.equations import Equation, counted
from layerscope.auditing.field_equations import field_equations
from layerscope.auditing.figure_equations import (
    figure_equations,
    formula_equations,
    share_equations,
    sum_equations,
)
from layerscope.auditing.shape_equations import shape_equations
from layerscope.auditing.shares import SharedColumn, infer_groups, shared_column, shared_equations
from layerscope.sheets.attach import attach
from layerscope.sheets.corrections import Renamed, correct_kinds
from layerscope.sheets.kernels import infer
from layerscope.sheets.sheet import Claim, Sheet
from layerscope.sheets.structure import RowLayer, layers_of

COUNTED = ("params", "weights", "macs", "flops", "madds", "memory", "activations")
SUMMED = (*COUNTED, "read", "written", "traffic", "time")  # a total is a sum
TRUSTED = 2  # a convention is stated if it explains at least one figure in so many


class Checked(Struct):
    """A sheet on the way: its layers, columns, conventions and equations."""

    sheet: Sheet
    number: int
    layers: dict[int, RowLayer]
    columns: dict[Key, list[Claim]]
    conventions: Mapping[Key, ColumnConvention]
    renamed: list[Renamed]
    batch: int = 1
    equations: Sequence[Equation] = ()
    shared: Mapping[Key, SharedColumn] = {}  # columns that print shares only

    def label(self, row: int) -> str:
        """The first cell of a row that is not empty."""
        return self.sheet.rows[row].label

    def heading(self, column: int) -> str:
        """The heading of a column as it is printed."""
        cells = self.sheet.table.heading.cells
        return cells[column].text if column < len(cells) else ""

    def where(self, claim: Claim) -> tuple[int, int, str, str]:
        """Table, line, row and column of a figure, as a finding names them."""
        return self.number, claim.cell.line, self.label(claim.row), self.heading(claim.column)

    def convention_of(self, claim: Claim) -> ColumnConvention | None:
        """The convention of the column of a figure."""
        return self.conventions.get(key_of(claim))

    def ways(self, claim: Claim | None) -> tuple[Way, ...]:
        """How the column of a figure may write it."""
        convention = self.convention_of(claim) if claim is not None else None
        if claim is None or convention is None:
            return ()
        return convention.ways(prefixed=claim.figure is not None and claim.figure.power > 0)


def key_of(claim: Claim) -> Key:
    """The column of a figure."""
    return claim.meaning, "" if claim.labelled else claim.heading.text


def checked_sheet(sheet: Sheet, number: int, like: Checked | None = None) -> Checked:
    """The equations of a sheet, by its own conventions or by those of a sheet that is like it."""
    rows = layers_of(sheet)
    renamed = list(correct_kinds(rows))
    layers = {layer.row.at: layer for layer in rows}
    columns = _columns(sheet)
    batch = _batch(columns, layers) if like is None else like.batch
    infer(rows, batch, branched=attach(rows))
    infer_groups([claims for key, claims in columns.items() if key[0] in COUNTED], layers)
    found = dict(_conventions(columns, layers, batch, like))
    conventions = {key: found[key] for key in columns if key in found}
    checked = Checked(sheet, number, layers, columns, conventions, renamed, batch)
    checked.shared = dict(_shared(checked)) if like is None else like.shared
    checked.equations = counted(list(_equations(checked, rows)))
    return checked


def _conventions(
    columns: dict[Key, list[Claim]], layers: dict[int, RowLayer], batch: int, like: Checked | None
) -> Iterator[tuple[Key, ColumnConvention]]:
    """The convention of each column; those of a sheet that is like it stay if they are settled."""
    by_unit: dict[str, dict[Key, list[ColumnConvention]]] = {}
    for key, claims in columns.items():
        before = like.conventions.get(key) if like else None
        if like is not None and (before is None or not before.unsettled):
            if before is not None:
                yield key, before
            continue
        counted = counts_of(claims)
        given = choices(counted, layers, batch)
        good = [each for each in given if _trusted(each)]
        if given and not good and (slipped := by_slips(given[0], counted, layers)) is not None:
            good = [slipped]
        if before is not None:
            same = [each for each in good if way_of(each) == way_of(before)]
            yield from ((key, replace(each, written=before.written)) for each in same[:1])
            good = good if not same else []
        prefixed = [c for c in counted if c.figure is not None and c.figure.power]
        if good and prefixed and prefixed[0].figure is not None:
            unit = prefixed[0].figure.unit or prefixed[0].heading.unit
            by_unit.setdefault(unit, {})[key] = good
        elif good:
            yield key, replace(good[0], tied=narrowest(map(way_of, good)))
    for found in by_unit.values():
        yield from agreed(found).items()


def _shared(checked: Checked) -> Iterator[tuple[Key, SharedColumn]]:
    for key, claims in checked.columns.items():
        if key[0] in COUNTED and key not in checked.conventions:
            found = shared_column(claims, checked.layers, checked.batch)
            if found is not None:
                yield key, found


def _trusted(convention: ColumnConvention) -> bool:
    return convention.explained > 0 and convention.explained * TRUSTED >= convention.of


def _columns(sheet: Sheet) -> dict[Key, list[Claim]]:
    found: dict[Key, list[Claim]] = {}
    for row in sheet.rows:
        for claim in row.claims:
            found.setdefault(key_of(claim), []).append(claim)
    return found


def counts_of(claims: Sequence[Claim]) -> list[Claim]:
    return [c for c in claims if c.figure is None or c.figure.unit != "%"]


def _batch(columns: dict[Key, list[Claim]], layers: dict[int, RowLayer]) -> int:
    """The batch that the activations of a table count."""
    for (meaning, _), claims in columns.items():
        if meaning in ("activations", "memory"):
            found = choose(claims, layers)
            if found is not None and _trusted(found):
                return found.batch
    return 1


def _equations(checked: Checked, rows: Sequence[RowLayer]) -> Iterator[Equation]:
    yield from shape_equations(rows)
    fields = field_equations(checked.columns, rows)
    if sum(e.holds for e in fields) * 10 >= len(fields) * 5:
        yield from fields
    for key, claims in checked.columns.items():
        convention = checked.conventions.get(key)
        if convention is not None:
            yield from figure_equations(counts_of(claims), checked.layers, convention)
        else:
            yield from formula_equations(claims)
        if key[0] in COUNTED:
            yield from sum_equations(claims, checked.layers)
        shares = [
            c
            for c in claims
            if c.figure is not None and (c.figure.unit == "%" or key[0] == "share")
        ]
        if key in checked.shared:
            yield from shared_equations(claims, checked.layers, checked.shared[key])
        elif shares:
            yield from _shares(checked, key, shares)


def _shares(checked: Checked, key: Key, claims: list[Claim]) -> Iterator[Equation]:
    """Equations of percentages, of the column that explains most of them."""
    best: list[Equation] = []
    for other, convention in checked.conventions.items():
        if other[0] not in COUNTED or (key[0] != "share" and other[0] != key[0]):
            continue
        figures = counts_of(checked.columns[other])
        for total in _totals_of(checked, figures, convention):
            found = list(share_equations(claims, figures, total, convention))
            if sum(e.holds for e in found) > sum(e.holds for e in best):
                best = found
    if sum(e.holds for e in best) * TRUSTED >= len(best):
        yield from best


def _totals_of(
    checked: Checked, figures: Sequence[Claim], convention: ColumnConvention
) -> Iterator[Fraction]:
    """The printed total of a column, and the sum of its figures: either may be wrong."""
    printed = [c.figure for c in figures if checked.sheet.rows[c.row].kind == "total" and c.figure]
    yield from (figure.value(convention.base) for figure in printed[:1])
    rows = [c.figure for c in figures if c.row in checked.layers and c.figure]
    yield sum((figure.value(convention.base) for figure in rows), Fraction())
