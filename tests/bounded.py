"""Reads a file in a process of its own, with the memory and time that any small file may take."""

from __future__ import annotations

import subprocess
import sys

MOST_BYTES = 1 << 30
MOST_SECONDS = 10  # of CPU time
LIMITS = """
import resource
resource.setrlimit(resource.RLIMIT_AS, ({size}, {size}))
resource.setrlimit(resource.RLIMIT_CPU, ({seconds}, {seconds}))
"""
COMMAND = """
import sys
from layerscope.cli import run
sys.exit(run(sys.argv[1:]))
"""


def run_limited(
    program: str, *args: str, size: int = MOST_BYTES, seconds: int = MOST_SECONDS
) -> tuple[int, str, str]:
    """Exit code, output and errors of a Python program in a process with limits."""
    limits = LIMITS.format(size=size, seconds=seconds)
    done = subprocess.run(
        [sys.executable, "-c", limits + program, *args], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout[-5000:], done.stderr[-3000:]


def run_bounded(*args: str) -> tuple[int, str, str]:
    """Exit code, output and errors of a command within 1 GB and 10 s; the output is cut short."""
    return run_limited(COMMAND, *args)


def refused(path: object, *args: str) -> str:
    """What the command says of a file that it refuses: one line, with the name of the file."""
    code, output, errors = run_bounded("show", str(path), *args)
    assert code == 3, (code, output[-500:], errors)
    assert errors.startswith(f"layerscope: {path}")
    assert errors.count("\n") == 1
    assert len(errors) < 1500
    return errors
