"""A .caffemodel by its size: CPU to read it; seconds and peak memory of all of `show --total`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import BinaryIO

import layerscope

LAYERS, CHANNELS = 43, 512  # of 3x3 convolutions, 9.4 MB each: 406 MB
MOST_MB = 60
RUNS = 5
# The parent's memory would be in what the parent is told of its child's.
COMMAND = """
import atexit, sys
status = lambda: next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
atexit.register(lambda: sys.stderr.write(status()))
from layerscope.cli import main
main()
"""


def varint(value: int) -> bytes:
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    return bytes((*made, value))


def span(number: int, payload: bytes, more: int = 0) -> bytes:
    """A field whose payload is followed by `more` bytes of its own."""
    return varint(number << 3 | 2) + varint(len(payload) + more) + payload


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def write_layer(file: BinaryIO, n: int) -> None:
    bottom = f"conv{n - 1}" if n else "data"
    told = number(1, CHANNELS) + number(3, 1) + number(4, 3)
    head = span(1, b"conv%d" % n) + span(2, b"Convolution") + span(3, bottom.encode())
    head += span(4, b"conv%d" % n) + span(106, told)
    size = 4 * CHANNELS * CHANNELS * 9
    shape = span(7, span(1, b"".join(map(varint, (CHANNELS, CHANNELS, 3, 3)))))
    weight = span(7, shape + varint(5 << 3 | 2) + varint(size), size)
    bias = span(7, span(7, span(1, varint(CHANNELS))) + span(5, bytes(4 * CHANNELS)))
    file.write(span(100, head + weight, size + len(bias)) + os.urandom(size) + bias)


def write(path: Path, layers: int) -> None:
    """A chain of convolutions with random weights."""
    with path.open("wb") as file:
        file.write(span(1, b"big") + span(3, b"data"))
        file.write(span(8, span(1, b"".join(map(varint, (1, CHANNELS, 28, 28))))))
        for n in range(layers):
            write_layer(file, n)


def run(path: Path) -> tuple[float, float]:
    """Wall seconds and peak resident MB of the whole command, as the process itself tells them."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    ran = subprocess.run(
        [sys.executable, "-c", COMMAND, "show", str(path), "--total"],
        capture_output=True,
        text=True,
        check=True,
        env=env,
    )
    return time.perf_counter() - start, int(ran.stderr.split()[1]) / 1024


def read_ms(path: Path) -> float:
    """Milliseconds of CPU to make the graph of a file, in this process."""
    start = time.process_time()
    layerscope.load(str(path))
    return (time.process_time() - start) * 1000


def main() -> None:
    print(f"{'network':<12}{'file MB':>9}{'read ms':>9}{'whole s':>9}{'peak MB':>9}{'budget':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for layers in (1, 5, 25, LAYERS):
            path = Path(folder, "big.caffemodel")
            write(path, layers)
            read = min(read_ms(path) for _ in range(RUNS))
            seconds, peak = min(run(path) for _ in range(RUNS))
            print(
                f"{f'{layers} layers':<12}{path.stat().st_size / 1e6:>9.0f}{read:>9.1f}"
                f"{seconds:>9.3f}{peak:>9.1f}{MOST_MB:>8}{'  ok' if peak <= MOST_MB else '  OVER'}"
            )


if __name__ == "__main__":
    main()
