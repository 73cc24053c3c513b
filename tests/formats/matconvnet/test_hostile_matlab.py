"""MATLAB's files that were made to hurt: bounded by name, and no process is left behind."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from layerscope.codecs import confined, mat5
from layerscope.errors import FormatError
from layerscope.formats.matconvnet.wrappers import _fresh
from layerscope.limits import CHILD_SECONDS, MATLAB_VALUES
from tests.bounded import refused, run_bounded

HEAD = b"MATLAB 5.0 MAT-file".ljust(124) + b"\0\x01IM"
EMPTY = struct.pack("<II", 14, 0)  # a matrix of nothing
CELL, STRUCT, CHAR, DOUBLE = 1, 2, 4, 6


def element(kind: int, data: bytes) -> bytes:
    return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)


def matrix(kind: int, sizes: tuple[int, ...], body: bytes, name: bytes = b"") -> bytes:
    head = element(6, struct.pack("<II", kind, 0))
    head += element(5, struct.pack(f"<{len(sizes)}i", *sizes)) + element(1, name)
    return element(14, head + body)


def text(value: bytes) -> bytes:
    return matrix(CHAR, (1, len(value)), element(16, value))


def record(**fields: bytes) -> bytes:
    names = b"".join(name.encode().ljust(32, b"\0") for name in fields)
    body = element(5, struct.pack("<i", 32)) + element(1, names) + b"".join(fields.values())
    return matrix(STRUCT, (1, 1), body)


def cells(each: bytes, count: int) -> bytes:
    return matrix(CELL, (1, count), each * count, b"layers")


def nested(depth: int) -> bytes:
    made = EMPTY
    for _ in range(depth):
        made = matrix(CELL, (1, 1), made, b"layers")
    return made


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty cells": (lambda: cells(EMPTY, 2_000_000), "MATLAB_VALUES"),
    "layers": (lambda: cells(record(type=text(b"relu")), 300_000), "MATLAB_VALUES"),
    "numbers": (lambda: cells(matrix(DOUBLE, (1, 64), element(9, bytes(512))), 150_000), "VALUES"),
    "structs": (
        lambda: matrix(
            STRUCT, (1, 1_900_000), element(5, struct.pack("<i", 32)) + element(1, b""), b"layers"
        ),
        "MATLAB_VALUES",
    ),
    "nested cells": (lambda: nested(500), "MATLAB_DEPTH"),
    "claim of zeros": (
        lambda: struct.pack("<II", 14, 0xFFFFFFF0) + matrix(DOUBLE, (1, 1), b"")[8:56]
        + struct.pack("<II", 9, 0xFFFFFF00),
        "UNPACKED_BYTES",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_bombs(tmp_path: Path, name: str) -> None:
    make, message = HOSTILE[name]
    packed = zlib.compress(make(), 9)
    path = tmp_path / "net.mat"
    path.write_bytes(HEAD + struct.pack("<II", 15, len(packed)) + packed)
    assert path.stat().st_size < 1_000_000
    assert message in refused(path)


def test_as_many_layers_as_a_small_file_may_have(tmp_path: Path) -> None:
    packed = zlib.compress(cells(record(type=text(b"relu"), name=text(b"same")), 45_000), 9)
    path = tmp_path / "net.mat"
    path.write_bytes(HEAD + struct.pack("<II", 15, len(packed)) + packed)
    code, output, errors = run_bounded("show", str(path), "--input", "1x3x8x8", "--total")
    assert code == 0, errors
    assert "0 params" in output


def test_a_larger_file_may_have_more_values(tmp_path: Path) -> None:
    path = tmp_path / "net.mat"
    count = MATLAB_VALUES.most + 10
    path.write_bytes(HEAD + cells(matrix(DOUBLE, (0, 0), element(9, b"")), count))
    assert path.stat().st_size > 8 * count
    assert len(mat5.load(str(path))["layers"]) == count  # type: ignore[arg-type]


def test_equal_names_take_linear_time() -> None:
    names: dict[str, int] = {}
    found = [_fresh("a", names) for _ in range(50_000)]
    assert found[:3] == ["a", "a_2", "a_3"]
    assert len(set(found)) == 50_000
    assert _fresh("a_2", names) not in found


# -- the process that reads HDF5


def spin() -> None:
    """Work without an end."""
    sys.stderr.write(f"{os.getpid()}\n")
    sys.stderr.flush()
    while True:
        pass


def test_cpu_time_of_the_child_is_bounded() -> None:
    from msgspec.structs import replace

    with pytest.raises(FormatError, match="CHILD_SECONDS is 1"):
        confined.confined(spin, [], replace(CHILD_SECONDS, most=1))


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_the_child_ends_with_its_parent(sent: signal.Signals) -> None:
    program = (
        "from layerscope.codecs.confined import confined\n"
        "from tests.formats.matconvnet.test_hostile_matlab import spin\n"
        "confined(spin, [])\n"
    )
    folder = Path(__file__).parents[3]
    parent = subprocess.Popen([sys.executable, "-c", program], cwd=folder, stderr=subprocess.PIPE)
    children: set[int] = set()
    for _ in range(200):
        children = children_of(parent.pid)
        if children:
            break
        time.sleep(0.05)
    assert children
    time.sleep(0.5)
    parent.send_signal(sent)
    parent.communicate(timeout=20)
    for _ in range(100):
        if not any(is_alive(child) for child in children):
            return
        time.sleep(0.05)
    pytest.fail("a child is left")


def children_of(parent: int) -> set[int]:
    listed = Path(f"/proc/{parent}/task/{parent}/children")
    return set(map(int, listed.read_text().split())) if listed.exists() else set()


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
