"""`layerscope.sweep`: the command of the same name as a function."""

from __future__ import annotations

import os
from collections.abc import Sequence

from layerscope.report.quantities import quantity
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
    limits = WorkerLimits(float(seconds), quantity(memory, "bytes", "memory"), os.getcwd())
    workers = 1 if any(each.measure for each in chosen) else jobs or default_jobs()
    request = SweepRequest(tuple(sources), chosen, limits, workers, dask, again)
    return sweep_into(os.fspath(output), request, progress)
