"""Wall time and memory of whole commands on language models, best of several."""

from __future__ import annotations

import os
import subprocess
import sys
import time

RUNS = 5
COMMANDS = ("show llama-3-405b --total", "show llama-3-405b", "show gpt2-xl --total")
BUDGET_S, BUDGET_MB = 1.0, 200


def measure(command: list[str]) -> tuple[float, float]:
    """Seconds and the most megabytes resident of one run, its output dropped."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return time.perf_counter() - start, usage.ru_maxrss / 1000


def main() -> None:
    print(f"{'command':<40}{'s':>8}{'MB':>8}")
    for line in COMMANDS:
        runs = [measure([sys.executable, "-m", "layerscope", *line.split()]) for _ in range(RUNS)]
        seconds, megabytes = min(s for s, _ in runs), max(mb for _, mb in runs)
        over = seconds > BUDGET_S or megabytes > BUDGET_MB
        told = "OVER" if over else "ok"
        print(f"{'layerscope ' + line:<40}{seconds:>8.3f}{megabytes:>8.1f}  {told}")


if __name__ == "__main__":
    main()
