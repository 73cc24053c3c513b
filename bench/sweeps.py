"""Rates of `layerscope sweep`: the whole zoo, and candidates of an architecture search.

    python bench/sweeps.py [--json FILE] [--candidates 10000] [--jobs 2] [SOURCE…]

Given sources are swept besides. The main process must stay flat in memory: its peak is printed
after a tenth of the candidates and at the end.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
from pathlib import Path
from typing import Any

from saving import GOAL_MISSED, save  # the folder of this script is on the path

from layerscope.sweeping.functions import sweep
from layerscope.sweeping.run import SweepSummary

MOST_GROWTH = 1.25
SEARCH = """
import random
from layerscope import Builder

def candidates(count={count}):
    chance = random.Random(0)
    for n in range(count):
        b = Builder(f"candidate{{n}}")
        x = b.input("data", (1, 3, 32, 32))
        for _ in range(chance.randint(4, 20)):
            x = b.relu(b.conv(x, chance.choice([16, 32, 64]), 3, padding=1))
        yield b.name, b.build(b.linear(b.flatten(b.global_pool(x)), 10))
"""


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def swept(what: str, sources: list[str], folder: Path, jobs: int) -> dict[str, Any]:
    """The rate of one sweep, and the memory of this process early and late."""
    early = 0.0
    summary = None

    def watch(so_far: SweepSummary, total: int | None, name: str) -> None:
        nonlocal early
        if not early and so_far.done >= 1000:
            early = peak_mb()

    summary = sweep(*sources, output=folder / f"{what}.sqlite", jobs=jobs, progress=watch)
    rate = 60 * summary.done / summary.seconds
    late = peak_mb()
    print(
        f"{what:<14}{summary.done:>9,}{summary.failures:>8,}{summary.seconds:>9.1f}{rate:>13,.0f}"
        f"{early or late:>9.0f}{late:>9.0f}",
        flush=True,
    )
    return {"what": what, "networks": summary.done, "failed": summary.failures,
            "seconds": summary.seconds, "per_minute": rate, "early_mb": early or late,
            "late_mb": late, "jobs": jobs}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    parser.add_argument("--candidates", type=int, default=10_000)
    parser.add_argument("--jobs", "-j", type=int, default=2)
    parser.add_argument("sources", nargs="*")
    told = parser.parse_args()
    print(
        f"{'sweep':<14}{'networks':>9}{'failed':>8}{'wall s':>9}{'per minute':>13}"
        f"{'MB early':>9}{'MB late':>9}"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        search = folder / "search.py"
        search.write_text(SEARCH.format(count=told.candidates), encoding="utf-8")
        sweeps = {"zoo": ["*"], "candidates": [f"{search}:candidates"], "sources": told.sources}
        if not told.candidates:
            del sweeps["candidates"]
        rows = []
        for what, sources in sweeps.items():
            if sources:
                rows.append(swept(what, sources, folder, told.jobs))
                save(told.json, {"rows": rows})
    grown = any(row["late_mb"] > MOST_GROWTH * row["early_mb"] for row in rows)
    return GOAL_MISSED if grown else 0


if __name__ == "__main__":
    sys.exit(main())
