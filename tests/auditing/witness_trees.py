"""Whether a changed figure of fvcore's or ptflops' tree contradicts another, by own arithmetic.

Relations are written down for the right text: those that hold in it and not in the changed one are
contradictions. A module may compute or store something itself, so that it may have more than the
modules in it, and not less.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod

Range = tuple[float, float]
POWERS = {"": 0, "k": 3, "K": 3, "M": 6, "G": 9, "B": 9, "T": 12}
NUMBER = re.compile(r"(\d+)(?:\.(\d+))? ?([kKMGBT]?)(?:Mac|%)?")


def span(text: str) -> Range:
    """What a printed figure may stand for, rounded or cut; a blank is nothing."""
    if not text.strip():
        return 0.0, 0.0
    match = NUMBER.fullmatch(text.strip())
    assert match is not None, text
    digits, part, prefix = match[1], match[2] or "", match[3]
    value, unit = float(f"{digits}.{part or 0}"), 10.0 ** POWERS[prefix]
    step = 10.0 ** -len(part)
    if not part and not prefix and not text.endswith("%"):
        return value, value
    return (value - step / 2) * unit * (1 - 1e-12), (value + step) * unit * (1 + 1e-12)


def overlap(one: Range, two: Range) -> bool:
    return one[0] <= two[1] and two[0] <= one[1]


def total(parts: list[Range]) -> Range:
    return sum(p[0] for p in parts), sum(p[1] for p in parts)


def fvcore_relations(text: str) -> Iterator[bool]:
    """The sums of fvcore's table in the order of its rows."""
    rows = []
    for line in text.splitlines()[2:]:
        name, params, flops = line.strip("|\n").split("|")[:3]
        shape = re.findall(r"\d+", params) if "(" in params else None
        count = span(params) if shape is None else (float(prod(map(int, shape))),) * 2
        rows.append((len(name) - len(name.lstrip()), count, span(flops) if flops.strip() else None))
    for at, (depth, params_of, flops_of) in enumerate(rows):
        below = []
        for other in rows[at + 1 :]:
            if other[0] <= depth:
                break
            if other[0] == depth + 1:
                below.append(other)
        if below:
            yield overlap(params_of, total([row[1] for row in below]))
        given = [row[2] for row in below if row[2] is not None]
        if given and flops_of is not None:
            yield flops_of[1] >= total(given)[0]


LINE = re.compile(
    r"([\d.]+(?: [kMGBT])?), ([\d.]+%) Params, ([\d.]+ [KMGT]?Mac), ([\d.]+%) MACs, ?(.*)"
)
CONV = re.compile(r"(\d+), (\d+), kernel_size=\((\d+), (\d+)\)(.*)")
LINEAR = re.compile(r"in_features=(\d+), out_features=(\d+), bias=(True|False)")


def ptflops_relations(text: str) -> Iterator[bool]:
    """The sums, shares and parameters of ptflops' print in the order of its lines."""
    rows: list[tuple[int, str, list[Range], str]] = []
    kind, depth = "", 0
    for line in text.splitlines():
        if opened := re.match(r"\s*(?:\(\S+\): )?(\w+)\(", line):
            kind, depth = opened[1], len(line) - len(line.lstrip())
        if found := LINE.search(line):
            rows.append((depth, kind, [span(found[n]) for n in range(1, 5)], found[5]))
    whole = rows[0][2]
    for at, (deep, name, figures, rest) in enumerate(rows):
        below = []
        for other in rows[at + 1 :]:
            if other[0] <= deep:
                break
            if other[0] == deep + 2:
                below.append(other[2])
        for n in range(4):
            if below and name == "Sequential":
                yield overlap(figures[n], total([row[n] for row in below]))
            elif below:
                yield figures[n][1] >= total([row[n] for row in below])[0]
        for n in (0, 2) if at else ():
            value, share, of, percent = figures[n], figures[n + 1], whole[n], whole[n + 1]
            low, high = value[0] * percent[0] / of[1], value[1] * percent[1] / max(of[0], 1e-9)
            yield overlap(share, (low, high))
        if (conv := CONV.match(rest)) and name == "Conv2d":
            groups = re.search(r"groups=(\d+)", conv[5])
            size = prod(int(conv[n]) for n in (1, 2, 3, 4)) // int(groups[1] if groups else 1)
            count = size + (0 if "bias=False" in conv[5] else int(conv[2]))
            yield overlap(figures[0], (count, count))
        if linear := LINEAR.match(rest):
            count = (int(linear[1]) + (linear[3] == "True")) * int(linear[2])
            yield overlap(figures[0], (count, count))


RELATIONS = {"fvcore": fvcore_relations, "ptflops": ptflops_relations}


def tree_contradicts(right: str, changed: str, notation: str) -> bool:
    """Whether a relation of the right text does not hold in the changed one."""
    relations = RELATIONS[notation]
    try:
        pairs = list(zip(relations(right), relations(changed), strict=True))
    except (ValueError, AssertionError):
        return False  # another number of rows
    return any(before and not after for before, after in pairs)
