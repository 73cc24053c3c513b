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

import sys
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

import numpy as np
from fit_machines import Array, nonnegative, ranks
from language_speeds import CUDA, Speed, speeds_of

from layerscope.engines.accelerators import ACCELERATORS

TARGET = Path(__file__).parent.parent / "src" / "layerscope" / "prediction" / "language_rates.py"
SEED, ROUNDS = 3, 25
OTHER_SEEDS = range(10, 15)
SKEWS = (0.0, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4)
FIELDS = ("weights", "cache", "half", "quantized", "experts", "attention", "product", "launch",
          "prompt")  # fmt: skip


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
        lines += [
            f"        {name}={rate:.3g},\n" for name, rate in zip(FIELDS, rates, strict=False)
        ]
        lines += [f"        {kind}_error={error:.2f},\n" for kind, error in errors.items()]
        lines.append(f"        skew={skews[family]:g},\n        speeds={count},\n    ),\n")
    lines.append("}\n")
    TARGET.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
