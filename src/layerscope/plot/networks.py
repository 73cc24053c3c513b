"""Networks of a sweep as dots over two figures, and the front of those that none beats in both."""

from __future__ import annotations

from msgspec import Struct

from layerscope.errors import UnknownName, UsageError
from layerscope.escaping import visible
from layerscope.plot.log_axes import log_axis
from layerscope.plot.specification import (
    WIDTH,
    Caption,
    ChartView,
    layer,
    number,
    specification,
    text,
    tooltips,
)
from layerscope.plot.theme import Spec
from layerscope.report.numbers import (
    AT_LEAST,
    bytes_text,
    counted,
    exact_text,
    marked,
    short_text,
    time_text,
)
from layerscope.report.sweep_results import COLUMNS, SweepResults

HEIGHT = 420
NAMED = 16  # networks of the front whose names are drawn
MOST = 5_000  # dots that are drawn
FIGURES = tuple(name for name, column in COLUMNS.items() if column.kind != "text")
UNITS = {"count": "", "bytes": "B", "time": "s"}


class NetworkDot(Struct, frozen=True):
    """A network and its two figures, with their texts."""

    name: str
    x: float
    y: float
    x_text: str
    y_text: str
    front: bool = False  # no other network is smaller in one figure and not larger in the other


def networks(results: SweepResults, first: str, second: str) -> Spec:
    """Dots of all rows that have both figures, smaller is better, and the Pareto front."""
    for name in (first, second):
        if name not in FIGURES:
            raise UnknownName("figure", name, FIGURES, f"; choose from {', '.join(FIGURES)}")
    dots = front(_dots(results, first, second))
    if not dots:
        raise UsageError(f"{results.path}: no row has both {first} and {second}")
    best = [dot for dot in dots if dot.front]
    drawn = [*best, *(dot for dot in dots if not dot.front)][:MOST]
    titles = [COLUMNS[name].title for name in (first, second)]
    caption = Caption(
        f"{counted(len(dots), 'network')}: {titles[1]} over {titles[0]}",
        _notes(len(results.rows), dots, len(drawn)),
    )
    rows = [
        {"name": visible(dot.name), "x": dot.x, "y": dot.y, "first": dot.x_text,
         "second": dot.y_text, "front": dot.front,
         "label": visible(dot.name) if dot.front and n < NAMED else ""}
        for n, dot in enumerate(drawn)
    ]  # fmt: skip
    tips = tooltips({"name": "network", "first": titles[0], "second": titles[1]})
    axes = {
        "x": _axis("x", first, [dot.x for dot in drawn]),
        "y": _axis("y", second, [dot.y for dot in drawn]),
    }
    body: Spec = {
        "width": WIDTH - 90,
        "height": HEIGHT,
        "data": {"values": rows},
        "layer": [
            layer({"type": "line", "style": "roof", "interpolate": "step-after"},
                  {**axes, "order": number("x")}, test="datum.front"),
            layer({"type": "point", "filled": True, "size": 46, "style": "dot"},
                  {**axes, "tooltip": tips, "color": text("front", legend=None, scale={
                      "domain": [True, False], "range": "kinds"})}),
            *(layer({"type": "text", "style": style, "align": "left", "dx": 8, "dy": -8},
                    {**axes, "text": text("label")}, test="datum.label !== ''")
              for style in ("halo", "name")),
        ],
    }  # fmt: skip
    return specification(caption, [ChartView(body)])


def _dots(results: SweepResults, first: str, second: str) -> list[NetworkDot]:
    """The rows that have both figures; zeros have no place on a logarithmic axis."""
    names = results.column("name") if "name" in results.columns else []
    found = []
    pairs = zip(results.column(first), results.column(second), results.bounds, strict=True)
    for n, (x, y, bounds) in enumerate(pairs):
        if isinstance(x, (int, float)) and isinstance(y, (int, float)) and x > 0 and y > 0:
            name = str(names[n]) if names else str(n + 1)
            shown = _text(x, first, first in bounds), _text(y, second, second in bounds)
            found.append(NetworkDot(name, float(x), float(y), *shown))
    return found


def _text(value: int | float, column: str, bound: bool) -> str:
    kind = COLUMNS[column].kind
    if kind == "time":
        text = time_text(float(value))
    else:
        text = bytes_text(int(value)) if kind == "bytes" else exact_text(int(value))
    return marked(text, AT_LEAST if bound else "")


def front(dots: list[NetworkDot]) -> list[NetworkDot]:
    """The dots in the order of their first figure, with those of the Pareto front marked."""
    least = float("inf")
    found = []
    for dot in sorted(dots, key=lambda each: (each.x, each.y, each.name)):
        found.append(NetworkDot(dot.name, dot.x, dot.y, dot.x_text, dot.y_text, dot.y < least))
        least = min(least, dot.y)
    return found


def _axis(channel: str, column: str, values: list[float]) -> Spec:
    found = COLUMNS[column]
    unit = UNITS[found.kind]
    return log_axis(channel, f"{found.title} ({unit})" if unit else found.title, values)


def _notes(rows: int, dots: list[NetworkDot], drawn: int) -> tuple[str, ...]:
    best = sum(dot.front for dot in dots)
    notes = [
        f"Both axes are logarithmic, and smaller is better: {short_text(best)} of the networks "
        f"{'is' if best == 1 else 'are'} on the Pareto front, where no other is better in one "
        "figure and as good in the other."
    ]
    if rows > len(dots):
        notes.append(f"{counted(rows - len(dots), 'row')} without both figures: not drawn.")
    if len(dots) > drawn:
        notes.append(f"Only {drawn:,} of {len(dots):,} networks are drawn, the front first.")
    return tuple(notes)
