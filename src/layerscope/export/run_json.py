"""Write a measurement as JSON (`measure -o run.json`) and read it back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from layerscope.errors import FormatError, InputError, LayerscopeError
from layerscope.escaping import json_text
from layerscope.report.measurement import Machine, Measurement, Run, Timing
from layerscope.report.quantities import check_stored
from layerscope.report.timed import TimedRow, timed
from layerscope.report.types import Report

KINDS = ("run", "layerscope measurement")  # the second in files of older versions
SCHEMA = 1  # version of the document; a file with a newer one is refused


class LayerTimeJson(Struct, frozen=True):
    """One source layer; `time_s` is null if it runs as part of another (`fused_into`).

    Without `fused_into`, a `time_s` of null is unknown.
    """

    name: str
    type: str
    time_s: float | None
    share: float | None
    fused_into: str | None
    flops: int | None  # null, as the rates are, if a layer that it runs with is unknown
    bytes: int | None
    gflops_s: float | None
    gb_s: float | None
    intensity: float | None
    roof: str | None
    roof_share: float | None


class MeasurementJson(Struct, frozen=True):
    """The JSON of a measurement: the first run by layer, then all runs and the graph."""

    kind: str
    schema: int
    network: str
    batch: int
    dtype: str
    version: str
    measured: str
    engine: str
    timing: Timing
    layers: list[LayerTimeJson]
    complete: bool
    notes: tuple[str, ...]
    failures: tuple[str, ...]
    machine: Machine | None
    runs: tuple[Run, ...]
    graph: dict[str, Any]


def write_json(measurement: Measurement, report: Report) -> str:
    """The JSON text that `-o run.json` writes."""
    return json_text(document(measurement, report), indent=1)


def document(measurement: Measurement, report: Report) -> MeasurementJson:
    """The structs of the JSON of a measurement."""
    run = measurement.runs[0]
    rows = timed(report, run, measurement.machine)
    layers: dict[str, LayerTimeJson] = {}
    for each in rows:
        if each.row.kind != "layer":
            continue
        for name in each.row.layers:
            layers[name] = _layer(name, each, report, main=name == each.main)
    for name in run.removed:
        if name in report.by_name:
            op = report.by_name[name].op
            layers[name] = LayerTimeJson(
                name, op, 0.0, 0.0, None, 0, 0, None, None, None, None, None
            )
    order = [node.name for node in report.graph.nodes]
    return MeasurementJson(
        kind="run",
        schema=SCHEMA,
        network=measurement.network,
        batch=measurement.batch,
        dtype=measurement.dtype,
        version=measurement.version,
        measured=measurement.measured,
        engine=run.engine,
        timing=run.timing,
        layers=[layers[name] for name in order if name in layers],
        complete=run.complete,
        notes=run.notes,
        failures=measurement.failures,
        machine=measurement.machine,
        runs=measurement.runs,
        graph=measurement.graph,
    )


def _layer(name: str, each: TimedRow, report: Report, *, main: bool) -> LayerTimeJson:
    op = report.by_name[name].op if name in report.by_name else ""
    if not main:
        return LayerTimeJson(name, op, None, None, each.main, 0, 0, None, None, None, None, None)
    return LayerTimeJson(
        name, op, each.row.time_s, each.share, None,
        each.flops if each.is_complete else None, each.moved_bytes if each.is_complete else None,
        giga(each.flops_s), giga(each.bytes_s), each.intensity if each.is_complete else None,
        each.roof.name if each.roof else None, each.roof.share if each.roof else None,
    )  # fmt: skip


def giga(rate: float | None) -> float | None:
    """A rate in units of 1e9."""
    return None if rate is None else rate / 1e9


def read_file(path: str) -> Measurement:
    """The measurement in a file; raises FormatError if the file holds none."""
    from layerscope.formats.documents import contents

    data = contents(path)
    try:
        head = msgspec.json.decode(data, type=RunHeader)
        if head.schema > SCHEMA:
            raise FormatError(
                f"{path}: a run of layerscope {head.version or '?'} in schema {head.schema}, newer "
                f"than schema {SCHEMA}, which this version reads; pip install --upgrade layerscope"
            )
        return checked(read_json(data), path)
    except msgspec.ValidationError as error:
        raise FormatError(
            f"{path}: not a run in the schema of this version: {error}; measure again"
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FormatError(f"{path}: not a run of `layerscope measure`: {error}") from None
    except RecursionError:
        raise FormatError(f"{path}: JSON that is nested too deeply") from None


def read_json(text: bytes) -> Measurement:
    """The measurement in JSON text; its numbers are not checked."""
    found = msgspec.json.decode(text, type=Measurement)
    if found.kind not in KINDS:
        raise msgspec.ValidationError(f"the kind {found.kind[:40]!r}, expected `run`")
    return replace(found, kind=KINDS[0])


class RunHeader(Struct, frozen=True):
    """Fields that a document of any schema version has."""

    schema: int = 1
    version: str = ""


def checked(measurement: Measurement, path: str) -> Measurement:
    """The measurement if its numbers are valid: finite, at most 63 bits, times above zero."""
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
                raise FormatError(f"{path}: {run.engine}: row {row.name!r} names no layer")
    machine = measurement.machine
    rates = [] if machine is None else [
        *(peak.flops.best for peak in machine.peaks), *(level.rate.best for level in machine.levels)
    ]  # fmt: skip
    if any(rate <= 0 for rate in rates):
        raise FormatError(f"{path}: a peak or bandwidth of the machine is not above 0")
    return measurement


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Raise errors from a damaged graph as FormatError of the file that stores it."""
    try:
        yield
    except InputError as error:
        where = "" if path in str(error) else f"{path}: "
        raise FormatError(f"{where}{error}") from error
    except (LayerscopeError, MemoryError):
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise FormatError(f"{path}: a damaged file: {what}; write it again") from error
