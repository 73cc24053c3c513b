"""Predict times on other machines: rates fitted to published speeds, or scaled by data sheets."""

from __future__ import annotations

from collections.abc import Mapping
from math import fsum

from layerscope.engines.accelerators import ACCELERATORS, Accelerator
from layerscope.errors import UnknownName, UsageError
from layerscope.graph.types import DTYPE_BITS
from layerscope.prediction.coefficients import FITTED, SCALED_ERROR, SOURCE
from layerscope.prediction.features import amounts, features_of
from layerscope.prediction.floors import Floors, Limits, rest_of_weights
from layerscope.report import Layer, Report
from layerscope.report.measurement import STORED_AS
from layerscope.report.prediction import LayerGuess, Prediction, items_of
from layerscope.version import __version__

NEAREST = "rtx4090-compiled"  # the fitted machine that others are scaled from


def machines() -> tuple[str, ...]:
    """Names of machines for `--on`."""
    return (*FITTED, *(name for name in ACCELERATORS if name not in FITTED))


def sheet_of(name: str) -> Accelerator:
    """The data sheet of a machine."""
    names = machines()
    if name not in names:
        raise UnknownName("machine", name, names, f"; known: this, {', '.join(names)}")
    return ACCELERATORS[name.removesuffix("-compiled")]


def fitted_dtype(name: str) -> str:
    """Default dtype of products on a machine: half precision if it has one."""
    if name in FITTED:
        return FITTED[name].dtype
    peaks = sheet_of(name).tflops
    return next((dtype for dtype in ("fp16", "bf16") if dtype in peaks), "fp32")


def dtype_on(name: str, asked: str | None, own: str) -> str:
    """The dtype that a network runs in on a machine; `own` is the dtype of its file.

    A network in fp32 runs in half precision unless `asked` says otherwise, as for the published
    speeds.
    """
    peaks = sheet_of(name).tflops
    numeric = {dtype for sheet in ACCELERATORS.values() for dtype in sheet.tflops}
    if asked is None:
        asked = own if own != "fp32" and own in numeric else fitted_dtype(name)
    if asked not in peaks:
        raise UsageError(
            f"dtype {asked}: the data sheet of {name} has no peak for it; known: {', '.join(peaks)}"
        )
    return asked


def predict_on(report: Report, name: str, dtype: str) -> Prediction:
    """Seconds of every layer on a known machine; the report is in that dtype."""
    sheet = sheet_of(name)
    notes = ["Layers were not timed one by one there: their sum is what was fitted."]
    rates, error = scaled(name, dtype), SCALED_ERROR
    if name in FITTED:
        fitted = FITTED[name]
        source, engine = SOURCE, fitted.engine
        if rates == fitted.rates:
            error = fitted.error
        else:
            notes.append(f"Fitted in {fitted.dtype}; scaled to {dtype} by peak and width.")
    else:
        source, engine = f"{NEAREST}, scaled by data sheets", "compiled"
        notes.append(f"{name} itself was not fitted: its peak and bandwidth scale {NEAREST}.")
    floors = Floors(report, limits_of(sheet, dtype))
    rows = [_guess(layer, rates, error, floors) for layer in report.layers]
    once = rates.get("once", 0.0)
    if once:
        rows.append(LayerGuess("once a batch", (), "overhead", once, error))
    rows = [row for row in rows if row.time_s is None or row.time_s > 0]
    rows += rest_of_weights(rows, floors, error)
    items, item = items_of(report)
    return Prediction(
        network=report.name,
        graph=report.graph,
        machine=sheet.says,
        engine=f"{dtype}, {engine}",
        batch=report.batch,
        dtype=dtype,
        rows=tuple(rows),
        total_s=fsum(row.time_s or 0.0 for row in rows),
        error=error,
        source=source,
        version=__version__,
        peak_bytes=report.memory.peak_bytes,
        peak_is_bound="peak_activation_bytes" in report.lower_bounds,
        notes=tuple(notes),
        power_w=None if sheet.turbo or not sheet.watts else float(sheet.watts),
        floor_s=floors.total,
        items=items,
        item=item,
    )


def _guess(layer: Layer, rates: Mapping[str, float], error: float, floors: Floors) -> LayerGuess:
    if layer.status == "unknown" and layer.node.times:
        return LayerGuess(layer.name, (layer.name,), layer.op, None, None)
    has = amounts(features_of(layer))
    seconds = sum(rates.get(key, 0.0) * amount for key, amount in has.items())
    seconds = max(seconds, floors.row((layer.name,)))
    return LayerGuess(layer.name, (layer.name,), layer.op, seconds, error)


def limits_of(sheet: Accelerator, dtype: str) -> Limits:
    """Peaks of a data sheet; products of fp32 tensors may run in tf32."""
    peaks = {kind: value * 1e12 for kind, value in sheet.tflops.items()}
    peaks[STORED_AS.get(dtype, dtype)] = sheet.tflops[dtype] * 1e12
    return Limits(peaks, sheet.gb_s * 1e9, sheet.cache_mb * 1e6)


def scaled(name: str, dtype: str) -> dict[str, float]:
    """Rates in a dtype: products scale by peak, bytes by bandwidth and width, overheads do not.

    They are scaled from the machine itself if it was fitted, else from the nearest one.
    """
    base = name if name in FITTED else NEAREST
    mine, other, fitted = sheet_of(name), sheet_of(base), FITTED[base]
    quicker = mine.tflops[dtype] / other.tflops[fitted.dtype]
    wider = mine.gb_s / other.gb_s * _bits(fitted.dtype) / _bits(dtype)

    def divisor(key: str) -> float:
        if key.endswith(" macs"):
            return quicker
        return wider if key.endswith(("bytes", "weights")) else 1.0

    return {key: rate / divisor(key) for key, rate in fitted.rates.items()}


def _bits(dtype: str) -> int:
    return DTYPE_BITS[STORED_AS.get(dtype, dtype)]
