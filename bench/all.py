"""layerscope and every installed peer side by side, in one run: `make bench-all`.

    python bench/all.py [--quick] [--out FOLDER] [--tool PYTHON] [--only NAME,…]

Runs the other scripts of this folder one after the other and writes what they measured to
FOLDER/performance.json, and the page of the documentation to FOLDER/performance.md. `--tool` is an
interpreter that has onnx-tool. `--quick` takes fewer runs and models: minutes instead of an hour.
A part that fails is in the output with its error. `--only` measures these parts again and keeps
the others of the file.
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

BENCH = Path(__file__).parent
ROOT = BENCH.parent
PEERS = ("torch", "torchvision", "timm", "transformers", "torchinfo", "fvcore", "ptflops", "thop",
         "calflops", "onnx")  # fmt: skip
CASES = "resnet50,resnet152,densenet201,vit_b_16,swin_t,bert,chain1000,chain5000"
MOBILE = "mobilenet_v3_large,timm:rexnet_130,timm:csatv2"
# script and arguments by the name of the part: the whole form, and the quick one
PARTS: dict[str, tuple[str, str, str]] = {
    "startup": ("startup.py", "", "--runs 5"),
    "growth": ("chain.py", "", ""),
    "onnx": ("onnx_models.py", "--torch PYTHON --tool TOOL", "--torch PYTHON --tool TOOL"),
    "cases": ("torch_peers.py", f"--models {CASES} --sample 0",
              f"--models {CASES} --sample 0 --again 0 --tools QUICK"),
    "mobile": ("torch_peers.py", f"--models {MOBILE} --sample 0",
               f"--models {MOBILE} --sample 0 --again 1 --tools QUICK"),
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
    if not out.is_file():
        lines = ran.stderr.strip().splitlines() or ["no output"]
        line = re.sub(r"(/[^\s/'\"]+)+/", "", lines[-1])  # without the folders of this machine
        return {"error": line[:200], "seconds": time.monotonic() - started}
    return {**json.loads(out.read_text(encoding="utf-8")), "seconds": time.monotonic() - started}


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    import layerscope

    found = {}
    for name in PEERS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {"cores": os.cpu_count(), "architecture": platform.machine(),
            "python": platform.python_version(), "layerscope": layerscope.__version__,
            "packages": found}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", default=str(ROOT / "docs"))
    parser.add_argument("--tool", default="")
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--note", default="", help="a sentence on the run, for the page")
    told = parser.parse_args()
    folder = Path(told.out)
    data: dict[str, Any] = {"machine": machine(), "quick": told.quick, "parts": {}}
    if told.note:
        data["note"] = told.note
    kept = folder / "performance.json"
    if told.only != ",".join(PARTS) and kept.is_file():
        data["parts"] = json.loads(kept.read_text(encoding="utf-8"))["parts"]
    with tempfile.TemporaryDirectory() as scratch:
        for name in told.only.split(","):
            data["parts"][name] = run_part(name, told.quick, told.tool, Path(scratch))
            kept.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    page = runpy.run_path(str(ROOT / "docs" / "performance.py"))["page"]
    (folder / "performance.md").write_text(page(data), encoding="utf-8")


if __name__ == "__main__":
    main()
