"""Equations between the cells of a table, and the cells to blame where they do not hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction

from msgspec import Struct

from layerscope.audit.structure import Cells, Place


class Equation(Struct, frozen=True):
    """A relation between cells; `target` is the cell that the others determine."""

    cells: Cells
    holds: bool
    target: Place
    expected: str
    reason: str
    number: Fraction | None = None  # the expected figure
    copied: bool = False  # one cell repeats another: if it holds, it speaks for neither


class Suspect(Struct, frozen=True):
    """A cell that contradicts others, the first of several if they are equally suspect."""

    places: tuple[Place, ...]
    equation: Equation


def suspects(equations: Sequence[Equation]) -> Iterator[Suspect]:
    """The cells to blame: those in most broken equations, and of these in the fewest that hold."""
    unique = list(dict.fromkeys((e.cells, e.holds) for e in equations))
    broken = [e for e in equations if not e.holds]
    speak = {(e.cells, e.holds) for e in equations if e.holds and not e.copied}
    good: Counter[Place] = Counter(cell for key in unique if key in speak for cell in key[0])
    blamed: set[tuple[int, int]] = set()
    while broken:
        sets = {e.cells for e in broken}
        bad: Counter[Place] = Counter(cell for cells in sets for cell in cells)
        rank = min((-bad[cell], good[cell]) for cell in bad)
        equal = [cell for cell in bad if (-bad[cell], good[cell]) == rank]
        best = next((e.target for e in broken if e.target in equal), equal[0])
        involved = [e for e in broken if best in e.cells]
        own = next((e for e in involved if e.target == best), involved[0])
        others = [c for c in equal if c[:2] != best[:2] and all(c in e.cells for e in involved)]
        if best[:2] not in blamed:  # another part of the same cell
            yield Suspect((best, *sorted(others)), own)
        blamed.add(best[:2])
        broken = [e for e in broken if not any(cell[:2] == best[:2] for cell in e.cells)]
