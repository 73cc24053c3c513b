"""One wrong number in a profile of Boda's, instead of all figures that contradict it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from math import isqrt

from msgspec import Struct
from msgspec.structs import replace

from layerscope.auditing.findings import Finding
from layerscope.documents.figures import read

BYTES = 4  # of an element
MOST_LINES = 2_000  # of a profile in which wrong numbers are looked for
MOST_LAYERS = 8  # with contradictions; more are listed as they are
MOST_REPAIRS = 12  # of a layer that are tried in the whole profile
ROUNDS = 4
GROUPS = re.compile(r" (?P<column>input|filts|out) (?P<cell>\d+(?:\*\d+){1,9})=(?P<bytes>\S+)")
PRODUCT = re.compile(r"MxNxK=(?P<cell>(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+))(?: x(?P<groups>\d+))?")
NUMBER = re.compile(r"\d+")
Check = Callable[[Sequence[str]], list[Finding]]


class _Repair(Struct, frozen=True):
    """A line with another number in one cell, and the findings that are left then."""

    line: int
    column: str
    printed: str
    expected: str
    text: str
    left: int


def repaired(
    lines: Sequence[str], findings: list[Finding], check: Check, numbers: Sequence[int]
) -> list[Finding]:
    """The findings; those that one number explains are one finding about that number.

    `numbers` are those of the lines in the document.
    """
    rows = {f.row for f in findings}
    if len(findings) < 2 or len(lines) > MOST_LINES or len(rows) > MOST_LAYERS:
        return findings
    given, named, left = list(lines), [], findings
    for _ in range(ROUNDS):
        best = _best(given, left, check)
        if not best:
            break
        first, *others = best
        given[first.line - 1] = first.text
        after = check(given)
        still = {(finding.line, finding.column) for finding in after}
        gone = [finding for finding in left if (finding.line, finding.column) not in still]
        also = tuple(f"{repair.column} in line {numbers[repair.line - 1]}" for repair in others)
        reason = f"{len(gone)} figures of the profile contradict it"
        named.append(
            Finding(
                left[0].table, first.line, _name(first.text), first.column, "figure",
                first.printed, "" if also else first.expected, reason, also,
            )
        )  # fmt: skip
        left = after
    return sorted([*named, *left], key=lambda finding: finding.line)


def _best(lines: Sequence[str], findings: Sequence[Finding], check: Check) -> list[_Repair]:
    """The numbers without which least findings are left, if they explain several."""
    found: list[_Repair] = []
    for row in dict.fromkeys(finding.row for finding in findings):
        own = [n for n, line in enumerate(lines, 1) if _name(line) == row]
        for repair in _locally(lines, own, check):
            left = len(check([*lines[: repair.line - 1], repair.text, *lines[repair.line :]]))
            if left < len(findings) - 1:
                found.append(replace(repair, left=left))
    least = min((repair.left for repair in found), default=0)
    equal = [repair for repair in found if repair.left == least]
    columns = dict.fromkeys((repair.line, repair.column) for repair in equal)
    return [next(r for r in equal if (r.line, r.column) == column) for column in columns]


def _locally(lines: Sequence[str], own: Sequence[int], check: Check) -> list[_Repair]:
    """The repairs that leave least findings in the lines of one layer."""
    found = []
    for number in own:
        for repair in _repairs([lines[n - 1] for n in own], lines[number - 1], number):
            given = [repair.text if n == number else lines[n - 1] for n in own]
            found.append(replace(repair, left=len(check(given))))
    least = min((repair.left for repair in found), default=0)
    return [repair for repair in found if repair.left == least][:MOST_REPAIRS]


def _name(line: str) -> str:
    return line.split(" ", 1)[0]


def _repairs(own: Sequence[str], line: str, number: int) -> Iterator[_Repair]:
    """A line of a layer with other numbers that the layer's lines show."""
    shown = {int(n) for each in own for n in NUMBER.findall(each.partition("FWD_AI")[0])}
    sizes = next((m for each in own if (m := PRODUCT.search(each))), None)
    for match in GROUPS.finditer(line):
        dims = [int(n) for n in match["cell"].split("*")]
        for at, size in enumerate(dims):
            others = _product(n for where, n in enumerate(dims) if where != at)
            for value in sorted({*shown, *_solved(others, match["bytes"], sizes)} - {size, 0}):
                cell = "*".join(map(str, [*dims[:at], value, *dims[at + 1 :]]))
                yield _with_cell(line, number, match, cell)


def _product(numbers: Iterator[int]) -> int:
    found = 1
    for number in numbers:
        found *= number
    return found


def _solved(others: int, size: str, sizes: re.Match[str] | None) -> Iterator[int]:
    """What a dimension may be by the bytes of its shape, and by the matrix product."""
    figure = read(size)
    if others and figure is not None:
        near = round(figure.value() / (BYTES * others))
        yield from (near - 1, near, near + 1)
    if sizes is None:
        return
    for axis in "mnk":
        value = int(sizes[axis])
        yield isqrt(value)
        if others and value % others == 0:
            yield value // others


def _with_cell(line: str, number: int, match: re.Match[str], cell: str) -> _Repair:
    start, end = match.span("cell")
    text = line[:start] + cell + line[end:]
    return _Repair(number, match["column"], match["cell"], cell, text, 0)
