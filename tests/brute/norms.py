"""Normalisations, each in the algorithm that the table of counts implies."""

from __future__ import annotations

import math
from itertools import product

from layerscope.graph.attributes import (
    BatchNorm,
    GroupNorm,
    InstanceNorm,
    L2Norm,
    LayerNorm,
    LocalResponseNorm,
    RMSNorm,
)
from tests.brute.arrays import Array, Index, Run, accumulate, fill, split_axes, total
from tests.brute.scalar import Scalar


def batch_norm(run: Run) -> list[Array]:
    """Statistics and affine part are constants at inference: folded beforehand, uncounted."""
    a: BatchNorm = run.attributes or BatchNorm()
    folded = {}
    for channel in range(run.x.shape[1]):
        at = (channel,)
        root = math.sqrt(run.params["running_var"][at].value + a.eps)
        factor = (run.params["weight"][at].value if a.affine else 1.0) / root
        shift = run.params["bias"][at].value if a.affine else 0.0
        folded[channel] = (factor, shift - run.params["running_mean"][at].value * factor)

    def cell(index: Index) -> Scalar:
        factor, shift = folded[index[1]]
        return run.x[index] * factor + shift

    return [fill(run.x.shape, cell)]


def _standardised(
    run: Run, group: list[Index], eps: float, *, variance: bool = True
) -> dict[Index, Scalar]:
    """Two passes with accumulators from nought: the mean, then the deviations and their squares.

    Per element: sum 1, deviation 1, square 1, sum 1, product with the inverse root 1.
    Per group: two divisions by n, epsilon, one inverse root.
    """
    mean = accumulate(run.number(0.0), (run.x[index] for index in group)) / float(len(group))
    deviations = {index: run.x[index] - mean for index in group}
    if not variance:
        return deviations
    squares = (deviation * deviation for deviation in deviations.values())
    spread = accumulate(run.number(0.0), squares) / float(len(group))
    inverse = (spread + eps).apply(lambda v: 1 / math.sqrt(v))
    return {index: deviation * inverse for index, deviation in deviations.items()}


def layer_norm(run: Run) -> list[Array]:
    a: LayerNorm = run.attributes or LayerNorm()
    rank = len(run.x.shape)
    axis = a.axis % rank
    cells: dict[Index, Scalar] = {}
    for group in split_axes(run.x.shape, range(axis, rank)):
        for index, number in _standardised(run, group, a.eps, variance=a.variance).items():
            if a.affine:
                number = number * run.params["weight"][index[axis:]]
                if a.bias:
                    number = number + run.params["bias"][index[axis:]]
            cells[index] = number
    return [Array(run.x.shape, cells)]


def group_norm(run: Run) -> list[Array]:
    a: GroupNorm = run.attributes
    batch, channels, *spatial = run.x.shape
    size = channels // a.groups
    cells: dict[Index, Scalar] = {}
    for n, g in product(range(batch), range(a.groups)):
        members = range(g * size, (g + 1) * size)
        group = [(n, c, *at) for c in members for at in product(*map(range, spatial))]
        for index, number in _standardised(run, group, a.eps).items():
            if a.affine:
                at = (index[1],)
                number = number * run.params["weight"][at] + run.params["bias"][at]
            cells[index] = number
    return [Array(run.x.shape, cells)]


def instance_norm(run: Run) -> list[Array]:
    a: InstanceNorm = run.attributes or InstanceNorm()
    cells: dict[Index, Scalar] = {}
    for group in split_axes(run.x.shape, range(2, len(run.x.shape))):
        for index, number in _standardised(run, group, a.eps, variance=a.variance).items():
            if a.affine:
                at = (index[1],)
                number = number * run.params["weight"][at] + run.params["bias"][at]
            cells[index] = number
    return [Array(run.x.shape, cells)]


def rms_norm(run: Run) -> list[Array]:
    """x / √(ε + Σ x² / n), the sum from an accumulator that starts at nought."""
    a: RMSNorm = run.attributes or RMSNorm()
    x = run.x
    rank = len(x.shape)
    axis = a.axis % rank
    cells: dict[Index, Scalar] = {}
    for group in split_axes(x.shape, range(axis, rank)):
        squares = (x[index] * x[index] for index in group)
        mean = accumulate(run.number(0.0), squares) / float(len(group))
        inverse = (mean + a.eps).apply(lambda v: 1 / math.sqrt(v))
        for index in group:
            cells[index] = x[index] * inverse
            if a.scale:
                cells[index] = cells[index] * run.params["weight"][index[axis:]]
    return [Array(x.shape, cells)]


def lrn(run: Run) -> list[Array]:
    """x / (k + α/n · Σ of n squares)^β; squares are made once, missing neighbours are noughts."""
    a: LocalResponseNorm = run.attributes
    x = run.x
    squares = fill(x.shape, lambda index: x[index] * x[index])
    reach = range(-((a.size - 1) // 2), a.size - (a.size - 1) // 2)

    def neighbours(index: Index) -> list[Scalar]:
        if not a.within_channel:
            n, channel, *at = index
            near = [(n, channel + r, *at) for r in reach]
            return [squares.get(place, run.number(0.0)) for place in near]
        steps = product(reach, repeat=len(x.shape) - 2)
        around = [tuple(i + r for i, r in zip(index[2:], step, strict=True)) for step in steps]
        return [squares.get((*index[:2], *at), run.border()) for at in around]

    def cell(index: Index) -> Scalar:
        near = neighbours(index)
        return x[index] / (total(near) * (a.alpha / len(near)) + a.k) ** a.beta

    return [fill(x.shape, cell)]


def l2_norm(run: Run) -> list[Array]:
    """x / √(ε + Σ x²), the sum from an accumulator that starts at epsilon."""
    a: L2Norm = run.attributes or L2Norm()
    x = run.x
    cells: dict[Index, Scalar] = {}
    for group in split_axes(x.shape, [axis % len(x.shape) for axis in a.axes]):
        squares = (x[index] * x[index] for index in group)
        length = accumulate(run.number(a.eps), squares).apply(math.sqrt)
        for index in group:
            cells[index] = x[index] / length
            if a.scale:
                at = (0,) if a.shared_scale else (index[1],)
                cells[index] = cells[index] * run.params["weight"][at]
    return [Array(x.shape, cells)]


BRUTE = {
    "batch_norm": batch_norm,
    "layer_norm": layer_norm,
    "group_norm": group_norm,
    "instance_norm": instance_norm,
    "rms_norm": rms_norm,
    "lrn": lrn,
    "l2_norm": l2_norm,
}
