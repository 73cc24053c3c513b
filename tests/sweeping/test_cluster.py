"""A sweep on a Dask cluster: a scheduler and two workers as processes of their own."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from layerscope.errors import UsageError
from layerscope.sweeping.isolation import WorkerLimits
from layerscope.sweeping.run import SweepRequest, SweepSummary, sweep_into
from layerscope.sweeping.tasks import SweepOptions
from tests.sweeping.test_sweep import GENERATOR, all_but_times

pytest.importorskip("distributed")


def start(*arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "dask", *arguments]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def worker(address: str, folder: Path) -> subprocess.Popen[bytes]:
    options = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(folder))
    return start("worker", address, *options)


@pytest.fixture
def scheduler() -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = start("scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard")
    yield f"tcp://127.0.0.1:{port}"
    process.kill()
    process.wait()


def request(source: str, dask: str | None = None) -> SweepRequest:
    return SweepRequest((source,), (SweepOptions(),), WorkerLimits(seconds=60), jobs=2, dask=dask)


def test_a_worker_is_killed_and_another_added(tmp_path: Path, scheduler: str) -> None:
    file = tmp_path / "search.py"
    file.write_text(GENERATOR)
    source, calm, path = f"{file}:candidates", tmp_path / "calm.sqlite", tmp_path / "r.sqlite"
    sweep_into(str(calm), request(source))
    workers = [worker(scheduler, tmp_path) for _ in range(2)]

    def disturb(so_far: SweepSummary, total: int | None, name: str) -> None:
        if so_far.done >= 20 and len(workers) == 2:
            workers[0].kill()
            workers.append(worker(scheduler, tmp_path))

    try:
        found = sweep_into(str(path), request(source, scheduler), disturb)
    finally:
        for each in workers:
            each.kill()
            each.wait()
    assert len(workers) == 3
    assert (found.done, found.failures) == (60, 0)
    assert all_but_times(path) == all_but_times(calm)


def test_no_scheduler_is_an_error(tmp_path: Path) -> None:
    started = time.monotonic()
    with pytest.raises(UsageError, match=r"--dask tcp://127\.0\.0\.1:9"):
        sweep_into(str(tmp_path / "r.sqlite"), request("lenet5", "tcp://127.0.0.1:9"))
    assert time.monotonic() - started < 60
