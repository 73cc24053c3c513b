"""Published speeds of llama.cpp, with what each step computes on its machine."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import numpy as np
from fit_machines import Array
from msgspec import Struct

from layerscope.engines.accelerators import ACCELERATORS
from layerscope.llm.description import LanguageModel
from layerscope.llm.families import describe
from layerscope.llm.parameters import predictor_params, total_params
from layerscope.llm.work import Step, Work, layer_works
from layerscope.prediction.language import (
    MICRO_BATCH,
    SpeedLimits,
    amounts,
    floor_of,
    limits_of,
    passes,
)

MOST_OFF = 0.002  # of the printed parameters, which may be rounded
GIB = 2**30
HOP = 1e-4  # seconds: the unit in which the time of a further card is fitted
CUDA = ("datacenter", "geforce", "spark", "workstation")  # families whose steps are CUDA graphs
MACHINES = {
    "3070": "rtx3070", "3080": "rtx3080", "3080Ti": "rtx3080ti", "3090": "rtx3090",
    "4070Ti": "rtx4070ti", "4080": "rtx4080", "4090": "rtx4090", "4000 Ada": "rtx4000ada",
    "5000 Ada": "rtx5000ada", "6000 Ada": "rtx6000ada", "A40": "a40", "A6000": "rtx-a6000",
    "L40S": "l40s", "A100 PCIe": "a100-pcie", "A100 SXM": "a100", "H100 PCIe": "h100-pcie",
    "M1 8GB": "m1", "M1max 64GB": "m1-max", "M2ultra 192GB": "m2-ultra",
    "Apple M2 Ultra": "m2-ultra", "M3max 64GB": "m3-max", "NVIDIA DGX Spark (GB10)": "gb10",
    "AMD Ryzen AI MAX+ 395 / Radeon 8060S (Strix Halo)": "strix-halo",
    "AMD Strix Halo (Radeon 8060S, gfx1151)": "strix-halo",
}  # fmt: skip
CONFIGS = {  # beginning of a model's name: its configuration
    "llama 8B": "meta-llama--Meta-Llama-3.1-8B", "llama 70B": "meta-llama--Meta-Llama-3.1-70B",
    "qwen3 32B": "Qwen--Qwen3-32B", "qwen3moe 30B": "Qwen--Qwen3-30B-A3B",
    "gpt-oss 20B": "openai--gpt-oss-20b", "gpt-oss 120B": "openai--gpt-oss-120b",
    "llama4 17Bx16E": "meta-llama--Llama-4-Scout-17B-16E-Instruct",
    "gemma4 26B": "google--gemma-4-26B-A4B", "gemma4 31B": "nvidia--Gemma-4-31B-IT-NVFP4",
    "qwen35moe 35B": "Qwen--Qwen3.5-35B-A3B", "qwen35moe 122B": "Qwen--Qwen3.5-122B-A10B",
    "minimax-m2": "MiniMaxAI--MiniMax-M2.5",
    "nemotron": "nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8",
    "ggml-org/gpt-oss-20b": "openai--gpt-oss-20b", "ggml-org/gpt-oss-120b": "openai--gpt-oss-120b",
    "ggml-org/Qwen3-Coder-30B": "Qwen--Qwen3-30B-A3B",
}  # fmt: skip
SHAPES = {  # of Llama's form: hidden, layers, heads, heads of keys, feed-forward, vocabulary
    "llama 7B": (4096, 32, 32, 32, 11008, 32000),
    "qwen2 7B": (3584, 28, 28, 4, 18944, 152064),
    "ggml-org/Qwen2.5-Coder-7B": (3584, 28, 28, 4, 18944, 152064),
    "mistral3 14B": (5120, 40, 32, 8, 16384, 131072),
}
# Of other forms; parameters are those that llama-bench printed, to the last digit.
FORMS: dict[str, dict[str, object]] = {
    "deepseek2 30B.A3B": {"model_type": "glm4_moe_lite"},  # GLM-4.7-Flash
    "dots1 142B": {
        "model_type": "dots1", "hidden_size": 4096, "num_hidden_layers": 62,
        "num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": 128,
        "intermediate_size": 10944, "moe_intermediate_size": 1408, "num_experts": 128,
        "num_experts_per_tok": 6, "n_shared_experts": 2, "first_k_dense_replace": 1,
        "vocab_size": 152064, "tie_word_embeddings": False,
    },
    "gemma3 4B": {
        "model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 34,
        "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
        "intermediate_size": 10240, "vocab_size": 262144,
    },
    "hunyuan-moe A13B": {
        "model_type": "hunyuan_v1_moe", "hidden_size": 4096, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
        "intermediate_size": 3072, "num_experts": 64, "moe_topk": 8, "vocab_size": 128167,
        "tie_word_embeddings": True,
    },
    # llama-bench names it so; its 23,572,403,200 parameters are those of Mistral Small 3.1.
    "llama 13B Q4_K": {
        "model_type": "mistral", "hidden_size": 5120, "num_hidden_layers": 40,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
        "intermediate_size": 32768, "vocab_size": 131072, "tie_word_embeddings": False,
    },
}  # fmt: skip
SIZES = {"ggml-org/gpt-oss-20b": 11.27, "ggml-org/gpt-oss-120b": 59.02,
         "ggml-org/Qwen2.5-Coder-7B": 7.54, "ggml-org/Qwen3-Coder-30B": 30.25}  # fmt: skip
METRICS = {"tokens/s prefill": "prefill", "tokens/s decode": "decode",
           "tokens/s prefill (all sequences)": "prefill",
           "tokens/s decode (all sequences)": "decode"}  # fmt: skip


class Speed(Struct, dict=True):
    """One published speed as seconds of a step, with what the step computes."""

    family: str
    machine: str
    network: str
    kind: str
    seconds: float
    step: Step
    works: tuple[Work, ...]
    limits: SpeedLimits
    cards: int
    reads: int  # of the weights, in a step

    @cached_property
    def amounts(self) -> Array:
        """Seconds at the limits by rate; cards take turns, and overlap where there are batches.

        The last one is a unit of time for each further card that a token goes to.
        """
        reads = self.reads
        found = np.array([amounts(work, self.step, self.limits, reads) for work in self.works]).sum(
            0
        )
        if self.family not in CUDA:
            found[-2:] = 0.0
        if self.kind == "decode":
            return np.append(found, HOP * (self.cards - 1))
        overlap = (reads + self.cards - 1) / (reads * self.cards)
        return np.append(found * overlap, 0.0)

    @property
    def floor(self) -> float:
        return sum(floor_of(work, self.limits)[0] for work in self.works)

    @property
    def baseline(self) -> float:
        return sum(work.weight_bytes for work in self.works) / self.limits.bytes_s


def name_of(row: dict[str, str]) -> str:
    """The name of a row's model; by its parameters, where the name lacks them."""
    if row["model"].startswith("gpt-oss ?B"):
        return "gpt-oss 20B" if float(row["params_b"]) < 50 else "gpt-oss 120B"
    return row["model"]


def model_of(name: str, folder: Path) -> tuple[str, LanguageModel] | None:
    for start, config in CONFIGS.items():
        if name.startswith(start):
            return start, describe(json.loads((folder / f"{config}_config.json").read_text()))
    for start, shape in SHAPES.items():
        if name.startswith(start):
            names = ("hidden_size", "num_hidden_layers", "num_attention_heads",
                     "num_key_value_heads", "intermediate_size", "vocab_size")  # fmt: skip
            values = dict(zip(names, shape, strict=True), model_type="llama", head_dim=128,
                          tie_word_embeddings=False)  # fmt: skip
            return start, describe(values)
    for start, values in FORMS.items():
        if name.startswith(start):
            return start, describe(values)
    return None


def has_params(row: dict[str, str], model: LanguageModel) -> bool:
    """Whether a model has the printed number of parameters; layers of prediction may be stored."""
    printed = float(row["params_b"] or 0) * 1e9
    counts = total_params(model), total_params(model) + predictor_params(model)
    return not printed or any(abs(count / printed - 1) < MOST_OFF for count in counts)


def why_not(row: dict[str, str], known: tuple[str, LanguageModel] | None) -> str:
    """Why a speed of llama.cpp is not fitted; "" if it is."""
    if row["metric"] not in METRICS:
        return "a prompt and tokens in one figure"
    if row["checked"] == "contradicts":
        return "contradicts its own machine (README, trap 21)"
    if row["hardware"] not in MACHINES:
        return f"no data sheet of {row['hardware']}"
    if known is None or not has_params(row, known[1]):
        return f"no configuration with its parameters: {row['model']}"
    if not float(row["model_size_gib"] or SIZES.get(known[0], 0)):
        return f"no bytes of its weights are printed: {row['model']}"
    return ""


def speeds_of(folder: Path, skews: Mapping[str, float]) -> list[Speed]:
    """Speeds of the families that have a skew."""
    with (folder / "llm_speed.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["family"].startswith("llama-b")]
    models: dict[str, tuple[str, LanguageModel] | None] = {}
    found = []
    for row in rows:
        name = name_of(row)
        if name not in models:
            models[name] = model_of(name, folder / "configs")
        known = models[name]
        if known is None or why_not(row, known):
            continue
        machine, (start, model) = MACHINES[row["hardware"]], known
        if ACCELERATORS[machine].family not in skews:
            continue
        size = float(row["model_size_gib"] or SIZES.get(start, 0)) * GIB
        found.append(_speed(row, METRICS[row["metric"]], (machine, skews), (start, model, size)))
    return found


def _speed(
    row: dict[str, str],
    kind: str,
    setting: tuple[str, Mapping[str, float]],
    network: tuple[str, LanguageModel, float],
) -> Speed:
    (machine, skews), (start, model, size) = setting, network
    depth, batch = int(row["depth"] or 0), int(row["batch"])
    batched = row["test"] == "batched"
    if kind == "prefill":
        step = Step(tokens=int(row["in_len"]), past=depth, batch=batch)
        seconds = step.all_tokens / float(row["value"])
    else:
        past = depth + (int(row["in_len"]) if batched else 0) + int(row["out_len"]) // 2
        step = Step(tokens=1, past=past, batch=batch)
        seconds = batch / float(row["value"])
    each = size / total_params(model)
    sheet = ACCELERATORS[machine]
    works = layer_works(
        model,
        step,
        lambda _part, _name, shape: each * float(np.prod(shape)),
        "f16",
        skews[sheet.family],
    )
    limits = limits_of(sheet, 8 * each)
    given = re.search(r"n_ubatch ?= ?(\d+)", row["conditions"])
    reads = passes(step, int(given[1]) if given else MICRO_BATCH)
    cards = int(row["n_accel"])
    return Speed(sheet.family, machine, start, kind, seconds, step, works, limits, cards, reads)
