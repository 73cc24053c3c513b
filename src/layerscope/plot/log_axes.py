"""Logarithmic axes of charts."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10

from layerscope.plot.specification import number
from layerscope.plot.theme import Spec


def log_axis(channel: str, title: str, values: Sequence[float]) -> Spec:
    """An axis with a line at every power of ten, and between them if these are few.

    Values between two lines extend the axis to both, so that it has figures.
    """
    least, most = min(values), max(values)
    low, high = floor(log10(least)), ceil(log10(most))
    steps = (1,) if high - low > 2 else (1, 2, 5)
    ticks = [step * 10.0**power for power in range(low, high + 1) for step in steps]
    scale: Spec = {"type": "log", "nice": False, "padding": 18}
    if sum(least <= tick <= most for tick in ticks) < 2:
        below = [tick for tick in ticks if tick <= least]
        above = [tick for tick in ticks if tick >= most]
        scale["domain"] = [max(below, default=least), min(above, default=most)]
    axis = {"title": title, "format": "~s", "values": ticks}
    return number(channel, scale=scale, axis=axis)
