"""Whether the targets find faults: three are planted in each reader, in a copy of the sources.

`python -m tests.fuzz.planted [SECONDS] [TARGET ...]` prints how long each took to be found. A find
counts only if the reader without the fault takes the same bytes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.faults import FAULTS, Fault
from tests.fuzz.targets import TARGETS

ROOT = Path(__file__).parents[2]
LAYERSCOPE = Path("layerscope")
REPLAY = (
    "import sys; from tests.fuzz.targets import TARGETS; "
    "TARGETS[sys.argv[1]](open(sys.argv[2], 'rb').read())"
)
RUNS = re.compile(r"^(?:#|stat::number_of_executed_units: )(\d+)", re.MULTILINE)
ERROR = re.compile(r"Uncaught Python exception: ===\s+(.*)|ERROR: libFuzzer: ([\w-]+)")


def copied(fault: Fault, folder: Path) -> Path:
    """A copy of the sources with the fault in it."""
    source = folder / "src"
    shutil.copytree(ROOT / "src" / LAYERSCOPE, source / LAYERSCOPE)
    file = source / LAYERSCOPE / fault.file
    text = file.read_text()
    if text.count(fault.old) != 1:
        sys.exit(f"{fault.file}: expected once, found {text.count(fault.old)} times: {fault.old}")
    file.write_text(text.replace(fault.old, fault.new))
    return source


def found(target: str, fault: Fault, seconds: int) -> tuple[float, int, str] | None:
    """Seconds, runs and error until the fault is found; None where it is not."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = copied(fault, folder)
        begin = time.monotonic()
        done = _python(
            source, "-m", "tests.fuzz.fuzz", target, str(folder / "corpus"),
            f"-max_total_time={seconds}", f"-artifact_prefix={folder}/found-",
        )  # fmt: skip
        took = time.monotonic() - begin
        finds = sorted(folder.glob("found-*"))
        finds = [path for path in finds if not path.name.startswith("found-slow")]
        if not finds:
            if done.returncode:
                sys.exit(
                    f"{target}: exit {done.returncode}: {done.stdout[-2000:]}{done.stderr[-500:]}"
                )
            return None
        clean = _python(ROOT / "src", "-c", REPLAY, target, str(finds[0]))
        if clean.returncode:
            kept = shutil.copy(finds[0], ROOT / ".fuzz" / f"{target}-{finds[0].name}")
            sys.exit(f"{kept}: fails without the fault too:\n{clean.stderr[-2000:]}")
        runs = [int(count) for count in RUNS.findall(done.stderr)]
        error = ERROR.search(done.stdout + done.stderr)
        seen = (error[1] or error[2])[:80] if error else finds[0].name[:20]
        return took, max(runs, default=0), seen.replace("|", "/")


def _python(source: Path, *args: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join((str(source), str(ROOT)))
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *args], env=environment, capture_output=True, text=True, check=False,
        errors="replace",
    )  # fmt: skip


def main(seconds: int, targets: list[str]) -> int:
    """Print a row for each fault; returns how many are not found."""
    missed = 0
    (ROOT / ".fuzz").mkdir(exist_ok=True)
    print("| target | fault | seconds | runs | seen as |\n| --- | --- | --- | --- | --- |")
    for target in targets:
        for fault in FAULTS[target]:
            result = found(target, fault, seconds)
            missed += result is None
            told = "not found | | " if result is None else "{:.0f} | {:,} | {}".format(*result)
            print(f"| {target} | {fault.says} | {told} |", flush=True)
    return missed


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    words = [word for word in sys.argv[1:] if not word.isdigit()]
    sys.exit(bool(main(numbers[0] if numbers else 600, words or list(TARGETS))))
