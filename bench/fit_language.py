"""Fit rates of language models on published speeds; print the error on the half left out.

    python bench/fit_language.py ../shared/truth/llm [--write]

Speeds are those of llama.cpp, by family of machines (engines/accelerators.py). Half of the pairs of
machine and model are drawn at random in each family, those with batches of experts apart, and
fitted; the other half is predicted, beside a baseline of one line: weight bytes / bandwidth times
one constant for each family, fitted on the same half. The skew with which tokens of a batch choose
experts is chosen on the fitted half for each family with such batches; other families take that of
DGX Spark, whose kernels are CUDA's, too. With --write, rates fitted on all of them go into the
package with the errors of the half left out. No prediction is below its floor.

Where a model is split by layers over several cards, a token waits for each further card: a rate
of that time is fitted with the others, and not written, since predictions are for one card.

One draw of few pairs is a matter of luck: a second table has the mean of the median errors of other
draws, with the skews of the first one.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from pathlib import Path

import numpy as np
from fit_machines import Array, nonnegative, ranks
from msgspec import Struct

from layerscope.engines.accelerators import ACCELERATORS
from layerscope.llm.description import LanguageModel
from layerscope.llm.families import describe
from layerscope.llm.parameters import total_params
from layerscope.llm.work import Step, Work, layer_works
from layerscope.prediction.language import (
    MICRO_BATCH,
    SpeedLimits,
    amounts,
    floor_of,
    limits_of,
    passes,
)

TARGET = Path(__file__).parent.parent / "src" / "layerscope" / "prediction" / "language_rates.py"
SEED, ROUNDS, GIB = 3, 25, 2**30
OTHER_SEEDS = range(10, 15)
SKEWS = (0.0, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4)
FIELDS = ("weights", "cache", "half", "quantized", "experts", "attention", "product", "launch",
          "prompt")  # fmt: skip
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
    return None


def speeds_of(folder: Path, skews: Mapping[str, float]) -> list[Speed]:
    """Speeds of the families that have a skew."""
    with (folder / "llm_speed.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["family"].startswith("llama-b")]
    models: dict[str, tuple[str, LanguageModel] | None] = {}
    found = []
    for row in rows:
        kind, machine = METRICS.get(row["metric"]), MACHINES.get(row["hardware"])
        if kind is None or machine is None or row["checked"] == "contradicts":
            continue
        if ACCELERATORS[machine].family not in skews:
            continue
        name = row["model"]
        if name.startswith("gpt-oss ?B"):
            name = "gpt-oss 20B" if float(row["params_b"]) < 50 else "gpt-oss 120B"
        if name not in models:
            models[name] = model_of(name, folder / "configs")
        known = models[name]
        if known is None:
            continue
        start, model = known
        size = float(row["model_size_gib"] or SIZES.get(start, 0)) * GIB
        if size:
            found.append(_speed(row, kind, (machine, skews), (start, model, size)))
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


def fit(speeds: Sequence[Speed]) -> Array:
    """Rates with the least relative error, outliers weighing less; weights are read at most once
    at full bandwidth."""
    rows = np.array([speed.amounts for speed in speeds])
    seconds = np.array([speed.seconds for speed in speeds])
    least = np.array([1.0, *[0.0] * (rows.shape[1] - 1)])
    weights = 1 / seconds
    found = least
    for _ in range(ROUNDS):
        scaled = rows * weights[:, None]
        size = scaled.mean(0) + 1e-30
        found = least + nonnegative(scaled / size, (seconds - rows @ least) * weights) / size
        off = np.abs(np.log(np.maximum(rows @ found, 1e-12) / seconds))
        weights = 1 / seconds / np.sqrt(np.maximum(off, 0.02))
    return _filled(found, rows)


def _filled(rates: Array, rows: Array) -> Array:
    """Products of a kind that no published speed has run at the slowest rate of the others."""
    kinds = [FIELDS.index(name) for name in ("half", "quantized", "experts")]
    for column in kinds:
        if not rows[:, column].any():
            rates[column] = max(rates[kinds])
    return rates


def predicted(speeds: Sequence[Speed], rates: Array) -> Array:
    return np.array([max(speed.amounts @ rates, speed.floor / speed.cards) for speed in speeds])


def sends_batches(speed: Speed) -> bool:
    """Whether several tokens choose experts."""
    return (
        speed.kind == "decode"
        and speed.step.batch > 1
        and any(work.expert_flops for work in speed.works)
    )


def skew_error(speeds: Sequence[Speed]) -> float:
    """The mean error of batches of models with experts, fitted with the rest of the family."""
    batches = [speed for speed in speeds if sends_batches(speed)]
    seconds = np.array([speed.seconds for speed in batches])
    return float(np.mean(np.abs(np.log(predicted(batches, fit(speeds)) / seconds))))


def fitted_skews(
    folder: Path, half: AbstractSet[tuple[str, str]], families: AbstractSet[str]
) -> dict[str, float]:
    """The skew of each family with the least error on the fitted half."""
    scores: dict[str, dict[float, float]] = {family: {} for family in sorted(families)}
    for skew in SKEWS:
        speeds = speeds_of(folder, dict.fromkeys(families, skew))
        for family, found in scores.items():
            mine = [s for s in speeds if s.family == family and (s.machine, s.network) in half]
            found[skew] = skew_error(mine)
    for family, found in scores.items():
        print(f"{family}: error by skew", ", ".join(f"{s:g} {e:.3f}" for s, e in found.items()))
    return {family: min(found, key=lambda s: found[s]) for family, found in scores.items()}


def drawn_half(speeds: Sequence[Speed], seed: int = SEED) -> set[tuple[str, str]]:
    """Half of the pairs of each family, rounded up; pairs with batches of experts are apart."""
    batched = {(speed.machine, speed.network) for speed in speeds if sends_batches(speed)}
    groups: dict[tuple[str, bool], set[tuple[str, str]]] = {}
    for speed in speeds:
        pair = speed.machine, speed.network
        groups.setdefault((speed.family, pair in batched), set()).add(pair)
    random = np.random.default_rng(seed)
    half: set[tuple[str, str]] = set()
    for _, group in sorted(groups.items()):
        listed = sorted(group)
        order = random.permutation(len(listed))
        half.update(listed[n] for n in order[: -(-len(listed) // 2)])
    return half


def main() -> None:
    folder = Path(sys.argv[1])
    everything: list[str] = sorted({sheet.family for sheet in ACCELERATORS.values()})
    speeds = speeds_of(folder, dict.fromkeys(everything, 0.0))
    pairs = {(speed.machine, speed.network) for speed in speeds}
    half = drawn_half(speeds)
    batched = {s.family for s in speeds if sends_batches(s) and (s.machine, s.network) in half}
    found = fitted_skews(folder, half, batched)
    skews = {family: found.get(family, found["spark"]) for family in everything}
    speeds = speeds_of(folder, skews)
    print(f"{len(speeds)} speeds of {len(pairs)} pairs of machine and model; errors at the median")
    print(f"{'family':<13}{'step':<9}{'left out':>9}{'error':>8}{'2 of 3':>8}{'rank':>7}"
          f"{'baseline':>10}{'rank':>7}{'below floor':>13}")  # fmt: skip
    written = {}
    for family in sorted({speed.family for speed in speeds}):
        mine = [speed for speed in speeds if speed.family == family]
        inside = [speed for speed in mine if (speed.machine, speed.network) in half]
        rates, errors = fit(inside), {}
        for kind in ("decode", "prefill"):
            left = [s for s in mine if s.kind == kind and (s.machine, s.network) not in half]
            used = [s for s in inside if s.kind == kind]
            errors[kind] = _row(family, kind, (used, left), rates)
        written[family] = (fit(mine), errors, len(mine))
    launch = FIELDS.index("launch")
    for family in CUDA:  # without batches: as on DGX Spark, whose kernels are CUDA's, too
        written[family][0][launch] = written[family][0][launch] or written["spark"][0][launch]
    if "--write" in sys.argv:
        write(written, skews)
    other_draws(speeds)


def other_draws(speeds: Sequence[Speed]) -> None:
    """Print the mean of the median errors of several draws."""
    print(f"mean of {len(OTHER_SEEDS)} other draws")
    print(f"{'family':<13}{'step':<9}{'error':>8}{'baseline':>10}")
    errors: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for seed in OTHER_SEEDS:
        half = drawn_half(speeds, seed)
        for family in sorted({speed.family for speed in speeds}):
            mine = [speed for speed in speeds if speed.family == family]
            inside = [speed for speed in mine if (speed.machine, speed.network) in half]
            rates = fit(inside)
            for kind in ("decode", "prefill"):
                left = [s for s in mine if s.kind == kind and (s.machine, s.network) not in half]
                used = [s for s in inside if s.kind == kind]
                found = guesses((used, left), rates)
                errors.setdefault((family, kind), []).append(median_errors(left, found))
    for (family, kind), pairs in errors.items():
        ours, simple = np.mean(pairs, axis=0)
        print(f"{family:<13}{kind:<9}{ours:>8.1%}{simple:>10.1%}")


def guesses(both: tuple[list[Speed], list[Speed]], rates: Array) -> tuple[Array, Array]:
    """Seconds of the second list by the rates, and by the baseline of the first list."""
    used, left = both
    constant = np.median([speed.seconds / speed.baseline for speed in used])
    return predicted(left, rates), constant * np.array([speed.baseline for speed in left])


def median_errors(left: list[Speed], found: tuple[Array, Array]) -> tuple[float, float]:
    seconds = np.array([speed.seconds for speed in left])
    ours, simple = (float(np.median(np.abs(each / seconds - 1))) for each in found)
    return ours, simple


def _row(family: str, kind: str, both: tuple[list[Speed], list[Speed]], rates: Array) -> float:
    left = both[1]
    seconds = np.array([speed.seconds for speed in left])
    guess, simple = guesses(both, rates)
    band = float(np.exp(np.quantile(np.abs(np.log(guess / seconds)), 2 / 3)) - 1)
    error, other = median_errors(left, (guess, simple))
    rank, rank_simple = (
        float(np.corrcoef(ranks(each), ranks(seconds))[0, 1]) for each in (guess, simple)
    )
    below = sum(speed.seconds < speed.floor / speed.cards for speed in left)
    print(f"{family:<13}{kind:<9}{len(left):>9}{error:>8.1%}{band:>8.0%}{rank:>7.3f}"
          f"{other:>10.1%}{rank_simple:>7.3f}{below:>13}")  # fmt: skip
    return band


def write(
    written: dict[str, tuple[Array, dict[str, float], int]], skews: Mapping[str, float]
) -> None:
    text = TARGET.read_text(encoding="utf-8")
    lines = [text[: text.index("FAMILIES = {")], "FAMILIES = {\n"]
    for family, (rates, errors, count) in written.items():
        lines.append(f'    "{family}": SpeedRates(\n')
        lines += [f"        {name}={rate:.3g},\n" for name, rate in zip(FIELDS, rates, strict=False)]
        lines += [f"        {kind}_error={error:.2f},\n" for kind, error in errors.items()]
        lines.append(f"        skew={skews[family]:g},\n        speeds={count},\n    ),\n")
    lines.append("}\n")
    TARGET.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
