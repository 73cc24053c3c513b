"""What other counters print for a network, as text, Markdown and JSON (`explain`)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from layerscope.escaping import json_text, visible
from layerscope.escaping import markdown as escape
from layerscope.export.grid import Cell, lay_out, markdown, named
from layerscope.export.text import Style, plain
from layerscope.report.explain import Explanation, Opinion, Part
from layerscope.report.figures import Answer, FigureSource
from layerscope.report.numbers import exact_text, short_text


def write_text(explained: Explanation, *, width: int | None = None, style: Style = plain) -> str:
    """One row per counter with its reasons below; with a figure, only what matches it."""
    if explained.answer is not None:
        return "".join(f"{visible(line)}\n" for line in _answered(explained.answer))
    below = ["", "", *["; ".join(_reasons(said)) for said in explained.opinions]]
    exact, short = (_rows(explained, digits) for digits in (False, True))
    return lay_out(exact, width, style, short, below)


def write_markdown(explained: Explanation) -> str:
    """The table, then the reasons of each counter as a list."""
    if explained.answer is not None:
        return "".join(f"- {escape(line)}\n" for line in _answered(explained.answer))
    lines = []
    for said in explained.opinions:
        reasons = _reasons(said)
        if reasons:
            lines.append(f"- `{said.name}`: {escape('; '.join(reasons))}\n")
    return markdown(_rows(explained, False)) + ("\n" + "".join(lines) if lines else "")


def write_json(explained: Explanation, *, stamp: bool = True) -> str:
    """Exact figures, and reasons that add up to each difference."""
    document: dict[str, object] = {
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


def _rows(explained: Explanation, short: bool) -> list[list[Cell]]:
    number = short_text if short else exact_text
    rows = [
        [named("counter"), Cell("params"), Cell("figure"), named("called"), Cell("MACs"), Cell("")],
        [named("layerscope"), *map(Cell, (number(explained.params), number(explained.macs))),
         named("MACs"), Cell(number(explained.macs)), Cell("")],
    ]  # fmt: skip
    for said in explained.opinions:
        ratio = _percent(_of(said.macs - explained.macs, explained.macs))
        rows.append(
            [named(said.name), *map(Cell, (number(said.params), number(said.value))),
             named(said.figure), Cell(number(said.macs)), Cell(ratio)]
        )  # fmt: skip
    return rows


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
        return [f"{text} is given by:", *[f"  {match}" for match in answer.matches]]
    return [
        f"{text} is given by no counter of this version; nearest:",
        *[f"  {match}" for match in answer.nearest],
    ]
