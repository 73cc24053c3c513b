"""A published figure, and the conventions that give it at its printed precision."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fractions import Fraction

from msgspec import Struct

from layerscope.conventions import convention
from layerscope.errors import LayerscopeError, UsageError
from layerscope.graph.types import Shape
from layerscope.limits import MOST_SIZE
from layerscope.report.explain import Explanation, explain
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


class PrintedFigure(Struct, frozen=True):
    """A rounded figure as printed; without a unit prefix it may have several scales."""

    text: str
    value: Fraction
    half: Fraction  # half a unit of the last printed digit
    scales: tuple[int, ...]
    word: str  # its unit, such as "flop" or "param"; "" if none is printed

    def gives(self, exact: int) -> bool:
        """Whether the exact figure rounds to this one."""
        return any(
            (self.value - self.half) * scale <= exact <= (self.value + self.half) * scale
            for scale in self.scales
        )

    def off(self, exact: int) -> Fraction:
        """Relative distance from the exact figure, at the nearest scale."""
        return min(abs(self.value * scale - exact) / exact for scale in self.scales)


class FigureSource(Struct, frozen=True):
    """A figure of one convention on one input."""

    name: str
    what: str
    value: int
    input: str = ""  # if it is not the input asked for

    def __str__(self) -> str:
        at = f", on {self.input}" if self.input else ""
        return f"{self.name}: {self.what} = {self.value:,}{at}"


class Answer(Struct, frozen=True):
    """The figure asked for, conventions that give it, and the nearest ones if none does."""

    figure: PrintedFigure
    matches: tuple[FigureSource, ...]
    nearest: tuple[FigureSource, ...]


def parse_figure(text: str) -> PrintedFigure:
    """A figure such as 4.11G, 4.09, "8.2 GFLOPs" or 25.6M."""
    match = FIGURE.fullmatch(text.strip()) if isinstance(text, str) else None
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
    return PrintedFigure(text.strip(), value, Fraction(1, 2 * 10**decimals), scales, word)


def find(
    explained: Explanation, figure: PrintedFigure, again: Callable[[Shape], Report] | None = None
) -> Answer:
    """Conventions that give the figure; `again` analyzes another input shape if none does."""
    sources = list(_sources(explained, figure))
    matches = [source for source in sources if figure.gives(source.value)]
    if not matches and again is not None:
        matches = list(_on_other_sizes(explained, figure, again))
    near = sorted([s for s in sources if s.value], key=lambda source: figure.off(source.value))
    return Answer(figure, tuple(matches), () if matches else tuple(near[:3]))


def _sources(explained: Explanation, figure: PrintedFigure) -> Iterator[FigureSource]:
    """Figures that may have been published, the likeliest first."""
    if figure.word not in ("param", "parameter"):
        yield from _counts(explained)
    if figure.word in ("", "param", "parameter"):
        yield from _params(explained)


def _counts(explained: Explanation) -> Iterator[FigureSource]:
    report = explained.report
    flops, macs = report.totals.flops, explained.macs
    head = _head(report)
    yield FigureSource("exact", "multiply-adds of convolutions and products", macs)
    yield FigureSource("exact", "FLOPs at two per multiply-add", 2 * macs)
    yield FigureSource("exact", "FLOPs of everything", flops)
    for said in explained.opinions:
        if convention(said.name).equals_macs:
            continue
        yield FigureSource(said.name, said.figure, said.value)
        if said.flops is not None:
            yield FigureSource(said.name, "FLOPs", said.flops)
        if said.value != said.macs:
            yield FigureSource(
                said.name, f"{said.figure} taken for twice the multiply-adds", said.macs
            )
        else:
            yield FigureSource(said.name, f"{said.figure}, doubled", 2 * said.value)
    if head:
        yield FigureSource("exact", "multiply-adds without the head", macs - head[0])
        yield FigureSource(
            "exact", "FLOPs at two per multiply-add without the head", 2 * (macs - head[0])
        )


def _params(explained: Explanation) -> Iterator[FigureSource]:
    yield FigureSource("exact", "parameters", explained.params)
    used = explained.params - sum(p.elements for p in explained.report.graph.unused)
    if used != explained.params:
        yield FigureSource("exact", "parameters that this forward uses", used)
    buffers = explained.report.totals.buffers
    if buffers:
        yield FigureSource(
            "exact", "parameters and statistics of norms", explained.params + buffers
        )
    head = _head(explained.report)
    if head:
        yield FigureSource("exact", "parameters without the head", explained.params - head[1])
    for said in explained.opinions:
        if said.params != explained.params:
            yield FigureSource(said.name, "parameters", said.params)


def _head(report: Report) -> tuple[int, int] | None:
    """Multiply-adds and parameters of the last layer, if that is a linear one."""
    last = next((x for x in reversed(report.layers) if x.ops.mac), None)
    if last is None or last.op != "linear":
        return None
    return last.ops.mac, last.params


def _on_other_sizes(
    explained: Explanation, figure: PrintedFigure, again: Callable[[Shape], Report]
) -> Iterator[FigureSource]:
    """The same figures on images of other sizes, where the network accepts them."""
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
        for source in _counts(other):
            if figure.gives(source.value):
                yield FigureSource(source.name, source.what, source.value, f"{side}x{side}")
