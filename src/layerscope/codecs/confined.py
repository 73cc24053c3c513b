"""Runs a reader in a process of its own, where memory and time are bounded.

A library written in C cannot be trusted with any bytes: on some it crashes, on some it never ends.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence

from layerscope.errors import FormatError

MOST_MEMORY = 2 << 30  # bytes
MOST_SECONDS = 120
PROGRAM = "import sys; from {module} import {function} as f; f(*sys.argv[1:])"


def confined(function: Callable[..., object], arguments: Sequence[str]) -> bytes:
    """What a function of a module writes to its standard output, given these arguments."""
    program = PROGRAM.format(module=function.__module__, function=function.__name__)
    paths = os.pathsep.join(path for path in sys.path if path)
    # one thread, as each reserves memory
    environment = {**os.environ, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-P", "-c", program, *arguments]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, timeout=MOST_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise FormatError(f"reading it takes more than {MOST_SECONDS} s") from None
    except (OSError, ValueError) as error:
        raise FormatError(f"cannot start {sys.executable}: {error}") from None
    if done.returncode:
        told = done.stderr.decode("utf-8", "replace").strip().splitlines()
        why = f"signal {-done.returncode}" if done.returncode < 0 else (told or ["no reason"])[-1]
        raise FormatError(f"reading it failed: {why}")
    return done.stdout


def bound_memory() -> None:
    """Refuse this process more than it should need, where the system can."""
    try:
        import resource
    except ImportError:  # Windows
        return
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    most = MOST_MEMORY if hard == resource.RLIM_INFINITY else min(MOST_MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
