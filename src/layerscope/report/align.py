"""Alignment of the layers of two networks, by name and by structure.

Small networks are aligned by dynamic programming over all pairs of layers. Large ones are first cut
at layers that are unique and equal in both, so that the time stays near linear.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Sequence

from msgspec import Struct

CELLS = 1_000_000  # cells of all score tables together, about half a second
AHEAD = 16  # layers of look-ahead in a span too large for a score table

# Scores of a pair: equal with equal names, equal, equal names, equal op and output.
SAME_AND_NAMED, SAME, NAMED, LIKE = 6, 5, 4, 2


class Item(Struct, frozen=True, gc=False):
    """What a layer is matched by: its unique name, its op, and two numbers.

    Layers of equal `signature` have equal attributes, shapes and figures. Layers of equal
    `likeness` have the same op and output shape.
    """

    name: str
    op: str
    signature: int
    likeness: int


Pairs = dict[int, int]  # index in the first -> index in the second


class AlignSpan(Struct):
    """Ranges of layers of both networks that are still to be aligned."""

    start: int
    end: int
    other_start: int
    other_end: int

    @property
    def cells(self) -> int:
        """Size of its score table."""
        return (self.end - self.start) * (self.other_end - self.other_start)


def align(first: Sequence[Item], second: Sequence[Item]) -> Pairs:
    """Pairs of layers in order; then remaining layers of equal name, in any order."""
    pairs: Pairs = {}
    span = _pair_ends(first, second, AlignSpan(0, len(first), 0, len(second)), pairs, named=True)
    left = CELLS
    spans = [span]
    if span.cells > left:
        span = _pair_ends(first, second, span, pairs, named=False)
        spans = _cut(first, second, span, pairs) if span.cells > left else [span]
    for span in spans:
        if span.cells <= left:
            left -= span.cells
            _score(first, second, span, pairs)
        else:
            _follow(first, second, span, pairs)
    _by_name(first, second, pairs)
    return pairs


def _pair_ends(
    first: Sequence[Item], second: Sequence[Item], span: AlignSpan, pairs: Pairs, *, named: bool
) -> AlignSpan:
    """Pair equal layers at both ends and return the span between."""

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
    return AlignSpan(i, end, j, other_end)


def _cut(
    first: Sequence[Item], second: Sequence[Item], span: AlignSpan, pairs: Pairs
) -> list[AlignSpan]:
    """Pair layers that are unique and equal in both, and return the spans between them."""
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
        spans.append(_pair_ends(first, second, AlignSpan(i, at, j, other), pairs, named=False))
        i, j = at + 1, other + 1
    spans.append(
        _pair_ends(first, second, AlignSpan(i, span.end, j, span.other_end), pairs, named=False)
    )
    return [span for span in spans if span.cells]


def _name_and_signature(item: Item) -> Hashable:
    return item.name, item.signature


def _signature(item: Item) -> Hashable:
    return item.signature


def _unique(keys: list[Hashable], start: int) -> dict[Hashable, int]:
    """Index of each key that occurs once."""
    count = Counter(keys)
    return {key: n for n, key in enumerate(keys, start) if count[key] == 1}


def _increasing(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest subsequence of pairs whose second index increases."""
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


def _score(first: Sequence[Item], second: Sequence[Item], span: AlignSpan, pairs: Pairs) -> None:
    """Pair a span so that the sum of scores is largest, the earliest pairs among equal sums."""
    others = second[span.other_start : span.other_end]
    width = len(others)
    scores = [[0] * (width + 1)]
    for item in reversed(first[span.start : span.end]):
        below = scores[-1]
        row = [0] * (width + 1)
        for j in range(width - 1, -1, -1):
            best = below[j] if below[j] >= row[j + 1] else row[j + 1]
            score = _pair_score(item, others[j])
            row[j] = score + below[j + 1] if score and score + below[j + 1] >= best else best
        scores.append(row)
    scores.reverse()
    i = j = 0
    while i < len(scores) - 1 and j < width:
        score = _pair_score(first[span.start + i], others[j])
        if score and scores[i][j] == score + scores[i + 1][j + 1]:
            pairs[span.start + i] = span.other_start + j
            i, j = i + 1, j + 1
        elif scores[i][j] == scores[i + 1][j]:
            i += 1
        else:
            j += 1


def _follow(first: Sequence[Item], second: Sequence[Item], span: AlignSpan, pairs: Pairs) -> None:
    """Pair equal layers of a span that is too large for a score table, with a look-ahead."""
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


def _pair_score(a: Item, b: Item) -> int:
    if a.signature == b.signature:
        return SAME_AND_NAMED if a.name == b.name else SAME
    if a.name == b.name and a.op == b.op:
        return NAMED
    return LIKE if a.likeness == b.likeness else 0


def _by_name(first: Sequence[Item], second: Sequence[Item], pairs: Pairs) -> None:
    """Pair remaining layers of equal name and op, in any order."""
    taken = set(pairs.values())
    left = {item.name: j for j, item in enumerate(second) if j not in taken}
    for i, item in enumerate(first):
        if i not in pairs:
            j = left.get(item.name)
            if j is not None and second[j].op == item.op:
                pairs[i] = j
