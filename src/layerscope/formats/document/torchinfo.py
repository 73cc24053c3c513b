"""torchinfo's table, as the rows of a network: a tree of modules, whose leaves are layers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from layerscope.formats.document.classes import TORCH, count_of, op_and_kind, sizes_of
from layerscope.formats.document.rows import LayerRow, PrintedNetwork, amount
from layerscope.graph.types import Shape

STEM = "torchinfo"
HEADING = re.compile(r"Layer \(type(?P<named> \(var_name\))?(?::depth-idx)?\)\s+\S.*")
TITLES = (
    "Input Shape", "Output Shape", "Param #", "Param %", "Kernel Shape", "Groups", "Mult-Adds",
    "Trainable",
)  # fmt: skip
ROW = re.compile(
    r"(?P<tree>[│├└─+| ]*)(?P<kind>[^\s│├└─(:]+)(?: \((?P<name>[^()]*)\))?"
    r"(?:: (?P<depth>\d{1,4})-(?P<index>\d{1,9}))?(?P<rest>\s.*|)"
)
RULE = re.compile(r"={20,}")
WIDEST = 4_000
NOTE = "left open: functions between modules, such as sums and concatenations, have no row"


class TreeRow(Struct):
    """A row of the tree: its class, depth and path, and its cells by title."""

    kind: str
    depth: int
    path: str
    cells: Mapping[str, str]
    line: int
    column: int
    is_leaf: bool = True


def read(lines: Sequence[str]) -> Iterator[PrintedNetwork]:
    """A network for each table."""
    for first, line in enumerate(lines):
        if line.startswith("Layer (type") and len(line) < WIDEST and HEADING.fullmatch(line):
            found = _table(lines, first)
            if found is not None:
                yield found


def _table(lines: Sequence[str], first: int) -> PrintedNetwork | None:
    columns = _columns(lines[first])
    rows: list[TreeRow] = []
    paths: list[str] = []  # of the rows above, by depth
    below: list[int] = []  # rows below each of these
    at = first + 1
    while at < len(lines) and RULE.fullmatch(lines[at].strip()):
        at += 1
    while at < len(lines) and not RULE.fullmatch(lines[at].strip()):
        match = ROW.fullmatch(lines[at]) if len(lines[at]) < WIDEST else None
        if match is None:
            return None
        if match["depth"] is not None or not rows:
            depth = int(match["depth"] or 0)
            if depth > len(paths):
                return None
            del paths[depth:], below[depth:]
            if depth:
                own = match["name"] or str(below[depth - 1])
                below[depth - 1] += 1
                path = f"{paths[depth - 1]}.{own}" if paths[depth - 1] else own
            else:
                path = ""
            paths.append(path)
            below.append(0)
            cells = {title: lines[at][a:b].strip() for title, (a, b) in columns.items()}
            rows.append(TreeRow(match["kind"], depth, path, cells, at + 1, match.start("kind") + 1))
        at += 1
    if not rows or at == len(lines):
        return None
    if len(rows) == 1 and rows[0].kind not in TORCH:
        return PrintedNetwork((), STEM, line=first + 1, last=at + 1)
    for row, after in pairwise(rows):
        row.is_leaf = after.depth <= row.depth
    return _network(lines, (first, at), rows)


def _columns(heading: str) -> dict[str, tuple[int, int]]:
    """Where the cells of each title are."""
    starts = sorted((at, title) for title in TITLES if (at := heading.find(title)) >= 0)
    ends = [at for at, _ in starts[1:]] + [WIDEST]
    return {title: (at, end) for (at, title), end in zip(starts, ends, strict=True)}


def _network(
    lines: Sequence[str], span: tuple[int, int], rows: Sequence[TreeRow]
) -> PrintedNetwork:
    first, last = span
    while last + 1 < len(lines) and (
        RULE.fullmatch(lines[last + 1].strip()) or re.match(r"[\w/ ()-]+: ", lines[last + 1][:80])
    ):
        last += 1
    start = first - 1 if first and RULE.fullmatch(lines[first - 1].strip()) else first
    layers = tuple(_row(row) for row in rows if row.is_leaf)
    groups = len(rows) - len(layers)
    return PrintedNetwork(
        layers, STEM, rows[0].kind, start + 1, last + 1,
        modules={row.path: row.kind if not row.is_leaf else "" for row in rows},
        notes=(NOTE,), groups=groups, lines=tuple(lines[start : last + 1]),
    )  # fmt: skip


def _row(row: TreeRow) -> LayerRow:
    op, kind = op_and_kind(row.kind, TORCH)
    params = row.cells.get("Param #", "").strip("()")
    counted = amount(params) if count_of(params) is not None else None
    kernel = sizes_of(row.cells.get("Kernel Shape", "")) if op == "conv" else None
    whole = tuple(size for size in kernel or () if size is not None)
    groups = count_of(row.cells.get("Groups", ""))
    return LayerRow(
        row.path or row.kind,
        kind,
        op,
        row.kind,
        given=_shape(row.cells.get("Input Shape", "")),
        output=_shape(row.cells.get("Output Shape", "")),
        kernel=whole or None,
        groups=groups if op == "conv" else None,
        amounts={} if counted is None else {"params": counted},
        module=row.path,
        line=row.line,
        column=row.column,
    )


def _shape(text: str) -> Shape | None:
    sizes = sizes_of(text) if text.startswith("[") else None
    if not sizes or any(size is None for size in sizes):
        return None
    return tuple(size for size in sizes if size is not None)
