"""CPU time of whole commands, best of several, beside a bare interpreter of the same run.

    python bench/startup.py [--json FILE] [--runs 15]

Other counters of PyTorch models that are installed are imported, which is the least that a script
with one of them takes.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import resource
import subprocess
import sys
from contextlib import suppress

from saving import save  # the folder of this script is on the path

RUNS = 15
BUDGETS_MS = {"--help": 100, "show vgg16": 150, "show resnet152 --as json": None, "zoo": 250}
PEERS = ("torchinfo", "fvcore.nn", "ptflops", "thop", "calflops", "torch.utils.flop_counter")
PEER_RUNS = 2  # imports of PyTorch take seconds


def cpu_ms(command: list[str]) -> float:
    """User and system milliseconds of one run of a command, its output dropped."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, env=env
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent * 1000


def best(command: list[str], runs: int) -> float:
    return min(cpu_ms(command) for _ in range(runs))


def imports() -> dict[str, float]:
    """CPU milliseconds of importing each counter that is installed."""
    found = {}
    for name in PEERS:
        if importlib.util.find_spec(name.partition(".")[0]) is None:
            continue
        with suppress(subprocess.CalledProcessError):  # it does not load here
            found[f"import {name}"] = best([sys.executable, "-c", f"import {name}"], PEER_RUNS)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    parser.add_argument("--runs", type=int, default=RUNS)
    told = parser.parse_args()
    bare = best([sys.executable, "-c", "pass"], told.runs)
    print(f"{'command':<36}{'CPU ms':>8}{'/ bare':>8}{'budget':>8}")
    print(f"{'python -c pass':<36}{bare:>8.0f}{1:>8.1f}")
    found = {"python -c pass": bare}
    for line, budget in BUDGETS_MS.items():
        spent = best([sys.executable, "-m", "layerscope", *line.split()], told.runs)
        verdict = "" if budget is None else f"{budget:>8}{'  ok' if spent <= budget else '  OVER'}"
        print(f"{'layerscope ' + line:<36}{spent:>8.0f}{spent / bare:>8.1f}{verdict}")
        found[f"layerscope {line}"] = spent
    if told.json:
        found |= imports()
        save(told.json, {"cpu_ms": found})


if __name__ == "__main__":
    main()
