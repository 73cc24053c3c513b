"""Horizontal bars: names on the left, and the printed figure beside each bar."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from layerscope.escaping import visible
from layerscope.plot.specification import (
    CHOSEN,
    WIDTH,
    ChartView,
    layer,
    number,
    span,
    text,
    tooltips,
)
from layerscope.plot.text_width import shortened, text_width
from layerscope.plot.theme import LABEL, TONES, Spec

STEP = 20  # pixels of a bar and the space around it
GAP = 8  # pixels from a name to its bar
NAMES = 0.42  # share of the width that names take at most
BYTES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))
SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))
BAR = {"type": "bar", "height": {"band": 0.72}, "cornerRadiusEnd": 1}
Units = tuple[tuple[float, str], ...]


class Bar(Struct, frozen=True):
    """A bar: its full name, its value, and the texts beside it and in its tooltip."""

    name: str
    value: float | None  # None: unknown
    text: str  # as the command line prints it
    share: str = ""  # of the total, in percent
    tone: str = "plain"
    kind: str = ""
    layer: int | None = None  # index of its first layer, or of that with most operations
    layers: tuple[int, ...] = ()  # indices of all
    interval: tuple[float, float] | None = None


class Measure(Struct, frozen=True):
    """What bars measure: its title, what shares are of, and its units."""

    title: str
    whole: str
    units: Units = ()  # () for counts, whose axis has SI prefixes
    variable: str = "names"  # the variable with the names of the rows
    whole_value: float = 0.0  # at the end of the axis, which then has no labels; 0: the largest


def names_width(rows: Sequence[Bar], most: float = WIDTH * NAMES) -> float:
    """Pixels of the longest name, at most `most`."""
    return min(max((text_width(row.name, LABEL) for row in rows), default=0.0), most)


def bars(rows: Sequence[Bar], measure: Measure, left: float | None = None) -> ChartView:
    """The view of some bars, from above to below; `left` is the pixels of names and axis."""
    left = names_width(rows) + GAP if left is None else left
    beside = 12 + max((text_width(_beside(row), LABEL) for row in rows), default=0.0)
    ends = [row.value for row in rows if row.value is not None]
    ends += [row.interval[1] for row in rows if row.interval is not None]
    most = measure.whole_value or max(ends, default=0)
    scale = {
        "domain": [0, most or 1], "nice": False,
        "range": [0, {"expr": f"max(width - {beside:.0f}, 40)"}],
    }  # fmt: skip
    x = number("value", stack=None)
    first = {**x, "axis": _axis(most, measure), "scale": scale}
    tips = tooltips(_fields_with_text({"name": "layer", "kind": "type", "text": measure.title,
                           "share": measure.whole}, rows))  # fmt: skip
    said = {"tooltip": tips, "description": text("said")}
    tones = text("tone", legend=None, scale={"domain": list(TONES), "range": "tones"})
    beside_end = {"type": "text", "align": "left", "dx": 6}
    layers = [
        layer({**BAR, "aria": True}, {"x": first, "color": tones, **said}),
        layer({**BAR, "style": "chosen"}, {"x": x}, test=CHOSEN),
        layer(
            {**beside_end, "style": "value"},
            {"x": number("end"), "text": text("beside")},
            test="datum.value !== null",
        ),
        layer(
            {**beside_end, "style": "unknown", "text": "?", "aria": True},
            {"x": {"datum": 0, "type": "quantitative"}, **said},
            test="datum.value === null",
        ),
    ]
    if any(row.interval is not None for row in rows):
        ends_of = {"x": number("low"), "x2": {"field": "high"}}
        rule = {"type": "rule", "style": "interval"}
        layers.insert(2, layer(rule, ends_of, test="datum.low !== null"))
    body: Spec = {
        "width": int(WIDTH - left),
        "height": {"step": STEP},
        "data": {"name": "rows", "values": [_datum(n, row) for n, row in enumerate(rows)]},
        "encoding": {"y": _rows(len(rows), measure.variable)},
        "layer": layers,
    }
    names = [shortened(row.name, left - GAP, LABEL) for row in rows]
    return ChartView(body, {measure.variable: names})


def _fields_with_text(fields: dict[str, str], rows: Sequence[Bar]) -> dict[str, str]:
    """The fields that a row has a text for."""
    return {name: title for name, title in fields.items() if any(getattr(r, name) for r in rows)}


def _beside(row: Bar) -> str:
    return " · ".join(filter(None, (row.text, row.share)))


def _datum(n: int, row: Bar) -> Spec:
    low, high = row.interval or (None, None)
    name, beside = visible(row.name), _beside(row)
    return {
        "n": n, "name": name, "value": row.value, "text": row.text, "share": row.share,
        "beside": beside, "said": f"{name}: {beside}", "tone": row.tone, "kind": visible(row.kind),
        "layer": row.layer, **span(row.layers), "low": low, "high": high,
        "end": high if low else row.value,
    }  # fmt: skip


def _rows(count: int, variable: str) -> Spec:
    return {
        "field": "n", "type": "ordinal", "scale": {"domain": list(range(count))},
        "axis": {
            "title": None, "grid": False, "aria": False, "labelExpr": f"{variable}[datum.value]",
        },
    }  # fmt: skip


def _axis(longest: float, measure: Measure) -> Spec:
    if measure.whole_value:
        return {"title": None, "labels": False, "grid": False}
    if not measure.units:
        label, title = "format(datum.value, '~s')", measure.title
    else:
        scale, unit = unit_of(longest, measure.units)
        label, title = f"format(datum.value / {scale:g}, '~g')", f"{measure.title} ({unit})"
    return {
        "title": title, "titleAnchor": "start", "labelExpr": label, "tickCount": 6,
        "labelFlush": False,
    }  # fmt: skip


def unit_of(value: float, units: Units) -> tuple[float, str]:
    """The largest unit that the value has at least one of."""
    return next((each for each in units if value >= each[0]), units[-1])
