"""CPU time of whole reports under two source trees, in alternating processes of one run.

    git worktree add ../before v0.1.0
    python bench/revisions.py ../before/src src

Each process builds the networks once and takes the best of several reports with their totals; the
table has medians of the processes of each tree. A change that takes 5 % longer needs a reason.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

PROCESSES = 5  # of each tree
TIMES = 40  # reports of a network in a process
NETWORKS = ("resnet50", "vit_b_16", "swin_t", "chain1000", "resnet50.onnx")
MOST = 5.0  # per cent


def reports(onnx: str) -> dict[str, Callable[[], int]]:
    """What is timed, by name: each gives the multiply-adds of one report."""
    import torch
    from tests.conventions.peers.models import the_torchvision

    from layerscope import analyze

    models = the_torchvision().models
    image = torch.zeros(1, 3, 224, 224)
    nets = {name: getattr(models, name)(weights=None).eval() for name in NETWORKS[:3]}
    layers = [
        part
        for _ in range(1000)
        for part in (torch.nn.Conv2d(16, 16, 3, padding=1), torch.nn.ReLU())
    ]
    chain, map16 = torch.nn.Sequential(*layers).eval(), torch.zeros(1, 16, 16, 16)

    def live(net: torch.nn.Module, x: torch.Tensor) -> Callable[[], int]:
        return lambda: analyze(net, input_data=(x,)).total_macs

    found = {name: live(net, image) for name, net in nets.items()}
    found["chain1000"] = live(chain, map16)
    found["resnet50.onnx"] = lambda: analyze(onnx).totals.macs
    return found


def best(onnx: str) -> dict[str, float]:
    """The shortest CPU time of each report in this process, in seconds.

    The networks take turns: a shared machine is slow for a second or two at a time, and that must
    not fall on all reports of one network.
    """
    functions = reports(onnx)
    found = dict.fromkeys(functions, math.inf)
    for _ in range(TIMES):
        for name, report in functions.items():
            start = time.process_time()
            report()
            found[name] = min(found[name], time.process_time() - start)
    return found


def ask(tree: str, onnx: str) -> dict[str, float]:
    """The times of one process with that tree's sources."""
    paths = os.pathsep.join([str(Path(tree).resolve()), str(Path(__file__).parent.parent)])
    env = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    told = subprocess.run(
        [sys.executable, __file__, "--one", onnx],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    times: dict[str, float] = json.loads(told.stdout.splitlines()[-1])
    return times


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(best(sys.argv[2])))
        return
    trees = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        onnx = str(Path(folder) / "resnet50.onnx")
        command = ["-m", "layerscope", "export", "resnet50", "-o", onnx]
        subprocess.run([sys.executable, *command], check=True)
        runs: dict[str, list[dict[str, float]]] = {tree: [] for tree in trees}
        for _ in range(PROCESSES):
            for tree in trees:
                runs[tree].append(ask(tree, onnx))
    print(f"{'network':<16}{'before ms':>11}{'after ms':>11}{'change %':>10}")
    slower = []
    for name in NETWORKS:
        before, after = (statistics.median(run[name] for run in runs[tree]) for tree in trees)
        change = 100 * (after / before - 1)
        print(f"{name:<16}{1e3 * before:>11.2f}{1e3 * after:>11.2f}{change:>+10.1f}")
        slower += [name] if change > MOST else []
    print(f"slower by more than {MOST:g} %: {', '.join(slower) or 'none'}")


if __name__ == "__main__":
    main()
