"""A sweep: tasks of all sources go to workers, rows to the store, in the order they are done."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from time import monotonic

from msgspec import Struct

from layerscope.sweeping.isolation import (
    STOPPED,
    WorkerLimits,
    candidate_tasks,
    end_all,
    isolated,
)
from layerscope.sweeping.sources import content_of, networks_of
from layerscope.sweeping.store import Store, opened
from layerscope.sweeping.tasks import ResultRow, SweepOptions, Task, failed
from layerscope.sweeping.worker import Candidates

AHEAD = 3  # tasks waiting for each worker
POLL_S = 0.5
TRIES = 5  # of a task whose cluster worker is lost


class SweepSummary(Struct, frozen=True):
    """Counts of a sweep: rows written now, rows that were there already, failures among the new."""

    path: str
    done: int
    skipped: int
    failures: int
    seconds: float

    def __str__(self) -> str:
        rate = 60 * self.done / self.seconds if self.seconds else 0.0
        networks = "network" if self.done == 1 else "networks"
        parts = [f"{self.done:,} {networks} in {self.seconds:.1f} s ({rate:,.0f} per minute)"]
        if self.skipped:
            parts.append(f"{self.skipped:,} were there already")
        parts.append(f"{self.failures:,} failed")
        return f"{self.path}: {', '.join(parts)}"


Progress = Callable[[SweepSummary, int | None, str], None]  # with the total if it is known


class SweepRequest(Struct, frozen=True):
    """What is swept: sources, one set of options per row of a network, limits, workers."""

    sources: tuple[str, ...]
    options: tuple[SweepOptions, ...]
    limits: WorkerLimits
    jobs: int = 1
    dask: str | None = None
    again: bool = False  # repeat rows that are there already


def sweep_into(path: str, request: SweepRequest, progress: Progress | None = None) -> SweepSummary:
    """Analyze every network of a request; rows that the file has are not repeated."""
    networks = list(networks_of(request.sources))
    total = None if any(".py:" in each for each in networks) else len(networks) * len(
        request.options
    )  # fmt: skip
    with opened(path) as store, _executor(request) as executor:
        return _Sweep(store, request, executor, progress).run(networks, total)


class _Sweep:
    """The state of one sweep: tasks under way, and counts."""

    def __init__(
        self, store: Store, request: SweepRequest, executor: Executor, progress: Progress | None
    ) -> None:
        self.store, self.request, self.executor = store, request, executor
        self.progress = progress
        self.under_way: dict[Future[ResultRow], tuple[Task, int]] = {}
        self.done = self.skipped = self.failures = 0
        self.started = monotonic()

    def run(self, networks: list[str], total: int | None) -> SweepSummary:
        ahead = AHEAD * self.request.jobs
        name = ""
        for task in self._new_tasks(networks):
            name = task.name
            self._submit(task, 1)
            while len(self.under_way) >= ahead:
                self._collect()
                self._show(total, name)
        while self.under_way:
            self._collect()
            self._show(total, name)
        return self._summary()

    def _new_tasks(self, networks: list[str]) -> Iterator[Task]:
        """Tasks without a row, each once."""
        seen: set[str] = set()
        for task in _tasks(networks, self.request):
            key = task.key
            if key in seen:
                continue
            seen.add(key)
            if key in self.store.keys and not self.request.again:
                self.skipped += 1
            else:
                yield task

    def _submit(self, task: Task, tries: int) -> None:
        future = self.executor.submit(isolated, task, self.request.limits)
        self.under_way[future] = task, tries

    def _collect(self) -> None:
        """Store the rows that are done."""
        for future in wait(self.under_way, POLL_S, FIRST_COMPLETED).done:
            task, tries = self.under_way.pop(future)
            try:
                row = future.result()
            except Exception as error:  # the cluster lost a worker
                if tries < TRIES:
                    self._submit(task, tries + 1)
                    continue
                row = failed(task, f"{type(error).__name__}: {error}")
            self.store.add(row)
            self.done += 1
            self.failures += row.status != "ok"

    def _summary(self) -> SweepSummary:
        seconds = monotonic() - self.started
        return SweepSummary(self.store.path, self.done, self.skipped, self.failures, seconds)

    def _show(self, total: int | None, name: str) -> None:
        if self.progress is not None:
            self.progress(self._summary(), total, name)


def _tasks(networks: list[str], request: SweepRequest) -> Iterator[Task]:
    """All tasks of a request, in the order of its sources."""
    for network in networks:
        content = content_of(network)
        if ".py:" in network:
            asked = Candidates(network, content, request.options)
            yield from candidate_tasks(asked, request.limits)
        else:
            yield from (Task(network, network, each, content) for each in request.options)


@contextmanager
def _executor(request: SweepRequest) -> Iterator[Executor]:
    """Threads with a worker process each, or the workers of a Dask cluster."""
    if request.dask is not None:
        from layerscope.sweeping.dask import cluster

        with cluster(request.dask) as found:
            yield found
        return
    STOPPED.clear()
    executor = ThreadPoolExecutor(request.jobs, "sweep")
    try:
        yield executor
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
        end_all()  # a thread that waits for its worker then ends as well
        executor.shutdown(wait=True)


def default_jobs() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
