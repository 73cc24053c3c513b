"""Which layer of one network is which of another: by name where that can be, and by structure.

Small networks are aligned as a whole, so that most layers find a like one in order; large ones at
layers that are the same in both and between these, so that time stays near linear.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Sequence

from msgspec import Struct

CELLS = 1_000_000  # of all tables of scores together: about half a second
AHEAD = 16  # layers looked ahead where even that is too little

# What a pair is worth: the same in everything and by name, the same, the same name, like outputs.
SAME_AND_NAMED, SAME, NAMED, LIKE = 6, 5, 4, 2


class Item(Struct, frozen=True, gc=False):
    """What layers are matched by: a unique name, and numbers that stand for what they are.

    Those of the same `signature` are the same in all that is told and counted of them, those of the
    same `likeness` have the same op and output.
    """

    name: str
    op: str
    signature: int
    likeness: int


Pairs = dict[int, int]  # index in the first -> index in the second


class Span(Struct):
    """A stretch of both networks that is still to be aligned."""

    start: int
    end: int
    other_start: int
    other_end: int

    @property
    def cells(self) -> int:
        """Size of its table of scores."""
        return (self.end - self.start) * (self.other_end - self.other_start)


def align(first: Sequence[Item], second: Sequence[Item]) -> Pairs:
    """Pairs of layers, in order; then what is left over by name alone, wherever it stands."""
    pairs: Pairs = {}
    span = _trim(first, second, Span(0, len(first), 0, len(second)), pairs, named=True)
    left = CELLS
    spans = [span]
    if span.cells > left:
        span = _trim(first, second, span, pairs, named=False)
        spans = _cut(first, second, span, pairs) if span.cells > left else [span]
    for span in spans:
        if span.cells <= left:
            left -= span.cells
            _score(first, second, span, pairs)
        else:
            _follow(first, second, span, pairs)
    _by_name(first, second, pairs)
    return pairs


def _trim(
    first: Sequence[Item], second: Sequence[Item], span: Span, pairs: Pairs, *, named: bool
) -> Span:
    """Pair what is the same at both ends; give what is between."""

    def same(i: int, j: int) -> bool:
        a, b = first[i], second[j]
        return a.signature == b.signature and (not named or a.name == b.name)

    i, end, j, other_end = span.start, span.end, span.other_start, span.other_end
    while i < end and j < other_end and same(i, j):
        pairs[i] = j
        i, j = i + 1, j + 1
    while i < end and j < other_end and same(end - 1, other_end - 1):
        end, other_end = end - 1, other_end - 1
        pairs[end] = other_end
    return Span(i, end, j, other_end)


def _cut(first: Sequence[Item], second: Sequence[Item], span: Span, pairs: Pairs) -> list[Span]:
    """Pair layers that are the same in both and in the same order; give the spans between them."""
    for key in (_name_and_signature, _signature):
        mine = _unique([key(item) for item in first[span.start : span.end]], span.start)
        theirs = _unique(
            [key(item) for item in second[span.other_start : span.other_end]], span.other_start
        )
        common = _increasing([(i, theirs[what]) for what, i in mine.items() if what in theirs])
        if common:
            break
    spans = []
    i, j = span.start, span.other_start
    for at, other in common:
        pairs[at] = other
        spans.append(_trim(first, second, Span(i, at, j, other), pairs, named=False))
        i, j = at + 1, other + 1
    spans.append(_trim(first, second, Span(i, span.end, j, span.other_end), pairs, named=False))
    return [span for span in spans if span.cells]


def _name_and_signature(item: Item) -> Hashable:
    return item.name, item.signature


def _signature(item: Item) -> Hashable:
    return item.signature


def _unique(keys: list[Hashable], start: int) -> dict[Hashable, int]:
    """Where each thing is that is there once."""
    count = Counter(keys)
    return {key: n for n, key in enumerate(keys, start) if count[key] == 1}


def _increasing(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest run of pairs, in order of the first, whose second grows."""
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for n, (_, other) in enumerate(pairs):
        length = bisect_left(tails, other)
        before.append(ends[length - 1] if length else -1)
        tails[length : length + 1] = [other]
        ends[length : length + 1] = [n]
    chosen = []
    n = ends[-1] if ends else -1
    while n >= 0:
        chosen.append(pairs[n])
        n = before[n]
    return chosen[::-1]


def _score(first: Sequence[Item], second: Sequence[Item], span: Span, pairs: Pairs) -> None:
    """Pair a span so that the worth of all pairs is greatest; the earliest of equal ways."""
    others = second[span.other_start : span.other_end]
    width = len(others)
    scores = [[0] * (width + 1)]
    for item in reversed(first[span.start : span.end]):
        below = scores[-1]
        row = [0] * (width + 1)
        for j in range(width - 1, -1, -1):
            best = below[j] if below[j] >= row[j + 1] else row[j + 1]
            worth = _worth(item, others[j])
            row[j] = worth + below[j + 1] if worth and worth + below[j + 1] >= best else best
        scores.append(row)
    scores.reverse()
    i = j = 0
    while i < len(scores) - 1 and j < width:
        worth = _worth(first[span.start + i], others[j])
        if worth and scores[i][j] == worth + scores[i + 1][j + 1]:
            pairs[span.start + i] = span.other_start + j
            i, j = i + 1, j + 1
        elif scores[i][j] == scores[i + 1][j]:
            i += 1
        else:
            j += 1


def _follow(first: Sequence[Item], second: Sequence[Item], span: Span, pairs: Pairs) -> None:
    """Pair the same layers of a span too large for a table, looking a little ahead."""
    i, j = span.start, span.other_start
    while i < span.end and j < span.other_end:
        mine, theirs = first[i].signature, second[j].signature
        if mine != theirs:
            for ahead in range(1, AHEAD + 1):
                if i + ahead < span.end and first[i + ahead].signature == theirs:
                    i += ahead
                    break
                if j + ahead < span.other_end and second[j + ahead].signature == mine:
                    j += ahead
                    break
            else:
                i, j = i + 1, j + 1
                continue
        pairs[i] = j
        i, j = i + 1, j + 1


def _worth(a: Item, b: Item) -> int:
    if a.signature == b.signature:
        return SAME_AND_NAMED if a.name == b.name else SAME
    if a.name == b.name and a.op == b.op:
        return NAMED
    return LIKE if a.likeness == b.likeness else 0


def _by_name(first: Sequence[Item], second: Sequence[Item], pairs: Pairs) -> None:
    """Pair what is left over and has the same name and op, in whatever order."""
    taken = set(pairs.values())
    left = {item.name: j for j, item in enumerate(second) if j not in taken}
    for i, item in enumerate(first):
        if i not in pairs:
            j = left.get(item.name)
            if j is not None and second[j].op == item.op:
                pairs[i] = j
