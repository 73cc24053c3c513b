"""Runs a function in a child process with limits on memory and CPU time.

A library written in C may crash or hang on broken files. The child ends when its parent does,
however that ends.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence

from layerscope.errors import FormatError
from layerscope.limits import CHILD_BYTES, CHILD_SECONDS, Limit

WAIT = 4  # seconds to wait for each second of CPU time, on a busy machine
PARENT_DEATH = 1  # Linux: PR_SET_PDEATHSIG
PROGRAM = (
    "import sys; from layerscope.codecs.confined import guard; guard(*map(int, sys.argv[1:3])); "
    "from {module} import {function} as f; f(*sys.argv[3:])"
)


def confined(
    function: Callable[..., object], arguments: Sequence[str], seconds: Limit = CHILD_SECONDS
) -> bytes:
    """Run a function of a module in a child process; returns what it writes to standard output."""
    program = PROGRAM.format(module=function.__module__, function=function.__name__)
    paths = os.pathsep.join(path for path in sys.path if path)
    # One thread, as each reserves address space.
    environment = {**os.environ, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1"}
    limits = [str(os.getpid()), str(seconds.most)]
    command = [sys.executable, "-P", "-c", program, *limits, *arguments]
    read_end, write_end = (
        os.pipe()
    )  # never written to: the child sees its end when this process ends
    pipe = subprocess.PIPE
    try:
        child = subprocess.Popen(command, env=environment, stdin=read_end, stdout=pipe, stderr=pipe)
    except (OSError, ValueError) as error:
        os.close(write_end)
        raise FormatError(f"cannot start {sys.executable}: {error}") from None
    finally:
        os.close(read_end)
    try:
        output, errors = child.communicate(timeout=WAIT * seconds.most)
    except subprocess.TimeoutExpired:
        raise FormatError(f"reading it takes {seconds.refusal()}") from None
    finally:
        os.close(write_end)
        child.kill()
        child.communicate()
    if child.returncode:
        raise FormatError(f"reading it failed: {_reason(child.returncode, errors, seconds)}")
    return output


def _reason(code: int, errors: bytes, seconds: Limit) -> str:
    if code == -getattr(signal, "SIGXCPU", 0):
        return seconds.refusal()
    if code < 0:
        return f"signal {-code}"
    return (errors.decode("utf-8", "replace").strip().splitlines() or ["no reason"])[-1]


def guard(parent: int, seconds: int) -> None:
    """Limit memory and CPU time of this process, and end it with its parent."""
    _end_with(parent)
    try:
        import resource
    except ImportError:  # Windows
        return
    for kind, most in ((resource.RLIMIT_AS, CHILD_BYTES.most), (resource.RLIMIT_CPU, seconds)):
        hard = resource.getrlimit(kind)[1]
        soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (soft, hard))


def _end_with(parent: int) -> None:
    """End when the parent does: on a signal (Linux), or at the end of standard input."""
    import threading

    def wait() -> None:
        while os.read(0, 1):
            pass
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PARENT_DEATH, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it ended before prctl was called
            os._exit(1)
