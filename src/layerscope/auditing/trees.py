"""Trees of modules with figures: sums of children, shares of the whole, and who is to blame.

A cell is suspect if some figure in it would satisfy all the relations that it is in, and if every
relation that is broken is one of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction

from msgspec import Struct

from layerscope.auditing.findings import Finding
from layerscope.documents.figures import RULES, Figure

Span = tuple[Fraction, Fraction]  # from the first to the second, both included
CellKey = tuple[int, str]  # line and column
ANY: Span = (Fraction(0), Fraction(10**30))
LISTED = 100  # contradictions of a tree that are listed
SOLVED = 64  # cells for which a right figure is looked for
MANY = 40  # cells that are named beside the first


class TreeCell(Struct, frozen=True):
    """A printed figure of a module."""

    line: int
    column: str
    row: str
    text: str
    span: Span
    position: int = 0  # of its first character in its line, from 1; 0 if it is a cell of a table

    @property
    def key(self) -> CellKey:
        """Line and column."""
        return self.line, self.column


class Relation(Struct, frozen=True):
    """What holds between cells; `solve` gives the spans that one of them may have."""

    cells: tuple[TreeCell, ...]
    solve: Callable[[TreeCell, Mapping[CellKey, Span]], Span]
    reason: str

    def holds(self, spans: Mapping[CellKey, Span]) -> bool:
        """Whether the first cell is what the others give."""
        return meet(spans[self.cells[0].key], self.solve(self.cells[0], spans)) is not None


def span_of(figure: Figure) -> Span:
    """What a figure stands for, rounded or cut."""
    if not figure.power and not figure.decimals and figure.unit != "%":
        return figure.value(), figure.value()
    both = [figure.interval(1000, how) for how in RULES[:2]]
    return min(low for low, _ in both), max(high for _, high in both)


def meet(one: Span, two: Span) -> Span | None:
    """What two spans have in common."""
    low, high = max(one[0], two[0]), min(one[1], two[1])
    return (low, high) if low <= high else None


def sum_relation(whole: TreeCell, parts: Sequence[TreeCell], *, more: bool) -> Relation:
    """A figure is the sum of others; `more`: or more than that."""

    def solve(cell: TreeCell, spans: Mapping[CellKey, Span]) -> Span:
        others = [spans[part.key] for part in parts if part.key != cell.key]
        low, high = (sum((s[n] for s in others), Fraction()) for n in (0, 1))
        if cell.key == whole.key:
            return low, ANY[1] if more else high
        total = spans[whole.key]
        return (ANY[0] if more else total[0] - high), total[1] - low

    return Relation((whole, *parts), solve, f"the sum of {len(parts)} rows below it")


def share_relation(share: TreeCell, figure: TreeCell, whole: Sequence[TreeCell]) -> Relation:
    """A percentage is that of a figure, by the figure and the percentage of the whole."""
    of, percent = whole

    def solve(cell: TreeCell, spans: Mapping[CellKey, Span]) -> Span:
        a, b, c, d = (spans[each.key] for each in (share, figure, of, percent))
        if cell.key == share.key:
            return _ratio((b, d), c)
        if cell.key == figure.key:
            return _ratio((a, c), d)
        if cell.key == of.key:
            return _ratio((b, d), a)
        return _ratio((a, c), b)

    return Relation((share, figure, of, percent), solve, "its share of the whole")


def _ratio(product: tuple[Span, Span], divisor: Span) -> Span:
    low, high = product[0][0] * product[1][0], product[0][1] * product[1][1]
    if high < 0 or low < 0:
        low = Fraction(0)
    return (
        low / divisor[1] if divisor[1] > 0 else Fraction(0),
        high / divisor[0] if divisor[0] > 0 else ANY[1],
    )


def count_relation(figure: TreeCell, given: TreeCell, count: int) -> Relation:
    """A figure that follows from the arguments of a module, whose cell is no number."""
    exact = (Fraction(count), Fraction(count))

    def solve(cell: TreeCell, _spans: Mapping[CellKey, Span]) -> Span:
        return exact if cell.key == figure.key else ANY

    return Relation((figure, given), solve, f"{given.text} gives {count:,}")


def findings_of(
    relations: Sequence[Relation], cells: Sequence[TreeCell], table: int
) -> Iterator[Finding]:
    """The suspects of each contradiction, one finding for those that are equally suspect."""
    spans = {cell.key: cell.span for cell in cells}
    of_cell: dict[CellKey, list[Relation]] = {}
    for relation in relations:
        for cell in relation.cells:
            of_cell.setdefault(cell.key, []).append(relation)
    broken = [relation for relation in relations if not relation.holds(spans)]
    for _ in range(LISTED):
        if not broken:
            return
        counts: dict[CellKey, int] = {}
        for relation in broken:
            for cell in relation.cells:
                counts[cell.key] = counts.get(cell.key, 0) + 1
        involved = {cell.key: cell for relation in broken for cell in relation.cells}
        most = max(counts.values())
        tried = [cell for key, cell in involved.items() if counts[key] == most]
        few = tried if len(tried) <= SOLVED else []
        able = [cell for cell in few if _solved(cell, of_cell[cell.key], spans) is not None]
        suspects = able or tried
        first = suspects[0]
        own = next(relation for relation in broken if first in relation.cells)
        also = [f"{c.column} in line {c.line}" for c in suspects[1:]]
        found = _solved(first, of_cell[first.key], spans) if len(suspects) == 1 else None
        yield Finding(
            table, first.line, first.row, first.column, "figure", first.text,
            "" if found is None else _text(found), own.reason,
            tuple(also) if len(also) <= MANY else (), first.position,
        )  # fmt: skip
        keys = {cell.key for cell in suspects}
        broken = [r for r in broken if not any(cell.key in keys for cell in r.cells)]


def _solved(
    cell: TreeCell, relations: Sequence[Relation], spans: Mapping[CellKey, Span]
) -> Span | None:
    """What a cell must be for all its relations to hold; None if nothing is."""
    found: Span | None = ANY
    for relation in relations:
        found = meet(found, relation.solve(cell, spans)) if found is not None else None
    return found


def _text(span: Span) -> str:
    low, high = (f"{int(end):,}" if end.denominator == 1 else f"{float(end):,.6g}" for end in span)
    return low if low == high else f"{low} to {high}"
