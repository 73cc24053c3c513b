"""CPU time under two source trees, in alternating processes of one run.

    git worktree add ../before v0.1.0
    python bench/revisions.py ../before/src src

- Reports with their totals: the networks of `make bench-torch` and ONNX files, first call and best
  of many. The networks take turns in a process of each tree.
- Whole commands, which show how long a start takes.

The table has medians over the processes of each tree. A change that takes 5 % longer needs a
reason. Times of first calls are of one call a process, so they scatter more.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from onnx_models import chain  # the folder of this script is on the path

PROCESSES = 7  # of each tree
TIMES = 30  # reports of a network in a process
VISION = ("resnet50", "resnet152", "densenet201", "vit_b_16", "swin_t")
CHAIN = 1000
COMMANDS = (
    "--help", "show vgg16", "show resnet152 --as json", "zoo", "show {}/resnet50.onnx",
    "show {}/chain.prototxt",
)  # fmt: skip
CONVOLUTION = """layer {{ name: "c{0}" type: "Convolution" bottom: "{1}" top: "c{0}"
  convolution_param {{ num_output: 8 kernel_size: 3 pad: 1 }} }}
"""
MOST = 5.0  # per cent


def reports(folder: str) -> dict[str, Callable[[], int]]:
    """What is timed, by name: each gives the multiply-adds of one report."""
    import torch
    from tests.conventions.peers.models import the_torchvision

    from layerscope import analyze

    def live(net: torch.nn.Module, x: torch.Tensor) -> Callable[[], int]:
        return lambda: analyze(net, input_data=(x,)).total_macs

    def stored(path: Path) -> Callable[[], int]:
        return lambda: analyze(str(path)).totals.macs

    models, image = the_torchvision().models, torch.zeros(1, 3, 224, 224)
    from transformers import BertConfig, BertModel  # imports torchvision

    found = {name: live(getattr(models, name)(weights=None).eval(), image) for name in VISION}
    tokens = torch.zeros(1, 128, dtype=torch.long)
    found["bert"] = live(BertModel(BertConfig(return_dict=False)).eval(), tokens)
    layers = [
        part
        for _ in range(CHAIN)
        for part in (torch.nn.Conv2d(16, 16, 3, padding=1), torch.nn.ReLU())
    ]
    found["chain1000"] = live(torch.nn.Sequential(*layers).eval(), torch.zeros(1, 16, 16, 16))
    return found | {path.name: stored(path) for path in sorted(Path(folder).glob("*.onnx"))}


def in_one_process(folder: str) -> dict[str, float]:
    """CPU seconds of the first and of the shortest call in this process.

    The networks take turns: a shared machine is slow for a second or two at a time, and that must
    not fall on all reports of one network.
    """
    found: dict[str, float] = {}
    functions = reports(folder)
    for turn in range(TIMES):
        for name, report in functions.items():
            start = time.process_time()
            report()
            spent = time.process_time() - start
            if not turn:
                found[f"{name}, first"] = spent
            else:
                found[name] = min(found.get(name, math.inf), spent)
    return found


def under(tree: str, command: list[str]) -> tuple[str, float]:
    """Output of a command with that tree's sources, and its CPU seconds."""
    paths = os.pathsep.join([str(Path(tree).resolve()), str(Path(__file__).parent.parent)])
    env = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run(
        [sys.executable, *command], env=env, capture_output=True, text=True, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ran.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def times(tree: str, folder: str) -> dict[str, float]:
    """All times of one round under a tree."""
    printed, _ = under(tree, [__file__, "--one", folder])
    found: dict[str, float] = json.loads(printed.splitlines()[-1])
    for command in COMMANDS:
        words = command.format(folder).split()
        found[command.format("")] = under(tree, ["-m", "layerscope", *words])[1]
    return found


def write_files(folder: Path) -> None:
    """The files that both trees read."""
    command = ["-m", "layerscope", "export", "resnet50", "-o", str(folder / "resnet50.onnx")]
    subprocess.run([sys.executable, *command], check=True)
    chain(folder / "chain.onnx")
    layers = [CONVOLUTION.format(n, f"c{n - 1}" if n else "data") for n in range(20)]
    data = 'input: "data" input_shape { dim: 1 dim: 3 dim: 64 dim: 64 }\n'
    (folder / "chain.prototxt").write_text(data + "".join(layers), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trees", nargs="*", metavar="SRC", help="the folder before, and after")
    parser.add_argument("--processes", type=int, default=PROCESSES)
    parser.add_argument("--one", metavar="FOLDER", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(in_one_process(given.one)))
        return
    if len(given.trees) != 2:
        parser.error("two source folders are needed")
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder))
        runs: dict[str, list[dict[str, float]]] = {tree: [] for tree in given.trees}
        for _ in range(given.processes):
            for tree in given.trees:
                runs[tree].append(times(tree, folder))
    print(f"{'what':<28}{'before ms':>11}{'after ms':>11}{'change %':>10}{'of minima':>11}")
    slower = []
    for name in runs[given.trees[0]][0]:
        before, after = ([run[name] for run in runs[tree]] for tree in given.trees)
        change = 100 * (statistics.median(after) / statistics.median(before) - 1)
        of_minima = 100 * (min(after) / min(before) - 1)
        print(
            f"{name:<28}{1e3 * statistics.median(before):>11.2f}"
            f"{1e3 * statistics.median(after):>11.2f}{change:>+10.1f}{of_minima:>+11.1f}"
        )
        slower += [name] if change > MOST else []
    print(f"slower by more than {MOST:g} %: {'; '.join(slower) or 'none'}")


if __name__ == "__main__":
    main()
