"""Equations between the cells of a table, and the cells to blame where they do not hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from msgspec import Struct

from layerscope.sheets.structure import CellPart, Cells


class Equation(Struct, frozen=True):
    """A relation between cells; `target` is the cell that the others determine."""

    cells: Cells
    holds: bool
    target: CellPart
    expected: str
    reason: str
    number: Fraction | None = None  # the expected figure
    others: tuple[Fraction, ...] = ()  # figures by rules that no figure of the column excludes
    copied: bool = False  # one cell repeats another: if it holds, it speaks for neither
    follows: bool = False  # it adds to the row above: what follows from a mistake speaks not for it
    beside: bool = False  # broken, it counts only beside another broken one with a cell of it
    group: str = ""  # equations of one group, such as height and width of a window, count once
    holds_with: Callable[[CellPart, Fraction], bool | None] | None = None  # another value in a cell


class Suspect(Struct, frozen=True):
    """A cell that contradicts others, the first of several if they are equally suspect."""

    parts: tuple[CellPart, ...]
    equation: Equation
    values: tuple[Fraction, ...] = ()  # of the first cell, with which all others agree
    certain: bool = False  # the others agree with one value of the first cell only


def counted(equations: Sequence[Equation]) -> list[Equation]:
    """Equations without those that count only beside another broken one and have none."""
    cells = {cell[:2] for e in equations if not (e.holds or e.beside) for cell in e.cells}
    return [
        e for e in equations
        if e.holds or not e.beside or any(cell[:2] in cells for cell in e.cells)
    ]  # fmt: skip


def suspects(equations: Sequence[Equation]) -> Iterator[Suspect]:
    """The cells to blame: those in most broken equations, and of these in the fewest that hold."""
    broken = [e for e in equations if not e.holds]
    good = _counts([e for e in equations if e.holds and not e.copied])
    while broken:
        bad = _counts(broken)
        rank = min((-bad[cell], good[cell]) for cell in bad)
        equal = [cell for cell in bad if (-bad[cell], good[cell]) == rank]
        tied = set(equal)
        best = next((e.target for e in broken if e.target in tied), equal[0])
        involved = [e for e in broken if best in e.cells]
        own = next((e for e in involved if e.target == best), involved[0])
        others = {
            cell[:2]: cell
            for cell in sorted(equal)
            if cell[:2] != best[:2] and all(cell in e.cells for e in involved)
        }
        yield Suspect((best, *others.values()), own)
        broken = [e for e in broken if not any(cell[:2] == best[:2] for cell in e.cells)]


def _counts(equations: Sequence[Equation]) -> Counter[CellPart]:
    """In how many groups of equations each part of a cell is."""
    groups: dict[CellPart, set[object]] = {}
    for equation in equations:
        key: object = equation.group or equation.cells
        for cell in equation.cells:
            groups.setdefault(cell, set()).add(key)
    return Counter({cell: len(keys) for cell, keys in groups.items()})
