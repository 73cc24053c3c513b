"""The two findings under a sheet: rows with most memory, and rows with most params.

They name rows as the sheet does; names that several rows have get the number of the row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from msgspec import Struct

from layerscope.notations.sheet import SheetLine
from layerscope.report.findings import (
    FEW_LAYERS,
    Holder,
    half_of,
    listing,
    most,
    share_of,
    whole_text,
)
from layerscope.report.numbers import AT_LEAST

Name = Callable[[SheetLine], str]


class Sheet(Struct, frozen=True):
    """Rows of a sheet: their lines and names, and the number of rows by stage."""

    lines: Sequence[SheetLine]
    names: Sequence[str]
    stages: Sequence[str]  # such as "conv2_1 to conv2_10"; "" for a row that is in none
    sizes: dict[str, int]
    noun: str = "rows"


def sheet_findings(lines: Sequence[SheetLine], name: Name) -> tuple[str, ...]:
    """Sentences on memory and params; `name` is what the sheet prints for a line."""
    texts = [name(line) for line in lines]
    stages = _stages(lines, texts)
    sheet = Sheet(lines, _numbered(texts), stages, dict(Counter(stages)))
    memory = [line.elements or 0 for line in lines]
    params = [line.weights or 0 for line in lines]
    found = (("memory is", memory), ("params are", params))
    return tuple(_sentence(figure, counts, sheet) for figure, counts in found if any(counts))


def _sentence(figure: str, counts: Sequence[int], sheet: Sheet) -> str:
    """The finding on one figure; a few rows are also described by position and kind."""
    sign = "" if all(line.complete for line in sheet.lines) else AT_LEAST
    rows = {
        name: Holder(name, (stage,) if stage else (), count)
        for name, stage, count in zip(sheet.names, sheet.stages, counts, strict=True)
        if count
    }
    half = half_of(list(rows.values()))
    if len(half) > FEW_LAYERS:
        return most(figure, list(rows.values()), sheet, sign)
    named = [holder.name for holder in half]
    total = sum(counts)
    where = _where([sheet.names.index(name) for name in named], sheet.lines)
    rows_text = f"{where} ({listing(named)})" if where else listing(named)
    share, whole = share_of(half, total, sign), whole_text(total, sign)
    return f"Most {figure} in {rows_text}: {share} of {whole}."


def _where(chosen: Sequence[int], lines: Sequence[SheetLine]) -> str:
    """Such as "early CONV", if the rows are all in one half of the sheet or of one kind."""
    late = {2 * n >= len(lines) for n in chosen}
    kinds = {lines[n].kind for n in chosen}
    if "input" in kinds:
        return ""
    position = ("late" if late == {True} else "early") if len(late) == 1 else ""
    kind = kinds.pop().upper() if len(kinds) == 1 else "rows" if position else ""
    return " ".join(word for word in (position, kind) if word)


def _numbered(texts: Sequence[str]) -> list[str]:
    """Names of rows; one that several rows have is followed by the number of the row, from 1."""
    often = Counter(texts)
    return [
        f"{text} in row {n}" if often[text] > 1 else text for n, text in enumerate(texts, start=1)
    ]


def _stages(lines: Sequence[SheetLine], texts: Sequence[str]) -> list[str]:
    """The first and last row of each row's stage, if the sheet numbers rows by stage."""
    keys = [
        (line.kind, line.number.partition("_")[0])
        if "_" in line.number and text.endswith(line.number)
        else None
        for line, text in zip(lines, texts, strict=True)
    ]
    members: dict[tuple[str, str], list[str]] = {}
    for key, text in zip(keys, texts, strict=True):
        if key is not None:
            members.setdefault(key, []).append(text)
    return [
        "" if key is None or len(members[key]) < 2 else f"{members[key][0]} to {members[key][-1]}"
        for key in keys
    ]
