"""Time and memory of large files: arrays in safetensors and torch.save, layers of a chain.

    python bench/large_files.py            # sizes that double, up to 500,000 arrays, 200,000 layers

Each figure is of a process of its own; a column that grows as its size does is linear.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ARRAYS = (125_000, 250_000, 500_000)
LAYERS = (50_000, 100_000, 200_000)
READ = """
import resource, sys, layerscope
report = layerscope.analyze(sys.argv[1])
print(report.total_params)
"""
CHAIN = """
import sys, layerscope
b = layerscope.Builder("chain")
x = b.input("data", (1, 8, 16, 16))
for _ in range(int(sys.argv[1]) // 2):
    x = b.relu(b.conv(x, 8, 3, padding=1))
print(layerscope.analyze(b.build(x)).total_params)
"""


def main() -> None:
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.formats.stored_files import legacy, safetensors, saved

    print(f"{'what':<14}{'size':>9}{'file MB':>9}{'CPU s':>8}{'peak MB':>9}{'params':>13}")
    with tempfile.TemporaryDirectory() as folder:
        for count in ARRAYS:
            shapes = {f"layers.{n // 8}.part{n % 8}.weight": (2, 3) for n in range(count)}
            typed = {name: ("F32", shape) for name, shape in shapes.items()}
            path = Path(folder) / "net"
            name = safetensors(path.with_suffix(".safetensors"), typed)
            show("safetensors", count, READ, name, os.path.getsize(name))
            for what, make in (("torch.save", saved), ("before 1.6", legacy)):
                name = make(path.with_suffix(".pt"), shapes)
                show(what, count, READ, name, os.path.getsize(name))
        for count in LAYERS:
            show("chain", count, CHAIN, str(count), 0)


def show(what: str, count: int, program: str, argument: str, size: int) -> None:
    """Run a program and print what its process took."""
    command = [sys.executable, "-c", program, argument]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        told = child.stdout.read().strip()
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    seconds, peak = cpu_seconds(used), used.ru_maxrss / 1024
    print(
        f"{what:<14}{count:>9,}{size / 1e6:>9.1f}{seconds:>8.1f}{peak:>9.0f}{told:>13}", flush=True
    )


def cpu_seconds(used: resource.struct_rusage) -> float:
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
