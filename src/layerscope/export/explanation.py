"""What other counters print for a network (`explain`), with the reasons for each difference."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from layerscope.escaping import json_text, visible
from layerscope.export.grid import Blocks, Cell, Grid, Lines, named
from layerscope.report.explain import Explanation, Opinion, Part
from layerscope.report.figures import Answer, FigureSource
from layerscope.report.numbers import at_least, exact_text, short_text

SCHEMA = 1
UNKNOWN = "?"


def headline(explained: Explanation) -> str:
    """The network and the number of counters, in one line."""
    name = visible(explained.report.name)
    macs = at_least(exact_text(explained.macs), _is_bound(explained))
    return f"of {name}: {macs} MACs, {len(explained.opinions)} counters"


def blocks(explained: Explanation, *, stamp: bool = True) -> Blocks:
    """One row per counter with its reasons below; with a figure, first what matches it."""
    found: list[Grid | Lines] = []
    counters = _counters(explained)
    if explained.answer is not None:
        found.append(Lines(_answered(explained.answer), "head"))
        counters = _matches(explained.answer)
    found.append(counters)
    below = Lines((explained.report.stamp, *explained.notes))
    return [*found, below] if stamp else found


def write_json(explained: Explanation, *, stamp: bool = True) -> str:
    """Exact figures, and reasons that add up to each difference."""
    document: dict[str, object] = {
        "kind": "explanation",
        "schema": SCHEMA,
        "network": explained.report.name,
        "macs": explained.macs,
        "params": explained.params,
        "counters": [
            {
                "name": said.name,
                "says": said.says,
                "figure": said.figure,
                "value": said.value,
                "macs": said.macs,
                "flops": said.flops,
                "params": said.params,
                "reasons": [_part(part) for part in said.parts],
                "param_reasons": [_part(part) for part in said.param_parts],
            }
            for said in explained.opinions
        ],
        "notes": list(explained.notes),
        "stamp": explained.report.stamp if stamp else None,
    }
    if explained.report.lower_bounds:
        document["lower_bounds"] = list(explained.report.lower_bounds)
    if explained.answer is not None:
        document["figure"] = {
            "text": explained.answer.figure.text,
            "matches": [_match(match) for match in explained.answer.matches],
            "nearest": [_match(match) for match in explained.answer.nearest],
        }
    return json_text(document)


def _part(part: Part) -> dict[str, object]:
    share = None if part.share is None else float(part.share)
    return {"what": part.what, "count": part.count, "share": share}


def _match(match: FigureSource) -> dict[str, object]:
    return {"name": match.name, "what": match.what, "value": match.value, "input": match.input}


def _is_bound(explained: Explanation) -> bool:
    """Whether multiply-adds of unknown layers are missing from the exact figure."""
    return "macs" in explained.report.lower_bounds


def _counters(explained: Explanation) -> Grid:
    """The exact figures, and those of each counter; a difference from a bound is unknown."""
    bound = _is_bound(explained)
    head = [
        named("counter"), Cell("params", drop=1), Cell("figure"), named("called"),
        Cell("MACs", drop=2), Cell(""),
    ]  # fmt: skip
    params = _count(explained.params, "params" in explained.report.lower_bounds)
    macs = _count(explained.macs, bound)
    own = [params, macs, named("MACs"), macs]
    rows = [head, [named("layerscope"), *own, Cell("", value=0.0)]]
    for said in explained.opinions:
        share = _of(said.macs - explained.macs, explained.macs)
        ratio = Cell(_percent(share), value=None if share is None else float(share))
        ratio = Cell(UNKNOWN, value=UNKNOWN) if bound else ratio
        rows.append(
            [named(said.name), _count(said.params), _count(said.value), named(said.figure),
             _count(said.macs), ratio]
        )  # fmt: skip
    below = ["", "", *["; ".join(_reasons(said)) for said in explained.opinions]]
    return Grid(rows, below, "", ("counter", "params", "figure", "called", "macs", "difference"))


def _count(value: int, bound: bool = False) -> Cell:
    text, short = exact_text(value), short_text(value)
    if bound:
        return Cell(at_least(text, True), short=at_least(short, True), value=f"≥{value}")
    return Cell(text, short=short, value=value)


def _matches(answer: Answer) -> Grid:
    """One row per counter that gives the figure, or that comes nearest to it."""
    rows = [[named("counter"), named("counts"), Cell("figure"), named("input")]]
    for match in answer.matches or answer.nearest:
        input_text = match.input or "as given"
        rows.append([named(match.name), named(match.what), _count(match.value), named(input_text)])
    return Grid(rows)


def _of(count: int, whole: int) -> Fraction | None:
    return Fraction(count, whole) if whole else None


def _percent(share: Fraction | None) -> str:
    """Signed percent, with one decimal below ten; `<0.1 %` if it would round to zero."""
    if not share:
        return "" if share is None else "="
    sign = "+" if share > 0 else "−"
    size = abs(share * 100)
    if size < Fraction(1, 20):
        return f"{sign}<0.1 %"
    return f"{sign}{float(size):.{1 if size < Fraction(199, 20) else 0}f} %"


def _reasons(said: Opinion) -> list[str]:
    """One text per difference: what, count and share."""
    return [
        *[f"{part.what}: {_signed(part.count)} ({_percent(part.share)})" for part in said.parts],
        *[f"{part.what}: {_signed(part.count)} parameters" for part in said.param_parts],
    ]


def _signed(count: int) -> str:
    return f"{'+' if count > 0 else '−'}{exact_text(abs(count))}"


def _answered(answer: Answer) -> Sequence[str]:
    text = answer.figure.text
    if answer.matches:
        return [f"{text} is given by:"]
    return [f"{text} is given by no counter of this version; nearest:"]
