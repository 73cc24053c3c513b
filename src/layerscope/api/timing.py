"""Times of networks: `measure` on an engine of this machine, `predict` for any machine."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from layerscope.api.networks import (
    Analyzable,
    analyze,
    has_onnx_format,
    is_model,
    need_operations,
    recognised,
)
from layerscope.api.options import check_unused
from layerscope.conventions import convention
from layerscope.errors import UsageError
from layerscope.graph import Graph
from layerscope.graph.dtype_names import dtype_name
from layerscope.report import Report

if TYPE_CHECKING:
    import torch  # noqa: TID251

    from layerscope.engines import Progress
    from layerscope.engines.measuring import MeasureRequest
    from layerscope.report.compare import NetworkTime
    from layerscope.report.measurement import Measurement
    from layerscope.report.prediction import Prediction


def measure(
    network: str | Graph | Report,
    *,
    engine: str = "onnxruntime",
    threads: int | None = None,
    runs: int = 10,
    fusion: str = "on",
    power: float | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Measurement:
    """Time the layers of a network on an engine (`all`: on every installed one).

    `fusion` is on, off or both; `power` is in watts and gives the energy of a run. Other options
    are those of `analyze`; a Report takes none. A run that ends early is returned with `complete`
    false.
    """
    from layerscope.engines.measuring import MeasureRequest

    request = MeasureRequest(engine, threads, runs, fusion, power)
    return measure_with_report(network, request, progress, **options)[1]


def measure_with_report(
    network: str | Graph | Report,
    request: MeasureRequest,
    progress: Progress | None = None,
    **options: Any,
) -> tuple[Report, Measurement]:
    """The measurement of a network, and the report of it; options are those of `analyze`."""
    from layerscope.engines.measuring import NetworkSource
    from layerscope.engines.measuring import measure as measure_report

    path = network if isinstance(network, str) and is_onnx(network) else None
    started = monotonic()
    if progress is not None:
        progress("read the network", 0, 1)
    report = _exact_report(network, options, "measured")
    source = NetworkSource(path, monotonic() - started)
    need_operations(report, "measure")
    return report, measure_report(report, request, source, progress)


def is_onnx(network: str) -> bool:
    """Whether a network is an ONNX file, by its bytes: the engine then runs that file."""
    return not is_model(network) and has_onnx_format(recognised(network))


def _exact_report(network: Analyzable | Report, options: Mapping[str, Any], what: str) -> Report:
    """The exact report of a network; a Report is used as it is, and takes no options."""
    if not isinstance(network, Report):
        return analyze(network, **options)
    check_unused(options, f"a Report is {what} as it is")
    return replace(network, convention=convention("exact"))


def predict(
    network: str | Graph | Report,
    *,
    on: str | None = None,
    threads: int | None = None,
    dtype: str | torch.dtype | None = None,
    **options: Any,
) -> Prediction:
    """Predict the time of every layer on this machine, or on the machine named by `on`.

    This machine must have been calibrated (`layerscope machine --calibrate`). `dtype` is that of
    the matrix products: one of the data sheet, or of the calibration. Other options are those of
    `analyze`; a Report takes none of these.
    """
    dtype = None if dtype is None else dtype_name(dtype)
    if on is None or on == "this":
        from layerscope.engines.machine import threads_of
        from layerscope.prediction.this_machine import check_dtype, predict_here

        check_dtype(dtype)
        own = _exact_report(network, options, "predicted")
        found = own if dtype in (None, own.float_dtype) else _in_dtype(own, dtype)
        need_operations(found, "predict")
        check_dtype(found.float_dtype)
        return predict_here(found, "onnxruntime", threads_of(threads))
    from layerscope.prediction.other_machines import dtype_on, predict_on
    from layerscope.report.measurement import STORED_AS

    if threads is not None:
        raise UsageError(f"--threads applies to this machine, not to {on}")
    dtype_on(on, dtype, "fp32")  # raises before the network is read
    found = _exact_report(network, options, "predicted")
    need_operations(found, "predict")
    dtype = dtype_on(on, dtype, found.float_dtype)
    stored = STORED_AS.get(dtype, dtype)
    if stored != found.float_dtype:
        found = _in_dtype(found, stored)
    return predict_on(found, on, dtype)


def _in_dtype(report: Report, dtype: str) -> Report:
    """The report of the same network in another dtype."""
    return analyze(report.graph, dtype=dtype, in_place=report.memory.in_place)


def time_of(
    report: Report,
    network: object,
    on: str | None,
    dtype: str | torch.dtype | None,
    progress: Progress | None = None,
) -> NetworkTime:
    """The measured time of a network, or its predicted time on a machine.

    Without a `dtype` that was asked for, a prediction chooses that of the machine.
    """
    from layerscope.report.compare import NetworkTime

    if on is not None:
        return NetworkTime.of_prediction(predict(report.graph, on=on, dtype=dtype))
    from layerscope.engines.measuring import MeasureRequest, NetworkSource
    from layerscope.engines.measuring import measure as measure_report

    need_operations(report, "--measure")
    path = network if isinstance(network, str) and network.lower().endswith(".onnx") else None
    found = measure_report(report, MeasureRequest(), NetworkSource(path, 0.0), progress)
    return NetworkTime.of_run(found.runs[0])
