"""Whether a changed number of a Boda profile contradicts another, by arithmetic of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod

BYTES = 4
PREFIX = {"m": 1e-3, "": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
PRINTED = re.compile(r"([\d.]+)([mKMGT]?)(?:F/B|F|B)")
SIZES = re.compile(r"(\S+) input (\S+)=(\S+) filts (\S+)=(\S+) out (\S+)=(\S+)")
WORK = re.compile(r"(\S+) FWD (\S+) (\S+)\s+FWD_AI (\S+)\s+MxNxK=(\d+)x(\d+)x(\d+)(?: x(\d+))?")
SUMS = re.compile(r"fwd_input_bytes=(\S+) fwd_filt_bytes=(\S+) fwd_output_bytes=(\S+)")
# figures that are changed: headings as findings name them, and patterns
FIGURES = (
    ("input", r" input (\S+)="), ("filts", r" filts (\S+)="), ("out", r" out (\S+)="),
    ("input", r" input \S+=(\S+)"), ("filts", r" filts \S+=(\S+)"), ("out", r" out \S+=(\S+)"),
    ("FWD", r" FWD (\S+) "), ("bytes", r" FWD \S+ (\S+) "), ("FWD_AI", r"FWD_AI (\S+)"),
    ("MxNxK", r"MxNxK=(\d+x\d+x\d+)"), ("input", r"fwd_input_bytes=(\S+)"),
    ("filts", r"fwd_filt_bytes=(\S+)"), ("out", r"fwd_output_bytes=(\S+)"),
    ("FLOPs", r"^([\d.]+[KMGT]?F)\s*$"), ("bytes", r"^([\d.]+[KMGT]?B) AI="),
    ("AI", r"^[\d.]+[KMGT]?B AI=(\S+)"),
)  # fmt: skip


def _span(text: str) -> tuple[float, float]:
    """What a rounded figure stands for."""
    match = PRINTED.fullmatch(text)
    if match is None:
        return 0.0, float("inf")
    step = 10.0 ** -len(match[1].partition(".")[2])
    low, high = (float(match[1]) + side * step / 2 for side in (-1, 1))
    scale = PREFIX[match[2]] * (1 + 1e-9)
    return low * scale * (1 - 2e-9), high * scale


def relations(text: str) -> Iterator[tuple[str, bool]]:
    """Every relation of a profile by name, and whether it holds."""
    sums = [0.0, 0.0, 0.0]
    flops = least = most = 0.0
    layers: dict[str, tuple[list[int], list[int], list[int]]] = {}
    for number, line in enumerate(text.splitlines()):
        if match := SIZES.match(line):
            shapes = tuple([int(n) for n in match[at].split("*")] for at in (2, 4, 6))
            layers[match[1]] = (shapes[0], shapes[1], shapes[2])
            for at, shape in enumerate(shapes):
                sums[at] += BYTES * prod(shape)
                yield f"{number} bytes {at}", _is_in(BYTES * prod(shape), match[2 * at + 3])
            yield f"{number} depth", shapes[0][1] % max(shapes[1][1], 1) == 0
        elif (match := WORK.match(line)) and match[1] in layers:
            given, filters, out = layers[match[1]]
            m, n, k, groups = (int(match[at] or 1) for at in (5, 6, 7, 8))
            turned = n == filters[0] * prod(filters[2:]) and prod(filters[2:]) > 1
            macs = prod(given if turned else out) * prod(filters) // (
                given[1] if turned else filters[0]
            )  # fmt: skip
            biases = filters[0] * (groups if turned else 1)
            moved = BYTES * (prod(given) + prod(filters) + prod(out))
            flops, least, most = flops + 2 * macs, least + moved, most + moved + BYTES * biases
            yield f"{number} flops", _is_in(2 * macs, match[2])
            full = moved + BYTES * biases
            yield f"{number} moved", _meet(moved, full, match[3])
            yield f"{number} intensity", _meet(2 * macs / full, 2 * macs / moved, match[4])
            yield f"{number} product", m * n * k * groups == macs
            yield f"{number} columns", turned or n * groups == filters[0]
            yield f"{number} biases", biases == out[1]
        elif match := SUMS.search(line):
            yield from ((f"{number} sum {at}", _is_in(sums[at], match[at + 1])) for at in range(3))
        elif match := re.fullmatch(r"([\d.]+[KMGT]?F)\s*", line):
            yield f"{number} flops", _is_in(flops, match[1])
        elif match := re.match(r"([\d.]+[KMGT]?B) AI=(\S+)", line):
            yield f"{number} moved", _meet(least, most, match[1])
            yield f"{number} intensity", _meet(flops / most, flops / least, match[2])


def _is_in(number: float, text: str) -> bool:
    return _meet(number, number, text)


def _meet(low: float, high: float, text: str) -> bool:
    span = _span(text)
    return low <= span[1] and span[0] <= high


def boda_contradicts(right: str, changed: str) -> bool:
    """Whether a relation that holds in the right profile does not in the changed one."""
    before = dict(relations(right))
    return any(before.get(name) and not holds for name, holds in relations(changed))
