"""Fit the rates of machines on published speeds; print the error on the half that was not fitted.

    python bench/fit_machines.py layers.jsonl ../shared/truth/timm_speed.csv [--write]

`layers.jsonl` is of bench/timm_layers.py. Rates are what a layer takes for each multiply-add of its
kind and each byte; none is negative. Half of the networks are drawn at random, fitted, and the
other half is predicted. With --write, rates fitted on all of them go into the package, beside that
error. Then the rates of the package are judged on all networks, with layers as fitted and with none
below its floor (operations at the peak, weights from DRAM; prediction/floors.py).
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from layerscope.engines.accelerators import ACCELERATORS
from layerscope.graph.types import DTYPE_BITS
from layerscope.prediction.coefficients import FITTED, Fitted
from layerscope.prediction.features import PER_BATCH, Features, amounts

TARGET = Path(__file__).parent.parent / "src" / "layerscope" / "prediction" / "coefficients.py"
SEED, ROUNDS, RIDGE = 0, 15, 0.02
DTYPES = {"amp": "fp16", "fp32": "fp32"}
Key = tuple[str, int]
Array = Any


def layers_of(path: str) -> dict[Key, list[Features]]:
    lines = map(msgspec.json.decode, Path(path).read_bytes().splitlines())
    return {
        (net["model"], net["img_size"]): [Features(*values) for values in net["layers"]]
        for net in lines
    }


def amounts_of(layers: list[Features]) -> dict[str, float]:
    total: dict[str, float] = {"once": 1.0}
    for layer in layers:
        for key, amount in amounts(layer).items():
            total[key] = total.get(key, 0.0) + amount
    return total


def nonnegative(rows: Array, wanted: Array) -> Array:
    """Least squares with no negative coefficient, by coordinates in turn."""
    gram, right = rows.T @ rows, rows.T @ wanted
    found = np.zeros(rows.shape[1])
    for _ in range(400):
        for n in range(len(found)):
            if gram[n, n] > 0:
                step = right[n] - gram[n] @ found + gram[n, n] * found[n]
                found[n] = max(step / gram[n, n], 0.0)
    return found


def fit(rows: Array, seconds: Array) -> Array:
    """Rates with the least relative error, outliers weighing less each round."""
    relative = rows / seconds[:, None]
    scale = relative.mean(0) + 1e-30
    relative = relative / scale
    weights = np.ones(len(seconds))
    damp = RIDGE * 0.1 * np.sqrt(len(seconds)) * np.eye(rows.shape[1])
    found = np.zeros(rows.shape[1])
    for _ in range(ROUNDS):
        stacked = np.vstack([relative * weights[:, None], damp])
        found = nonnegative(stacked, np.concatenate([weights, np.zeros(rows.shape[1])]))
        guess = relative @ found
        off = np.abs(np.log(np.maximum(guess, 1e-6)))
        weights = 1 / np.sqrt(np.maximum(off, 0.02)) / np.sqrt(np.maximum(guess, 0.3))
    return found / scale


def ranks(values: Array) -> Array:
    return np.argsort(np.argsort(values))


def main() -> None:
    layers = layers_of(sys.argv[1])
    nets = {key: amounts_of(many) for key, many in layers.items()}
    with open(sys.argv[2], encoding="utf-8") as file:
        speeds = [r for r in csv.DictReader(file) if (r["model"], int(r["img_size"])) in nets]
    names = sorted({name for each in nets.values() for name in each})
    keys = sorted(nets)
    order = np.random.default_rng(SEED).permutation(len(keys))
    half = {keys[n] for n in order[: len(keys) // 2]}
    machines = sorted({(r["device"], r["mode"], r["precision"]) for r in speeds})
    both = {
        device
        for device, mode, _ in machines
        if (device, "eager") in {m[:2] for m in machines}
        and (device, "compiled") in {m[:2] for m in machines}
    }
    print(f"{len(nets)} networks, {len(names)} rates")
    print(f"{'machine':<18}{'fitted':>8}{'median error':>14}{'2 of 3':>8}{'rank':>7}{'rates':>7}")
    made: dict[str, Fitted] = {}
    data = {}
    for device, mode, precision in machines:
        chosen = [r for r in speeds if (r["device"], r["mode"]) == (device, mode)]
        where = [(r["model"], int(r["img_size"])) for r in chosen]
        rows = np.array(
            [[nets[k].get(n, 0.0) / (int(r["batch"]) if n in PER_BATCH else 1) for n in names]
             for r, k in zip(chosen, where, strict=True)])  # fmt: skip
        seconds = np.array([1 / float(r["images_per_s"]) for r in chosen])
        inside = np.array([k in half for k in where])
        guess = rows @ fit(rows[inside], seconds[inside])
        off = np.abs(guess / seconds - 1)
        rank = np.corrcoef(ranks(guess[~inside]), ranks(seconds[~inside]))[0, 1]
        band = float(np.quantile(np.abs(np.log(guess[~inside] / seconds[~inside])), 0.67))
        rates = fit(rows, seconds)
        name = f"{device}-compiled" if device in both and mode == "compiled" else device
        print(
            f"{name:<18}{np.median(off[inside]):>8.1%}{np.median(off[~inside]):>14.1%}"
            f"{np.exp(band) - 1:>8.1%}{rank:>7.3f}{int((rates > 0).sum()):>7}"
        )
        kept = {n: float(r) for n, r in zip(names, rates, strict=True) if r > 0}
        made[name] = Fitted(float(np.exp(band) - 1), DTYPES[precision], mode, kept)
        data[name] = (rows, seconds)
    error = across(made, data, names)
    print(f"scaled by data sheets to another GPU: two of three within {error:.0%}")
    if "--write" in sys.argv:
        write(made, error)
    judge_floors(layers, speeds, both)


def judge_floors(
    layers: dict[Key, list[Features]], speeds: list[dict[str, str]], both: set[str]
) -> None:
    """Errors of the package's rates on all networks, without floors and with them."""
    print(
        f"\n{'machine':<18}{'networks':>9}{'no floors':>11}{'floors':>9}{'raised':>8}{'below':>7}"
    )
    for name, fitted in FITTED.items():
        device = name.removesuffix("-compiled")
        chosen = [
            r for r in speeds
            if r["device"] == device and (device not in both or r["mode"] == fitted.engine)
        ]  # fmt: skip
        pairs = [
            (*seconds_of(layers[r["model"], int(r["img_size"])], name, int(r["batch"])),
             int(r["batch"]) / float(r["images_per_s"]))
            for r in chosen
        ]  # fmt: skip
        free, held, least, truth = np.array(pairs).T
        before, after = (np.median(np.abs(guess / truth - 1)) for guess in (free, held))
        print(
            f"{name:<18}{len(pairs):>9}{before:>11.2%}{after:>9.2%}"
            f"{np.mean(held > free * 1.001):>8.1%}{int((truth < least).sum()):>7}"
        )


def seconds_of(layers: list[Features], name: str, batch: int) -> tuple[float, float, float]:
    """Seconds of a batch by the package's rates, with each layer at its floor at least, and that
    of the whole network.
    """
    fitted, sheet = FITTED[name], ACCELERATORS[name.removesuffix("-compiled")]
    peak, narrow = sheet.tflops[fitted.dtype] * 1e12, DTYPE_BITS[fitted.dtype] / 32
    stored = sum(layer.weight_bytes for layer in layers) * narrow
    beyond = max(stored - sheet.cache_mb * 1e6, 0.0)
    free = held = fitted.rates.get("once", 0.0)
    for layer in layers:
        seconds = sum(
            fitted.rates.get(key, 0.0) * amount * (1 if key in PER_BATCH else batch)
            for key, amount in amounts(layer).items()
        )
        read = layer.weight_bytes * narrow / stored * beyond if stored else 0.0
        free += seconds
        held += max(seconds, layer.flops * batch / peak, read / (sheet.gb_s * 1e9))
    flops = sum(layer.flops for layer in layers) * batch
    return free, held, max(flops / peak, beyond / (sheet.gb_s * 1e9))


def across(made: dict[str, Fitted], data: Any, names: list[str]) -> float:
    """How far off one GPU's rates are when data sheets scale them to others."""
    base = "rtx4090-compiled"
    mine = ACCELERATORS["rtx4090"]
    offs: list[float] = []
    for name, (rows, seconds) in data.items():
        sheet = ACCELERATORS[name.removesuffix("-compiled")]
        if "fp16" not in sheet.tflops or name.startswith("rtx4090"):
            continue
        quick, wide = sheet.tflops["fp16"] / mine.tflops["fp16"], sheet.gb_s / mine.gb_s
        rates = [
            made[base].rates.get(n, 0.0)
            / (quick if n.endswith(" macs") else wide if n.endswith(("bytes", "weights")) else 1)
            for n in names
        ]
        offs += list(np.abs(np.log(rows @ np.array(rates) / seconds)))
    return float(np.exp(np.quantile(offs, 0.67)) - 1)


def write(made: dict[str, Fitted], error: float) -> None:
    lines = [
        '"""Rates of machines, written by bench/fit_machines.py: seconds a unit of each kind."""',
        "",
        "from __future__ import annotations",
        "",
        "from msgspec import Struct",
        "",
        'SOURCE = "timm\'s published speeds of about 1,000 networks"',
        f"SCALED_ERROR = {error:.2f}  # of machines that are scaled by their data sheets",
        "",
        "",
        "class Fitted(Struct, frozen=True):",
        '    """Rates, and the error that two of three networks left out of the fit lie within."""',
        "",
        "    error: float",
        "    dtype: str  # of products",
        "    engine: str",
        "    rates: dict[str, float]",
        "",
        "",
        "FITTED = {",
    ]
    for name, fitted in made.items():
        head = f'{fitted.error:.3f}, "{fitted.dtype}", "{fitted.engine}"'
        lines.append(f'    "{name}": Fitted({head}, {{')
        lines += [f'        "{key}": {rate:.4g},' for key, rate in fitted.rates.items()]
        lines.append("    }),")
    lines.append("}")
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
