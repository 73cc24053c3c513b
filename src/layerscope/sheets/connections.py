"""Which row a row says it is connected to, by its name."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import islice

from layerscope.sheets.kinds import plain
from layerscope.sheets.sheet import Sheet, SheetRow

FAR = 200  # rows above among which a name that is cut is looked for


class RowNames:
    """The rows of a sheet by what their cells call them."""

    def __init__(self, rows: Sequence[SheetRow]) -> None:
        self._names = [
            tuple(plain(text).split(" (")[0] for text in (row.named, row.label)) for row in rows
        ]
        self._rows: dict[str, list[int]] = {}
        for number, names in enumerate(self._names):
            for name in dict.fromkeys(names):
                self._rows.setdefault(name, []).append(number)

    def before(self, number: int, name: str) -> tuple[int, ...]:
        """The rows before another that a name can stand for: a name that is cut is a beginning.

        None where the row above is one of several, because it is the usual one.
        """
        beginning, cut, _ = name.partition("…")
        if not cut:
            rows = self._rows.get(name, [])
            at = bisect_left(rows, number)
            return (rows[at - 1],) if at else ()
        near = range(number - 1, max(number - FAR, 0) - 1, -1)
        found = (n for n in near if any(each.startswith(beginning) for each in self._names[n]))
        last = tuple(islice(found, 2))
        return () if len(last) > 1 and last[0] == number - 1 else last


def connected_to(sheet: Sheet, row: SheetRow, number: int, names: RowNames) -> tuple[int, ...]:
    """The rows before row `number` that it may say it is connected to; none if it says none."""
    text = plain(row.text(sheet.column("connected")))
    first = re.search(r"[^\[\]'\",\s]+", text)  # ['conv1[0][0]']
    return names.before(number, first[0]) if first is not None else ()
