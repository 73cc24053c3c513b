"""A published figure, and which ways of counting give it at its printed precision."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from msgspec import Struct

from layerscope.errors import LayerscopeError, UsageError
from layerscope.limits import MOST_SIZE
from layerscope.report.explain import Explained, explain
from layerscope.report.quantities import DIGITS, shown
from layerscope.report.types import Report

SCALES = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "B": 10**9, "G": 10**9, "T": 10**12}
FIGURE = re.compile(
    r"(\d+(?:[,_]\d{3})*(?:\.\d+)?)\s*([kKMBGT]?)\s*-?"
    r"(FLOPs?|FLOPS|flops?|MACs?|macs?|Mult-Adds|mult-adds|MAdds?|params?|parameters)?",
    re.ASCII,
)
# Sides of the images that networks are published for.
SIDES = (192, 224, 227, 231, 240, 256, 260, 288, 299, 300, 320, 331, 336, 380, 384, 416, 448, 456,
         512, 518, 528, 560, 600, 640)  # fmt: skip


class Figure(Struct, frozen=True):
    """A figure as printed: between which bounds the exact one lies, for each scale it may have."""

    text: str
    value: Fraction
    half: Fraction  # of the last printed digit
    scales: tuple[int, ...]
    word: str  # what it is said to count, "" if that is not said

    def gives(self, exact: int) -> bool:
        """Whether the exact figure is printed so, rounded."""
        return any(
            (self.value - self.half) * scale <= exact <= (self.value + self.half) * scale
            for scale in self.scales
        )

    def off(self, exact: int) -> Fraction:
        """How far the nearest reading is from the exact figure, as a share of that."""
        return min(abs(self.value * scale - exact) / exact for scale in self.scales)


class Match(Struct, frozen=True):
    """A way of counting that gives the figure."""

    name: str
    what: str
    value: int
    input: str = ""  # where it is another than was asked for

    def __str__(self) -> str:
        at = f", on {self.input}" if self.input else ""
        return f"{self.name}: {self.what} = {self.value:,}{at}"


class Answer(Struct, frozen=True):
    """The figure asked for, and where it may come from; else what comes nearest."""

    figure: Figure
    matches: tuple[Match, ...]
    nearest: tuple[Match, ...]


def parse_figure(text: str) -> Figure:
    """A figure such as 4.11G, 4.09, "8.2 GFLOPs" or 25.6M."""
    match = FIGURE.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"--figure {shown(text)}: expected a number such as 4.11G, 4.09, 25.6M or '8.2 GFLOPs'"
        )
    digits = match[1].replace(",", "").replace("_", "")
    if len(digits) > DIGITS or Fraction(digits) * SCALES[match[2]] > MOST_SIZE:
        raise UsageError(f"--figure {shown(text)}: more than 2^63 - 1, or {DIGITS} digits")
    decimals = len(digits.partition(".")[2])
    value = Fraction(digits)
    plain = not match[2] and (decimals or value < 10**4)
    scales = tuple(sorted({1, *SCALES.values()})) if plain else (SCALES[match[2]],)
    word = (match[3] or "").lower().rstrip("s")
    return Figure(text.strip(), value, Fraction(1, 2 * 10**decimals), scales, word)


def find(
    explained: Explained, figure: Figure, again: Callable[[Any], Report] | None = None
) -> Answer:
    """Ways of counting that give the figure; `again` analyzes on another input if none does."""
    ways = list(_ways(explained, figure))
    matches = [way for way in ways if figure.gives(way.value)]
    if not matches and again is not None:
        matches = list(_elsewhere(explained, figure, again))
    near = sorted((way for way in ways if way.value), key=lambda way: figure.off(way.value))
    return Answer(figure, tuple(matches), () if matches else tuple(near[:3]))


def _ways(explained: Explained, figure: Figure) -> Iterator[Match]:
    """Every figure that somebody may have printed, the likeliest first."""
    if figure.word not in ("param", "parameter"):
        yield from _counts(explained)
    if figure.word in ("", "param", "parameter"):
        yield from _params(explained)


def _counts(explained: Explained) -> Iterator[Match]:
    report = explained.report
    flops, macs = report.totals.flops, explained.macs
    head = _head(report)
    yield Match("exact", "multiply-adds of convolutions and products", macs)
    yield Match("exact", "FLOPs at two per multiply-add", 2 * macs)
    yield Match("exact", "FLOPs of everything", flops)
    for said in explained.opinions:
        if said.name in ("torchvision",):
            continue
        yield Match(said.name, said.figure, said.value)
        if said.flops is not None:
            yield Match(said.name, "FLOPs", said.flops)
        if said.value != said.macs:
            yield Match(said.name, f"{said.figure} taken for twice the multiply-adds", said.macs)
        else:
            yield Match(said.name, f"{said.figure}, doubled", 2 * said.value)
    if head:
        yield Match("exact", "multiply-adds without the head", macs - head[0])
        yield Match("exact", "FLOPs at two per multiply-add without the head", 2 * (macs - head[0]))


def _params(explained: Explained) -> Iterator[Match]:
    yield Match("exact", "parameters", explained.params)
    used = explained.report.totals.params
    if used != explained.params:
        yield Match("exact", "parameters that this forward uses", used)
    buffers = explained.report.totals.buffers
    if buffers:
        yield Match("exact", "parameters and statistics of norms", explained.params + buffers)
    head = _head(explained.report)
    if head:
        yield Match("exact", "parameters without the head", explained.params - head[1])
    for said in explained.opinions:
        if said.params != explained.params:
            yield Match(said.name, "parameters", said.params)


def _head(report: Report) -> tuple[int, int] | None:
    """Multiply-adds and parameters of the last layer, if that is a linear one."""
    last = next((x for x in reversed(report.layers) if x.ops.mac), None)
    if last is None or last.op != "linear":
        return None
    return last.ops.mac, last.params


def _elsewhere(
    explained: Explained, figure: Figure, again: Callable[[Any], Report]
) -> Iterator[Match]:
    """The same ways on images of other sizes, where the network takes them."""
    shape = explained.report.inputs[0].shape
    if shape is None or len(shape) != 4 or shape[2] != shape[3]:
        return
    names = [said.name for said in explained.opinions]
    for side in SIDES:
        if side == shape[2]:
            continue
        try:
            other = explain(again((*shape[:2], side, side)), names)
        except LayerscopeError:
            continue
        for way in _counts(other):
            if figure.gives(way.value):
                yield Match(way.name, way.what, way.value, f"{side}x{side}")
