"""The JSON of a measurement: written, and read back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
from msgspec import Struct

from layerscope.errors import FormatError, InputError, LayerscopeError
from layerscope.escaping import json_text
from layerscope.report.measurement import Machine, Measurement, Run, Timing
from layerscope.report.quantities import check_stored
from layerscope.report.timed import TimedRow, timed
from layerscope.report.types import Report

SCHEMA = 1  # of the document: a newer one is refused by its number


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
    schema: int = SCHEMA


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


def _line(name: str, each: TimedRow, report: Report, *, main: bool) -> LayerLine:
    op = report.by_name[name].op if name in report.by_name else ""
    if not main:
        return LayerLine(name, op, None, None, each.main, 0, 0, None, None, None, None, None)
    return LayerLine(
        name, op, each.row.time_s, each.share, None, each.flops, each.moved_bytes,
        each.flops_s / 1e9, each.bytes_s / 1e9, each.intensity,
        each.roof.name if each.roof else None, each.roof.share if each.roof else None,
    )  # fmt: skip


def read_file(path: str) -> Measurement:
    """The measurement in a file; one line says what is wrong with it."""
    from layerscope.formats.documents import contents

    data = contents(path)
    try:
        head = msgspec.json.decode(data, type=Head)
        if head.schema > SCHEMA:
            raise FormatError(
                f"{path}: a run of layerscope {head.version or '?'} in schema {head.schema}, newer "
                f"than the {SCHEMA} that this one reads; pip install --upgrade layerscope"
            )
        return checked(read_json(data), path)
    except msgspec.ValidationError as error:
        raise FormatError(
            f"{path}: no run in the schema of this layerscope: {error}; measure again"
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FormatError(f"{path}: no run of `layerscope measure`: {error}") from None
    except RecursionError:
        raise FormatError(f"{path}: JSON that is nested too deeply") from None


def read_json(text: bytes) -> Measurement:
    """The measurement that a document holds."""
    return msgspec.json.decode(text, type=Measurement)


class Head(Struct, frozen=True):
    """What a document of any schema says of itself."""

    schema: int = 1
    version: str = ""


def checked(measurement: Measurement, path: str) -> Measurement:
    """A measurement whose numbers can be of a run: finite, of 63 bits, times above zero."""
    check_stored(msgspec.to_builtins(measurement), path)
    if not measurement.runs:
        raise FormatError(f"{path}: no run in it")
    for run in measurement.runs:
        positive = {
            "end_to_end_s": run.timing.end_to_end_s,
            "threads": run.threads,
            "predicted_peak_bytes": run.memory.predicted_peak_bytes,
            "watts": None if run.energy is None else run.energy.watts,
        }
        for name, value in positive.items():
            if value is not None and value <= 0:
                raise FormatError(f"{path}: {run.engine}: {name} {value}, expected more than 0")
        for row in run.rows:
            if row.kind == "layer" and not row.layers:
                raise FormatError(f"{path}: {run.engine}: row {row.name!r} is of no layer")
    machine = measurement.machine
    rates = [] if machine is None else [
        *(peak.flops.best for peak in machine.peaks), *(level.rate.best for level in machine.levels)
    ]  # fmt: skip
    if any(rate <= 0 for rate in rates):
        raise FormatError(f"{path}: a limit of the machine that is not above 0")
    return measurement


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Take what a damaged graph raises for a fault of the file that it was kept in."""
    try:
        yield
    except InputError as error:
        where = "" if path in str(error) else f"{path}: "
        raise FormatError(f"{where}{error}") from error
    except (LayerscopeError, MemoryError):
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise FormatError(f"{path}: a damaged run: {what}; measure again") from error
