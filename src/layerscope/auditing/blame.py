"""The cells to blame: those without which the other cells of a table agree.

Every cell of a broken equation is left out in turn, and the table is checked again without it. What
is wrong takes part in few equations that hold, so that leaving it out loses nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from math import sqrt

from msgspec import Struct

from layerscope.auditing.equations import Equation, Suspect, suspects
from layerscope.auditing.state import Checked, checked_sheet
from layerscope.documents.figures import Figure
from layerscope.limits import MOST_SIZE
from layerscope.sheets.kernels import WITH_KERNEL
from layerscope.sheets.sheet import WHOLE, sheet_with, sheet_without
from layerscope.sheets.sizes import WINDOW_PARTS
from layerscope.sheets.structure import CellPart, Cells, RowLayer, value_of

CANDIDATES = 24  # parts of cells that are left out one after the other
SMALL = 12  # kernels, strides and paddings below it are tried
NEAR = 6  # rows whose sizes are tried
TRIED = 3  # values of a size with which a sheet is checked again
EQUAL = 3  # cells that are named beside the first
ATTACHED = 3  # rows whose figures may have chosen a wrong input
WORK = 8_000  # rows that are checked again in all; beyond them equations are counted only
COUNTED = 1_000_000  # equations that are looked at in all; beyond them no more cells are named


class _Trial(Struct, frozen=True):
    """A table without a part of a cell: whether the others agree, and what that part spoke for."""

    part: CellPart
    agrees: bool
    lost: int  # equations that hold with it
    values: tuple[Fraction, ...] = ()  # with which the others agree and no more is lost


def blamed(checked: Checked) -> tuple[list[Suspect], int]:
    """Suspects, one for each contradiction that is independent of the others.

    The second is the number of broken equations that are left where there are too many.
    """
    found: list[Suspect] = []
    work, counted, equations = WORK, COUNTED, list(checked.equations)
    while broken := [e for e in equations if not e.holds]:
        if found and counted < 0:
            return found, len(broken)
        counted -= len(equations)
        best: list[_Trial] = []
        linked: list[Equation] = []
        if work > 0:
            linked = _linked(broken, next(suspects(equations)).parts[0])
            parts = _candidates(checked, equations, linked)
            work -= len(parts) * len(checked.sheet.rows)
            best = _best(checked, parts, linked) if work > 0 else []
        if best:
            found.append(_suspect(checked, best, linked))
            work -= len(checked.sheet.rows)
            equations = [e for e in equations if e.holds or e not in linked]
        else:
            found.append(_repairable(checked, equations, linked))
        sure = _has_sure_input(checked, found[-1].parts[0])
        equations = [e for e in equations if _is_left(e, found[-1], sure=sure)]
    return (_independent(checked, found) if work > 0 else found), 0


def _repairable(
    checked: Checked, equations: Sequence[Equation], linked: Sequence[Equation]
) -> Suspect:
    """The cell in most broken equations; if no value in it mends these, a figure that is wrong.

    Two wrong figures may have a right size in common.
    """
    first = next(suspects(equations))
    at = first.parts[0]
    if len(first.parts) > 1 or first.equation.target == at or list(_values(checked, at, linked)):
        return first
    good = Counter(part for e in equations if e.holds and not e.copied for part in e.cells)
    wrong = [
        e for e in linked
        if at in e.cells and e.number is not None and e.holds_with is not None
        and e.holds_with(e.target, e.number)
    ]  # fmt: skip
    if len({e.target[0] for e in wrong}) < 2 or at[2] in WINDOW_PARTS.values():
        return first
    own = min(wrong, key=lambda e: (good[e.target], e.target))
    return Suspect((own.target,), own)


def _suspect(checked: Checked, trials: Sequence[_Trial], linked: Sequence[Equation]) -> Suspect:
    """The first of the best trials, with the cells of those that are equally good."""
    best = [trial for trial in trials if trial.lost == trials[0].lost]
    own = _equation_for_cell(linked, best[0].part)
    at = own.target if own.target[:2] == best[0].part[:2] else _within(own, best[0].part)
    others = {t.part[:2]: t.part for t in best if t.part[:2] != at[:2]}
    values = tuple(sorted({v for t in best if t.part[:2] == at[:2] for v in t.values}))
    parts = (at, *(others.values() if len(others) <= EQUAL else ()))
    sums = (e for e in checked.equations if e.holds and e.target[0] not in checked.layers)
    lost = best[0].lost - _count(e for e in sums if at in e.cells)  # a sum may follow a mistake
    certain = len(values) < 2 and lost < _count(linked) and _has_sure_input(checked, at)
    if certain and not others:
        rivals = (_trial(checked, part, linked, [None]) for part in _attached(checked, own, at))
        certain = all(t.lost > best[0].lost + 1 for t in rivals if t.agrees)
    return Suspect(parts, own, values, certain and not others)


def _attached(checked: Checked, equation: Equation, at: CellPart) -> Iterator[CellPart]:
    """Figures of the nearest rows of an equation by which the input of these rows was chosen."""
    rows = sorted({row for row, _, _ in equation.cells} - {at[0]}, key=lambda n: abs(n - at[0]))
    for row in rows[:ATTACHED]:
        layer = checked.layers.get(row)
        if layer is not None and layer.kind in WITH_KERNEL and "cin" not in layer.printed:
            yield from (c.cell_part for c in layer.row.claims if c.figure and c.figure.mantissa)


def _independent(checked: Checked, found: Sequence[Suspect]) -> list[Suspect]:
    """Suspects that are not wrong by a kernel which another wrong cell of their row gave.

    A kernel that is not printed comes from other cells of its row.
    """
    rows = Counter(suspect.parts[0][0] for suspect in found)
    gone: list[Suspect] = []
    for cause in found:
        at = cause.parts[0]
        layer = checked.layers.get(at[0])
        if rows[at[0]] < 2 or layer is None or "kh" in layer.printed or cause in gone:
            continue
        left = checked_sheet(sheet_without(checked.sheet, [at]), checked.number, checked)
        still = {e.target for e in left.equations if not e.holds}
        row = [s for s in found if s.parts[0][0] == at[0] and s is not cause and s not in gone]
        if layer.kind in WITH_KERNEL:
            gone += [suspect for suspect in row if suspect.equation.target not in still]
    return [suspect for suspect in found if suspect not in gone]


def _has_sure_input(checked: Checked, part: CellPart) -> bool:
    """Whether the input of a row is determined, and so what is right in its cells."""
    layer = checked.layers.get(part[0])
    return layer is None or not layer.maybe


def _is_left(equation: Equation, suspect: Suspect, *, sure: bool) -> bool:
    """Whether an equation is independent of a suspect, or broken with its right value as well."""
    at, own = suspect.parts[0], suspect.equation
    if not any(cell[:2] == at[:2] for cell in equation.cells):
        return True
    if equation.holds or equation.target[:2] == at[:2] or equation.holds_with is None:
        return False
    right = own.number if own.target == at and sure else None
    return right is not None and equation.holds_with(at, right) is False


def _linked(broken: Sequence[Equation], first: CellPart) -> list[Equation]:
    """The broken equations that have cells in common with one cell, directly or by others."""
    cells, left = {first[:2]}, list(broken)
    found: list[Equation] = []
    while more := [e for e in left if any(cell[:2] in cells for cell in e.cells)]:
        found += more
        cells |= {cell[:2] for e in more for cell in e.cells}
        left = [e for e in left if e not in more]
    return found


def _best(checked: Checked, parts: Sequence[CellPart], linked: Sequence[Equation]) -> list[_Trial]:
    """The parts without which the others agree, those that speak for least first.

    There is none if each speaks for more than against.
    """
    solved = {part: values for part in parts if (values := list(_values(checked, part, linked)))}
    trials = [t for p, values in solved.items() if (t := _trial(checked, p, linked, values)).agrees]
    cells = {e.target[:2] for e in linked}
    if not trials and len(cells) == 1:  # several sizes of this cell may be wrong
        blank = _trial(checked, (*cells.pop(), WHOLE), linked, [None])
        trials = [blank] if blank.agrees else []
    least = min((t.lost for t in trials), default=0)
    if least > _count(linked) + 1:
        return []
    targets = {e.target[:2] for e in linked}
    return sorted(trials, key=lambda trial: (trial.lost, trial.part[:2] not in targets))


def _values(
    checked: Checked, part: CellPart, linked: Sequence[Equation]
) -> Iterator[Fraction | None]:
    """Values of a part with which the broken equations would hold; None if they do not show one."""
    layer = checked.layers.get(part[0])
    own = [e for e in linked if any(_is_in(cell, part) for cell in e.cells)]
    tried = list(dict.fromkeys(v for e in own for v in _tried(checked, part, e)))
    said = [e for e in own if e.holds_with is not None]
    if not said or layer is None:
        yield None
        return
    results = {value: [_holds(e, part, value) for e in said] for value in tried}
    right = [value for value, found in results.items() if True in found and False not in found]
    right = [value for value in right if _is_possible(layer, part, value)]
    if right:
        sure = [value for value in right if None not in results[value]]
        yield from sure or right
    elif all(set(found) == {None} for found in results.values()):
        yield None


def _is_possible(layer: RowLayer, part: CellPart, value: Fraction) -> bool:
    """Whether a window may have a value: no padding is as large as the kernel."""
    pairs = (("ph", "kh"), ("pw", "kw"))
    paddings = [(layer.sizes.get(pad), layer.sizes.get(kernel)) for pad, kernel in pairs]
    return not any(
        pad and kernel and value >= kernel.value and any(_is_in(cell, part) for cell in pad.cells)
        for pad, kernel in paddings
    )


def _holds(equation: Equation, part: CellPart, value: Fraction) -> bool | None:
    return equation.holds_with(part, value) if equation.holds_with is not None else None


def _tried(checked: Checked, part: CellPart, equation: Equation) -> Iterator[Fraction]:
    """Values that may be right in a part of a cell."""
    if equation.target == part and equation.number is not None:
        yield equation.number
        return
    yield from map(Fraction, range(SMALL))
    for row in (part[0], equation.target[0]):
        layer = checked.layers.get(row)
        now = value_of(layer, part) if layer is not None else None
        figure = _figure_at(checked, equation.target)
        if now is None or figure is None or not equation.number:
            continue
        for number in dict.fromkeys((equation.number, *equation.others)):
            times = figure.value() / number if number else Fraction()
            for ratio in (float(times), sqrt(max(0.0, float(times)))):
                near = now * ratio
                if near < MOST_SIZE:
                    yield from (Fraction(int(near) + n) for n in (0, 1))
    for each in re.findall(r"\d+", equation.expected.replace(",", ""))[:3]:
        yield Fraction(each)
    for other in checked.layers.values():
        if abs(other.row.at - part[0]) <= NEAR:
            yield from (Fraction(fact.value) for fact in other.printed.values())
            yield from (Fraction(fact.value) for _, fact in other.said_again)


def _figure_at(checked: Checked, part: CellPart) -> Figure | None:
    claims = checked.sheet.rows[part[0]].claims
    return next((c.figure for c in claims if c.cell_part == part), None)


def _candidates(
    checked: Checked, equations: Sequence[Equation], broken: Sequence[Equation]
) -> list[CellPart]:
    """Parts of the cells of broken equations, and these cells; those in most equations first.

    A cell of one number says it of every axis.
    """
    bad = Counter(part for e in broken for part in _with_cells(e.cells))
    good = Counter(
        part for e in equations if e.holds and not e.copied for part in _with_cells(e.cells)
    )
    parts = (part for part in bad if part[2] < 100 or _numbers(checked, part) != 1)
    return sorted(parts, key=lambda part: (-bad[part], good[part], part))[:CANDIDATES]


def _numbers(checked: Checked, part: CellPart) -> int:
    """How many numbers a cell has."""
    row, column, _ = part
    return len(re.findall(r"\d+", checked.sheet.rows[row].cells[column].text))


def _with_cells(cells: Cells) -> set[CellPart]:
    """Parts, and the whole cells of those that are axes of a shape or window."""
    return {*cells, *((*part[:2], WHOLE) for part in cells if part[2] >= 100)}


def _trial(
    checked: Checked, part: CellPart, linked: Sequence[Equation], values: Sequence[Fraction | None]
) -> _Trial:
    left = checked_sheet(sheet_without(checked.sheet, [part]), checked.number, checked)
    copies = _copies(checked, [part])
    others = {e.target for e in checked.equations if not e.holds and e not in linked}
    cells = frozenset(c for e in checked.equations if e.target in others for c in e.cells)
    broken = [
        e for e in left.equations
        if not e.holds and e.target not in cells and not (e.copied and e.cells & copies)
    ]  # fmt: skip
    holding = [e for e in checked.equations if e.holds and not e.copied]
    mine = [e for e in holding if any(_is_in(cell, part) for cell in e.cells)]
    tried: _Tried = {}
    joined = _has_joined_input(checked.layers.get(part[0]))
    if broken or joined or not all(_says_by_itself(e, part) for e in mine):
        tried = _with_values(checked, part, linked, values)
    if joined:  # with another value the row may take another input: its equations are in `tried`
        mine = [e for e in mine if e.target[0] != part[0]]
    if broken:  # what is inferred without the cell may be wrong: the cell with a right value is not
        values = [value for value, (_, left_broken) in tried.items() if not left_broken]
        if not values:
            return _Trial(part, False, 0)
    gone = max(0, _holding(checked.equations) - _holding(left.equations))
    lost = {value: _equations_lost(mine, part, value, gone, tried) for value in values}
    least = min(lost.values())
    right = tuple(value for value in values if value is not None and lost[value] == least)
    return _Trial(part, True, least, right)


def _has_joined_input(layer: RowLayer | None) -> bool:
    """Whether the input of a row is inferred as several rows, which have no row that joins them."""
    channels = layer.sizes.get("cin") if layer is not None else None
    return channels is not None and len({row for row, _, _ in channels.cells}) > 1


# value -> targets of the equations that hold with it, and how many it breaks or does not mend
_Tried = dict[Fraction, tuple[frozenset[CellPart], int]]


def _with_values(
    checked: Checked,
    part: CellPart,
    linked: Sequence[Equation],
    values: Sequence[Fraction | None],
) -> _Tried:
    """Check the sheet with other values in a part that says a size.

    Equations of other rows may have sizes that are computed from it and from others.
    """
    layer = checked.layers.get(part[0])
    if layer is None or value_of(layer, part) is None:
        return {}
    found: _Tried = {}
    others = {e.target for e in checked.equations if not e.holds and e not in linked}
    for value in values[:TRIED]:
        if value is not None and value.denominator == 1:
            sheet = sheet_with(checked.sheet, part, int(value))
            equations = checked_sheet(sheet, checked.number, checked).equations
            holding = frozenset(e.target for e in equations if e.holds)
            broken = _count(e for e in equations if not e.holds and e.target not in others)
            found[value] = holding, broken
    return found


def _says_by_itself(equation: Equation, part: CellPart) -> bool:
    """Whether an equation says by itself if it holds with another value."""
    return _holds(equation, part, Fraction(1)) is not None


def _equations_lost(
    holding: Sequence[Equation], part: CellPart, value: Fraction | None, gone: int, tried: _Tried
) -> int:
    """Equations that hold and would not with another value."""
    strict = [
        e for e in holding if not e.follows or e.target[0] == part[0] or e.target[1] != part[1]
    ]
    if value is None:
        return min(gone, _count(strict))

    def holds(equation: Equation) -> bool:
        said = _holds(equation, part, value)
        return equation.target in targets if said is None else said

    targets, broken = tried.get(value, (frozenset(), 0))
    return max(broken, _count(e for e in strict if not holds(e)))


def _holding(equations: Iterable[Equation]) -> int:
    return _count(e for e in equations if e.holds and not e.copied)


def _copies(checked: Checked, out: Sequence[CellPart]) -> Cells:
    """Cells that repeat a cell that is left out: they may repeat its mistake."""
    cells = {part[:2] for part in out}
    return frozenset(
        part
        for e in checked.equations
        if e.copied and e.holds and any(part[:2] in cells for part in e.cells)
        for part in e.cells
    )


def _count(equations: Iterable[Equation]) -> int:
    return len({equation.group or equation.cells for equation in equations})


def _equation_for_cell(broken: Sequence[Equation], part: CellPart) -> Equation:
    """The broken equation that best says what is wrong with a cell."""
    own = [e for e in broken if any(_is_in(cell, part) for cell in e.cells)]
    return next((e for e in own if _is_in(e.target, part)), own[0])


def _within(equation: Equation, part: CellPart) -> CellPart:
    return next(cell for cell in sorted(equation.cells) if _is_in(cell, part))


def _is_in(cell: CellPart, part: CellPart) -> bool:
    return cell == part or (part[2] == WHOLE and cell[:2] == part[:2])
