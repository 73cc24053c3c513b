"""layerscope and every installed peer side by side, in one run: `make bench-all`.

    python bench/all.py [--quick] [--out FOLDER] [--tool PYTHON] [--only NAME,…] [--resume]

Runs the other scripts of this folder one after the other and writes what they measured to
FOLDER/performance.json, and the page of the documentation to FOLDER/performance.md. `--tool` is an
interpreter that has onnx-tool. `--quick` takes fewer runs and models: minutes instead of an hour.
A part that fails is in the output with its error and what it measured before. The file is written
after every part, with the names of those that are left, and `--resume` measures these. `--only`
measures the named parts again and keeps the others of the file.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import re
import runpy
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from saving import GOAL_MISSED, save  # the folder of this script is on the path

BENCH = Path(__file__).parent
ROOT = BENCH.parent
PEERS = ("torch", "torchvision", "timm", "transformers", "torchinfo", "fvcore", "ptflops", "thop",
         "calflops", "onnx")  # fmt: skip
CASES = "resnet50,resnet152,densenet201,vit_b_16,swin_t,bert,chain1000,chain5000"
MASKED = "bert_mask,llama_mask,t5_mask"
MOBILE = "mobilenet_v3_large,timm:rexnet_130,timm:csatv2"
# script and arguments by the name of the part: the whole form, and the quick one
PARTS: dict[str, tuple[str, str, str]] = {
    "startup": ("startup.py", "", "--runs 5"),
    "growth": ("chain.py", "", ""),
    "onnx": ("onnx_models.py", "--torch PYTHON --tool TOOL", "--torch PYTHON --tool TOOL"),
    "cases": ("torch_peers.py", f"--models {CASES} --sample 0 --again 4",
              f"--models {CASES} --sample 0 --again 0 --tools QUICK"),
    "mobile": ("torch_peers.py", f"--models {MOBILE} --sample 0",
               f"--models {MOBILE} --sample 0 --again 1 --tools QUICK"),
    "masked": ("torch_peers.py", f"--models {MASKED} --sample 0",
               f"--models {MASKED} --sample 0 --again 2 --tools QUICK"),
    "built": ("built_models.py", "--count 100", "--count 20"),
    "sweep": ("sweeps.py", "torchvision:*", "--candidates 2000"),
}  # fmt: skip
QUICK = "layerscope,torchinfo,fvcore,flop_counter@meta"


def run_part(name: str, quick: bool, tool: str, folder: Path) -> dict[str, Any]:
    """What one script measured, its output passed on."""
    script, whole, short = PARTS[name]
    words = {"PYTHON": sys.executable, "TOOL": tool, "QUICK": QUICK}
    arguments = [words.get(word, word) for word in (short if quick else whole).split()]
    if name == "onnx" and not tool:
        at = arguments.index("--tool")
        del arguments[at : at + 2]
    out = folder / f"{name}.json"
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    print(f"\n# {name}: {script}", flush=True)
    started = time.monotonic()
    command = [sys.executable, str(BENCH / script), "--json", str(out), *arguments]
    ran = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False, env=env)
    found: dict[str, Any] = {}
    if out.is_file():
        found = json.loads(out.read_text(encoding="utf-8"))
    if ran.returncode not in (0, GOAL_MISSED) or not found:
        lines = ran.stderr.strip().splitlines() or [f"no output, exit code {ran.returncode}"]
        line = re.sub(r"(/[^\s/'\"]+)+/", "", lines[-1])  # without the folders of this machine
        print(f"failed: {line}", flush=True)
        found["error"] = line[:200]
    return {**found, "seconds": time.monotonic() - started}


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    import layerscope

    found, missing = {}, []
    for name in PEERS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            missing.append(name)
    return {"cores": os.cpu_count(), "architecture": platform.machine(),
            "python": platform.python_version(), "layerscope": layerscope.__version__,
            "packages": found, "missing": missing}  # fmt: skip


def main(args: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", default=str(ROOT / "docs"))
    parser.add_argument("--tool", default="")
    parser.add_argument("--only", default="", metavar="NAME,…")
    parser.add_argument("--note", default="", help="a sentence on the run, for the page")
    parser.add_argument("--resume", action="store_true", help="measure what a stopped run left")
    told = parser.parse_args(args)
    unknown = set(filter(None, told.only.split(","))) - set(PARTS)
    if unknown:
        parser.error(f"--only {', '.join(sorted(unknown))}: expected some of {', '.join(PARTS)}")
    kept = Path(told.out, "performance.json")
    kept.parent.mkdir(parents=True, exist_ok=True)
    data: dict[str, Any] = {"machine": machine(), "quick": told.quick, "parts": {},
                            "left": [name for name in PARTS if name in told.only.split(",")]
                            or list(PARTS)}  # fmt: skip
    if told.resume:
        data = stopped_run(kept, data["machine"])
    elif told.only and kept.is_file():
        data["parts"] = json.loads(kept.read_text(encoding="utf-8"))["parts"]
    if told.note:
        data["note"] = told.note
    tool = told.tool if Path(told.tool).is_file() else ""
    if told.tool and not tool:
        print(f"--tool {told.tool}: no such file, onnx-tool is left out")
    save(str(kept), data, indent=1)
    with tempfile.TemporaryDirectory() as scratch:
        while data["left"]:
            name = data["left"][0]
            data["parts"][name] = run_part(name, data["quick"], tool, Path(scratch))
            del data["left"][0]
            save(str(kept), data, indent=1)
    del data["left"]
    save(str(kept), data, indent=1)
    page = runpy.run_path(str(ROOT / "docs" / "performance.py"))["page"]
    kept.with_suffix(".md").write_text(page(data), encoding="utf-8")


def stopped_run(path: Path, here: dict[str, Any]) -> dict[str, Any]:
    """What a run measured until it was stopped; raises if there is none that can go on here."""
    data: dict[str, Any] = {}
    if path.is_file():
        data = json.loads(path.read_text(encoding="utf-8"))
    if not data.get("left"):
        raise SystemExit(f"{path.name}: no stopped run to resume")
    if data["machine"] != here:
        raise SystemExit(f"{path.name}: measured on another machine or with other versions")
    return data


if __name__ == "__main__":
    main()
