"""Everything that is installed in one sweep, and the same sweep killed twenty times.

    python -m tests.sweeping.whole [--jobs 2] [--kills 20] [--models PATTERN] [--folder FOLDER]

Sweeps the zoo, torchvision, timm, all prototxt files of `../shared` and 50 ONNX files, prints the
rate and what failed, and keeps the results. Then a smaller sweep is killed at random moments, the
main process or a worker, until it is done, and its rows must equal those of an undisturbed one. It
exits with 1 if they do not, or if a network of the zoo fails.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from layerscope.zoo import NAMES
from tests.sweeping.test_sweep import all_but_times, rows

ONNX_FILES = 50
SHARED = Path(__file__).parents[3] / "shared"
COMMAND = (sys.executable, "-m", "layerscope")


def onnx_files(folder: Path) -> None:
    """Zoo networks as ONNX models without numbers, those that are there already are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in NAMES[:ONNX_FILES]:
        path = folder / f"{name}.onnx"
        if not path.exists():
            subprocess.run(
                [*COMMAND, "export", name, "--zero-weights", "-o", str(path)], check=True
            )


def sources(folder: Path, models: str) -> list[str]:
    onnx_files(folder / "onnx")
    presets = sorted(map(str, SHARED.rglob("*.prototxt")))
    libraries = [f"{library}:{models}" for library in ("torchvision", "timm")] if models else []
    return ["*", *libraries, *presets, str(folder / "onnx")]


def children(pid: int) -> list[int]:
    """Processes that a process started."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            parent = stat.read_text(encoding="utf-8").rpartition(")")[2].split()[1]
            if int(parent) == pid:
                found.append(int(stat.parent.name))
    return sorted(found)


def kill_one(main: int, chance: random.Random) -> str:
    """Kill the main process or one of its workers; which of them."""
    workers = children(main)
    victim = main if not workers or chance.random() < 0.5 else chance.choice(workers)
    try:
        os.kill(victim, signal.SIGKILL)
    except ProcessLookupError:
        return "none"
    return "main" if victim == main else "worker"


def disturbed(command: list[str], kills: int, seed: int = 0) -> dict[str, int]:
    """Run a command until it ends by itself, after so many kills at random moments."""
    chance = random.Random(seed)
    killed = {"main": 0, "worker": 0}
    while True:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None:
            if sum(killed.values()) >= kills:
                process.wait()
                break
            time.sleep(0.2 + 1.5 * chance.random())
            which = kill_one(process.pid, chance)
            if which in killed:
                killed[which] += 1
            if which == "main":
                process.wait()
        if process.returncode == 0:
            return killed


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", "-j", type=int, default=2)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument(
        "--models", default="*", help="pattern of torchvision and timm; '' for none"
    )
    parser.add_argument("--folder", default=".sweep")
    told = parser.parse_args()
    folder = Path(told.folder)
    sweep = [*COMMAND, "sweep", "-j", str(told.jobs)]
    found = folder / "whole.sqlite"
    subprocess.run([*sweep, *sources(folder, told.models), "-o", str(found)], check=True)
    failed = [str(row[0]) for row in rows(found, "name", "status") if row[1] != "ok"]
    print(f"{len(rows(found, 'key')):,} rows, failed: {', '.join(failed) or 'none'}", flush=True)
    calm, killed = folder / "calm.sqlite", folder / "killed.sqlite"
    for path in (calm, killed):
        path.unlink(missing_ok=True)
    small = [*sweep, "*", str(folder / "onnx"), "--batch", "1,2,4"]
    subprocess.run([*small, "-o", str(calm)], check=True)
    counts = disturbed([*small, "-o", str(killed)], told.kills)
    equal = all_but_times(calm) == all_but_times(killed)
    print(f"killed {counts['main']} times the main process, {counts['worker']} times a worker: "
          f"{len(rows(killed, 'key')):,} rows, {'equal' if equal else 'DIFFERENT'}")  # fmt: skip
    return int(not equal or any(name in NAMES for name in failed))


if __name__ == "__main__":
    sys.exit(main())
