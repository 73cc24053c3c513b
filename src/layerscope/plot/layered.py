"""A layered layout of boxes of given sizes: edges go down, crossings are few, lines are straight.

Boxes get ranks by the longest path to them. An edge over several ranks passes each of them at a
point of its own. The order inside a rank comes from sweeps by the mean of neighbours, and positions
across from least squares under the distances that boxes need.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

SWEEPS = 12  # down and up over the ranks, for the order and for the positions
MOST_POINTS = 40_000  # of edges over several ranks; with more they are drawn as one line
GAP_ACROSS, EDGE_GAP = 28.0, 14.0  # least distance of boxes, and of lines that pass them
GAP_DOWN, PORT_GAP = 34.0, 12.0  # from one rank to the next, and to one of ports only
# weights against 1 for the line of two boxes: along the heaviest path, and inside a long line
MAIN, STRAIGHT = 1e9, 8.0


class BoxSize(Struct, frozen=True):
    """Width and height of a box; the path with most weight is drawn as a straight line."""

    width: float
    height: float
    weight: float = 1.0
    axis: float | None = None  # where lines arrive and leave, from the left; None: in the middle

    @property
    def before(self) -> float:
        """Width left of the axis."""
        return self.width / 2 if self.axis is None else self.axis


class BoxLayout(Struct, frozen=True):
    """Left and top of every box, points that every edge passes, and the size of all."""

    left: tuple[float, ...]
    top: tuple[float, ...]
    bends: tuple[tuple[tuple[float, float, float], ...], ...]  # by edge: across, from, to
    width: float
    height: float


def layered(sizes: Sequence[BoxSize], edges: Sequence[tuple[int, int]]) -> BoxLayout:
    """The layout of boxes; every edge goes from a smaller to a larger number."""
    if not sizes:
        return BoxLayout((), (), (), 0.0, 0.0)
    grid = _Grid(sizes, edges)
    grid.sort()
    across = grid.positions()
    heights = [max(grid.heights[n] for n in rank) for rank in grid.ranks]
    tops, down = [], 0.0
    for height, after in zip(heights, [*heights[1:], 0.0], strict=True):
        tops.append(down)
        down += height + (GAP_DOWN if height and after else PORT_GAP)
    least = min(x - before for x, before in zip(across, grid.before, strict=True))
    most = max(x + after for x, after in zip(across, grid.after, strict=True))
    boxes = range(len(sizes))
    middle = [
        tops[grid.rank[n]] + (heights[grid.rank[n]] - sizes[n].height) / 2 for n in boxes
    ]  # fmt: skip
    bends = tuple(
        tuple(
            (across[n] - least, tops[grid.rank[n]], tops[grid.rank[n]] + heights[grid.rank[n]])
            for n in points
        )
        for points in grid.points
    )
    left = tuple(across[n] - sizes[n].before - least for n in boxes)
    return BoxLayout(left, tuple(middle), bends, most - least, tops[-1] + heights[-1])


class _Grid:
    """Boxes and the points of edges by rank."""

    def __init__(self, sizes: Sequence[BoxSize], edges: Sequence[tuple[int, int]]) -> None:
        self.rank = [0] * len(sizes)
        for start, end in sorted(edges):
            self.rank[end] = max(self.rank[end], self.rank[start] + 1)
        self.before = [size.before for size in sizes]  # widths left and right of the axis
        self.after = [size.width - size.before for size in sizes]
        self.heights = [size.height for size in sizes]
        self.main = _main_path(sizes, edges)
        self.weights = [MAIN if n in self.main else 1.0 for n in range(len(sizes))]
        self.boxes = len(sizes)
        self.points: list[list[int]] = []
        self.up: list[list[int]] = [[] for _ in sizes]
        self.down: list[list[int]] = [[] for _ in sizes]
        spans = sum(self.rank[end] - self.rank[start] - 1 for start, end in edges)
        for start, end in edges:
            between = range(self.rank[start] + 1, self.rank[end]) if spans <= MOST_POINTS else ()
            passed = [self._point(rank) for rank in between]
            self.points.append(passed)
            chain = [start, *passed, end]
            for above, below in pairwise(chain):
                self.down[above].append(below)
                self.up[below].append(above)
        self.ranks: list[list[int]] = [[] for _ in range(max(self.rank) + 1)]
        for n, rank in enumerate(self.rank):
            self.ranks[rank].append(n)

    def _point(self, rank: int) -> int:
        """A new point in a rank."""
        self.rank.append(rank)
        self.before.append(0.0)
        self.after.append(0.0)
        self.heights.append(0.0)
        self.weights.append(STRAIGHT)
        self.up.append([])
        self.down.append([])
        return len(self.rank) - 1

    def sort(self) -> None:
        """Order every rank by the mean position of neighbours; keep the order with least cost."""
        best, ranks = self._crossings(), [list(rank) for rank in self.ranks]
        for sweep in range(SWEEPS):
            order, sides = list(range(1, len(self.ranks))), self.up
            if sweep % 2:
                order, sides = list(range(len(self.ranks) - 2, -1, -1)), self.down
            at = self._indices()
            for n in order:
                means = {
                    each: sum(at[x] for x in sides[each]) / len(sides[each])
                    if sides[each]
                    else at[each]
                    for each in self.ranks[n]
                }
                self.ranks[n].sort(key=lambda each: means[each])
                at.update({each: float(k) for k, each in enumerate(self.ranks[n])})
            cost = self._crossings()
            if cost < best:
                best, ranks = cost, [list(rank) for rank in self.ranks]
            if not best:
                break
        self.ranks = ranks

    def _indices(self) -> dict[int, float]:
        return {each: float(k) for rank in self.ranks for k, each in enumerate(rank)}

    def _crossings(self) -> int:
        """Number of crossings of lines between neighbouring ranks."""
        at = self._indices()
        total = 0
        for rank in self.ranks:
            ends = [end for each in rank for end in sorted([at[x] for x in self.down[each]])]
            seen: list[float] = []
            for end in ends:
                total += len(seen) - bisect_right(seen, end)
                insort(seen, end)
        return total

    def positions(self) -> list[float]:
        """Position across of every box and point."""
        x = [0.0] * len(self.rank)
        for rank in self.ranks:
            least = self._apart(rank)
            for n, offset in zip(rank, least, strict=True):
                x[n] = offset - least[-1] / 2
        for sweep in range(SWEEPS):
            ranks = self.ranks if sweep % 2 == 0 else self.ranks[::-1]
            for rank in ranks:
                wanted = [self._wanted(n, x, sweep) for n in rank]
                weights = [self.weights[n] for n in rank]
                for n, spot in zip(rank, self._fitted(rank, wanted, weights), strict=True):
                    x[n] = spot
        self._straighten(x)
        return x

    def _straighten(self, x: list[float]) -> None:
        """Move the points of a long line outward to one position, where there is room."""
        spot = {n: (rank, k) for rank in self.ranks for k, n in enumerate(rank)}
        chains = [points for points in self.points if len(points) > 1]
        for points in sorted(chains, key=lambda points: -max(abs(x[n]) for n in points)):
            side = 1 if sum(x[n] for n in points) > 0 else -1
            target = max(x[n] * side for n in points) * side
            for n in points:
                rank, k = spot[n]
                outer = k + side
                if not 0 <= outer < len(rank):
                    x[n] = target
                    continue
                beside = rank[outer]
                edge = x[beside] - (self.before[beside] if side > 0 else -self.after[beside])
                limit = edge - side * EDGE_GAP
                x[n] = max(x[n], min(target, limit)) if side > 0 else min(x[n], max(target, limit))

    def _wanted(self, n: int, x: list[float], sweep: int) -> float:
        """The mean position of the neighbours above, below, or in the last sweeps of both."""
        if n in self.main:
            return 0.0
        both = sweep >= SWEEPS - 2
        near = self.up[n] + self.down[n] if both else (self.up, self.down)[sweep % 2][n]
        if not near:
            return x[n]
        weights = [min(self.weights[each], STRAIGHT) for each in near]
        return sum(w * x[each] for w, each in zip(weights, near, strict=True)) / sum(weights)

    def _apart(self, rank: Sequence[int]) -> list[float]:
        """Least position of each in a rank, the first at 0."""
        least = [0.0]
        for before, after in pairwise(rank):
            boxes = before < self.boxes and after < self.boxes
            gap = GAP_ACROSS if boxes else EDGE_GAP
            least.append(least[-1] + self.after[before] + self.before[after] + gap)
        return least

    def _fitted(
        self, rank: Sequence[int], wanted: list[float], weights: list[float]
    ) -> list[float]:
        """Positions nearest to those wanted, in order and far enough apart: least squares."""
        least = self._apart(rank)
        blocks: list[list[float]] = []  # mean, weight, count of neighbours that move together
        for want, spot, weight in zip(wanted, least, weights, strict=True):
            blocks.append([want - spot, weight, 1])
            while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
                mean, mass, count = blocks.pop()
                last = blocks[-1]
                last[0] = (last[0] * last[1] + mean * mass) / (last[1] + mass)
                last[1] += mass
                last[2] += count
        shifts = [block[0] for block in blocks for _ in range(int(block[2]))]
        return [spot + shift for spot, shift in zip(least, shifts, strict=True)]


def _main_path(sizes: Sequence[BoxSize], edges: Sequence[tuple[int, int]]) -> set[int]:
    """The boxes of the path with most weight."""
    most = [size.weight for size in sizes]
    before = [-1] * len(sizes)
    for start, end in sorted(edges):
        if most[start] + sizes[end].weight > most[end]:
            most[end], before[end] = most[start] + sizes[end].weight, start
    at = most.index(max(most))
    found = set()
    while at >= 0:
        found.add(at)
        at = before[at]
    return found
