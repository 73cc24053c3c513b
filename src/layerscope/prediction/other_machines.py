"""Machines that are not here: rates fitted on published speeds, or scaled by data sheets."""

from __future__ import annotations

from collections.abc import Mapping

from layerscope.engines.accelerators import ACCELERATORS
from layerscope.errors import UnknownName
from layerscope.prediction.coefficients import FITTED, SCALED_ERROR, SOURCE
from layerscope.prediction.features import amounts, facts_of
from layerscope.report import Layer, Report
from layerscope.report.prediction import LayerGuess, Prediction
from layerscope.version import __version__

NEAREST = "rtx4090-compiled"  # the fitted machine that others are scaled from


def machines() -> tuple[str, ...]:
    """Names that `--on` takes."""
    return (*FITTED, *(name for name in ACCELERATORS if name not in FITTED))


def predict_on(report: Report, name: str) -> Prediction:
    """Seconds of every layer on a known machine."""
    known = machines()
    if name not in known:
        raise UnknownName("machine", name, known, f"; known: this, {', '.join(known)}")
    notes = ["Layers were not timed one by one there: their sum is what was fitted."]
    if name in FITTED:
        rates, error, source = FITTED[name].rates, FITTED[name].error, SOURCE
        engine = FITTED[name].says
        sheet = ACCELERATORS.get(name.removesuffix("-compiled"))
        machine = sheet.says if sheet else name
    else:
        rates, error = scaled(name), SCALED_ERROR
        source = f"{NEAREST}, scaled by data sheets"
        engine, machine = "half precision, compiled", ACCELERATORS[name].says
        notes.append(f"{name} itself was not fitted: its peak and bandwidth scale {NEAREST}.")
    rows = [_guess(layer, rates, error) for layer in report.layers]
    once = rates.get("once", 0.0)
    total = sum(row.time_s for row in rows) + once
    if once:
        rows.append(LayerGuess("once a batch", (), "overhead", once, error))
    return Prediction(
        network=report.name,
        machine=machine,
        engine=engine,
        batch=report.batch,
        dtype=report.dtype,
        rows=tuple(row for row in rows if row.time_s > 0),
        total_s=total,
        error=error,
        source=source,
        version=__version__,
        peak_bytes=report.memory.peak_bytes,
        notes=tuple(notes),
    )


def _guess(layer: Layer, rates: Mapping[str, float], error: float) -> LayerGuess:
    has = amounts(facts_of(layer))
    seconds = sum(rates.get(key, 0.0) * amount for key, amount in has.items())
    return LayerGuess(layer.name, (layer.name,), layer.op, seconds, error)


def scaled(name: str) -> dict[str, float]:
    """Rates of the nearest machine: products by peaks, bytes by bandwidths, starts as they are."""
    mine, other = ACCELERATORS[name], ACCELERATORS[NEAREST.removesuffix("-compiled")]

    def half(sheet_name: str) -> float:
        peaks = ACCELERATORS[sheet_name].tflops
        return peaks.get("fp16") or peaks.get("bf16") or peaks["fp32"]

    quicker = half(name) / half(NEAREST.removesuffix("-compiled"))
    wider = mine.gb_s / other.gb_s

    def divisor(key: str) -> float:
        if key.endswith(" macs"):
            return quicker
        return wider if key.endswith(("bytes", "weights")) else 1.0

    return {key: rate / divisor(key) for key, rate in FITTED[NEAREST].rates.items()}
