"""Everything that is installed in one sweep, and the same sweep killed twenty times.

    python -m tests.sweeping.whole [--jobs 2] [--kills 20] [--models PATTERN] [--folder FOLDER]
                                   [--minutes 9]

Sweeps the zoo, torchvision, timm, all prototxt files of `../shared` and 50 ONNX files, prints the
rate and what failed, and keeps the results. Then a smaller sweep is killed at random moments, the
main process or a worker, until it is done, and its rows must equal those of an undisturbed one. It
exits with 1 if they do not, if there were fewer kills, or if a network of the zoo fails. With
`--minutes` a process runs one step for at most so long and ends with exit code 3, and the same
command goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from layerscope.zoo import NAMES
from tests.sweeping.test_sweep import all_but_times, rows

ONNX_FILES = 50
BATCHES = ",".join(map(str, range(1, 25)))  # of the sweep that is killed: a minute of work
UNFINISHED = 3  # exit code
NO_LIMIT = 1e6  # minutes
KILLED = ("main", "worker")
STEPS = ("whole", "calm", "killed")
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


def run_until(command: list[str], stop_at: float) -> bool:
    """Run a sweep; False if it was interrupted at a time, to go on with the same command."""
    process = subprocess.Popen(command)
    try:
        process.wait(max(stop_at - time.monotonic(), 0))
    except subprocess.TimeoutExpired:
        interrupt(process)
        return False
    if process.returncode:
        raise SystemExit(f"the sweep ended with exit code {process.returncode}")
    return True


def undisturbed(command: list[str], path: Path, stop_at: float) -> bool:
    """Run a sweep from its beginning to its end; what an interrupted one left is not used."""
    path.unlink(missing_ok=True)
    return run_until([*command, "-o", str(path)], stop_at)


def interrupt(process: subprocess.Popen[bytes]) -> None:
    """Stop a sweep as Ctrl-C does; its results so far are in its file."""
    process.send_signal(signal.SIGINT)
    process.wait()


def disturbed(command: list[str], kills: int, killed: dict[str, int], stop_at: float) -> bool:
    """Run a command until it ends by itself, after so many kills at random moments.

    False if the time is over before; `killed` counts the kills so far.
    """
    chance = random.Random(sum(killed.values()))
    while time.monotonic() < stop_at:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None:
            if time.monotonic() >= stop_at:
                interrupt(process)
                return False
            if sum(killed.values()) >= kills:
                time.sleep(0.2)
                continue
            time.sleep(0.2 + 1.5 * chance.random())
            which = kill_one(process.pid, chance)
            if which in killed:
                killed[which] += 1
            if which == "main":
                process.wait()
        if process.returncode == 0:
            return True
    return False


class Progress:
    """The steps of a proof, which goes on after a limit of time; its file is removed at the end.

    With a limit, a process runs one step, which then has all of the time.
    """

    def __init__(self, folder: Path, minutes: float) -> None:
        self.path = folder / "progress.json"
        self.single = minutes < NO_LIMIT
        self.stop_at = time.monotonic() + 60 * minutes
        self.data: dict[str, Any] = {"done": [], "seconds": 0.0, "killed": dict.fromkeys(KILLED, 0)}
        if self.path.is_file():
            self.data = json.loads(self.path.read_text(encoding="utf-8"))

    def step(self, name: str, run: Callable[[float], bool]) -> bool:
        """Whether the next step may begin; `run` is given the time to stop at."""
        if name in self.data["done"]:
            return True
        started = time.monotonic()
        complete = run(self.stop_at)
        if name == "whole":
            self.data["seconds"] += time.monotonic() - started
        if complete:
            self.data["done"].append(name)
        self.path.write_text(json.dumps(self.data), encoding="utf-8")
        if not complete or (self.single and name != STEPS[-1]):
            state = "done" if complete else "not done"
            print(f"step {name} is {state}; the same command goes on", flush=True)
            return False
        return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", "-j", type=int, default=2)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument(
        "--models", default="*", help="pattern of torchvision and timm; '' for none"
    )
    parser.add_argument("--folder", default=".sweep")
    parser.add_argument("--minutes", type=float, default=NO_LIMIT, help="run one step for so long")
    told = parser.parse_args()
    folder = Path(told.folder)
    sweep = [*COMMAND, "sweep", "-j", str(told.jobs)]
    found, calm, killed = (folder / f"{name}.sqlite" for name in STEPS)
    given = sources(folder, told.models)
    progress = Progress(folder, told.minutes)
    if not progress.path.is_file():
        killed.unlink(missing_ok=True)
    if not progress.step("whole", partial(run_until, [*sweep, *given, "-o", str(found)])):
        return UNFINISHED
    failed = [str(row[0]) for row in rows(found, "name", "status") if row[1] != "ok"]
    count, minutes = len(rows(found, "key")), progress.data["seconds"] / 60
    print(f"{count:,} rows in {minutes:.1f} minutes, failed: {', '.join(failed) or 'none'}")
    small = [*sweep, "*", str(folder / "onnx"), "--batch", BATCHES]
    if not progress.step("calm", partial(undisturbed, small, calm)):
        return UNFINISHED
    counts = progress.data["killed"]
    kill = partial(disturbed, [*small, "-o", str(killed)], told.kills, counts)
    if not progress.step("killed", kill):
        return UNFINISHED
    progress.path.unlink()
    equal = all_but_times(calm) == all_but_times(killed)
    print(f"killed {counts['main']} times the main process, {counts['worker']} times a worker: "
          f"{len(rows(killed, 'key')):,} rows, {'equal' if equal else 'DIFFERENT'}")  # fmt: skip
    few = sum(counts.values()) < told.kills
    if few:
        print(f"it ended before {told.kills} kills")
    return int(not equal or few or any(name in NAMES for name in failed))


if __name__ == "__main__":
    sys.exit(main())
