"""Rows of a tree of modules, as torchinfo prints it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from layerscope.sheets.sheet import SheetRow

TREE = re.compile(r"[\s│├└─|+`\\]*(?:[├└]─|[|+`\\]--?)\s*")

DEPTH = re.compile(r":\s?(\d{1,3})-\d{1,6}\s*$")  # Conv2d: 2-1


def class_name(label: str) -> str:
    """The class of a module in a tree: `Sequential` of `├─Sequential: 1-5`."""
    mark = TREE.match(label)
    return label[mark.end() if mark else 0 :].partition(":")[0].partition("(")[0].strip()


def containers(rows: Sequence[SheetRow]) -> dict[int, tuple[int, int]]:
    """Rows of a tree with rows below them: the last row one level below, and the last of all."""
    marks = [TREE.match(row.label) for row in rows]
    numbers = [DEPTH.search(row.label) for row in rows]
    if 2 * sum(number is not None for number in numbers) > len(rows) > 2:
        depths = [int(number[1]) if number else 0 for number in numbers]
    elif sum(mark is not None for mark in marks) < 2:
        return {}
    else:
        depths = [mark.end() if mark else 0 for mark in marks]
    found: dict[int, tuple[int, int]] = {}
    above: list[int] = []  # rows that may have more rows below them
    for number, depth in enumerate([*depths, -1]):
        while above and depths[above[-1]] >= depth:
            row = above.pop()
            if row < number - 1:
                found[row] = (found[row][0], number - 1)
        if above:
            found[above[-1]] = (number, number)
        above.append(number)
    return found
