"""Fit the rates of machines on published speeds; print the error on the half that was not fitted.

    python bench/fit_machines.py layers.jsonl ../shared/truth/timm_speed.csv [--write]

`layers.jsonl` is of bench/timm_layers.py. Rates are what a layer takes for each multiply-add of its
kind and each byte; none is negative. Half of the networks are drawn at random, fitted, and the
other half is predicted. With --write, rates fitted on all of them go into the package, beside that
error. Predictions are those of the package: no layer is below its floor (operations at the peak of
the data sheet, weights from DRAM; prediction/floors.py). The last columns are errors on all
networks, of the package's rates without floors and of those just fitted with them, and how many
published times are below a data sheet's.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from layerscope.engines.accelerators import ACCELERATORS
from layerscope.graph.types import DTYPE_BITS
from layerscope.prediction.coefficients import FITTED, Fitted
from layerscope.prediction.features import PER_BATCH, Features, amounts

TARGET = Path(__file__).parent.parent / "src" / "layerscope" / "prediction" / "coefficients.py"
SEED, ROUNDS, PASSES, RIDGE = 0, 15, 3, 0.02
OUTLIER = 0.3
GAIN = 0.01  # in error, below which a change of rates follows noise
SHARES = (0.08, 0.04, 0.02, 0.01) * 4
DTYPES = {"amp": "fp16", "fp32": "fp32"}
Key = tuple[str, int]
Array = Any


def layers_of(path: str) -> dict[Key, list[Features]]:
    lines = map(msgspec.json.decode, Path(path).read_bytes().splitlines())
    return {
        (net["model"], net["img_size"]): [Features(*values) for values in net["layers"]]
        for net in lines
    }


def nonnegative(rows: Array, wanted: Array) -> Array:
    """Least squares with no negative coefficient, by coordinates in turn."""
    gram, right = rows.T @ rows, rows.T @ wanted
    found = np.zeros(rows.shape[1])
    for _ in range(400):
        before = found.copy()
        for n in range(len(found)):
            if gram[n, n] > 0:
                step = right[n] - gram[n] @ found + gram[n, n] * found[n]
                found[n] = max(step / gram[n, n], 0.0)
        if np.abs(found - before).max() < 1e-7 * np.abs(found).max():
            break
    return found


class Machine:
    """What was published of one machine, and the layers of its networks, an image each."""

    def __init__(self, published: list[dict[str, str]], layers: dict[Key, list[Features]],
                 names: list[str]) -> None:  # fmt: skip
        first = published[0]
        self.device, self.mode = first["device"], first["mode"]
        self.dtype = DTYPES[first["precision"]]
        self.keys = [(r["model"], int(r["img_size"])) for r in published]
        self.seconds = np.array([1 / float(r["images_per_s"]) for r in published])
        self.least = np.array([2 / self.peak if n.endswith(" macs") else 0.0 for n in names])
        column = {name: n for n, name in enumerate(names)}
        nets = [layers[key] for key in self.keys]
        self.starts = np.cumsum([0, *map(len, nets)])[:-1]
        self.parts = np.zeros((sum(map(len, nets)), len(names)))  # of layers
        self.floors = np.zeros(len(self.parts))
        self.once = np.zeros((len(nets), len(names)))
        row = 0
        for net, many in enumerate(nets):
            batch = int(published[net]["batch"])
            self.once[net, column["once"]] = 1 / batch
            for layer, floor in zip(many, self._floors(many, batch), strict=True):
                for key, amount in amounts(layer).items():
                    self.parts[row, column[key]] = amount / (batch if key in PER_BATCH else 1)
                self.floors[row] = floor
                row += 1
        self.rows = self.once + np.add.reduceat(self.parts, self.starts)

    @property
    def peak(self) -> float:
        """FLOP/s of the data sheet."""
        return ACCELERATORS[self.device].tflops[self.dtype] * 1e12

    def _floors(self, layers: list[Features], batch: int) -> list[float]:
        """The least seconds of each layer, as in prediction/floors.py."""
        sheet, narrow = ACCELERATORS[self.device], DTYPE_BITS[self.dtype] / 32
        stored = sum(layer.weight_bytes for layer in layers) * narrow
        share = max(stored - sheet.cache_mb * 1e6, 0.0) / stored if stored else 0.0
        read = share * narrow / (sheet.gb_s * 1e9) / batch
        return [max(layer.flops / self.peak, layer.weight_bytes * read) for layer in layers]

    def free(self, rates: Array) -> Array:
        """Seconds of each network by rates alone."""
        return self.rows @ rates

    def held(self, rates: Array) -> Array:
        """Seconds of each network with no layer below its floor, as the package predicts them."""
        layers = np.maximum(self.parts @ rates, self.floors)
        return self.once @ rates + np.add.reduceat(layers, self.starts)

    def fit(self, inside: Array) -> Array:
        """Rates for what is predicted: layers at their floor say nothing about rates.

        Once with every product at the peak at most, once with layers only: the better is taken.
        """
        found = [
            rates for least in (self.least, 0 * self.least) for rates in self._fits(inside, least)
        ]
        best = min(found, key=lambda rates: self._median(rates, inside))
        polished = self._polished(best, inside)
        gains = self._median(polished, inside) < (1 - GAIN) * self._median(best, inside)
        return polished if gains else best

    def _median(self, rates: Array, inside: Array) -> float:
        return float(np.median(np.abs(self.held(rates) / self.seconds - 1)[inside]))

    def _error(self, seconds: Array, inside: Array) -> float:
        """The mean relative error; that of an outlier counts as much as `OUTLIER`."""
        off = np.abs(seconds[inside] / self.seconds[inside] - 1)
        return float(np.minimum(off, OUTLIER).mean())

    def _polished(self, rates: Array, inside: Array) -> Array:
        """Rates changed one at a time by a small share, wherever the error becomes less."""
        rates = rates.copy()
        layers, once = self.parts @ rates, self.once @ rates
        best = self._error(self.held(rates), inside)
        for share in SHARES:
            for column, sign in product(np.flatnonzero(rates), (1, -1)):
                step = sign * share * rates[column]
                others = layers + step * self.parts[:, column]
                start = once + step * self.once[:, column]
                summed = np.add.reduceat(np.maximum(others, self.floors), self.starts)
                error = self._error(start + summed, inside)
                if error < best:
                    best, layers, once = error, others, start
                    rates[column] += step
        return rates

    def _fits(self, inside: Array, least: Array) -> Iterator[Array]:
        """Rates after each pass, which leaves out the layers that the last one has at a floor."""
        rows, added = self.rows, np.zeros(len(self.rows))
        for _ in range(PASSES):
            rates = fit(rows[inside], self.seconds[inside], least, added[inside])
            yield rates
            above = self.parts @ rates > self.floors
            rows = self.once + np.add.reduceat(self.parts * above[:, None], self.starts)
            added = np.add.reduceat(self.floors * ~above, self.starts)


def fit(rows: Array, seconds: Array, least: Array, added: Array) -> Array:
    """Rates with the least relative error, none below its least, outliers weighing less."""
    relative = rows / seconds[:, None]
    given = relative @ least + added / seconds
    scale = relative.mean(0) + 1e-30
    relative = relative / scale
    weights = np.ones(len(seconds))
    damp = RIDGE * 0.1 * np.sqrt(len(seconds)) * np.eye(rows.shape[1])
    found = np.zeros(rows.shape[1])
    for _ in range(ROUNDS):
        stacked = np.vstack([relative * weights[:, None], damp])
        wanted = (1 - given) * weights
        found = nonnegative(stacked, np.concatenate([wanted, np.zeros(rows.shape[1])]))
        guess = given + relative @ found
        off = np.abs(np.log(np.maximum(guess, 1e-6)))
        weights = 1 / np.sqrt(np.maximum(off, 0.02)) / np.sqrt(np.maximum(guess, 0.3))
    return least + found / scale


def ranks(values: Array) -> Array:
    return np.argsort(np.argsort(values))


def main() -> None:
    layers = layers_of(sys.argv[1])
    with open(sys.argv[2], encoding="utf-8") as file:
        speeds = [r for r in csv.DictReader(file) if (r["model"], int(r["img_size"])) in layers]
    names = sorted({"once", *(n for net in layers.values() for one in net for n in amounts(one))})
    keys = sorted(layers)
    order = np.random.default_rng(SEED).permutation(len(keys))
    half = {keys[n] for n in order[: len(keys) // 2]}
    kinds = sorted({(r["device"], r["mode"]) for r in speeds})
    print(f"{len(layers)} networks, {len(names)} rates; errors at the median")
    head = ("fitted", "left out", "2 of 3", "rank", "package", "now", "below")
    print(f"{'machine':<18}" + "".join(f"{title:>10}" for title in head))
    made: dict[str, Fitted] = {}
    data = {}
    for device, mode in kinds:
        machine = Machine(
            [r for r in speeds if (r["device"], r["mode"]) == (device, mode)], layers, names
        )
        twice = (device, "eager") in kinds and (device, "compiled") in kinds
        name = f"{device}-compiled" if twice and mode == "compiled" else device
        seconds = machine.seconds
        inside = np.array([key in half for key in machine.keys])
        guess = machine.held(machine.fit(inside))
        off = np.abs(guess / seconds - 1)
        rank = np.corrcoef(ranks(guess[~inside]), ranks(seconds[~inside]))[0, 1]
        band = float(np.quantile(np.abs(np.log(guess[~inside] / seconds[~inside])), 0.67))
        rates = machine.fit(np.ones(len(seconds), bool))
        before = np.array([FITTED[name].rates.get(n, 0.0) for n in names])
        package, now = (
            np.median(np.abs(found / seconds - 1))
            for found in (machine.free(before), machine.held(rates))
        )
        least = np.add.reduceat(machine.floors, machine.starts)
        print(
            f"{name:<18}{np.median(off[inside]):>10.1%}{np.median(off[~inside]):>10.1%}"
            f"{np.exp(band) - 1:>10.1%}{rank:>10.3f}{package:>10.2%}{now:>10.2%}"
            f"{int((seconds < least).sum()):>10}"
        )
        kept = {n: float(r) for n, r in zip(names, rates, strict=True) if r > 0}
        made[name] = Fitted(float(np.exp(band) - 1), machine.dtype, mode, kept)
        data[name] = (machine.rows, seconds)
    error = across(made, data, names)
    print(f"scaled by data sheets to another GPU: two of three within {error:.0%}")
    if "--write" in sys.argv:
        write(made, error)


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
