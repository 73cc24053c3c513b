"""CPU time of whole commands, best of several, beside a bare interpreter of the same run."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

RUNS = 15
BUDGETS_MS = {"--help": 100, "show vgg16": 150, "show resnet152 --as json": None, "zoo": None}


def cpu_ms(command: list[str]) -> float:
    """User and system milliseconds of one run of a command, its output dropped."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, env=env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent * 1000


def best(command: list[str]) -> float:
    return min(cpu_ms(command) for _ in range(RUNS))


def main() -> None:
    bare = best([sys.executable, "-c", "pass"])
    print(f"{'command':<36}{'CPU ms':>8}{'/ bare':>8}{'budget':>8}")
    print(f"{'python -c pass':<36}{bare:>8.0f}{1:>8.1f}")
    for line, budget in BUDGETS_MS.items():
        spent = best([sys.executable, "-m", "layerscope", *line.split()])
        told = "" if budget is None else f"{budget:>8}{'  ok' if spent <= budget else '  OVER'}"
        print(f"{'layerscope ' + line:<36}{spent:>8.0f}{spent / bare:>8.1f}{told}")


if __name__ == "__main__":
    main()
