"""A nearest-neighbour model of row times: the efficiency of similar rows that were measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log, sqrt

from msgspec import Struct

from layerscope.prediction.row_features import AND, RowWork

NEAR = 14
RIDGE = 0.3
OUTLIER = 0.08  # residual from which on a sample counts less
UNSEEN = 0.5  # relative error of kinds that were not measured


class RowSample(Struct, frozen=True):
    """The work of a row, and the seconds it took."""

    work: RowWork
    time_s: float
    net: int  # the micro-network it was in


class Roofs(Struct, frozen=True):
    """Rates of an ideal engine, relative to which efficiencies are computed."""

    flops_s: float
    bytes_s: float
    start_s: float


class NearestModel(Struct, frozen=True):
    """Samples by kind of row, and the relative error of each kind in cross-validation."""

    roofs: Roofs
    samples: Mapping[str, tuple[RowSample, ...]]
    errors: Mapping[str, float]
    total_error: float

    def guess(self, work: RowWork, leave: int = -1) -> tuple[float, float]:
        """Seconds and their relative error; samples of the network `leave` are not used."""
        kind = work.kind
        samples = [s for s in self.samples.get(kind, ()) if s.net != leave]
        if len(samples) < 3 and AND in kind:
            kind = kind.partition(AND)[0]
            samples = [s for s in self.samples.get(kind, ()) if s.net != leave]
        base = ideal(work, self.roofs)
        if len(samples) < 3:
            return self._unseen(work, base, leave), UNSEEN
        return base * exp(_nearby(work, samples, self.roofs)), self.errors.get(kind, UNSEEN)

    def _unseen(self, work: RowWork, base: float, leave: int) -> float:
        """Seconds of a kind without samples: the median efficiency of products, or of copies."""
        kinds = ("conv", "linear") if work.weight_bytes else ("add", "mul", "permute", "max_pool")
        samples = [s for k in kinds for s in self.samples.get(k, ()) if s.net != leave]
        if not samples:
            return base * 2
        rates = sorted(s.time_s / ideal(s.work, self.roofs) for s in samples)
        return base * rates[len(rates) // 2]


def ideal(work: RowWork, roofs: Roofs) -> float:
    """Seconds at the roofs."""
    return work.flops / roofs.flops_s + work.bytes / roofs.bytes_s + roofs.start_s


def fit(samples: Sequence[RowSample], roofs: Roofs) -> NearestModel:
    """Fit the model; its errors are those of leaving out each micro-network in turn."""
    by_kind: dict[str, list[RowSample]] = {}
    for sample in samples:
        by_kind.setdefault(sample.work.kind, []).append(sample)
    kept = {kind: tuple(many) for kind, many in by_kind.items()}
    bare = NearestModel(roofs, kept, {}, 0.0)
    off: dict[str, list[float]] = {}
    sums: dict[int, list[float]] = {}
    for sample in samples:
        found, _ = bare.guess(sample.work, leave=sample.net)
        off.setdefault(sample.work.kind, []).append(abs(log(found / sample.time_s)))
        pair = sums.setdefault(sample.net, [0.0, 0.0])
        pair[0] += found
        pair[1] += sample.time_s
    errors = {kind: exp(_quantile(many, 0.67)) - 1 for kind, many in off.items()}
    totals = [abs(log(a / b)) for a, b in sums.values() if a and b]
    return NearestModel(roofs, kept, errors, exp(_quantile(totals, 0.67)) - 1)


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else 0.0


def _nearby(work: RowWork, samples: Sequence[RowSample], roofs: Roofs) -> float:
    """Logarithm of time over ideal time, by weighted ridge regression on the nearest samples."""
    import numpy

    coordinates = numpy.array([s.work.coordinates for s in samples])
    values = numpy.array([log(s.time_s / ideal(s.work, roofs)) for s in samples])
    here = numpy.array(work.coordinates)
    apart = numpy.sqrt(((coordinates - here) ** 2).sum(axis=1))
    order = numpy.argsort(apart)[:NEAR]
    radius = max(float(apart[order[-1]]), 1e-3)
    weights = numpy.exp(-2.0 * (apart[order] / radius) ** 2)
    moved = coordinates[order] - here
    rows = numpy.concatenate([numpy.ones((len(order), 1)), moved], axis=1)
    scale = sqrt(float(weights.sum()))
    penalty = numpy.eye(rows.shape[1]) * RIDGE * scale
    penalty[0, 0] = 1e-9
    trust = numpy.ones(len(order))
    for _ in range(3):  # outliers count less
        weighted = rows * (weights * trust)[:, None]
        solved = numpy.linalg.solve(rows.T @ weighted + penalty, weighted.T @ values[order])
        off = numpy.abs(rows @ solved - values[order])
        trust = 1 / numpy.maximum(1.0, off / OUTLIER)
    low, high = values[order].min(), values[order].max()
    return float(min(max(solved[0], low - 0.2), high + 0.2))
