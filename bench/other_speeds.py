"""Print what speeds that are not fitted say: errors where a row determines its step, else why not.

    python bench/other_speeds.py ../shared/truth/llm

Rates are those of the package, which are fitted on llama.cpp: exllama and LMDeploy are other
programs on the same machines. The baseline is that of fit_language.py, with the constant of
llama.cpp on the family. Rows that print no batch have a floor all the same: the operations of a
token at the highest peak of the machine, whatever the batch is.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from math import prod
from pathlib import Path

import numpy as np
from fit_machines import ranks
from language_speeds import GIB, model_of, name_of, speeds_of, why_not

from layerscope.engines.accelerators import ACCELERATORS
from layerscope.llm.block_formats import FORMATS
from layerscope.llm.description import LanguageModel
from layerscope.llm.families import describe
from layerscope.llm.parameters import total_params
from layerscope.llm.weight_bytes import stored_bytes
from layerscope.llm.work import Step, layer_works
from layerscope.prediction.language import limits_of, rates_of, step_times
from layerscope.prediction.language_rates import FAMILIES

Row = dict[str, str]
LLAMAS = {  # hidden, layers, heads, heads of keys, feed-forward
    "Llama2 7B": (4096, 32, 32, 32, 11008), "llama2-7b": (4096, 32, 32, 32, 11008),
    "Llama 13B": (5120, 40, 40, 40, 13824), "Koala 13B": (5120, 40, 40, 40, 13824),
    "Llama 33B": (6656, 60, 52, 52, 17920), "OpenLlama 3B": (3200, 26, 32, 32, 8640),
    "CodeLlama 34B": (8192, 48, 64, 8, 22016), "Llama2 70B": (8192, 80, 64, 8, 28672),
    "llama2-70b": (8192, 80, 64, 8, 28672), "TinyLlama 1.1B": (2048, 22, 32, 4, 5632),
}  # fmt: skip
STORED = {
    "Llama 3.3 70B": "meta-llama--Meta-Llama-3.1-70B",
    "Llama 3.1 8B": "meta-llama--Meta-Llama-3.1-8B",
    "Llama 4 Scout": "meta-llama--Llama-4-Scout-17B-16E-Instruct",
    "Qwen3-235B-A22B": "Qwen--Qwen3-235B-A22B",
    "llama3.1-405b": "meta-llama--Meta-Llama-3.1-405B",
    "llama3.1-8b": "meta-llama--Meta-Llama-3.1-8B",
    "llama3_1-8b": "meta-llama--Meta-Llama-3.1-8B",
    "mixtral-8x7b": "mistralai--Mixtral-8x7B-v0.1",
}
MACHINES = {
    "RTX 4090 24GB": "rtx4090", "RTX 4090": "rtx4090", "A100-80G": "a100", "B200 180GB": "b200",
    "H200 SXM 141GB": "h200", "H100 SXM 80GB": "h100", "NVIDIA B200-SXM-180GB": "b200",
    "NVIDIA H200-SXM-141GB": "h200", "NVIDIA H100-SXM-80GB": "h100", "NVIDIA L40S": "l40s",
    "AMD Instinct MI300X 192GB HBM3": "mi300x", "NVIDIA GeForce RTX 4090": "rtx4090",
    "NVIDIA H100-PCIe-80GB": "h100-pcie", "NVIDIA L4-PCIe-24GB": "l4",
}  # fmt: skip
SHORT = 128  # tokens at either end of a context, and of a "short context"
Estimate = tuple[float, float, float]  # seconds printed, predicted, and weight bytes / bandwidth


def config_of(name: str, folder: Path) -> LanguageModel | None:
    """The model of a name of the tables above."""
    for start, shape in LLAMAS.items():
        if name.startswith(start):
            names = ("hidden_size", "num_hidden_layers", "num_attention_heads",
                     "num_key_value_heads", "intermediate_size")  # fmt: skip
            values = dict(zip(names, shape, strict=True))
            return describe({**values, "model_type": "llama", "vocab_size": 32000})
    for start, stored in STORED.items():
        if name.startswith(start):
            text = (folder / "configs" / f"{stored}_config.json").read_text(encoding="utf-8")
            return describe(json.loads(text))
    return None


def size_of(row: Row, model: LanguageModel) -> tuple[Callable[..., float], float] | None:
    """Bytes of each weight and bits of most; None if the row does not say them."""
    if row["model_size_gib"]:
        each = float(row["model_size_gib"]) * GIB / total_params(model)
        return lambda _part, _name, shape: each * prod(shape), 8 * each
    kind = "gptq" if "g128" in row["model"] else "f16" if row["quant"] == "FP16" else ""
    if not kind:
        return None
    chosen, plain = FORMATS[kind], FORMATS["f16"]
    return (
        lambda part, name, shape: stored_bytes(model, (part, name, shape), (chosen, plain)),
        float(chosen.bits),
    )


def seconds_of(row: Row, model: LanguageModel, machine: str, step: Step) -> tuple[float, float]:
    """Predicted seconds of a step, and its weight bytes / bandwidth."""
    sized = size_of(row, model)
    assert sized is not None
    sheet = ACCELERATORS[machine]
    limits, rates = limits_of(sheet, sized[1]), rates_of(sheet)
    works = layer_works(model, step, sized[0], "f16", rates.skew)
    times = step_times(works, step, limits, rates)
    return sum(time.time_s for time in times), sum(w.weight_bytes for w in works) / limits.bytes_s


def exllama(row: Row, model: LanguageModel, machine: str) -> Estimate:
    """A token near one end of the context, or a prompt without its last tokens."""
    value, context = float(row["value"]), int(re.sub(r"\D", "", row["in_len"][:5]) or 2 * SHORT)
    if row["metric"] == "tokens/s prefill":
        step = Step(tokens=context - SHORT)
        return (context - SHORT) / value, *seconds_of(row, model, machine, step)
    past = context - SHORT // 2 if "worst" in row["metric"] else SHORT // 2
    return 1 / value, *seconds_of(row, model, machine, Step(tokens=1, past=past))


def lmdeploy(row: Row, model: LanguageModel, machine: str) -> Estimate:
    """All tokens of a batch, prompt and output."""
    batch, prompt, out = int(row["batch"]), int(row["in_len"]), int(row["out_len"])
    first = seconds_of(row, model, machine, Step(tokens=prompt, batch=batch))
    step = Step(tokens=1, past=prompt + out // 2, batch=batch)
    each = seconds_of(row, model, machine, step)
    return batch * out / float(row["value"]), first[0] + out * each[0], out * each[1]


def determined(row: Row, folder: Path) -> tuple[str, LanguageModel | None, str]:
    """Why the step of a row is not determined, or its model and machine."""
    family = row["family"]
    if family == "ollama":
        return "the length of the output and the bytes of the weights are not printed", None, ""
    if family == "openvino":
        return "the machine is not named", None, ""
    if family == "exllama" and row["metric"] == "VRAM MB":
        return "memory, not a speed", None, ""
    if family == "lmdeploy" and row["test"] != "static":
        return "lengths are those of a data set", None, ""
    machine, model = MACHINES.get(row["hardware"], ""), config_of(row["model"], folder)
    if family in ("mlperf", "trtllm-overview"):
        if model is not None and machine and row["unit"].startswith("tokens/s"):
            return "the batch is not printed; its floor is checked", model, machine
        return "the batch is not printed, nor a machine or model of the tables here", model, ""
    if not machine or row["n_accel"] != "1":
        return "cards of several kinds, or without a data sheet here", None, ""
    if model is None or size_of(row, model) is None:
        return "the bytes of its format are not described", None, ""
    return "", model, machine


def constants(folder: Path) -> dict[tuple[str, str], float]:
    """The constant of the baseline for each family and step."""
    skews = {family: rates.skew for family, rates in FAMILIES.items()}
    ratios: dict[tuple[str, str], list[float]] = defaultdict(list)
    for speed in speeds_of(folder, skews):
        ratios[speed.family, speed.kind].append(speed.seconds / speed.baseline)
    return {key: float(np.median(found)) for key, found in ratios.items()}


def floor_share(row: Row, model: LanguageModel, machine: str) -> float:
    """The least share of its time that the operations of the printed tokens take."""
    works = layer_works(model, Step(tokens=1), lambda *_: 0.0, "f16")
    peak = limits_of(ACCELERATORS[machine], 4).most_flops_s * int(row["n_accel"])
    return float(row["value"]) * sum(work.flops for work in works) / peak


def main() -> None:
    folder = Path(sys.argv[1])
    with (folder / "llm_speed.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    reasons: Counter[tuple[str, str]] = Counter()
    found: dict[tuple[str, str, str], list[Estimate]] = defaultdict(list)
    shares: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if row["family"].startswith("llama-b"):
            known = model_of(name_of(row), folder / "configs")
            reasons["llama.cpp", why_not(row, known) or "fitted"] += 1
            continue
        why, model, machine = determined(row, folder)
        if why:
            reasons[row["family"], why] += 1
        if model is None or not machine:
            continue
        if why:
            shares[row["family"]].append(floor_share(row, model, machine))
            continue
        kind = "prefill" if row["metric"] == "tokens/s prefill" else "decode"
        program = {"exllama": exllama, "lmdeploy": lmdeploy}[row["family"]]
        key = row["family"], ACCELERATORS[machine].family, kind
        found[key].append(program(row, model, machine))
    print("speeds of other programs, by rates of llama.cpp; errors at the median")
    scale = constants(folder)
    for (family, machines, kind), each in found.items():
        seconds, guess, simple = np.array(each).T
        simple = simple * scale[machines, kind]
        error, other = (float(np.median(np.abs(g / seconds - 1))) for g in (guess, simple))
        rank, rank_simple = (
            float(np.corrcoef(ranks(g), ranks(seconds))[0, 1]) for g in (guess, simple)
        )
        print(f"{family:<10}{machines:<12}{kind:<9}{len(each):>4}{error:>8.1%}{rank:>7.3f}"
              f"   baseline{other:>8.1%}{rank_simple:>7.3f}")  # fmt: skip
    print("rows by use")
    for (family, why), count in sorted(reasons.items(), key=lambda each: (each[0][0], -each[1])):
        print(f"{count:>5}  {family:<16}{why}")
    print("least share of the printed time that operations at the highest peak take")
    for family, values in shares.items():
        most, above = max(values), sum(value > 1 for value in values)
        print(f"{family:<16}{len(values):>4} rows, at most {most:.2f}, above 1 in {above}")


if __name__ == "__main__":
    main()
