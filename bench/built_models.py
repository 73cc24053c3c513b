"""Analysis alone of models of torchvision that are built already, us against fvcore and ptflops.

    python bench/built_models.py [--count 100] [--json FILE] [--tools layerscope,fvcore,ptflops]

One process per tool builds every model and times its analysis alone, once, in CPU seconds. A model
that any tool fails on is left out of the sums. A tool that is missing or ends without an answer is
listed with the reason, and the others are compared without it. Figures of tools that differ by more
than a tenth from ours are counted, since a fast wrong figure is no merit.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import time
import warnings
from typing import Any

from saving import GOAL_MISSED, save  # the folder of this script is on the path
from torch_peers import TOOLS, installed

GOAL = 5.0
CHOSEN = ("layerscope", "fvcore", "ptflops")
SIZE = {"inception_v3": 299}
# weights of a few hundred MB each, which change no ratio and take minutes in tools that compute
LARGEST = ("regnet_y_128gf", "vit_h_14", "vit_g_14", "convnext_large", "vit_l_16", "vit_l_32")


def names(count: int) -> list[str]:
    """Models of torchvision for images, then of timm, without the largest."""
    import torch
    from torch_peers import _vision

    models = _vision(torch)
    found = [n for n in models.list_models(module=models) if n not in LARGEST]
    if len(found) < count:
        import timm

        small = ("resnet", "mobilenet", "efficientnet", "rexnet", "convnext")
        found += [f"timm:{n}" for n in timm.list_models()
                  if n.startswith(small) and "large" not in n and "xl" not in n]  # fmt: skip
    return found[:count]


def measured(tool: str, wanted: list[str]) -> dict[str, Any]:
    """CPU seconds and the figure of each model, by name; an error where the tool fails."""
    import torch
    from torch_peers import _vision

    torch.set_num_threads(1)
    models = _vision(torch)
    run = TOOLS[tool]()
    found: dict[str, Any] = {}
    for name in wanted:
        if name.startswith("timm:"):
            import timm

            net = timm.create_model(name[5:]).eval()
            image = torch.zeros(1, *net.default_cfg["input_size"])
        else:
            side = SIZE.get(name, 224)
            net = models.get_model(name, weights=None).eval()
            image = torch.zeros(1, 3, side, side)
        with torch.no_grad():
            start = time.process_time()
            try:
                macs = run(net, (image,))
            except Exception as error:
                found[name] = {"error": f"{type(error).__name__}: {error}"[:90]}
                continue
            found[name] = {"cpu_s": time.process_time() - start, "macs": macs}
    return found


def child(tool: str, wanted: list[str]) -> None:
    warnings.simplefilter("ignore")
    hidden = io.StringIO()
    with contextlib.redirect_stdout(hidden), contextlib.redirect_stderr(hidden):
        found = measured(tool, wanted)
    print("ANSWER" + json.dumps(found))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--tools", default=",".join(CHOSEN))
    parser.add_argument("--json")
    parser.add_argument("--child")
    told = parser.parse_args()
    wanted = names(told.count)
    if told.child:
        child(told.child, wanted)
        return 0
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    answers: dict[str, Any] = {}
    failures: dict[str, str] = {}
    for tool in told.tools.split(","):
        if not installed(tool):
            failures[tool] = "not installed"
            continue
        command = [sys.executable, __file__, "--child", tool, "--count", str(told.count)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
        lines = [line for line in ran.stdout.splitlines() if line.startswith("ANSWER")]
        if not lines:
            failures[tool] = " ".join(ran.stderr.split())[-90:] or f"exit code {ran.returncode}"
            continue
        answers[tool] = json.loads(lines[0][6:])
    if "layerscope" not in answers:
        raise SystemExit(f"layerscope: {failures.get('layerscope', 'not among the tools')}")
    both = [n for n in wanted if all("cpu_s" in answers[tool][n] for tool in answers)]
    ours = sum(answers["layerscope"][n]["cpu_s"] for n in both)
    print(f"{len(both)} of {len(wanted)} models that every tool counts")
    print(f"{'tool':<14}{'CPU s':>9}{'times ours':>12}{'other figure':>14}{'failed':>8}")
    rows, short = [], False
    for tool, found in answers.items():
        spent = sum(found[n]["cpu_s"] for n in both)
        exact = answers["layerscope"]
        other = sum(not 0.9 <= found[n]["macs"] / exact[n]["macs"] <= 1.1 for n in both)
        failed = sum("error" in each for each in found.values())
        ratio = spent / ours
        short |= tool != "layerscope" and ratio < GOAL
        print(f"{tool:<14}{spent:>9.2f}{ratio:>12.1f}{other:>14}{failed:>8}")
        rows.append({"tool": tool, "cpu_s": spent, "ratio": ratio, "other": other,
                     "failed": failed})  # fmt: skip
    for tool, why in failures.items():
        print(f"{tool:<14}{why}")
    save(told.json, {"models": len(both), "asked": len(wanted), "rows": rows,
                     "failures": failures})  # fmt: skip
    return GOAL_MISSED if short else 0


if __name__ == "__main__":
    sys.exit(main())
