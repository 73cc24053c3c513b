"""Memory of this machine that a run may take, and the refusal of a run that takes more."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from layerscope.errors import EngineError
from layerscope.report.numbers import bytes_text

GROUP = "/sys/fs/cgroup"
PAGE_CACHE = ("inactive_file", "active_file")  # of a group: freed where memory is short


def free_bytes() -> int | None:
    """Bytes that are available, within the limit of a container; None if they are unknown."""
    found = [size for size in (_of_system(), _of_group()) if size is not None]
    return min(found, default=None)


def check_memory(name: str, uses: Mapping[str, int]) -> None:
    """Raise if a run needs more bytes than are available; `uses` are its bytes by use."""
    free, needed = free_bytes(), sum(uses.values())
    if free is None or needed <= free:
        return
    parts = " + ".join(f"{use} {bytes_text(size)}" for use, size in uses.items() if size)
    raise EngineError(
        f"{name}: measuring it takes {bytes_text(needed)} = {parts}, and {bytes_text(free)} of "
        "memory are available"
    )


def _of_system() -> int | None:
    with suppress(OSError, ValueError, IndexError), open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return None


def _of_group() -> int | None:
    """What the limit of a control group leaves; its page cache can be freed."""
    with suppress(OSError, ValueError, IndexError):
        most, used = (int(_text(f"memory.{name}")) for name in ("max", "current"))
        pairs = [line.split() for line in _text("memory.stat").splitlines()]
        freed = sum(int(size) for name, size in pairs if name in PAGE_CACHE)
        return max(most - used + freed, 0)
    return None


def _text(name: str) -> str:
    with open(f"{GROUP}/{name}", encoding="ascii") as file:
        return file.read().strip()
