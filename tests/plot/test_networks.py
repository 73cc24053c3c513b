"""Networks over two figures: the Pareto front by brute force, texts, and what is left out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layerscope.errors import UsageError
from layerscope.plot.networks import NetworkDot, front, networks
from layerscope.report.sweep_results import SweepResults

POINTS = st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)), min_size=1, max_size=30)


def beats(a: NetworkDot, b: NetworkDot) -> bool:
    """Whether one is better in one figure and not worse in the other."""
    return a.x <= b.x and a.y <= b.y and (a.x, a.y) != (b.x, b.y)


@given(POINTS)
def test_the_front_is_what_no_other_beats(points: list[tuple[int, int]]) -> None:
    dots = [NetworkDot(str(n), float(x), float(y), "", "") for n, (x, y) in enumerate(points)]
    found = front(dots)
    assert sorted(dot.name for dot in found) == sorted(dot.name for dot in dots)
    for dot in found:
        beaten = any(beats(other, dot) for other in found)
        twin = any(o.name != dot.name and (o.x, o.y) == (dot.x, dot.y) and o.front for o in found)
        assert dot.front == (not beaten and not (twin and not dot.front))


def results(*rows: tuple[str, int | None, int | None]) -> SweepResults:
    bounds = tuple(frozenset({"macs"}) if name == "bound" else frozenset() for name, *_ in rows)
    return SweepResults("r.sqlite", ("name", "params", "macs"), rows, bounds, len(rows))


def test_rows_without_a_figure_are_named() -> None:
    spec = networks(results(("a", 10, 1_000), ("bound", 20, 500), ("c", None, 7)), "params", "macs")
    values = spec["data"]["values"]  # type: ignore[index]
    assert [row["name"] for row in values] == ["a", "bound"]
    assert values[1]["second"] == "≥500"
    title = spec["title"]
    assert isinstance(title, dict)
    assert title["text"] == "2 networks: MACs over params"
    assert "1 row without both figures: not drawn." in " ".join(title["subtitle"])


def test_wrong_figures_are_refused() -> None:
    with pytest.raises(UsageError, match="did you mean macs"):
        networks(results(("a", 1, 2)), "params", "mac")
    with pytest.raises(UsageError, match="no row has both"):
        networks(results(("a", None, 2)), "params", "macs")
