"""Lines below a table that sum it up: counts of parameters, their bytes, and sizes in memory.

    Total params: 61,706 (241.04 KB)
    Trainable params: 61,706 (241.04 KB)
    Non-trainable params: 0 (0.00 B)
    Params size (MB): 0.24

What of them is a total of a column is checked with the column; here they are compared with each
other, and with the last row of torchstat's table.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from layerscope.auditing.findings import Finding
from layerscope.auditing.torchstat import is_torchstat
from layerscope.auditing.trees import CellKey, Relation, Span, TreeCell, findings_of, span_of
from layerscope.auditing.trees import sum_relation as sum_of
from layerscope.documents.figures import Figure, read
from layerscope.documents.headings import Meaning
from layerscope.sheets.sheet import Sheet

BELOW = 40  # lines below a table in which it may be summed up
LONGEST = 2_000  # characters of a line
TAGS = re.compile(r"<[^<>]*>")
LINE = re.compile(
    r"[\s*_`>|│-]*(?P<label>(?:total|trainable|non-trainable|optimizer)\s+(?:params?|parameters)"
    r"|total\s+(?:memory|madd|flops|memr\+w)"
    r"|(?:input|forward/backward pass|params|estimated total) size \(mb\))[\s*_`]*[:：][\s*_`]*"
    r"(?P<figure>\d[\d,.]*(?:[KMGT]?(?:B|MAdd|Flops))?)(?![\d\w])[\s*_`]*"
    r"(?P<more>\+)?(?:\(\s*(?P<bytes>[~≈]?\d[\d,.]*\s*[KMGT]?B)(?:ytes?)?\s*\))?",
    re.IGNORECASE,
)
PARTS = ("trainable", "non-trainable", "optimizer")
SIZES = ("input", "forward/backward", "params size")
BYTES = (4, 2, 1, 8)  # of a parameter
MIB = 2**20
REPEATED: dict[str, Meaning] = {
    "total memory": "memory", "total madd": "madds", "total flops": "flops",
    "total memr+w": "traffic", "total params": "params",
}  # fmt: skip


class _Line(Struct, frozen=True):
    """A figure of a footer, and the bytes behind it."""

    name: str  # the label in lower case
    cell: TreeCell
    figure: Figure
    bytes: TreeCell | None
    bytes_figure: Figure | None


def footer_findings(
    sheet: Sheet, lines: Sequence[str], end: int, found: Sequence[Finding], number: int
) -> Iterator[Finding]:
    """The contradictions between the lines below a table, before the line `end`.

    What `found` says of a cell is not said again.
    """
    last = sheet.table.last
    stop = min(end, last + BELOW, len(lines) + 1)
    below = [line for n in range(last + 1, stop) if (line := _line(lines[n - 1], n))]
    given = {each.name: each for each in reversed(below)}
    relations = [*_counts(given), *_bytes(given), *_sizes(given)]
    if is_torchstat(sheet):
        relations += _repeated(sheet, given, {finding.column for finding in found})
    elif not any("mult-adds" in line.lower() for line in lines[last:stop]):
        relations += _stored(given)
    wrong = {(finding.line, finding.printed) for finding in found}
    relations = [r for r in relations if not any((c.line, c.text) in wrong for c in r.cells)]
    relations += _summed(sheet, given)
    cells = {cell.key: cell for relation in relations for cell in relation.cells}
    yield from findings_of(relations, list(cells.values()), number)


def _summed(sheet: Sheet, given: Mapping[str, _Line]) -> Iterator[Relation]:
    """A total of parameters that is that of a column, and so no other."""
    stated = {row.line for row in sheet.rows if row.kind == "total"}
    total = _starting(given, "total param")
    if total is not None and total.cell.line in stated:
        yield Relation((total.cell,), lambda cell, _: cell.span, "the sum of the column")


def _line(text: str, number: int) -> _Line | None:
    plain = TAGS.sub("", text) if len(text) <= LONGEST else ""
    match = LINE.match(plain)
    if match is None:
        return None
    label = " ".join(match["label"].split())
    open_ = match["more"] and label.lower() not in REPEATED  # what is added is left open
    figure = read(match["figure"]) if not open_ else None
    if figure is None:
        return None
    at = _positions(text)
    cell = TreeCell(
        number, label, label, match["figure"], span_of(figure), at[match.start("figure")]
    )
    size = read(match["bytes"]) if match["bytes"] else None
    if size is None:
        return _Line(label.lower(), cell, figure, None, None)
    span = _in_bytes(size)
    stored = TreeCell(
        number, f"{label} (bytes)", label, match["bytes"], span, at[match.start("bytes")]
    )
    return _Line(label.lower(), cell, figure, stored, size)


def _positions(text: str) -> list[int]:
    """Where the characters of a line without its tags are in it, from 1."""
    tags = {n for tag in TAGS.finditer(text) for n in range(tag.start(), tag.end())}
    return [n + 1 for n in range(len(text)) if n not in tags]


def _in_bytes(figure: Figure) -> Span:
    low, high = figure.interval(1024)
    return (low - (high - low), high + (high - low)) if figure.about else (low, high)


def _starting(given: Mapping[str, _Line], word: str) -> _Line | None:
    return next((line for name, line in given.items() if name.startswith(word)), None)


def _counts(given: Mapping[str, _Line]) -> Iterator[Relation]:
    """All parameters are those that are trained, that are not, and those of the optimizer."""
    total = _starting(given, "total param")
    parts = [line.cell for word in PARTS if (line := _starting(given, f"{word} ")) is not None]
    if total is not None and len(parts) > 1:
        yield replace(sum_of(total.cell, parts, more=False), reason=_sum_text(parts))


def _sum_text(parts: Sequence[TreeCell]) -> str:
    return "the sum of " + " and ".join(part.column for part in parts)


def _bytes(given: Mapping[str, _Line]) -> Iterator[Relation]:
    """Bytes behind counts, by the bytes of a parameter that explain most of them."""
    pairs = [
        (line.bytes, line.cell, line.bytes_figure, line.figure.value())
        for line in given.values()
        if line.bytes is not None and line.bytes_figure is not None and line.figure.value()
    ]
    right = {
        size: sum(_meets(span.span, number * size) for span, _, _, number in pairs)
        for size in BYTES
    }
    size = max(BYTES, key=lambda each: right[each])
    if right[size] * 2 >= len(pairs):
        for stored, count, _, _ in pairs:
            yield times(stored, count, Fraction(size))


def _meets(span: Span, number: Fraction) -> bool:
    return span[0] <= number <= span[1]


def _sizes(given: Mapping[str, _Line]) -> Iterator[Relation]:
    """The estimated size is the sum of the others, in torchsummary and torchinfo."""
    total = _starting(given, "estimated")
    parts = [line.cell for word in SIZES if (line := _starting(given, word)) is not None]
    if total is not None and len(parts) == len(SIZES):
        yield replace(sum_of(total.cell, parts, more=False), reason=_sum_text(parts))


def _stored(given: Mapping[str, _Line]) -> Iterator[Relation]:
    """Parameters of four bytes, in MiB; torchinfo leaves some out."""
    stored, count = _starting(given, "params size"), _starting(given, "total param")
    if stored is not None and count is not None:
        yield times(stored.cell, count.cell, Fraction(4, MIB))


def _repeated(
    sheet: Sheet, given: Mapping[str, _Line], doubtful: Collection[str]
) -> Iterator[Relation]:
    """Totals of torchstat, which are those of its last row.

    In columns that are not doubtful that row is right: they add up to it.
    """
    claims = [c for row in sheet.rows if row.kind == "total" for c in row.claims if c.figure]
    for name, meaning in REPEATED.items():
        line = _starting(given, name)
        for claim in claims:
            if line is not None and claim.meaning == meaning and claim.figure is not None:
                scale, cell = claim.heading.scale, claim.cell
                base = 1024 if line.figure.unit == "byte" else 1000
                again = replace(line.cell, span=line.figure.interval(base))
                low, high = (end * scale for end in span_of(claim.figure))
                if high - low <= again.span[1] - again.span[0] + 1:  # printed as exactly
                    low = high = claim.figure.value() * scale
                printed = TreeCell(cell.line, claim.heading.text, "total", cell.text, (low, high))
                both = times(again, printed, Fraction(1))
                if claim.heading.text in doubtful:
                    yield both
                else:
                    yield Relation((again,), partial(_unchanged_span, printed.span), both.reason)


def _unchanged_span(span: Span, _cell: TreeCell, _spans: Mapping[CellKey, Span]) -> Span:
    return span


def times(one: TreeCell, other: TreeCell, factor: Fraction) -> Relation:
    """One figure is another times a number."""

    def solve(cell: TreeCell, spans: Mapping[CellKey, Span]) -> Span:
        if cell.key == one.key:
            low, high = spans[other.key]
            return low * factor, high * factor
        low, high = spans[one.key]
        return low / factor, high / factor

    reason = f"{float(factor):.6g} x {other.text}" if factor != 1 else f"the total is {other.text}"
    return Relation((one, other), solve, reason)
