"""The JSON of a measurement: written, and read back."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from layerscope.escaping import json_text
from layerscope.report.measurement import Machine, Measurement, Run, Timing
from layerscope.report.timed import Timed, timed
from layerscope.report.types import Report


class LayerLine(Struct, frozen=True):
    """One source layer: `time_s` is that of its row, null where it runs as part of another."""

    name: str
    type: str
    time_s: float | None
    share: float | None
    fused_into: str | None
    flops: int
    bytes: int
    gflops_s: float | None
    gb_s: float | None
    intensity: float | None
    roof: str | None
    roof_share: float | None


class Document(Struct, frozen=True):
    """The JSON of a measurement: the first run by layer, then everything that was kept."""

    kind: str
    network: str
    batch: int
    dtype: str
    version: str
    measured: str
    engine: str
    timing: Timing
    layers: list[LayerLine]
    complete: bool
    notes: tuple[str, ...]
    failures: tuple[str, ...]
    machine: Machine | None
    runs: tuple[Run, ...]
    graph: dict[str, Any]


def write_json(measurement: Measurement, report: Report) -> str:
    """The document that `-o run.json` keeps."""
    return json_text(document(measurement, report), indent=1)


def document(measurement: Measurement, report: Report) -> Document:
    """The first run by layer, then everything that was kept."""
    run = measurement.runs[0]
    rows = timed(report, run, measurement.machine)
    lines: dict[str, LayerLine] = {}
    for each in rows:
        if each.row.kind != "layer":
            continue
        for name in each.row.layers:
            lines[name] = _line(name, each, report, main=name == each.main)
    for name in run.removed:
        if name in report.by_name:
            op = report.by_name[name].op
            lines[name] = LayerLine(name, op, 0.0, 0.0, None, 0, 0, None, None, None, None, None)
    order = [node.name for node in report.graph.nodes]
    return Document(
        kind=measurement.kind,
        network=measurement.network,
        batch=measurement.batch,
        dtype=measurement.dtype,
        version=measurement.version,
        measured=measurement.measured,
        engine=run.engine,
        timing=run.timing,
        layers=[lines[name] for name in order if name in lines],
        complete=run.complete,
        notes=run.notes,
        failures=measurement.failures,
        machine=measurement.machine,
        runs=measurement.runs,
        graph=measurement.graph,
    )


def _line(name: str, each: Timed, report: Report, *, main: bool) -> LayerLine:
    op = report.by_name[name].op if name in report.by_name else ""
    if not main:
        return LayerLine(name, op, None, None, each.main, 0, 0, None, None, None, None, None)
    return LayerLine(
        name, op, each.row.time_s, each.share, None, each.flops, each.moved_bytes,
        each.flops_s / 1e9, each.bytes_s / 1e9, each.intensity,
        each.roof.name if each.roof else None, each.roof.share if each.roof else None,
    )  # fmt: skip


def read_json(text: bytes) -> Measurement:
    """The measurement that a document holds."""
    return msgspec.json.decode(text, type=Measurement)
