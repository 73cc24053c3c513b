"""ONNX models against onnx-tool, in one run: CPU, wall and peak memory, in process and as a whole.

    python bench/onnx_models.py [--tool PYTHON] [--torch PYTHON] [--folder FOLDER] [--json FILE]

`--tool` is an interpreter that has onnx-tool 1.0.1 (a venv with `pip install onnx-tool==1.0.1`),
`--torch` one that has torch and torchvision, to export resnet50 and vit_b_16 if FOLDER lacks them.
Without either, what they are for is left out. A step that fails is listed with its error, and the
others go on. Times are medians of several runs.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from saving import save  # the folder of this script is on the path

RUNS, ROUNDS = 7, 3
CHAIN = 5_000
LARGE_BYTES = 3_500_000_000
MOST_MB, MOST_MS, LEAST_RATIO = 80, 200, 15

EXPORT = """
import sys, torch, warnings
warnings.simplefilter("ignore")
library = torch.library.Library("torchvision", "FRAGMENT")
for name in ("nms", "qnms"):
    library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
import torchvision
model = getattr(torchvision.models, sys.argv[1])(weights=None).eval()
torch.onnx.export(model, (torch.randn(1, 3, 224, 224),), sys.argv[2], dynamo=False)
"""
OURS = """
import layerscope
def account(path):
    return layerscope.analyze(path).totals.macs
"""
THEIRS = """
import onnx_tool
def account(path):
    model = onnx_tool.Model(path, {"verbose": False})
    model.graph.shape_infer(None)
    model.graph.profile()
    return int(model.graph.macs[0] if hasattr(model.graph.macs, "__len__") else model.graph.macs)
"""
TIMED = """
import json, statistics, sys, time
times = []
for _ in range(int(sys.argv[2])):
    wall, cpu = time.perf_counter(), time.process_time()
    macs = account(sys.argv[1])
    times.append((time.process_time() - cpu, time.perf_counter() - wall))
status = open("/proc/self/status").read().split("VmHWM:")[1].split()[0]
medians = [statistics.median(t[n] for t in times) for n in (0, 1)]
print(json.dumps([*medians, int(status) / 1024, macs]))
"""
ONCE = """
import sys
account(sys.argv[1])
"""
SHOWN = """
import atexit, sys
def told():
    status = open("/proc/self/status").read().split("VmHWM:")[1].split()[0]
    heavy = sorted({"onnx", "numpy", "onnxruntime", "torch"} & set(sys.modules))
    sys.stderr.write(f"{int(status) / 1024} {' '.join(heavy)}")
atexit.register(told)
from layerscope.cli import main
main()
"""


class Failed(Exception):
    """A command that did not succeed; the message is the last line of its errors."""


def run(command: list[str]) -> tuple[subprocess.CompletedProcess[str], float]:
    """A command that must succeed, and its CPU seconds."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if ran.returncode:
        lines = ran.stderr.strip().splitlines()
        raise Failed(lines[-1] if lines else f"exit code {ran.returncode}")
    return ran, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def chain(path: Path) -> None:
    """Convolutions and ReLUs, one after the other."""
    import numpy as np
    import onnx
    from onnx import helper, numpy_helper

    nodes, stored, x = [], [], "x"
    for n in range(CHAIN // 2):
        stored.append(numpy_helper.from_array(np.zeros((8, 8, 3, 3), np.float32), f"w{n}"))
        nodes.append(helper.make_node("Conv", [x, f"w{n}"], [f"c{n}"], f"conv{n}", pads=[1] * 4))
        nodes.append(helper.make_node("Relu", [f"c{n}"], [f"r{n}"], f"relu{n}"))
        x = f"r{n}"
    sizes = [1, 8, 16, 16]
    given, made = [helper.make_tensor_value_info(name, 1, sizes) for name in ("x", x)]
    graph = helper.make_graph(nodes, "chain", [given], [made], stored)
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)


def timed(python: str, account: str, path: Path) -> Any:
    """Median CPU and wall seconds, peak MB, multiply-adds."""
    return json.loads(run([python, "-c", account + TIMED, str(path), str(RUNS)])[0].stdout)


def against(tool: str, path: Path) -> dict[str, Any]:
    """Analysis alone in a running process, and a whole process with one analysis.

    The two take turns, because the machine may be slow for a second or two.
    """
    both = [(timed(sys.executable, OURS, path), timed(tool, THEIRS, path)) for _ in range(ROUNDS)]
    ours, theirs = (
        [statistics.median(column) for column in zip(*rows, strict=True)]
        for rows in zip(*both, strict=True)
    )
    once = [
        statistics.median(run([python, "-c", account + ONCE, str(path)])[1] for _ in range(3))
        for python, account in ((sys.executable, OURS), (tool, THEIRS))
    ]
    cpu, wall = theirs[0] / ours[0], theirs[1] / ours[1]
    print(
        f"{path.stem:<12}{ours[0] * 1000:>9.1f}{ours[1] * 1000:>9.1f}{ours[2]:>8.0f}"
        f"{theirs[0] * 1000:>11.1f}{theirs[1] * 1000:>9.1f}{theirs[2]:>8.0f}"
        f"{cpu:>9.1f}{wall:>7.1f}{once[1] / once[0]:>9.1f}"
        f"{'  ok' if cpu >= LEAST_RATIO else '  UNDER'}",
        flush=True,
    )
    names = ("cpu_s", "wall_s", "peak_mb", "macs")
    return {
        "network": path.stem,
        "layerscope": {**dict(zip(names, ours, strict=True)), "process_cpu_s": once[0]},
        "onnx-tool": {**dict(zip(names, theirs, strict=True)), "process_cpu_s": once[1]},
    }


def whole(path: Path, *more: str) -> dict[str, Any]:
    """The command `layerscope show`, from start to end."""
    command = [sys.executable, "-c", SHOWN, "show", str(path), *more]
    times, peak, heavy = [], 0.0, ""
    for _ in range(RUNS):
        ran, cpu = run(command)
        told, _, heavy = ran.stderr.partition(" ")
        times.append(cpu * 1000)
        peak = float(told)
    best = statistics.median(times)
    budget = MOST_MS if path.stem in ("resnet50", "large") else None  # others have more to print
    ok = (budget is None or best <= budget) and peak <= MOST_MB and not heavy
    size = path.stat().st_size / 1e6
    print(
        f"{path.stem:<12}{size:>9.0f}{best:>9.0f}{peak:>9.1f}  {heavy or 'none':<12}"
        f"{'ok' if ok else 'OVER'}",
        flush=True,
    )
    return {"network": path.stem, "file_mb": size, "cpu_ms": best, "peak_mb": peak,
            "imported": heavy}  # fmt: skip


def large(path: Path) -> None:
    """A linear layer whose numbers are a hole in the file."""
    from tests.formats.onnx.test_onnx_reading import write_large

    write_large(path, LARGE_BYTES // 4)


def export(python: str, path: Path) -> None:
    """Write a model of torchvision as ONNX."""
    run([python, "-c", EXPORT, path.stem, str(path)])


def heading() -> None:
    """Print the head of the table of `against`."""
    print(f"{'':<12}{'layerscope':>18}{'':>8}{'onnx-tool':>20}{'':>8}{'ratio':>16}")
    heads = ("CPU ms", "wall", "MB", "CPU ms", "wall", "MB", "CPU", "wall", "process")
    widths = (9, 9, 8, 11, 9, 8, 9, 7, 9)
    line = "".join(f"{h:>{w}}" for h, w in zip(heads, widths, strict=True))
    print(f"{'network':<12}{line}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool")
    parser.add_argument("--torch")
    parser.add_argument("--folder")
    parser.add_argument("--json")
    told = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parent.parent))
    found: dict[str, list[dict[str, Any]]] = {"against": [], "show": [], "failures": []}

    def attempt(kind: str, step: str, measure: Callable[[], dict[str, Any] | None]) -> None:
        try:
            row = measure()
            if row is not None:
                found[kind].append(row)
        except (Failed, OSError, ValueError) as error:
            print(f"{step}: {error}", flush=True)
            found["failures"].append({"step": step, "error": str(error)[:200]})
        save(told.json, found)

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(told.folder or scratch)
        paths = [folder / f"{name}.onnx" for name in ("resnet50", "vit_b_16")]
        for path in paths:
            if not path.is_file() and told.torch:
                attempt("show", f"export of {path.stem}", partial(export, told.torch, path))
        chain(Path(scratch, "chain.onnx"))
        large(Path(scratch, "large.onnx"))
        paths = [path for path in (*paths, Path(scratch, "chain.onnx")) if path.is_file()]
        if told.tool:
            heading()
            for path in paths:
                attempt(
                    "against", f"{path.stem} against onnx-tool", partial(against, told.tool, path)
                )
            print()
        print(f"{'show':<12}{'file MB':>9}{'CPU ms':>9}{'peak MB':>9}  {'imported':<12}")
        for path in (*paths, Path(scratch, "large.onnx")):
            attempt("show", f"show {path.name}", partial(whole, path))


if __name__ == "__main__":
    main()
