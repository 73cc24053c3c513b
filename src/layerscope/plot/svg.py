"""An SVG canvas with axes, lines, dots, bars and texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import floor, log10

from msgspec import Struct

from layerscope.escaping import html as escape

WIDTH, HEIGHT = 900, 520
LEFT, RIGHT, TOP, BOTTOM = 90, 20, 46, 60
INK, GREY, GRID = "#1f2328", "#6e7781", "#e3e6ea"
COLOURS = ("#0969da", "#bc4c00", "#1a7f37", "#8250df", "#bf3989", "#9a6700", "#57606a", "#0a7ea4")

Label = Callable[[float], str]


class PlotAxis(Struct, frozen=True):
    """Range and title of an axis, linear or logarithmic."""

    low: float
    high: float
    title: str
    log: bool = False

    def share(self, value: float) -> float:
        """Position of a value on the axis, from 0 to 1."""
        if self.log:
            return (log10(value) - log10(self.low)) / (log10(self.high) - log10(self.low))
        return (value - self.low) / (self.high - self.low) if self.high > self.low else 0.0

    def ticks(self) -> list[float]:
        """Values of the tick marks."""
        if self.log:
            first, last = floor(log10(self.low)), floor(log10(self.high)) + 1
            found = [10.0**n for n in range(first, last + 1)]
            return [value for value in found if self.low <= value <= self.high]
        span = self.high - self.low
        if span <= 0:
            return [self.low]
        step = 10.0 ** floor(log10(span / 4))
        step *= next(m for m in (1, 2, 2.5, 5, 10) if span / (step * m) <= 6)
        count = int(span / step + 1e-9)
        return [self.low + n * step for n in range(count + 1)]


class TextStyle(Struct, frozen=True):
    """Anchor (start, middle, end), colour and font size of a text."""

    anchor: str = "start"
    colour: str = INK
    size: int = 12


PLAIN_TEXT = TextStyle()


class Canvas:
    """SVG elements in drawing order, with conversion from values to pixels."""

    def __init__(
        self, title: str, x: PlotAxis, y: PlotAxis, *, left: int = LEFT, height: int = HEIGHT
    ) -> None:
        self.x, self.y, self.title = x, y, title
        self.left, self.height = left, height
        self.parts: list[str] = []

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Pixel coordinates of a point."""
        across = self.left + self.x.share(x) * (WIDTH - self.left - RIGHT)
        return across, self.height - BOTTOM - self.y.share(y) * (self.height - TOP - BOTTOM)

    def line(
        self, points: Sequence[tuple[float, float]], colour: str, dashed: bool = False
    ) -> None:
        """A line through points."""
        where = " ".join("{:.1f},{:.1f}".format(*self.at(*point)) for point in points)
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(
            f'<polyline points="{where}" fill="none" stroke="{colour}" stroke-width="1.5"{dash}/>'
        )

    def area(self, points: Sequence[tuple[float, float]], colour: str) -> None:
        """The filled area between a line and the x axis."""
        first, last = points[0][0], points[-1][0]
        corners = [(first, self.y.low), *points, (last, self.y.low)]
        where = " ".join("{:.1f},{:.1f}".format(*self.at(*point)) for point in corners)
        self.parts.append(f'<polygon points="{where}" fill="{colour}" fill-opacity="0.25"/>')

    def dot(self, x: float, y: float, radius: float, colour: str, tooltip: str) -> None:
        """A dot with a tooltip."""
        across, down = self.at(x, y)
        self.parts.append(
            f'<circle cx="{across:.1f}" cy="{down:.1f}" r="{radius:.1f}" fill="{colour}" '
            f'fill-opacity="0.7"><title>{escape(tooltip)}</title></circle>'
        )

    def text(
        self, x: float, y: float, words: str, style: TextStyle = PLAIN_TEXT, *, dy: float = 0
    ) -> None:
        """A text at a point, moved by `dy` pixels."""
        across, down = self.at(x, y)
        self.write(across, down + dy, words, style)

    def write(self, across: float, down: float, words: str, style: TextStyle = PLAIN_TEXT) -> None:
        """A text at pixel coordinates."""
        self.parts.append(
            f'<text x="{across:.1f}" y="{down:.1f}" fill="{style.colour}" '
            f'font-size="{style.size}" text-anchor="{style.anchor}">{escape(words)}</text>'
        )

    def bar(self, value: float, top: float, height: float, colour: str, tooltip: str) -> None:
        """A horizontal bar from 0 to `value`; `top` and `height` are pixels."""
        begin, _ = self.at(0, self.y.low)
        end, _ = self.at(value, self.y.low)
        self.parts.append(
            f'<rect x="{begin:.1f}" y="{top:.1f}" width="{max(end - begin, 0.5):.1f}" '
            f'height="{height:.1f}" fill="{colour}"><title>{escape(tooltip)}</title></rect>'
        )

    def render(self, *, x_text: Label | None = None, y_text: Label | None = None) -> str:
        """The SVG document; `x_text` and `y_text` format the tick labels."""
        frame: list[str] = []
        bottom = self.height - BOTTOM
        for axis, call in ((self.x, x_text), (self.y, y_text)):
            if call is None:
                continue
            frame += [self._tick(axis, v, call(v), bottom) for v in axis.ticks()]
        middle = (self.left + WIDTH - RIGHT) / 2
        frame.append(
            f'<text x="{middle}" y="{self.height - 14}" fill="{GREY}" font-size="12" '
            f'text-anchor="middle">{escape(self.x.title)}</text>'
        )
        frame.append(
            f'<text transform="translate(18 {(TOP + bottom) / 2}) rotate(-90)" fill="{GREY}" '
            f'font-size="12" text-anchor="middle">{escape(self.y.title)}</text>'
        )
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{self.height}" '
            f'viewBox="0 0 {WIDTH} {self.height}" font-family="system-ui, sans-serif">\n'
            '<rect width="100%" height="100%" fill="#ffffff"/>\n'
            f'<text x="{self.left}" y="26" fill="{INK}" font-size="15" font-weight="600">'
            f"{escape(self.title)}</text>"
        )
        return "\n".join([head, *frame, *self.parts, "</svg>"]) + "\n"

    def _tick(self, axis: PlotAxis, value: float, words: str, bottom: float) -> str:
        if axis is self.x:
            across, _ = self.at(value, self.y.low)
            return (
                f'<line x1="{across:.1f}" x2="{across:.1f}" y1="{TOP}" y2="{bottom}" '
                f'stroke="{GRID}"/><text x="{across:.1f}" y="{bottom + 18}" fill="{GREY}" '
                f'font-size="11" text-anchor="middle">{escape(words)}</text>'
            )
        _, down = self.at(self.x.low, value)
        return (
            f'<line x1="{self.left}" x2="{WIDTH - RIGHT}" y1="{down:.1f}" y2="{down:.1f}" '
            f'stroke="{GRID}"/><text x="{self.left - 8}" y="{down + 4:.1f}" fill="{GREY}" '
            f'font-size="11" text-anchor="end">{escape(words)}</text>'
        )
