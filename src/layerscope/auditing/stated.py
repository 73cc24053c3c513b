"""Lines outside of tables that state a number of parameters in bytes.

**Number of parameters: [ 474.706 MiB ]**
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from layerscope.auditing.findings import Finding

LONGEST = 2_000  # characters of a line
STATED = re.compile(
    r"(?P<label>(?:number of|#)\s*(?:(?:total|trainable|learnable)\s+)?param(?:eter)?s)"
    r"[\s*_`:：=(\[]{1,20}(?P<figure>\d[\d,.]{0,40}\s?(?:[KMGT]i?B|bytes))(?!\w)",
    re.IGNORECASE,
)


def stated_findings(
    lines: Sequence[str], used: Collection[int], tables: Sequence[tuple[int, int]]
) -> Iterator[Finding]:
    """One finding for each line; `tables` are lines of tables and their numbers.

    A line belongs to the table below it, and without one to the last.
    """
    for number, line in enumerate(lines, 1):
        match = STATED.search(line) if len(line) <= LONGEST and number not in used else None
        if match is None or not tables:
            continue
        below = [table for start, table in tables if start >= number]
        reason = "a number of parameters, stated in bytes"
        yield Finding(
            (below or [tables[-1][1]])[0], number, " ".join(match["label"].split()), "", "unit",
            match["figure"], "", reason, position=match.start("figure") + 1,
        )  # fmt: skip
