"""Rows of a table that group layers by module or by op, instead of by the module tree."""

from __future__ import annotations

from collections.abc import Callable

from layerscope.errors import UnknownName
from layerscope.report.tree import TableRow, is_idle, layer_rows
from layerscope.report.types import Layer, Report


def module_rows(report: Report) -> list[TableRow]:
    """One row per module, without its child modules, which have their own rows."""
    modules = report.graph.modules

    def owner(layer: Layer) -> str:
        if not modules:  # a format without modules: each layer is one
            return layer.name
        return layer.node.module or ".".join(layer.scope)

    groups = _gathered(report, owner)
    outer = {".".join(parts[:n]) for parts in map(_parts, groups) for n in range(len(parts))}
    rows = []
    for path, layers in groups.items():
        label = path or report.name
        if path in outer:
            label += " (itself)"
        rows.append(TableRow(path, label, 0, "module", layers))
    return rows


def op_rows(report: Report) -> list[TableRow]:
    """One row per op, with the number of its layers."""
    return [
        TableRow(op, f"{op} × {len(layers)}" if len(layers) > 1 else op, 0, "op", layers)
        for op, layers in _gathered(report, lambda layer: layer.op).items()
    ]


def _parts(path: str) -> list[str]:
    return path.split(".") if path else []


def _gathered(report: Report, key: Callable[[Layer], str]) -> dict[str, tuple[Layer, ...]]:
    """Layers by key, in order of first use."""
    found: dict[str, list[Layer]] = {}
    for layer in report.layers:
        if not is_idle(layer):
            found.setdefault(key(layer), []).append(layer)
    return {name: tuple(layers) for name, layers in found.items()}


GROUPS = {"layer": layer_rows, "module": module_rows, "op": op_rows}


def grouped(report: Report, by: str) -> list[TableRow]:
    """The rows of one of the groups."""
    if by not in GROUPS:
        raise UnknownName("way to gather layers", by, GROUPS, f"; known: {', '.join(GROUPS)}")
    return GROUPS[by](report)
