"""Fonts and colours of the charts, in a light and a dark theme, as a Vega-Lite config.

Specifications name styles and ranges and have no colour of their own: another theme is another
config. Warm colours show quantity, the accent shows what is selected, all else is grey-blue.
"""

from __future__ import annotations

from bisect import bisect_right
from fractions import Fraction

from msgspec import Struct

from layerscope.errors import UnknownName

Spec = dict[str, object]

FONT = (
    '"SF Pro Text", -apple-system, "Segoe UI Variable Text", "Segoe UI", Roboto, "Helvetica Neue", '
    'Arial, "Liberation Sans", sans-serif'
)
TITLE, NOTE, LABEL = 15, 12, 11  # font sizes in pixels
LINE = 17  # pixels from one line of notes to the next
# Shares of a total at which the next class of heat begins; each step doubles.
HEAT_STEPS = tuple(Fraction(n, 100) for n in (1, 2, 4, 8, 16, 32))
VISIBLE = 3  # least class of a bar, which stands on the surface without an outline
TONES = ("heat3", "heat4", "heat5", "heat6", "heat7", "plain", "quiet")
KINDS = ("products", "others")  # of the dots of a roofline


class Theme(Struct, frozen=True):
    """Colours by their use."""

    surface: str
    line: str
    edge: str
    ink: tuple[str, str, str]  # of titles, of notes and values, of axis labels
    accent: str
    warning: str
    bar: str
    area: str
    area_line: str
    heat: tuple[str, ...]  # classes 1 to 7


THEMES = {
    "light": Theme(
        "#ffffff", "#e1e4ea", "#9aa3b1", ("#14181f", "#454d59", "#626c7a"), "#1a5fcc", "#8a5a00",
        "#aab4c3", "#d3dbe8", "#7f8ea6",
        ("#fbf2d9", "#f4dfb7", "#efca97", "#ecb379", "#e99a5e", "#e58147", "#e06537"),
    ),
    "dark": Theme(
        "#14181f", "#252c37", "#5d6878", ("#e9edf3", "#b0bac7", "#8d98a8"), "#7db1ff", "#e8b45a",
        "#566274", "#25303f", "#7288a8",
        ("#4a2622", "#693425", "#884521", "#a6580c", "#c37020", "#d58d2c", "#e3ab3e"),
    ),
}  # fmt: skip


def tone(share: Fraction | float) -> str:
    """The tone of a bar by its share of the total."""
    return f"heat{max(1 + bisect_right(HEAT_STEPS, share), VISIBLE)}"


def config(name: str = "light") -> Spec:
    """The Vega-Lite config of a theme."""
    if name not in THEMES:
        raise UnknownName("theme", name, THEMES, f"; choose from {', '.join(THEMES)}")
    theme = THEMES[name]
    ink, soft, faint = theme.ink
    return {
        "background": theme.surface,
        "padding": 16,
        "font": FONT,
        "title": {
            "anchor": "start", "frame": "bounds", "offset": 14, "fontSize": TITLE,
            "fontWeight": 600, "color": ink, "subtitleColor": soft, "subtitleFontSize": NOTE,
            "subtitleLineHeight": LINE, "subtitlePadding": 5, "dx": 0,
        },
        "view": {"stroke": None},
        "mark": {"aria": False},  # marks with a description turn it on
        "concat": {"spacing": 34},
        "axis": {
            "domain": False, "ticks": False, "gridColor": theme.line, "labelColor": faint,
            "labelFontSize": LABEL, "labelPadding": 7, "titleColor": soft, "titleFontSize": LABEL,
            "titleFontWeight": "normal", "titlePadding": 8, "labelLimit": 400,
        },
        "range": {
            "tones": [*theme.heat[VISIBLE - 1 :], theme.area_line, theme.bar],
            "kinds": [theme.heat[5], theme.area_line],
        },
        "style": _styles(theme),
    }  # fmt: skip


def _styles(theme: Theme) -> Spec:
    """Marks by their use; Vega-Lite reads them from `config.style`."""
    ink, soft, faint = theme.ink
    text = {"fontSize": LABEL, "color": soft, "baseline": "middle"}
    return {
        "name": {**text, "color": ink},
        "value": text,
        "faint": {**text, "color": faint},
        "halo": {**text, "stroke": theme.surface, "strokeWidth": 4, "strokeJoin": "round"},
        "unknown": {**text, "color": theme.warning, "fontWeight": 600},
        "unknown_tick": {"color": theme.warning, "thickness": 2},
        "area": {"color": theme.area},
        "outline": {"color": theme.area_line, "strokeWidth": 1.5},
        "bound": {"color": theme.warning, "strokeWidth": 1.5},
        "interval": {"color": soft, "strokeWidth": 1},
        "peak": {"color": theme.heat[6], "strokeWidth": 1, "strokeDash": [3, 3]},
        "peak_dot": {"color": theme.heat[6], "stroke": theme.surface, "strokeWidth": 1.5},
        "roof": {"color": soft, "strokeWidth": 1.25},
        "ridge": {"color": theme.edge, "strokeWidth": 1, "strokeDash": [2, 3]},
        "bracket": {"color": theme.edge, "strokeWidth": 1},
        "dot": {"fillOpacity": 0.45, "strokeWidth": 1},
        "chosen": {"color": theme.accent},
        "chosen_step": {"color": theme.accent, "fillOpacity": 0.3},
    }
