"""torchstat's table, as the rows of a network.

It prints names, inputs, outputs and counts, and no classes: what a row is follows from its name,
its parameters and its sizes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from layerscope.formats.document.classes import kind_of_op
from layerscope.formats.document.rows import LayerRow, PrintedNetwork, amount
from layerscope.graph.types import Shape, elements

STEM = "torchstat"
HEADING = re.compile(r"\s*module name\s+input shape\s+output shape\s+params\s+memory\(MB\).*")
INDEX = re.compile(r"(?P<index>\d{1,7})\s+(?P<name>\S+)\s*")
END = re.compile(r"total\b.*|[=-]{20,}|Total .*: .*")
WIDEST = 2_000
HINTS = (
    ("relu6", "relu6"), ("relu", "relu"), ("drop", "dropout"), ("avgpool", "avg_pool"),
    ("maxpool", "max_pool"), ("sigmoid", "sigmoid"), ("tanh", "tanh"), ("gelu", "gelu"),
    ("softmax", "softmax"), ("flatten", "flatten"),
)  # fmt: skip
NOTES = (
    "left open: the kinds of rows, which have no class: those that names, sizes and parameters fit",
    "left open: functions between modules, such as sums and concatenations, have no row",
)


def read(lines: Sequence[str]) -> Iterator[PrintedNetwork]:
    """A network for each table."""
    for first, line in enumerate(lines):
        if "module name" in line and len(line) < WIDEST and HEADING.fullmatch(line):
            found = _table(lines, first)
            if found is not None:
                yield found


def _table(lines: Sequence[str], first: int) -> PrintedNetwork | None:
    ends = [lines[first].index(title) + len(title) for title in
            ("module name", "input shape", "output shape", "params")]  # fmt: skip
    rows: list[LayerRow] = []
    last = first
    for at in range(first + 1, len(lines)):
        line = lines[at]
        match = INDEX.match(line) if len(line) < WIDEST else None
        if match is None:
            break
        rows.append(_row(match["name"], [line[a:b] for a, b in pairwise(ends)],
                         at + 1, match.start("name") + 1))  # fmt: skip
        last = at
    if not rows:
        return PrintedNetwork((), STEM, line=first + 1, last=last + 1)
    while last + 1 < len(lines) and END.match(lines[last + 1][:WIDEST]):
        last += 1
    return PrintedNetwork(
        tuple(rows), STEM, line=first + 1, last=last + 1, notes=NOTES, ambiguous=True,
        lines=tuple(lines[first : last + 1]),
    )  # fmt: skip


def _row(name: str, cells: Sequence[str], line: int, column: int) -> LayerRow:
    given, output = _shape(cells[0]), _shape(cells[1])
    counted = amount(cells[2].strip().removesuffix(".0"))
    params = 0 if counted is None else int(counted.figure.value())
    op = _op(name, params, given, output)
    return LayerRow(
        name,
        kind_of_op(op),
        op,
        given=given,
        output=output,
        amounts={} if counted is None else {"params": counted},
        module=name,
        line=line,
        column=column,
    )


def _shape(text: str) -> Shape | None:
    sizes = text.split()
    if not sizes or not all(size.isdecimal() and len(size) < 19 for size in sizes):
        return None
    return (1, *map(int, sizes))


def _op(name: str, params: int, given: Shape | None, output: Shape | None) -> str:
    """The op that fits the sizes and parameters of a row, and its name if these do not decide."""
    if given is None or output is None:
        return ""
    if params:
        if len(output) == 2:
            return "linear"
        if given != output:
            return "conv"
        return "batch_norm" if params == 2 * given[1] else "prelu" if params == 1 else "conv"
    last = name.rpartition(".")[2].lower()
    hinted = next((op for hint, op in HINTS if hint in last), "")
    if given == output:
        return hinted if hinted and "pool" not in hinted else "relu"
    if len(given) > 2 and elements(output[2:]) == 1 < elements(given[2:]):
        return "global_max_pool" if hinted == "max_pool" else "global_avg_pool"
    return hinted or "max_pool"
