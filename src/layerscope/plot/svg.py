"""An SVG canvas: title, notes and legend above axes, lines, dots, bars and texts.

Title, notes and legend are laid out by the width of their texts, and the axes begin under them, so
that no text covers another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import floor, log10

from msgspec import Struct

from layerscope.escaping import html as escape
from layerscope.plot.text_width import flowed, shortened, text_width, wrapped

WIDTH, HEIGHT = 900, 420  # of the picture, and of the axes alone
LEFT, RIGHT, BOTTOM = 90, 30, 60
MARGIN = 20  # left and right of title, notes and legend
TITLE, LINE, SIZE = 26, 17, 12  # baseline of the title, distance of lines, font size of notes
INK, SOFT, LINES, GRID = "#1f2328", "#424a53", "#6e7781", "#e3e6ea"
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
            return self._decades((1,)) if len(self._decades((1,))) > 2 else self._decades((1, 2, 5))
        span = self.high - self.low
        if span <= 0:
            return [self.low]
        step = 10.0 ** floor(log10(span / 4))
        step *= next(m for m in (1, 2, 2.5, 5, 10) if span / (step * m) <= 6)
        count = int(span / step + 1e-9)
        return [self.low + n * step for n in range(count + 1)]

    def _decades(self, factors: Sequence[int]) -> list[float]:
        first, last = floor(log10(self.low)), floor(log10(self.high)) + 1
        found = [factor * 10.0**n for n in range(first, last + 1) for factor in factors]
        return [value for value in found if self.low <= value <= self.high]


class Key(Struct, frozen=True):
    """An entry of the legend: a dot of that colour, or a line with that dash pattern."""

    label: str
    colour: str
    dash: str | None = None  # None: a dot; "": a solid line

    @property
    def width(self) -> float:
        """Pixels of the sample, the label and the gap after them."""
        return (13 if self.dash is None else 34) + text_width(self.label, 11) + 14


class Header(Struct, frozen=True):
    """What stands above the axes: a title, notes and a legend."""

    title: str
    notes: tuple[str, ...] = ()
    keys: tuple[Key, ...] = ()


class TextStyle(Struct, frozen=True):
    """Anchor (start, middle, end), colour and font size of a text."""

    anchor: str = "start"
    colour: str = INK
    size: int = 12


PLAIN_TEXT = TextStyle()


class Canvas:
    """SVG elements in drawing order, with conversion from values to pixels."""

    def __init__(
        self, header: Header, x: PlotAxis, y: PlotAxis, *, left: int = LEFT, height: int = HEIGHT
    ) -> None:
        self.x, self.y, self.left = x, y, left
        self.parts: list[str] = []
        self.top = self._header(header)
        self.bottom = self.top + height
        self.height = self.bottom + BOTTOM

    def _header(self, header: Header) -> int:
        """Draw title, notes and legend; the result is where the axes begin."""
        room = WIDTH - 2 * MARGIN
        title = escape(shortened(header.title, room, 15, bold=True))
        self.parts.append(
            f'<text x="{MARGIN}" y="{TITLE}" fill="{INK}" font-size="15" font-weight="600">'
            f"{title}</text>"
        )
        down = TITLE + 2
        for line in [line for note in header.notes for line in wrapped(note, room, SIZE)]:
            down += LINE
            self.write(MARGIN, down, line, TextStyle(colour=SOFT, size=SIZE))
        positions = list(flowed([key.width for key in header.keys], room))
        down += LINE if positions else 0
        for key, (across, row) in zip(header.keys, positions, strict=True):
            self._key(key, MARGIN + across, down + LINE * row)
        return down + LINE * max([row for _, row in positions], default=0) + 14

    def _key(self, key: Key, across: float, down: float) -> None:
        if key.dash is None:
            self.parts.append(
                f'<circle cx="{across + 5:.1f}" cy="{down - 4}" r="4" fill="{key.colour}"/>'
            )
        else:
            self.parts.append(
                f'<line x1="{across:.1f}" x2="{across + 28:.1f}" y1="{down - 4}" y2="{down - 4}" '
                f'stroke="{key.colour}" stroke-width="1.5"{_dashes(key.dash)}/>'
            )
        begin = across + (13 if key.dash is None else 34)
        self.write(begin, down, key.label, TextStyle(size=11))

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Pixel coordinates of a point."""
        across = self.left + self.x.share(x) * (WIDTH - self.left - RIGHT)
        return across, self.bottom - self.y.share(y) * (self.bottom - self.top)

    def line(self, points: Sequence[tuple[float, float]], colour: str, dash: str = "") -> None:
        """A line through points."""
        where = " ".join("{:.1f},{:.1f}".format(*self.at(*point)) for point in points)
        self.parts.append(
            f'<polyline points="{where}" fill="none" stroke="{colour}" stroke-width="1.5"'
            f"{_dashes(dash)}/>"
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
        """A text at a point, moved by `dy` pixels and shortened to end inside the picture."""
        across, down = self.at(x, y)
        room = across - MARGIN if style.anchor == "end" else WIDTH - MARGIN - across
        self.write(across, down + dy, shortened(words, room, style.size), style)

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
        for axis, call in ((self.x, x_text), (self.y, y_text)):
            if call is None:
                continue
            frame += [self._tick(axis, v, call(v)) for v in axis.ticks()]
        middle = (self.left + WIDTH - RIGHT) / 2
        frame.append(
            f'<text x="{middle}" y="{self.height - 14}" fill="{SOFT}" font-size="12" '
            f'text-anchor="middle">{escape(self.x.title)}</text>'
        )
        if self.y.title:
            frame.append(
                f'<text transform="translate(18 {(self.top + self.bottom) / 2}) rotate(-90)" '
                f'fill="{SOFT}" font-size="12" text-anchor="middle">{escape(self.y.title)}</text>'
            )
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{self.height}" '
            f'viewBox="0 0 {WIDTH} {self.height}" font-family="system-ui, sans-serif">\n'
            '<rect width="100%" height="100%" fill="#ffffff"/>'
        )
        return "\n".join([head, *frame, *self.parts, "</svg>"]) + "\n"

    def _tick(self, axis: PlotAxis, value: float, words: str) -> str:
        if axis is self.x:
            across, _ = self.at(value, self.y.low)
            return (
                f'<line x1="{across:.1f}" x2="{across:.1f}" y1="{self.top}" y2="{self.bottom}" '
                f'stroke="{GRID}"/><text x="{across:.1f}" y="{self.bottom + 18}" fill="{SOFT}" '
                f'font-size="11" text-anchor="middle">{escape(words)}</text>'
            )
        _, down = self.at(self.x.low, value)
        return (
            f'<line x1="{self.left}" x2="{WIDTH - RIGHT}" y1="{down:.1f}" y2="{down:.1f}" '
            f'stroke="{GRID}"/><text x="{self.left - 8}" y="{down + 4:.1f}" fill="{SOFT}" '
            f'font-size="11" text-anchor="end">{escape(words)}</text>'
        )


def _dashes(pattern: str) -> str:
    return f' stroke-dasharray="{pattern}"' if pattern else ""
