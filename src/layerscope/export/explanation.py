"""What other counters print for a network (`explain`), with the reasons for each difference."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from layerscope.escaping import json_text, visible
from layerscope.export.grid import Blocks, Cell, Grid, Lines, named
from layerscope.report.explain import Explanation, Opinion, Part
from layerscope.report.figures import Answer, FigureSource
from layerscope.report.numbers import (
    ABOUT,
    exact_text,
    marked,
    short_text,
    sign_of_share,
)

SCHEMA = 1


def headline(explained: Explanation) -> str:
    """The network and the number of counters, in one line."""
    name = visible(explained.report.name)
    macs = _count(explained.macs, explained.report.sign("macs")).text
    return f"of {name}: {macs} MACs, {len(explained.opinions)} counters"


def blocks(explained: Explanation, *, stamp: bool = True) -> Blocks:
    """One row per counter with its reasons below; with a figure, first what matches it."""
    found: list[Grid | Lines] = []
    counters = _counters(explained)
    if explained.answer is not None:
        found.append(Lines(_answered(explained.answer), "head"))
        counters = _matches(explained, explained.answer)
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
                "reasons": [_reason_json(part, explained, "macs") for part in said.parts],
                "param_reasons": [
                    _reason_json(part, explained, "params") for part in said.param_parts
                ],
            }
            for said in explained.opinions
        ],
        "notes": list(explained.notes),
        "stamp": explained.report.stamp if stamp else None,
    }
    bounds = [name for name in ("macs", "params") if _is_bound(explained, name)]
    if bounds:  # of all counters: what is unknown is in no figure
        document["lower_bounds"] = bounds
    if ABOUT in explained.report.sign("macs"):
        document["estimates"] = ["macs"]
    if explained.answer is not None:
        document["figure"] = {
            "text": explained.answer.figure.text,
            "matches": [_match(match) for match in explained.answer.matches],
            "nearest": [_match(match) for match in explained.answer.nearest],
        }
    return json_text(document)


def _reason_json(part: Part, explained: Explanation, total: str) -> dict[str, object]:
    """A reason; the share of a lower bound is an upper bound."""
    share = None if part.share is None else float(part.share)
    found: dict[str, object] = {"what": part.what, "count": part.count, "share": share}
    return {**found, "upper_bound": True} if _is_bound(explained, total) else found


def _match(match: FigureSource) -> dict[str, object]:
    return {"name": match.name, "what": match.what, "value": match.value, "input": match.input}


def _counters(explained: Explanation) -> Grid:
    head = [
        named("counter"), Cell("params", drop=1), Cell("figure"), named("called"),
        Cell("MACs", drop=2), Cell(""),
    ]  # fmt: skip
    less, few = explained.report.sign("macs"), explained.report.sign("params")
    bound = _is_bound(explained, "macs")
    macs = _count(explained.macs, less)
    own = [_count(explained.params, few), macs, named("MACs"), macs]
    rows = [head, [named("layerscope"), *own, Cell("", value=0.0)]]
    for said in explained.opinions:
        share = _share_of(said.macs - explained.macs, explained.macs)
        ratio = Cell(_percent(share, less), value=None if share is None else float(share))
        rows.append(
            [named(said.name), _count(said.params, few), _count(said.value, said.sign),
             named(said.figure), _count(said.macs, said.sign),
             Cell("?", value="?") if bound else ratio]
        )  # fmt: skip
    below = ["", "", *["; ".join(_reasons(said, less)) for said in explained.opinions]]
    return Grid(rows, below, "", ("counter", "params", "figure", "called", "macs", "difference"))


def differences(explained: Explanation) -> dict[str, tuple[str, list[str]]]:
    """By counter, the difference of its figure to the exact one, and the reasons."""
    sign = explained.report.sign("macs")
    bound = _is_bound(explained, "macs")
    return {
        said.name: (
            "?" if bound else _percent(_share_of(said.macs - explained.macs, explained.macs), sign),
            _reasons(said, sign),
        )
        for said in explained.opinions
    }


def _is_bound(explained: Explanation, total: str) -> bool:
    """Whether unknown layers are missing from a total, which makes it a lower bound."""
    return total in explained.report.lower_bounds


def _count(value: int, sign: str) -> Cell:
    exact, short = (marked(text, sign) for text in (exact_text(value), short_text(value)))
    return Cell(exact, short=short, value=marked(str(value), sign) if sign else value)


def _matches(explained: Explanation, answer: Answer) -> Grid:
    """One row per counter that gives the figure, or that comes nearest to it."""
    rows = [[named("counter"), named("counts"), Cell("figure"), named("input")]]
    for match in answer.matches or answer.nearest:
        input_text = match.input or "as given"
        total = "params" if match.what.startswith("parameters") else "macs"
        count = _count(match.value, explained.report.sign(total))
        rows.append([named(match.name), named(match.what), count, named(input_text)])
    return Grid(rows)


def _share_of(count: int, whole: int) -> Fraction | None:
    return Fraction(count, whole) if whole else None


def _percent(share: Fraction | None, total_sign: str = "") -> str:
    """Signed percent, with one decimal below ten; `<0.1 %` if it would round to zero.

    `total_sign` is that of the total: a share of a lower bound is an upper bound.
    """
    if not share:
        return "" if share is None else "="
    sign = "+" if share > 0 else "−"
    size = abs(share * 100)
    if size < Fraction(1, 20):
        return f"{sign}<0.1 %"
    text = f"{float(size):.{1 if size < Fraction(199, 20) else 0}f} %"
    return f"{sign}{marked(text, sign_of_share(total_sign))}"


def _reasons(said: Opinion, total_sign: str) -> list[str]:
    """One text per difference: what, count and share of a total with that sign."""
    return [
        *[
            f"{part.what}: {_signed(part.count)} ({_percent(part.share, total_sign)})"
            for part in said.parts
        ],
        *[f"{part.what}: {_signed(part.count)} parameters" for part in said.param_parts],
    ]


def _signed(count: int) -> str:
    return f"{'+' if count > 0 else '−'}{exact_text(abs(count))}"


def _answered(answer: Answer) -> Sequence[str]:
    text = answer.figure.text
    if answer.matches:
        return [f"{text} is given by:"]
    return [f"{text} is given by no counter of this version; nearest:"]
