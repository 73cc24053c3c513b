"""`layerscope.sweep`: the command of the same name as a function."""

from __future__ import annotations

import os
from collections.abc import Sequence

from layerscope.conventions import convention
from layerscope.errors import UsageError
from layerscope.graph.dtype_names import known_dtype
from layerscope.report.quantities import count_of, named_sizes, quantity
from layerscope.sweeping.isolation import WorkerLimits
from layerscope.sweeping.run import Progress, SweepRequest, SweepSummary, default_jobs, sweep_into
from layerscope.sweeping.tasks import SweepOptions


def sweep(
    *sources: str,
    output: str | os.PathLike[str] = "results.sqlite",
    options: SweepOptions | Sequence[SweepOptions] = SweepOptions(),  # noqa: B008  frozen
    jobs: int | None = None,
    dask: str | None = None,
    seconds: float = 300,
    memory: int | str = "4GB",
    again: bool = False,
    progress: Progress | None = None,
) -> SweepSummary:
    """Analyze every network of the sources in worker processes; write a row each to SQLite.

    - `sources`: as on the command line: files, globs, folders, zoo names and patterns,
      `torchvision:*`, `my_search.py:candidates`.
    - `options`: those of each row, such as `SweepOptions(batch=8)`; of several, a row each.
    - `jobs`: worker processes, by default one per core; `dask`: address of a Dask scheduler.
    - `seconds`, `memory`: limits of one network.
    - `again`: repeat networks that the file has results of.

    """
    chosen = (options,) if isinstance(options, SweepOptions) else tuple(options)
    for each in chosen:
        check_options(each)
    if seconds <= 0:
        raise UsageError(f"seconds {seconds:g}, expected more than 0")
    limits = WorkerLimits(float(seconds), quantity(memory, "bytes", "memory"), os.getcwd())
    workers = 1 if any(each.measure for each in chosen) else jobs or default_jobs()
    request = SweepRequest(tuple(sources), chosen, limits, workers, dask, again)
    return sweep_into(os.fspath(output), request, progress)


def check_options(options: SweepOptions) -> None:
    """Raise for options that fit no network, before a sweep starts."""
    for name in ("batch", "tokens"):
        value = getattr(options, name)
        if value is not None and count_of(value, name) < 1:
            raise UsageError(f"{name} {value}, expected at least 1")
    named_sizes(options.input, "--input")
    convention(options.like)
    if options.dtype is not None:
        known_dtype(options.dtype)
    if options.on not in (None, "this"):
        from layerscope.prediction.other_machines import sheet_of

        sheet_of(str(options.on))
    if options.measure and options.on is not None:
        raise UsageError("--measure cannot be combined with --on")
