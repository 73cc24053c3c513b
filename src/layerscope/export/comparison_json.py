"""A comparison of networks as JSON."""

from __future__ import annotations

from layerscope.escaping import json_text
from layerscope.report.compare import Comparison, NetworkTime, Pair
from layerscope.report.types import Layer, Report

SCHEMA = 1


def write_json(comparison: Comparison, *, everything: bool = False, stamp: bool = True) -> str:
    """Figures and every differing layer, with `everything` the equal ones too."""
    times = comparison.times or (None,) * len(comparison.reports)
    estimates = [list(report.estimates) for report in comparison.reports]
    document: dict[str, object] = {
        "kind": "comparison",
        "schema": SCHEMA,
        "networks": [report.name for report in comparison.reports],
        "totals": {
            figure.name: {
                "values": figure.values,
                "ratios": [None if r is None else float(r) for r in figure.ratios],
            }
            for figure in comparison.figures
        },
        "times": [None if time is None else _time_json(time) for time in times],
        "complete": [not report.coverage.unknown for report in comparison.reports],
        "lower_bounds": [list(report.lower_bounds) for report in comparison.reports],
        **({"estimates": estimates} if any(estimates) else {}),
        "coverage": [str(report.coverage) for report in comparison.reports],
        "notes": [list(report.notes) for report in comparison.reports],
        "pairs": [_pair_json(pair, everything) for pair in comparison.pairs],
        "stamps": [report.stamp for report in comparison.reports] if stamp else None,
    }
    return json_text(document)


def _time_json(time: NetworkTime) -> dict[str, object]:
    return {
        "total_s": time.total_s,
        "lower_bound": time.is_lower_bound,
        "source": time.source,
        "layers": dict(time.layers),
    }


def _pair_json(pair: Pair, everything: bool) -> dict[str, object]:
    return {
        "first": pair.first.name,
        "second": pair.second.name,
        "counts": {
            "equal": pair.count("equal"),
            "changed": pair.count("changed"),
            "only_first": pair.count("only_first"),
            "only_second": pair.count("only_second"),
        },
        "layers": [
            {
                "kind": match.kind,
                "first": _side(match.first, pair.first),
                "second": _side(match.second, pair.second),
                "changes": [
                    {"what": c.what, "first": _plain(c.first), "second": _plain(c.second)}
                    for c in match.changes
                ],
            }
            for match in pair.matches
            if everything or match.kind != "equal"
        ],
    }


def _plain(value: int | str | None) -> int | str | None:
    return int(value) if isinstance(value, int) else value


def _side(layer: Layer | None, report: Report) -> dict[str, object] | None:
    if layer is None:
        return None
    has_ops = layer.status != "unknown"
    found: dict[str, object] = {
        "name": layer.name,
        "type": layer.op,
        "output": layer.output,
        "params": layer.params if report.params_known(layer.node) else None,
        "macs": layer.ops.mac if has_ops else None,
    }
    return {**found, "estimate": True} if layer.status == "estimate" else found
