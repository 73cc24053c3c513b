"""A worker process: reads requests from its standard input, writes replies to its standard output.

    python -m layerscope.sweeping.worker MEMORY_BYTES

A message is its length in eight bytes, then JSON. A request is a Task, which gives one ResultRow,
or a Candidates, which gives one Task after the other and then an empty message. What a network
prints goes nowhere: only messages are written to the pipe.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from typing import BinaryIO

import msgspec

from layerscope.sweeping.tasks import SweepOptions, Task

LENGTH_BYTES = 8
PR_SET_PDEATHSIG = 1


class Candidates(msgspec.Struct, frozen=True):
    """A generator of the user's, `file.py:function`, and the options that each network is for."""

    spec: str
    content: str  # hash of the file
    options: tuple[SweepOptions, ...]


class WorkerRequest(msgspec.Struct, frozen=True):
    """What a worker is asked for: one of the two."""

    task: Task | None = None
    candidates: Candidates | None = None


def write_message(stream: BinaryIO, data: bytes) -> None:
    """Write one message."""
    stream.write(len(data).to_bytes(LENGTH_BYTES, "big") + data)
    stream.flush()


def read_message(stream: BinaryIO) -> bytes | None:
    """The next message; None at the end of the stream, also within a message."""
    head = stream.read(LENGTH_BYTES)
    if len(head) < LENGTH_BYTES:
        return None
    size = int.from_bytes(head, "big")
    data = stream.read(size)
    return data if len(data) == size else None


def limit_memory(most: int) -> None:
    """Let allocations fail with MemoryError above a number of bytes, where the system can."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def end_with_parent() -> None:
    """Have Linux kill this process if the one that started it ends, even by SIGKILL."""
    with suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """The two pipes of this process; its standard streams become the null device."""
    source, target = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    return source, target


def main() -> None:
    """Answer requests until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started it
    end_with_parent()
    limit_memory(int(sys.argv[1]))
    source, target = take_pipes()
    from layerscope.sweeping.evaluation import evaluate

    while (data := read_message(source)) is not None:
        request = msgspec.json.decode(data, type=WorkerRequest)
        if request.candidates is not None:
            from layerscope.sweeping.candidates import candidates

            asked = request.candidates
            for task in candidates(asked.spec, asked.content, asked.options):
                write_message(target, msgspec.json.encode(task))
            write_message(target, b"")
        elif request.task is not None:
            write_message(target, msgspec.json.encode(evaluate(request.task)))


if __name__ == "__main__":
    main()
