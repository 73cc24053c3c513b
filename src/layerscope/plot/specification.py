"""Vega-Lite specifications: views with their data and variables, under one title with notes.

A specification holds its data. Texts of the network are values of data, of variables and of titles,
which Vega draws literally; expressions are constants of these files, and nothing is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from layerscope.escaping import visible
from layerscope.plot.text_width import shortened, wrapped
from layerscope.plot.theme import NOTE, TITLE, Spec, config

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
WIDTH = 860  # pixels of title, notes, and of axes with their labels
WRAPPED = 1.2  # lines of notes end earlier than their estimated width
# `chosen`: indices of selected layers. A mark of several layers is lit for any of them.
CHOSEN = (
    "(indexof(chosen, datum.layer) >= 0 || "
    "(length(chosen) > 0 && chosen[0] >= datum.first && chosen[0] <= datum.last))"
)


class Caption(Struct, frozen=True):
    """What stands above a chart: a title and notes, one sentence or more each."""

    title: str
    notes: tuple[str, ...] = ()


class ChartView(Struct, frozen=True):
    """One view: its Vega-Lite body, and the values of variables that its expressions read."""

    body: Spec
    variables: Spec = field(default_factory=dict)
    heading: str = ""  # above this view, where there are several


def specification(caption: Caption, views: Sequence[ChartView]) -> Spec:
    """The specification of one view, or of several below each other."""
    variables = {"chosen": []} | {name: v for view in views for name, v in view.variables.items()}
    bodies = [_headed(view) if len(views) > 1 else view.body for view in views]
    lines = wrapped(" ".join(caption.notes), WIDTH * WRAPPED, NOTE)
    return {
        "$schema": SCHEMA,
        "description": visible(caption.title),
        "usermeta": {
            "title": visible(caption.title), "notes": [visible(note) for note in caption.notes]
        },
        "title": {
            "text": shortened(caption.title, WIDTH, TITLE, bold=True),
            **({"subtitle": lines} if lines else {}),
        },
        "params": [{"name": name, "value": value} for name, value in variables.items()],
        **(bodies[0] if len(bodies) == 1 else {"vconcat": bodies}),
        "config": config(),
    }  # fmt: skip


def _headed(view: ChartView) -> Spec:
    if not view.heading:
        return view.body
    title = {"text": view.heading, "fontSize": NOTE, "offset": 8, "frame": "group"}
    return {"title": title, **view.body}


def layer(
    mark: Mapping[str, object],
    encoding: Mapping[str, object],
    *,
    test: str = "",
    data: Mapping[str, object] | None = None,
) -> Spec:
    """A layer of a view: its mark and channels, of the rows that pass a test; its own data."""
    return {
        **({"data": data} if data else {}),
        **({"transform": [{"filter": test}]} if test else {}),
        "mark": mark,
        "encoding": encoding,
    }


def number(name: str, **options: object) -> Spec:
    """A channel of a numeric field."""
    return {"field": name, "type": "quantitative", **options}


def text(name: str, **options: object) -> Spec:
    """A channel of a field of texts."""
    return {"field": name, "type": "nominal", **options}


def span(layers: Sequence[int]) -> Spec:
    """First and last index of consecutive layers; -1, which is no index, for others."""
    if not layers or max(layers) - min(layers) >= len(layers):
        return {"first": -1, "last": -1}
    return {"first": min(layers), "last": max(layers)}


def tooltips(fields: dict[str, str]) -> list[Spec]:
    """Lines of a tooltip: fields of texts, with their titles."""
    return [text(name, title=title) for name, title in fields.items()]
