"""A local model: the efficiency of what was measured nearby, on top of the roofs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log, sqrt
from typing import Any

from msgspec import Struct

from layerscope.prediction.row_features import AND, Work

NEAR = 14
RIDGE = 0.3
OUTLIER = 0.08  # distance from the line beyond which a sample is trusted less
UNSEEN = 0.5  # relative error that is told of kinds that were not measured


class Sample(Struct, frozen=True):
    """Work, and what it took."""

    work: Work
    time_s: float
    net: int  # the micro-network it was in


class Roofs(Struct, frozen=True):
    """What a perfect engine would reach: the scale on which efficiencies are told."""

    flops_s: float
    bytes_s: float
    start_s: float


class Model(Struct, frozen=True):
    """Samples by kind, and how far guesses of each were off when it was left out."""

    roofs: Roofs
    samples: Mapping[str, tuple[Sample, ...]]
    errors: Mapping[str, float]
    total_error: float

    def guess(self, work: Work, leave: int = -1) -> tuple[float, float]:
        """Seconds and their relative error; `leave` is a network whose samples are not used."""
        kind = work.kind
        known = [s for s in self.samples.get(kind, ()) if s.net != leave]
        if len(known) < 3 and AND in kind:
            kind = kind.partition(AND)[0]
            known = [s for s in self.samples.get(kind, ()) if s.net != leave]
        base = ideal(work, self.roofs)
        if len(known) < 3:
            return self._unseen(work, base, leave), UNSEEN
        return base * exp(_nearby(work, known, self.roofs)), self.errors.get(kind, UNSEEN)

    def _unseen(self, work: Work, base: float, leave: int) -> float:
        """As efficient as anything that only moves bytes, or as products are."""
        kinds = ("conv", "linear") if work.weight_bytes else ("add", "mul", "permute", "max_pool")
        known = [s for k in kinds for s in self.samples.get(k, ()) if s.net != leave]
        if not known:
            return base * 2
        rates = sorted(s.time_s / ideal(s.work, self.roofs) for s in known)
        return base * rates[len(rates) // 2]


def ideal(work: Work, roofs: Roofs) -> float:
    """Seconds at the roofs."""
    return work.flops / roofs.flops_s + work.bytes / roofs.bytes_s + roofs.start_s


def fit(samples: Sequence[Sample], roofs: Roofs) -> Model:
    """The model, and its errors when each micro-network is left out in turn."""
    by_kind: dict[str, list[Sample]] = {}
    for sample in samples:
        by_kind.setdefault(sample.work.kind, []).append(sample)
    kept = {kind: tuple(many) for kind, many in by_kind.items()}
    bare = Model(roofs, kept, {}, 0.0)
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
    return Model(roofs, kept, errors, exp(_quantile(totals, 0.67)) - 1)


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else 0.0


def _nearby(work: Work, samples: Sequence[Sample], roofs: Roofs) -> float:
    """The logarithm of time over ideal, by a weighted line through the nearest samples."""
    import numpy

    places = numpy.array([s.work.place for s in samples])
    values = numpy.array([log(s.time_s / ideal(s.work, roofs)) for s in samples])
    here = numpy.array(work.place)
    apart = numpy.sqrt(((places - here) ** 2).sum(axis=1))
    order = numpy.argsort(apart)[:NEAR]
    reach = max(float(apart[order[-1]]), 1e-3)
    weights = numpy.exp(-2.0 * (apart[order] / reach) ** 2)
    moved = places[order] - here
    rows = numpy.concatenate([numpy.ones((len(order), 1)), moved], axis=1)
    scale = sqrt(float(weights.sum()))
    penalty: Any = numpy.eye(rows.shape[1]) * RIDGE * scale
    penalty[0, 0] = 1e-9
    trust = numpy.ones(len(order))
    for _ in range(3):  # samples that lie far off the line count less
        weighted = rows * (weights * trust)[:, None]
        solved = numpy.linalg.solve(rows.T @ weighted + penalty, weighted.T @ values[order])
        off = numpy.abs(rows @ solved - values[order])
        trust = 1 / numpy.maximum(1.0, off / OUTLIER)
    low, high = values[order].min(), values[order].max()
    return float(min(max(solved[0], low - 0.2), high + 0.2))
