"""The cells to blame: those without which the other cells of a table agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from layerscope.auditing.equations import Equation, Suspect, suspects
from layerscope.auditing.state import Checked, checked_sheet
from layerscope.sheets.sheet import sheet_without
from layerscope.sheets.structure import CellPart

CANDIDATES = 14  # cells that are left out one after the other
EQUAL = 3  # cells that are named beside the first
WORK = 8_000  # rows that are checked again in all; beyond them equations are counted only


class _Trial(Struct, frozen=True):
    """A table without one cell: how many equations are broken then, and how many hold."""

    part: CellPart
    broken: int
    held: int


def blamed(checked: Checked) -> list[Suspect]:
    """Suspects, one for each contradiction that is independent of the others."""
    found: list[Suspect] = []
    out: set[tuple[int, int]] = set()  # cells that are blamed: what they say is not used again
    work, equations = WORK, checked.equations
    while broken := [e for e in equations if not e.holds]:
        parts = _candidates(equations, broken)
        work -= len(parts) * len(checked.sheet.rows)
        if work < 0:
            return [*found, *suspects(equations)]
        trials = [_trial(checked, part, out) for part in parts]
        rank = min((trial.broken, -trial.held) for trial in trials)
        equal = [trial for trial in trials if (trial.broken, -trial.held) == rank]
        targets = {e.target[:2] for e in broken}
        best = next((t for t in equal if t.part[:2] in targets), equal[0])
        if best.broken >= _count(broken):
            return [*found, *suspects(equations)]
        others = [t.part for t in equal if t.part[:2] != best.part[:2]]
        own = _own(broken, best.part)
        at = own.target if own.target[:2] == best.part[:2] else _within(own, best.part)
        found.append(Suspect((at, *(others if len(others) <= EQUAL else ())), own))
        out.add(best.part[:2])
        equations = _left(equations, out)
    return found


def _left(equations: Sequence[Equation], out: set[tuple[int, int]]) -> list[Equation]:
    """The equations without some cells."""
    return [e for e in equations if not any(cell[:2] in out for cell in e.cells)]


def _candidates(equations: Sequence[Equation], broken: Sequence[Equation]) -> list[CellPart]:
    """Cells of broken equations, those in most of them first; labels of a cell are apart."""
    bad = Counter(_whole(part) for e in broken for part in {*map(_whole, e.cells)})
    good = Counter(part for e in equations if e.holds and not e.copied
                   for part in {*map(_whole, e.cells)} if part in bad)  # fmt: skip
    first = min(bad, key=lambda part: (-bad[part], good[part], part))
    return sorted(_linked(first, broken), key=lambda part: (-bad[part], good[part], part))[
        :CANDIDATES
    ]


def _linked(first: CellPart, broken: Sequence[Equation]) -> set[CellPart]:
    """The cells that broken equations link with one, itself included."""
    found = {first}
    for equation in broken:
        parts = {*map(_whole, equation.cells)}
        if first in parts:
            found |= parts
    return found


def _whole(part: CellPart) -> CellPart:
    """A part of a cell that can be left out: one of several labels, or the whole cell."""
    return part if 0 < part[2] < 100 else (part[0], part[1], 0)


def _trial(checked: Checked, part: CellPart, out: set[tuple[int, int]]) -> _Trial:
    left = checked_sheet(sheet_without(checked.sheet, part), checked.number, checked)
    equations = _left(left.equations, out)
    held = [e for e in equations if e.holds and not e.copied]
    return _Trial(part, _count([e for e in equations if not e.holds]), _count(held))


def _count(equations: Sequence[Equation]) -> int:
    return len({equation.group or equation.cells for equation in equations})


def _own(broken: Sequence[Equation], part: CellPart) -> Equation:
    """The broken equation that best says what is wrong with a cell."""
    own = [e for e in broken if any(_whole(cell) == part for cell in e.cells)]
    return next((e for e in own if _whole(e.target) == part), own[0])


def _within(equation: Equation, part: CellPart) -> CellPart:
    return next(cell for cell in sorted(equation.cells) if _whole(cell) == part)
