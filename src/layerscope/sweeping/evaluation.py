"""One task as a row: the network is analyzed, and its time measured or predicted if asked for."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

import msgspec

from layerscope.errors import LayerscopeError
from layerscope.graph import Graph
from layerscope.report import Report
from layerscope.report.quantities import named_sizes
from layerscope.sweeping.tasks import ResultRow, Task, failed

if TYPE_CHECKING:
    from layerscope.report.compare import NetworkTime

LONGEST = 2_000  # characters of an error message
TOTALS = {
    "params": "params", "macs": "macs", "flops": "flops", "activations": "activations",
    "peak": "peak_activation_bytes", "weights": "param_bytes",
}  # fmt: skip


def evaluate(task: Task) -> ResultRow:
    """The row of a task; every exception of the network becomes its error."""
    started = perf_counter()
    try:
        report, time = _timed(task)
        return _row(task, report, time, perf_counter() - started)
    except LayerscopeError as error:
        message = error.line
    except MemoryError:
        message = "MemoryError: the memory limit of a worker is reached (--memory)"
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
    return failed(task, " ".join(message.split())[:LONGEST], perf_counter() - started)


def _network(task: Task) -> str | Graph:
    if not task.graph:
        return task.source
    from layerscope.graph.serialize import from_plain

    return from_plain(msgspec.json.decode(task.graph))


def _timed(task: Task) -> tuple[Report, NetworkTime | None]:
    """The report of a task, and the time of one forward pass if it is asked for."""
    from layerscope.api.networks import analyze

    asked, network = task.options, _network(task)
    shapes = named_sizes(asked.input, "--input") if asked.input else None
    report = analyze(
        network, input=shapes, batch=asked.batch, dtype=asked.dtype, like=asked.like,
        tokens=asked.tokens, decode=asked.decode,
    )  # fmt: skip
    if not asked.measure and asked.on is None:
        return report, None
    from layerscope.api.timing import time_of

    return report, time_of(report, network, asked.on, asked.dtype)


def _row(task: Task, report: Report, time: NetworkTime | None, seconds: float) -> ResultRow:
    totals = report.totals
    return ResultRow(
        key=task.key,
        name=task.name,
        source=task.source,
        options=task.options.text,
        status="ok",
        params=totals.params,
        macs=totals.macs,
        flops=totals.flops,
        activations=totals.activations,
        peak=totals.peak_activation_bytes,
        weights=totals.param_bytes,
        time=None if time is None else time.total_s,
        bounds=",".join(_bounds(report, time)),
        json=msgspec.json.format(report.to_json(), indent=-1),
        seconds=seconds,
    )


def _bounds(report: Report, time: NetworkTime | None) -> list[str]:
    """The columns whose figures are lower bounds."""
    lower = report.lower_bounds
    found = [column for column, total in TOTALS.items() if total in lower]
    return [*found, "time"] if time is not None and time.is_lower_bound else found
