"""Checks that options for networks would not change a report that exists already."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from layerscope.errors import LayerscopeError, UsageError
from layerscope.graph.dtype_names import known_dtype
from layerscope.graph.edits import bind, token_inputs
from layerscope.graph.names import shape_text
from layerscope.graph.types import Shape
from layerscope.report.types import Report


def check_unchanged(
    what: str, report: Report, options: Mapping[str, Any], shapes: Mapping[str, Shape]
) -> None:
    """Raise for an option of `analyze` that a report does not have; `what` names the report."""
    for name in ("input", "batch", "dtype", "tokens", "decode", "in_place"):
        value = options.get(name)
        if value is None or _has_option(report, name, value, shapes):
            continue
        if name == "input":
            value = ", ".join(shape_text(shape) for shape in shapes.values())
        raise UsageError(
            f"{name} {value} does not apply to {what}, which is compared as it is: "
            f"{_own_value(report, name)}; write it again with that option, or compare without it"
        )


def _has_option(report: Report, name: str, value: Any, shapes: Mapping[str, Shape]) -> bool:
    """Whether a report was written with the value of an option."""
    graph = report.graph
    try:
        if name == "input":
            return bind(graph, shapes) == graph
        if name == "dtype":
            return bind(graph, dtype=known_dtype(value)) == graph
    except LayerscopeError:
        return False
    if name == "tokens":
        lengths = {tensor.shape[1] for tensor in token_inputs(graph) if tensor.shape}
        return lengths == {value} and not report.past
    owned = {"batch": report.batch, "decode": report.past or None,
             "in_place": report.memory.in_place}  # fmt: skip
    return bool(owned.get(name, False) == value)


def _own_value(report: Report, name: str) -> str:
    """What a report has instead."""
    if name in ("input", "tokens"):
        return ", ".join(f"input {each.name}={shape_text(each.shape)}" for each in report.inputs)
    if name == "decode":
        return f"{report.past} tokens in its cache"
    own = {"batch": report.batch, "dtype": report.dtype, "in_place": report.memory.in_place}
    return f"{name} {own[name]}"
