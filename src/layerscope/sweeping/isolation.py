"""Tasks in worker processes with limits of time and memory: what a network does harms no other.

A thread has one worker process, which it keeps for the next task. A worker that is killed from
outside is replaced and its task tried again; a network that ends its process is an error.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from select import select
from time import monotonic

import msgspec
from msgspec import Struct

from layerscope.report.numbers import bytes_text
from layerscope.sweeping.tasks import ResultRow, Task, failed
from layerscope.sweeping.worker import LENGTH_BYTES, Candidates, WorkerRequest, write_message

CHUNK = 1 << 20
MOST_MESSAGE = 1 << 30  # bytes of a reply
TRIES_IF_KILLED = 8  # SIGKILL comes from outside, or from a system without memory
TRIES_IF_ENDED = 2
MOST_TASKS = 500  # of one process; then it is replaced, and with it what libraries keep
WATCH_S = 0.2  # between two looks at the memory of a worker
PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class WorkerLimits(Struct, frozen=True):
    """Limits of one network, and the folder that relative paths start from."""

    seconds: float = 300.0
    memory: int = 4 << 30  # bytes
    folder: str = ""


class WorkerEnded(Exception):
    """The process of a worker ended without a reply."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code

    def __str__(self) -> str:
        if self.code >= 0:
            return f"the network ended its process with exit code {self.code}"
        with suppress(ValueError):
            name = signal.Signals(-self.code).name
            return f"the process of the network was ended by the signal {name}"
        return f"the process of the network was ended by signal {-self.code}"


class OverLimit(Exception):
    """A worker took too long, or too much memory."""


class WorkerProcess:
    """One worker process and its pipes."""

    def __init__(self, limits: WorkerLimits) -> None:
        self.limits, self.tasks = limits, 0
        self._process = subprocess.Popen(
            [sys.executable, "-m", "layerscope.sweeping.worker", str(limits.memory)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            cwd=limits.folder or None, env={**os.environ, **_one_thread()},
        )  # fmt: skip
        self._read = b""
        PROCESSES.add(self)

    def send(self, request: WorkerRequest) -> None:
        """Send a request; a process that has ended raises WorkerEnded."""
        assert self._process.stdin is not None
        try:
            write_message(self._process.stdin, msgspec.json.encode(request))  # type: ignore[arg-type]
        except (BrokenPipeError, OSError):
            raise WorkerEnded(self._process.wait()) from None

    def receive(self) -> bytes:
        """The next reply; raises WorkerEnded or OverLimit."""
        deadline = monotonic() + self.limits.seconds
        while True:
            if len(self._read) >= LENGTH_BYTES:
                size = int.from_bytes(self._read[:LENGTH_BYTES], "big")
                if size > MOST_MESSAGE:
                    raise OverLimit(f"a reply of {bytes_text(size)}")
                if len(self._read) >= LENGTH_BYTES + size:
                    reply = self._read[LENGTH_BYTES : LENGTH_BYTES + size]
                    self._read = self._read[LENGTH_BYTES + size :]
                    return reply
            self._wait_for_bytes(deadline)

    def _wait_for_bytes(self, deadline: float) -> None:
        """Wait for bytes of a reply, and watch time and memory."""
        assert self._process.stdout is not None
        handle = self._process.stdout.fileno()
        while not select([handle], [], [], WATCH_S)[0]:
            if monotonic() > deadline:
                raise OverLimit(f"no result within {self.limits.seconds:g} s (--seconds)")
            if self.resident > self.limits.memory:
                most = bytes_text(self.limits.memory)
                raise OverLimit(f"more than {most} of memory (--memory)")
        more = os.read(handle, CHUNK)
        if not more:
            raise WorkerEnded(self._process.wait())
        self._read += more

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def resident(self) -> int:
        """Resident bytes of the process; 0 where the system does not say."""
        try:
            with open(f"/proc/{self.pid}/statm", encoding="ascii") as file:
                return int(file.read().split()[1]) * PAGE
        except (OSError, IndexError, ValueError):
            return 0

    @property
    def is_worn(self) -> bool:
        """Whether it has done many tasks, or keeps much memory."""
        return self.tasks >= MOST_TASKS or self.resident > self.limits.memory // 2

    def end(self) -> None:
        """Kill the process."""
        PROCESSES.discard(self)
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


PROCESSES: set[WorkerProcess] = set()  # all that are running, to be ended with the sweep
STOPPED = threading.Event()  # set while a sweep ends: no worker is started again
_OF_THREAD = threading.local()


def _one_thread() -> dict[str, str]:
    """Environment of a worker: analysis is no parallel work, and workers run side by side."""
    return {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}


def isolated(task: Task, limits: WorkerLimits) -> ResultRow:
    """The row of a task, analyzed in the worker process of this thread."""
    if task.error:
        return failed(task, task.error)
    started = monotonic()
    killed = ended = 0
    while True:
        worker = _worker(limits)
        try:
            worker.send(WorkerRequest(task=task))
            row = msgspec.json.decode(worker.receive(), type=ResultRow)
        except OverLimit as error:
            _end_worker()
            return failed(task, str(error), monotonic() - started)
        except WorkerEnded as error:
            _end_worker()
            if STOPPED.is_set():
                raise
            was_killed = error.code == -signal.SIGKILL
            killed, ended = killed + was_killed, ended + (not was_killed)
            if killed >= TRIES_IF_KILLED or ended >= TRIES_IF_ENDED:
                return failed(task, str(error), monotonic() - started)
        else:
            worker.tasks += 1
            return row


def _worker(limits: WorkerLimits) -> WorkerProcess:
    """The worker process of this thread, a new one if it is worn or has other limits."""
    found: WorkerProcess | None = getattr(_OF_THREAD, "worker", None)
    if found is not None and (found.is_worn or found.limits != limits or found not in PROCESSES):
        _end_worker()
        found = None
    if found is None:
        found = _OF_THREAD.worker = WorkerProcess(limits)
    return found


def _end_worker() -> None:
    worker: WorkerProcess | None = getattr(_OF_THREAD, "worker", None)
    _OF_THREAD.worker = None
    if worker is not None:
        worker.end()


def end_all() -> None:
    """End every worker process of this process; `STOPPED` keeps threads from starting others."""
    STOPPED.set()
    for worker in list(PROCESSES):
        worker.end()


def candidate_tasks(asked: Candidates, limits: WorkerLimits) -> Iterator[Task]:
    """The tasks of a generator, which runs in a process of its own.

    If that process is killed, the generator starts again: it must yield the same networks. Tasks
    that come twice have the same key.
    """
    killed = 0
    while True:
        worker = WorkerProcess(limits)
        try:
            worker.send(WorkerRequest(candidates=asked))
            while data := worker.receive():
                yield msgspec.json.decode(data, type=Task)
            return
        except WorkerEnded as error:
            killed += 1
            if error.code != -signal.SIGKILL or killed >= TRIES_IF_KILLED:
                yield _broken(asked, str(error))
                return
        except OverLimit as error:
            yield _broken(asked, str(error))
            return
        finally:
            worker.end()


def _broken(asked: Candidates, error: str) -> Task:
    return Task(asked.spec, asked.spec, asked.options[0], asked.content, error=error)
