"""Outputs that no row takes: what a table without rows for its joins concatenates."""

from __future__ import annotations

import re
from collections import deque

from layerscope.sheets.sizes import NOWHERE
from layerscope.sheets.structure import RowLayer, SizeFact
from layerscope.sheets.tree import class_name

NAMELESS = re.compile(r"Module(?:-\d+)?")
RECENT = 48  # rows that may be ends of branches
KERNELS = (*range(1, 17), 32)
USUAL = (1, 3, 5, 7, 11)
USUAL_SQUARES = tuple(size * size for size in USUAL)
LINES = (3, 5, 7)  # of one row, such as 1x7
SQUARES = (*(size * size for size in KERNELS), *LINES)
MOST_BRANCHES = 8
GROUPS = (2, 4, 8, 16, 32, 64)
SMALL = 100  # parameters below which kernels say nothing


class Ends:
    """The last rows, and which of them another row takes."""

    def __init__(self) -> None:
        self.rows: deque[RowLayer] = deque(maxlen=RECENT)
        self.taken: set[int] = set()
        self.offered: list[RowLayer] = []

    def add(self, layer: RowLayer) -> None:
        """Add a row whose input is found; a module without a class repeats a layer in it."""
        self.offered = []
        if NAMELESS.fullmatch(class_name(layer.row.label)):
            return
        if layer.before is not None:
            self.taken.add(layer.before.row.at)
        if layer.last is None:
            self.rows.append(layer)

    def joined(self) -> list[RowLayer]:
        """The last outputs that no row takes, of the size of the last row: two of them, or more."""
        above = self.rows[-1] if self.rows else None
        area = above.get("hout", "wout") if above is not None else None
        if above is None or area is None:
            return []
        facts = [
            fact for row in reversed(self.rows)
            if row.row.at not in self.taken and row.get("hout", "wout") == area
            and (fact := row.sizes.get("cout")) is not None
        ]  # fmt: skip
        area_sizes = {name: above.sizes[name] for name in ("hout", "wout")}
        found = []
        for count in range(2, min(len(facts), MOST_BRANCHES) + 1):
            cells = NOWHERE.union(*(fact.cells for fact in facts[:count]))
            channels = SizeFact(sum(fact.value for fact in facts[:count]), cells)
            found.append(
                RowLayer(above.row, "concat", {"cout": channels, **area_sizes}, {}, [], above)
            )
        self.offered = found[::-1]
        return self.offered

    def taken_by(self, layer: RowLayer) -> RowLayer | None:
        """The outputs that a row takes together; the rows of their size are then taken."""
        whole = next((each for each in self.offered if each is layer.before), None)
        if whole is not None:
            area = whole.get("hout", "wout")
            self.taken |= {row.row.at for row in self.rows if row.get("hout", "wout") == area}
        return whole


Shape = tuple[int, ...]  # channels, height and width


class Tensors:
    """Outputs of rows that print their inputs, and what is joined of them without a row."""

    def __init__(self) -> None:
        self.seen: set[Shape] = set()
        self.open: deque[Shape] = deque(maxlen=RECENT)  # those that no row takes

    def add(self, shape: Shape | None) -> None:
        """Add the output of a row."""
        if shape is not None:
            self.seen.add(shape)
            self.open.append(shape)

    def take(self, shape: Shape | None, above: Shape | None) -> None:
        """Take an input: the output above, an earlier one, or several of them joined."""
        if shape is None:
            return
        if shape not in self.seen and self._is_joined(shape, above):
            self.seen.add(shape)
        if shape in self.open:
            self.open.reverse()
            self.open.remove(shape)  # the last of them
            self.open.reverse()

    def _is_joined(self, shape: Shape, above: Shape | None) -> bool:
        """Whether an input has the channels of the last open outputs, or of two tensors."""
        channels, area = shape[0], shape[1:]
        total = 0
        for each in [end for end in reversed(self.open) if end[1:] == area][:MOST_BRANCHES]:
            total += each[0]
            if total == channels:
                return True
        return above is not None and above[1:] == area and (channels - above[0], *area) in self.seen


def has_kernel(layer: RowLayer, *, usual: bool = False) -> bool:
    """Whether some kernel, or a usual one, explains exact parameters of a row that prints none."""
    if layer.kind != "conv" or "kh" in layer.sizes:
        return True
    given = [c.figure for c in layer.row.claims if c.meaning in ("params", "weights") and c.figure]
    got = layer.get("cin", "cout")
    if got is None or not got[0] * got[1] or not given or given[0].power or given[0].unit:
        return True
    value, (channels, out) = given[0].value(), got
    if value < SMALL or value.denominator > 1:
        return True
    count = value.numerator
    sizes = USUAL_SQUARES if usual else SQUARES
    for groups in (1, channels) if usual else dict.fromkeys((1, channels, *GROUPS)):
        if channels % groups == 0:
            each = channels // groups * out
            if any(count in (size * each, size * each + out) for size in sizes):
                return True
    return False
