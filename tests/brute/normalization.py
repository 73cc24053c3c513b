"""Loops and cases of normalization layers, scale and bias."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

from layerscope.graph import attributes as at
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
from tests.brute.case import MAP, Case
from tests.brute.scalar import Scalar


def values_along(run: Run, name: str, index: Index) -> Scalar:
    """The value of Scale or Bias for an element: learned, or of the second input."""
    a = run.attributes or at.Scale()
    held = run.inputs[1] if name == "given" else run.params[name]
    if not held.shape:
        return held[()]
    first = a.axis % len(run.x.shape)
    return held[index[first : first + len(held.shape)]]


def scale(run: Run) -> list[Array]:
    a: at.Scale = run.attributes or at.Scale()
    by = "given" if len(run.inputs) == 2 else "weight"

    def cell(index: Index) -> Scalar:
        number = run.x[index] * values_along(run, by, index)
        return number + values_along(run, "bias", index) if a.bias else number

    return [fill(run.x.shape, cell)]


def bias(run: Run) -> list[Array]:
    by = "given" if len(run.inputs) == 2 else "bias"
    return [fill(run.x.shape, lambda index: run.x[index] + values_along(run, by, index))]


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


BRUTE: dict[str, Callable[[Run], list[Array]]] = {
    "scale": scale,
    "bias": bias,
    "batch_norm": batch_norm,
    "layer_norm": layer_norm,
    "group_norm": group_norm,
    "instance_norm": instance_norm,
    "rms_norm": rms_norm,
    "lrn": lrn,
    "l2_norm": l2_norm,
}

CASES: list[Case] = [
    Case("batch_norm", None, ((2, 3, 4, 2),)),
    Case("batch_norm", at.BatchNorm(affine=False, eps=1e-3), ((2, 3, 4),), "plain"),
    Case("batch_norm", at.BatchNorm(), ((4, 3),), "matrix"),
    Case("layer_norm", None, ((2, 3, 6),)),
    Case("layer_norm", at.LayerNorm(axis=1), ((2, 3, 4),), "two-axes"),
    Case("layer_norm", at.LayerNorm(bias=False), ((2, 3, 4),), "no-bias"),
    Case("layer_norm", at.LayerNorm(axis=-2, affine=False), ((2, 3, 4),), "plain"),
    Case("group_norm", at.GroupNorm(2), ((2, 4, 3, 2),)),
    Case("group_norm", at.GroupNorm(1), ((2, 4, 3),), "one-group"),
    Case("group_norm", at.GroupNorm(4), ((2, 4, 3, 2),), "instances"),
    Case("group_norm", at.GroupNorm(3, affine=False), ((1, 6, 4),), "plain"),
    Case("lrn", at.LocalResponseNorm(5, 0.3, 0.75, 2.0), ((1, 7, 2, 2),)),
    Case("lrn", at.LocalResponseNorm(4, 0.3, 0.5), ((1, 3, 2, 2),), "even-and-wider-than-channels"),
    Case("lrn", at.LocalResponseNorm(3, 0.5, within_channel=True), ((1, 2, 4, 5),), "within"),
    Case("lrn", at.LocalResponseNorm(3, 0.5, within_channel=True), ((1, 2, 6),), "within-1d"),
    Case("l2_norm", None, ((2, 5, 2, 3),)),
    Case("l2_norm", at.L2Norm(scale=True), ((2, 4, 3),), "scaled"),
    Case("l2_norm", at.L2Norm(scale=True, shared_scale=True), ((2, 4, 3),), "scaled-alike"),
    Case("l2_norm", at.L2Norm(axes=(1, 2, 3), scale=True), ((2, 3, 2, 2),), "across-places"),
    Case("l2_norm", at.L2Norm(axes=(-1,)), ((3, 4),), "last-axis"),
    Case("scale", None, ((2, 3, 4),)),
    Case("scale", at.Scale(bias=True), ((2, 3, 4, 2),), "biased"),
    Case("scale", at.Scale(axis=-1, bias=True), ((2, 3, 4),), "last-axis"),
    Case("instance_norm", None, ((2, 3, 4, 2),)),
    Case("instance_norm", at.InstanceNorm(affine=True, eps=1e-3), ((2, 3, 4),), "affine"),
    Case("instance_norm", at.InstanceNorm(affine=True), ((1, 2, 2, 3, 2),), "3d"),
    Case("rms_norm", None, ((2, 3, 4),)),
    Case("rms_norm", at.RMSNorm(axis=1, eps=1e-3), ((2, 3, 4),), "two-axes"),
    Case("rms_norm", at.RMSNorm(scale=False), ((3, 5),), "plain"),
    Case("scale", at.Scale(axis=0), (MAP, (2, 3)), "given"),
    Case("scale", at.Scale(axis=1, bias=True), (MAP, (3, 5)), "given-and-shifted"),
    Case("scale", None, (MAP, ()), "given-scalar"),
    Case("scale", at.Scale(axis=1, bias=True, axes=2), (MAP,), "two-axes"),
    Case("scale", at.Scale(axis=0, axes=-1), ((2, 3),), "all-axes"),
    Case("scale", at.Scale(axes=0), (MAP,), "one-value"),
    Case("bias", None, (MAP,)),
    Case("bias", at.Bias(axis=-1), (MAP,), "last"),
    Case("bias", at.Bias(axis=2, axes=2), (MAP,), "places"),
    Case("bias", at.Bias(axis=0), (MAP, (2, 3)), "given"),
    Case("instance_norm", at.InstanceNorm(variance=False), (MAP,), "mean-only"),
    Case("layer_norm", at.LayerNorm(1, False, variance=False), (MAP,), "mean-only"),
    Case("batch_norm", None, ((2, 3, 4), (3,), (3,), (3,), (3,)), "given"),
    Case("layer_norm", at.LayerNorm(), ((2, 3, 4), (4,), (4,)), "given"),
    Case("group_norm", at.GroupNorm(2), ((2, 4, 3), (4,), (4,)), "given"),
    Case("instance_norm", at.InstanceNorm(affine=True), ((2, 3, 4), (3,), (3,)), "given"),
    Case("rms_norm", at.RMSNorm(), ((2, 3, 4), (4,)), "given"),
]  # fmt: skip
