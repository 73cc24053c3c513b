"""Energy counters of the processor (RAPL).

Linux has one folder per zone: `intel-rapl:0` is a processor package (also AMD's), and
`intel-rapl:0:2` one of its parts. The counters of cores and graphics are part of the package's, so
only packages and their DRAM, which is not, are summed.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache

from msgspec import Struct

ROOT = "/sys/class/powercap"
PACKAGE = re.compile(r"intel-rapl:[0-9]+")
DIGITS = re.compile(r"[0-9]{1,20}")  # of a counter of 64 bits
PART = re.compile(r"intel-rapl:[0-9]+:[0-9]+")


class Zone(Struct, frozen=True):
    """A zone with a counter of its own: package-0, dram."""

    name: str
    folder: str
    range_uj: int | None  # the counter starts again at 0 above it


class EnergyReading(Struct, frozen=True):
    """Microjoules of each zone at one moment; None if a counter cannot be read."""

    microjoules: tuple[int | None, ...]

    def joules_until(self, later: EnergyReading, zones: tuple[Zone, ...]) -> float | None:
        """Joules of all zones between two readings; None if one of them is unknown."""
        total = 0
        for zone, before, after in zip(zones, self.microjoules, later.microjoules, strict=True):
            if before is None or after is None:
                return None
            if after < before:
                if zone.range_uj is None or before > zone.range_uj:
                    return None
                after += zone.range_uj
            total += after - before
        return total / 1e6 if zones else None


@lru_cache(maxsize=8)
def zones_of(root: str = ROOT) -> tuple[Zone, ...]:
    """Packages and their DRAM, in the order of their folders; none without counters."""
    try:
        folders = sorted(os.listdir(root))
    except OSError:
        return ()
    found = []
    for folder in folders:
        path = os.path.join(root, folder)
        name = _text(os.path.join(path, "name")) or ""
        package = PACKAGE.fullmatch(folder) and name.startswith("package")
        if package or (PART.fullmatch(folder) and name == "dram"):
            range_uj = _number(os.path.join(path, "max_energy_range_uj"))
            found.append(Zone(name, path, range_uj))
    return tuple(found)


def read_counters(zones: tuple[Zone, ...]) -> EnergyReading:
    """The counters now."""
    return EnergyReading(tuple(_number(os.path.join(z.folder, "energy_uj")) for z in zones))


def locked(zones: tuple[Zone, ...]) -> bool:
    """Whether there are counters that this user may not read."""
    return any(_number(os.path.join(zone.folder, "energy_uj")) is None for zone in zones)


def source_text(zones: tuple[Zone, ...]) -> str:
    """The counters by name, as the source of an energy."""
    names = ", ".join(dict.fromkeys(zone.name for zone in zones))
    return f"mean of the timed runs by RAPL counters ({names})"


def _text(path: str) -> str | None:
    try:
        with open(path, encoding="ascii") as file:
            return file.read(100).strip()
    except (OSError, UnicodeDecodeError):
        return None


def _number(path: str) -> int | None:
    text = _text(path)
    return int(text) if text is not None and DIGITS.fullmatch(text) else None
