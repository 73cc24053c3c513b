"""torchsummary's table, as the rows of a network.

It prints classes, outputs and parameters. Kernels and strides follow from these. A row of a module
that contains the rows above it has no parameters of its own and is no layer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import ceil, prod

from msgspec.structs import replace

from layerscope.formats.document.choices import choose
from layerscope.formats.document.classes import TORCH, count_of, op_and_kind, sizes_of
from layerscope.formats.document.rows import LayerRow, PrintedNetwork, amount
from layerscope.graph.types import Shape

STEM = "torchsummary"
HEADING = re.compile(r"\s*Layer \(type\)\s+Output Shape\s+Param #\s*")
ROW = re.compile(
    r"\s*(?P<kind>[^\s\[\]]+)-(?P<index>\d{1,9})\s+(?P<shape>\?|\[.*\])\s+(?P<params>[\d,≥ ?]+)\s*"
)
RULE = re.compile(r"\s*[-=]{20,}\s*")
INPUT = re.compile(r"\s*Input size \(MB\): (\d{1,9}\.\d{1,4})\s*")
TOTAL = re.compile(r"\s*Estimated Total Size \(MB\): (\d{1,9}\.\d{1,4})\s*")
MIB = 2**20
CHANNELS = (3, 1)  # of images
COMMON = (224, 227, 299, 32, 28, 256, 416, 512)  # sides of images
LARGEST = 100_000  # side of an image
END = 14  # lines of totals
WIDEST = 2_000
NOTES = ("left open: functions between modules, such as sums and concatenations, have no row",)


def read(lines: Sequence[str]) -> Iterator[PrintedNetwork]:
    """A network for each table."""
    for first, line in enumerate(lines):
        if len(line) < WIDEST and HEADING.fullmatch(line):
            found = _table(lines, first)
            if found is not None:
                yield found


def _table(lines: Sequence[str], first: int) -> PrintedNetwork | None:
    rows: list[LayerRow] = []
    groups = 0
    last = first
    before: Shape | None = None
    for at in range(first + 1, len(lines)):
        line = lines[at]
        match = ROW.fullmatch(line) if len(line) < WIDEST else None
        if match is None:
            if rows or not RULE.fullmatch(line):
                break
            last = at
            continue
        last = at
        row = _row(match, at + 1)
        if _is_group(row, before):
            groups += 1
            continue
        before = row.output
        rows.append(row)
    if not rows:
        return PrintedNetwork((), STEM, line=first + 1, last=last + 1)
    end = _last_line_of_totals(lines, last)
    rows[0] = _with_input(rows[0], lines[last + 1 : end + 1])
    start = first - 1 if first and RULE.fullmatch(lines[first - 1]) else first
    notes: tuple[str, ...] = NOTES
    if groups:
        notes = (
            *NOTES,
            f"{groups} rows are modules that contain rows above them, and no layers: the table "
            "does not say which rows",
        )
    return PrintedNetwork(
        tuple(rows), STEM, line=start + 1, last=end + 1, notes=notes, groups=groups,
        ambiguous=_is_ambiguous(rows, lines[last + 1 : end + 1]),
        lines=tuple(lines[start : end + 1]),
    )  # fmt: skip


def _row(match: re.Match[str], number: int) -> LayerRow:
    kind, params = match["kind"], match["params"]
    op, row_kind = op_and_kind(kind, TORCH)
    shape = _shape(match["shape"])
    counted = amount(params) if count_of(params) is not None else None
    return LayerRow(
        f"{kind}-{match['index']}",
        row_kind,
        op,
        kind,
        output=shape,
        amounts={} if counted is None else {"params": counted},
        line=number,
        column=match.start("kind") + 1,
    )


def _shape(text: str) -> Shape | None:
    sizes = None if text.startswith("[[") else sizes_of(text)
    if not sizes or any(size is None for size in sizes[1:]):
        return None
    return (sizes[0] or 1, *(size for size in sizes[1:] if size is not None))


def _is_group(row: LayerRow, before: Shape | None) -> bool:
    """Whether a row is a module that contains rows above: no layer of torch.nn, same output."""
    counted = row.amounts.get("params")
    empty = counted is None or counted.stands_for(0)
    return not row.op and empty and (row.output == before or row.output is None)


def _is_ambiguous(rows: Sequence[LayerRow], totals: Sequence[str]) -> bool:
    """Whether classes, or the sizes below the rows, do not follow from the network that is read.

    A row that is no class of torch.nn is an op that is named after arguments not printed. The input
    is not printed: the total in megabytes may need another one than was found.
    """
    if any(row.type not in TORCH for row in rows):
        return True
    match = next((m for line in totals if (m := TOTAL.match(line))), None)
    given = rows[0].given
    if match is None or given is None:
        return match is not None
    outputs = sum(prod(row.output[1:]) for row in rows if row.output)
    params = sum(row.amounts["params"].figure.value() for row in rows if "params" in row.amounts)
    size = float(params + 2 * outputs + prod(given[1:])) * 4 / MIB
    return f"{size:.2f}" != match[1]


def _last_line_of_totals(lines: Sequence[str], last: int) -> int:
    """The last line of the totals below the rows."""
    end = last
    for at in range(last + 1, min(last + END, len(lines))):
        line = lines[at]
        if RULE.fullmatch(line) or re.match(r"\s*[\w/ ()-]+: ", line[:WIDEST]):
            end = at
        else:
            break
    return end


def _with_input(row: LayerRow, totals: Sequence[str]) -> LayerRow:
    """The first row with the input that the printed `Input size (MB)` allows and it explains."""
    match = next((m for line in totals if (m := INPUT.match(line))), None)
    if match is None or row.op != "conv" or row.output is None or len(row.output) != 4:
        return row
    printed = float(match[1]) * MIB / 4
    room = MIB / 4 * 0.005 + 1
    for channels in CHANNELS:
        least, most = ((max(printed + sign * room, 0) / channels) ** 0.5 for sign in (-1, 1))
        sides = range(max(ceil(least), 1), min(int(most), LARGEST) + 1)
        for side in sorted(sides, key=lambda side: side not in COMMON):
            shape = (1, channels, side, side)
            choice = choose(replace(row, given=shape), (shape,))
            if choice is not None and choice.is_full:
                return replace(row, given=shape)
    return row
