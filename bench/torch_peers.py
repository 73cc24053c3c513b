"""Analysis of a built PyTorch module: us against every counter that is installed, in one run.

One process a pair of tool and model; for us and the fastest right tools eight more, in turns, and
the medians of all nine. First call and best of five, the whole Report with its totals included. A
tool is right where its count is within a tenth of the true one (some add norms and biases). The
ratio is that of the fastest right tool's time to ours. Of timm a sample is drawn, by a seed; its
goal is of all its networks together, the ratio of the sums. Those that are below it alone are
named.

    python bench/torch_peers.py                      # all tools, all models, a sample of timm
    python bench/torch_peers.py --models resnet50,bert --tools layerscope,flop_counter@meta
    python bench/torch_peers.py --models "" --sample 20 --seed 7
    python bench/torch_peers.py --models resnet50 --sample 0 --again 2 --json figures.json
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import inspect
import io
import json
import os
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from saving import GOAL_MISSED, save  # the folder of this script is on the path

Run = Callable[[Any, Any], float | None]
TIMES = 5
AGAIN = 8  # processes more, for us and the fastest that are right: the machine has slow minutes
TIMED = ("first_cpu", "best_cpu")
MOST_S = 600  # of one tool on one model
RIGHT = {
    "resnet50": 4_089_184_256, "resnet152": 11_513_626_624, "densenet201": 4_291_365_888,
    "vit_b_16": 17_563_828_224, "swin_t": 4_490_566_656, "bert": 11_174_215_680,
    "bert_mask": 11_174_215_680, "llama_mask": 52_076_478_464, "t5_mask": 5_939_134_464,
    "chain1000": 1000 * 256 * 16 * 144, "chain5000": 5000 * 256 * 16 * 144,
}  # fmt: skip
TIMM = "timm:"
MOST = 60_000_000  # parameters of a network of the sample: some tools compute all its numbers
# How many times faster than the fastest right tool: first calls, and repeated ones. First calls of
# models with a mask miss it: two thirds of one of Llama are spent once in a process or for each new
# shape, and a fifth of FlopCounterMode's is less than that.
GOAL = (5.0, 5.0)
GOALS = {
    "swin_t": (3.0, 3.0), TIMM: (3.0, 3.0),
    "mobilenet_v3_large": (4.0, 4.0), "timm:rexnet_130": (4.0, 4.0), "timm:csatv2": (4.0, 4.0),
}  # fmt: skip


def ours() -> Run:
    from layerscope.dropins import summary

    def run(net: Any, args: Any) -> float:
        return float(summary(net, input_data=args, verbose=0).total_macs)

    return run


def torchinfo() -> Run:
    from torchinfo import summary

    return lambda net, args: float(summary(net, input_data=list(args), verbose=0).total_mult_adds)


def fvcore() -> Run:
    import logging

    from fvcore.nn import FlopCountAnalysis

    logging.disable(logging.WARNING)
    return lambda net, args: float(
        FlopCountAnalysis(net, args)
        .unsupported_ops_warnings(False)
        .uncalled_modules_warnings(False)
        .total()
    )


def ptflops(backend: str) -> Callable[[], Run]:
    def load() -> Run:
        from ptflops import get_model_complexity_info

        def run(net: Any, args: Any) -> float | None:
            feed = dict(zip(inspect.signature(net.forward).parameters, args, strict=False))
            told = get_model_complexity_info(
                net, (1,), input_constructor=lambda _: feed, as_strings=False, backend=backend,
                print_per_layer_stat=False, verbose=False,
            )  # fmt: skip
            return None if told[0] is None else float(told[0])

        return run

    return load


def thop() -> Run:
    from thop import profile

    return lambda net, args: float(profile(net, inputs=tuple(args), verbose=False)[0])


def calflops() -> Run:
    from calflops import calculate_flops

    return lambda net, args: float(
        calculate_flops(net, args=list(args), print_results=False, output_as_string=False)[1]
    )


def flop_counter() -> Run:
    from torch.utils.flop_counter import FlopCounterMode

    def run(net: Any, args: Any) -> float:
        names = getattr(net, "names", ())
        if names and args[0].is_meta:  # it cannot run a mask there: timed without one
            shown = {k: v for k, v in zip(names, args, strict=True) if k != "attention_mask"}
            with FlopCounterMode(display=False) as counter:
                net.inner(**shown)
            return float(counter.get_total_flops() / 2)
        with FlopCounterMode(display=False) as counter:
            net(*args)
        return float(counter.get_total_flops() / 2)

    return run


TOOLS: dict[str, Callable[[], Run]] = {
    "layerscope": ours,
    "torchinfo": torchinfo,
    "fvcore": fvcore,
    "ptflops": ptflops("pytorch"),
    "ptflops-aten": ptflops("aten"),
    "thop": thop,
    "calflops": calflops,
    "flop_counter": flop_counter,
}
NEEDS = {"ptflops-aten": "ptflops", "flop_counter": "torch"}


def _vision(torch: Any) -> Any:
    from layerscope.formats.torch.model_names.torchvision_timm import torchvision_models

    return torchvision_models(torch)


def build(name: str, torch: Any) -> tuple[Any, Any]:
    models = _vision(torch)
    if name.startswith("chain"):
        nn = torch.nn
        pairs = [(nn.Conv2d(16, 16, 3, padding=1), nn.ReLU()) for _ in range(int(name[5:]))]
        return nn.Sequential(*[m for pair in pairs for m in pair]), (torch.zeros(1, 16, 16, 16),)
    if name == "bert":
        from transformers import BertConfig, BertModel

        ids = torch.zeros(1, 128, dtype=torch.long)
        return BertModel(BertConfig(return_dict=False)), (ids,)
    if name in MASKED:
        return masked(name, torch)
    if name.startswith(TIMM):
        import timm

        net = timm.create_model(name[5:])
        return net, (torch.zeros(1, *net.default_cfg["input_size"]),)
    return getattr(models, name)(weights=None), (torch.zeros(1, 3, 224, 224),)


MASKED = ("bert_mask", "llama_mask", "t5_mask")


def masked(name: str, torch: Any) -> tuple[Any, Any]:
    """Models of transformers with ids and a mask of ones over them."""
    import transformers

    class Masked(torch.nn.Module):  # type: ignore[misc]
        """Called with positions, as every tool here calls a model."""

        def __init__(self, inner: Any, names: tuple[str, ...]) -> None:
            super().__init__()
            self.inner, self.names = inner, names

        def forward(
            self, input_ids: Any, attention_mask: Any, decoder_input_ids: Any = None
        ) -> Any:
            given = (input_ids, attention_mask, decoder_input_ids)
            return self.inner(**dict(zip(self.names, given, strict=False)))[0]

    ids, mask = (make(1, 128, dtype=torch.long) for make in (torch.zeros, torch.ones))
    names = ("input_ids", "attention_mask")
    if name == "bert_mask":
        return Masked(transformers.BertModel(transformers.BertConfig()), names), (ids, mask)
    if name == "llama_mask":
        config = transformers.LlamaConfig(num_hidden_layers=2)
        return Masked(transformers.LlamaModel(config), names), (ids, mask)
    model = transformers.T5Model(transformers.T5Config())
    return Masked(model, (*names, "decoder_input_ids")), (ids, mask, ids.clone())


def measure(tool: str, model: str) -> dict[str, Any]:
    import torch

    base, _, device = tool.partition("@")
    torch.set_num_threads(1)
    _vision(torch)
    run = TOOLS[base]()
    with torch.device(device or "cpu"):
        net, args = build(model, torch)
    net.eval()
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, cpu, macs = [], [], None
    with torch.no_grad():
        for _ in range(TIMES):
            start, spent = time.perf_counter(), time.process_time()
            macs = run(net, args)
            wall.append(time.perf_counter() - start)
            cpu.append(time.process_time() - spent)
            if sum(wall) > 60:
                break
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - held
    return {"macs": macs, "first": wall[0], "best": min(wall), "first_cpu": cpu[0],
            "best_cpu": min(cpu), "more_mb": more / 1024}  # fmt: skip


def child(tool: str, model: str) -> None:
    warnings.simplefilter("ignore")
    hidden = io.StringIO()
    try:
        with contextlib.redirect_stdout(hidden), contextlib.redirect_stderr(hidden):
            answer = measure(tool, model)
    except BaseException as error:
        answer = {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:90]}"}
    print("ANSWER" + json.dumps(answer))


def asked(tool: str, model: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--child", tool, model]
    # compiled code is kept, as an installed tool has it
    around = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=MOST_S, env=around
        )
    except subprocess.TimeoutExpired:
        return {"error": f"no answer in {MOST_S} s"}
    for line in done.stdout.splitlines():
        if line.startswith("ANSWER"):
            answer: dict[str, Any] = json.loads(line[6:])
            return answer
    return {"error": done.stderr.strip()[-90:] or "died"}


def installed(tool: str) -> bool:
    base = tool.partition("@")[0]
    return importlib.util.find_spec(NEEDS.get(base, base)) is not None


def _right(told: dict[str, Any], true: float) -> bool:
    return 0.9 <= (told.get("macs") or 0) / true <= 1.1


def drawn(count: int, seed: int) -> list[str]:
    """Networks of timm as chance has them, but for the largest."""
    import random

    import torch

    _vision(torch)
    import timm

    names = timm.list_models()
    random.Random(seed).shuffle(names)
    found: list[str] = []
    for name in names:
        if len(found) == count:
            break
        with warnings.catch_warnings(action="ignore"):
            try:
                with torch.device("meta"):
                    net = timm.create_model(name)
            except NotImplementedError:  # it needs numbers to be built
                net = timm.create_model(name)
        if sum(p.numel() for p in net.parameters()) <= MOST:
            found.append(TIMM + name)
    return found


class Ratio(NamedTuple):
    """CPU seconds of the fastest right tool and ours, by TIMED; nothing where no tool is right."""

    model: str
    theirs: dict[str, float]
    ours: dict[str, float]
    tools: dict[str, Any] | None = None  # what each tool said, by its name
    macs: float = 0

    def at(self, key: str) -> float:
        return self.theirs[key] / self.ours[key]

    @property
    def goals(self) -> tuple[float, float]:
        other = GOALS[TIMM] if "timm" in self.model else GOAL
        return GOALS.get(self.model, other)

    @property
    def met(self) -> bool:
        if not self.theirs:
            return True
        return all(self.at(key) >= goal for key, goal in zip(TIMED, self.goals, strict=True))

    def __str__(self) -> str:
        if not self.theirs:
            return "no tool is right"
        first, best = (
            f"× {self.at(key):.1f} (goal × {goal:g})"
            for key, goal in zip(TIMED, self.goals, strict=True)
        )
        return f"first {first}, best {best}"


def compare(model: str, tools: list[str], again: int = AGAIN) -> Ratio:
    """One model's table, and how much faster we are.

    By CPU time, which other work on the machine disturbs least.
    """
    found = {tool: asked(tool, model) for tool in tools if installed(tool)}
    mine = found.get("layerscope", {})
    true = RIGHT.get(model) or mine.get("macs") or 1
    rivals = [t for t in found if _right(found[t], true) and not t.startswith("layerscope")]
    near = {min(rivals, key=lambda tool: found[tool][key]) for key in TIMED} if rivals else set()
    timed = [tool for tool in found if tool in near or tool.startswith("layerscope")]
    runs = {tool: [found[tool]] for tool in timed if "error" not in found[tool]}
    for _ in range(again):  # in turns: the machine is another one from one minute to the next
        for tool, answers in runs.items():
            answers.append(asked(tool, model))
    for tool, answers in runs.items():
        for key in ("first", "best", *TIMED):
            found[tool][key] = statistics.median(each[key] for each in answers if key in each)
    print(f"\n{model}: {true:,} MACs")
    heads = "".join(f"{head:>9}" for head in ("MACs", "first s", "best s", "CPU", "CPU", "more MB"))
    print(f"{'tool':<20}{heads}  times ours")
    best: dict[str, float] = {}
    for tool, told in found.items():
        if "error" in told:
            print(f"{tool:<20}{told['error']}")
            continue
        share = (told["macs"] or 0) / true
        right = _right(told, true)
        ratio = told["best_cpu"] / mine["best_cpu"] if "best_cpu" in mine else 0.0
        text = "right" if share == 1 else f"{share:.3f}"
        print(
            f"{tool:<20}{text:>9}{told['first']:>9.4f}{told['best']:>9.4f}{told['first_cpu']:>9.4f}{told['best_cpu']:>9.4f}"
            f"{told['more_mb']:>9.0f}  {ratio:.1f}{'' if right else '  (not right)'}"
        )
        if tool in near:  # the others ran once
            for key in TIMED:
                best[key] = min(best.get(key, 1e9), told[key])
    told_us = {key: mine[key] for key in TIMED} if "first_cpu" in mine else {}
    ratio = Ratio(model, best if told_us else {}, told_us, found, true)
    print(f"fastest right tool, CPU: {ratio}")
    return ratio


def figures(ratios: list[Ratio], tools: list[str]) -> dict[str, Any]:
    """What every tool said of the models so far, and which tools are not installed."""
    rows = [
        {"model": each.model, "macs": each.macs, "tools": each.tools, "fastest": each.theirs,
         "ours": each.ours}
        for each in ratios
    ]  # fmt: skip
    return {"models": rows, "missing": [tool for tool in tools if not installed(tool)]}


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:4])
        return 0
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default=",".join(RIGHT))
    parser.add_argument("--sample", type=int, default=8, metavar="N", help="networks of timm")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--again", type=int, default=AGAIN, help="more processes of the fastest")
    parser.add_argument("--json", metavar="FILE")
    every = [
        t for name in TOOLS for t in ((name,) if name == "layerscope" else (name, name + "@meta"))
    ]
    parser.add_argument("--tools", default=",".join((*every, "layerscope@meta")))
    told = parser.parse_args()
    names = [name for name in told.models.split(",") if name]
    models = [*names, *(drawn(told.sample, told.seed) if told.sample else ())]
    ratios: list[Ratio] = []
    tools = told.tools.split(",")
    for model in models:
        ratios.append(compare(model, tools, told.again))
        sys.stdout.flush()
        save(told.json, figures(ratios, tools))
    sample = [each for each in ratios if each.model.startswith(TIMM) and each.theirs]
    goals = [each for each in ratios if not each.model.startswith(TIMM)]
    if sample:  # whose goal is that of all together; each alone is told
        theirs = {key: sum(each.theirs[key] for each in sample) for key in TIMED}
        sums = {key: sum(each.ours[key] for each in sample) for key in TIMED}
        goals.append(Ratio(f"{len(sample)} of timm together", theirs, sums))
        print(f"\n{goals[-1].model}: {goals[-1]}")
        low = [each for each in sample if not each.met]
        for each in low:
            print(f"  alone below it: {each.model}, {each}")
    short = [each.model for each in goals if not each.met]
    print(
        f"\n{len(goals) - len(short)} of {len(goals)} goals met"
        + (f"; not: {', '.join(short)}" * bool(short))
    )
    return GOAL_MISSED if short else 0


if __name__ == "__main__":
    sys.exit(main())
