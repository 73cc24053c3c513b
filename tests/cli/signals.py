"""Ctrl-C and SIGTERM at random moments: how soon commands end, and what they leave behind.

make test-signals runs 200 tries. A command must end within two seconds of the signal, or after the
engine call under way, with 130 or 143; no partial file, temporary folder or process may be left.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

WITHIN_S = 2.0
CALL_S = 3.0  # of one engine call, such as the session of a large model, on a loaded machine
SIGNALS = (signal.SIGINT, signal.SIGTERM)
# command -> its arguments, and how long it takes at most before the signal is sent
COMMANDS: dict[str, tuple[list[str], float]] = {
    "show": (["show", "densenet201", "--as", "csv", "-o", "out.csv"], 0.5),
    "measure": (["measure", "resnet18", "-o", "run.json"], 2.5),
    "machine": (["machine", "--again"], 4.0),
    "calibrate": (["machine", "--calibrate"], 5.0),
    "export": (["export", "resnet50", "-o", "out.onnx"], 1.5),
    "folder": (["export", "densenet201", "--to", "timeloop", "-o", "problems"], 0.6),
    "plot": (["plot", "densenet201", "-o", "out.svg"], 0.5),
}
# what a finished command, or a run that is kept and marked, has written
RESULTS = ("out.csv", "run.json", "out.onnx", "out.svg", "problems")


OF_ENGINES = (".ses",)  # onnxruntime writes it to TMPDIR whenever it is loaded


class Try(Struct, frozen=True):
    """One command that was sent a signal."""

    command: str
    signal: signal.Signals
    after_s: float
    ended_s: float  # since the signal
    code: int
    left: tuple[str, ...]
    said: str

    @property
    def fault(self) -> str:
        """What is wrong with how it ended, "" if nothing is."""
        if self.left:
            return f"left behind: {', '.join(self.left)}"
        expected = (128 + self.signal, -self.signal)  # the latter before any code of ours runs
        starting = self.said.endswith("KeyboardInterrupt\n") and "layerscope" not in self.said
        if self.code not in (0, *expected) and not starting:
            return f"exit {self.code}: {self.said.strip().splitlines()[-1:]}"
        limit = CALL_S if self.command in ("measure", "machine", "calibrate") else WITHIN_S
        return f"took {self.ended_s:.1f} s" if self.ended_s > limit else ""


def attempt(name: str, number: signal.Signals, after_s: float) -> Try:
    """Run a command, send it a signal, and look at what is left."""
    args, _ = COMMANDS[name]
    with tempfile.TemporaryDirectory(prefix="signals-") as root:
        folders = {each: Path(root, each) for each in ("cwd", "tmp", "cache")}
        for folder in folders.values():
            folder.mkdir()
        environment = {
            **os.environ,
            "TMPDIR": str(folders["tmp"]),
            "LAYERSCOPE_CACHE": str(folders["cache"]),
        }
        running = subprocess.Popen(
            [sys.executable, "-m", "layerscope", *args],
            cwd=folders["cwd"],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            text=True,
        )
        time.sleep(after_s)
        sent = time.monotonic()
        running.send_signal(number)
        try:
            said = running.communicate(timeout=60)[1]
        except subprocess.TimeoutExpired:
            running.kill()
            said = running.communicate()[1] + "hangs"
        ended = time.monotonic() - sent
        left = tuple(_left(folders, running.pid))
        return Try(name, number, after_s, ended, running.returncode, left, said)


def _left(folders: dict[str, Path], session: int) -> Iterator[str]:
    for folder in folders.values():
        for path in sorted(folder.rglob("*")):
            name = str(path.relative_to(folder))
            kept = folder.name == "cache" and path.suffix == ".json"
            if not kept and name.split(os.sep)[0] not in (*RESULTS, *OF_ENGINES):
                yield f"{folder.name}/{name}"
            elif path.is_file() and not path.stat().st_size:
                yield f"{folder.name}/{name} (empty)"
    problems = folders["cwd"] / "problems"
    if problems.exists() and not any(problems.iterdir()):
        yield "cwd/problems (empty)"
    yield from _processes(session)


def _processes(session: int) -> Iterator[str]:
    """Processes that are left of a session, where the system lists them."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue
        fields = text.rpartition(")")[2].split()
        if int(fields[3]) == session and fields[0] != "Z":
            yield f"process {stat.parent.name}"


def main() -> int:
    """Run the tries and print a table; 1 if any has a fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=200)
    parser.add_argument("--seed", type=int, default=18)
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
    source = random.Random(options.seed)
    names = list(COMMANDS)
    tries = []
    for n in range(options.tries):
        name, number = names[n % len(names)], SIGNALS[n // len(names) % 2]
        tries.append(attempt(name, number, source.uniform(0.0, COMMANDS[name][1])))
        if tries[-1].fault:
            print(f"{name} {number.name} after {tries[-1].after_s:.3f} s: {tries[-1].fault}")
    print(f"{'command':<10}{'signal':<9}{'tries':>6}{'finished':>9}{'median s':>9}{'most s':>8}"
          f"{'faults':>8}")  # fmt: skip
    for name in names:
        for number in SIGNALS:
            of = [each for each in tries if (each.command, each.signal) == (name, number)]
            if of:
                ended = sorted(each.ended_s for each in of)
                print(
                    f"{name:<10}{number.name:<9}{len(of):>6}{sum(t.code == 0 for t in of):>9}"
                    f"{ended[len(ended) // 2]:>9.2f}{ended[-1]:>8.2f}"
                    f"{sum(bool(t.fault) for t in of):>8}"
                )
    bad = sum(bool(each.fault) for each in tries)
    print(f"{len(tries)} tries, {bad} faults")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
