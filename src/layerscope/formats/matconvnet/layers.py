"""MatConvNet's layers as ops. One function a kind, and a table for each of the two wrappers.

A function is given the layer and the depth of each input, None where it is not known; it returns
None for what it cannot tell exactly, which is then an op without a rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from msgspec import Struct

from layerscope.codecs.matlab import Array
from layerscope.errors import FormatError
from layerscope.formats.matconvnet.fields import (
    Layer,
    flag,
    four,
    items,
    margins,
    number,
    numbers,
    pair,
    text,
    whole,
)
from layerscope.graph import attributes as at

Depths = Sequence[int | None]
AXES = {1: 2, 2: 3, 3: 1, 4: 0}  # MATLAB's height, width, depth, num -> ours


class Made(Struct, frozen=True):
    """The op of a layer, the depth of its output, and what its arrays are called by the op."""

    op: str
    attributes: Any = None
    depth: int | None = None
    reads: int | None = None  # of the inputs, the first so many; None for all: labels are left out
    params: tuple[str, ...] = ()
    flat: bool = False  # whether all positions are then moved into the depth


Maker = Callable[[Layer, Depths], Made | None]


def _checked(layer: Layer, n: int, what: str, count: int | None) -> Array | None:
    """The n-th array, if it has as many numbers as it should."""
    array = layer.array(n)
    if array is not None and count is not None and array.elements != count:
        raise FormatError(f"{array.elements} {what}, expected {count}")
    return array


def filters_of(layer: Layer) -> tuple[int, int, int, int] | None:
    """Height, width, depth and number; the block of a DagNN tells them if the array is missing."""
    array = layer.array(0)
    sizes = array.shape if array is not None else whole(numbers(layer.fields, "size"), "size")
    return four(sizes) if sizes and 0 not in sizes else None


def _has_bias(layer: Layer, count: int) -> bool:
    stored = _checked(layer, 1, "biases", count)
    if layer.params:  # of a DagNN: there may be no values yet
        return len(layer.params) > 1 and flag(layer.fields, "hasBias", True)
    return stored is not None or (not layer.arrays and flag(layer.fields, "hasBias", True))


def _conv(layer: Layer, depths: Depths) -> Made | None:
    filters = filters_of(layer)
    if filters is None:
        return None
    height, width, depth, count = filters
    given = depths[0]
    if given is not None and given % depth:
        raise FormatError(f"filters of depth {depth} over data of depth {given}")
    window = at.Window(
        (height, width),
        pair(layer.fields, "stride"),
        margins(layer.fields, "pad"),
        pair(layer.fields, "dilate", "dilation"),
    )
    groups = given // depth if given is not None else 1
    attributes = at.Conv(window, count, groups, _has_bias(layer, count))
    return Made("conv", attributes, count, params=("weight", "bias"))


def _conv_transpose(layer: Layer, depths: Depths) -> Made | None:
    filters = filters_of(layer)
    if filters is None:
        return None
    height, width, each, depth = filters
    if depths[0] not in (None, depth):
        raise FormatError(f"{depth} filters over data of depth {depths[0]}, expected as many")
    groups = whole(numbers(layer.fields, "numGroups", "numgroups") or (1,), "numGroups")[0]
    window = at.Window(
        (height, width), pair(layer.fields, "upsample"), margins(layer.fields, "crop"), (1, 1)
    )
    count = each * groups
    attributes = at.TransposedConv(window, count, groups, _has_bias(layer, count))
    return Made("conv_transpose", attributes, count, params=("weight", "bias"))


def _pool(layer: Layer, depths: Depths) -> Made | None:
    method = text(layer.fields, "method", "max").lower()
    if method not in ("max", "avg"):
        return None
    window = at.Window(
        pair(layer.fields, "pool", "poolSize"),
        pair(layer.fields, "stride"),
        margins(layer.fields, "pad"),
        (1, 1),
    )
    return Made(f"{method}_pool", at.Pool(window, count_include_pad=False), depths[0])


def _global_pool(layer: Layer, depths: Depths) -> Made | None:
    method = text(layer.fields, "method", "avg").lower()
    known = method in ("max", "avg")
    return Made(f"global_{method}_pool", at.GlobalPool(), depths[0]) if known else None


def _relu(layer: Layer, depths: Depths) -> Made:
    leak = number(layer.fields, "leak", 0.0)
    options = items(layer.fields.get("opts"))  # older DagNN: {'leak', 0.1}
    for name, value in pairwise(options):
        if name == "leak" and isinstance(value, Array):
            leak = (value.numbers or (0.0,))[0]
    if leak > 0:
        return Made("leaky_relu", at.Activation(leak), depths[0])
    return Made("relu", at.Activation(), depths[0])


def _activation(op: str) -> Maker:
    return lambda layer, depths: Made(op, at.Activation(), depths[0])


def _lrn(layer: Layer, depths: Depths) -> Made:
    size, kappa, alpha, beta = (*numbers(layer.fields, "param"), *(5, 1, 0.00002, 0.75))[:4]
    (near,) = whole((size,), "param")
    # here alpha multiplies the sum of squares, elsewhere their mean
    return Made("lrn", at.LocalResponseNorm(near, alpha * near, beta, kappa), depths[0])


def _batch_norm(layer: Layer, depths: Depths) -> Made:
    known = depths[0]
    _checked(layer, 0, "multipliers", known)
    _checked(layer, 1, "biases", known)
    _checked(layer, 2, "moments", None if known is None else 2 * known)
    attributes = at.BatchNorm(eps=number(layer.fields, "epsilon", 1e-4))
    params = ("weight", "bias", "running_mean", "running_var")
    return Made("batch_norm", attributes, known, params=params)


def _softmax(layer: Layer, depths: Depths) -> Made:
    return Made("softmax", at.Softmax(), depths[0])


LOSSES = {
    "softmaxlog": ("softmax_loss", at.Softmax()), "log": ("log_loss", at.Softmax()),
    "classerror": ("accuracy", at.Softmax()), "topkerror": ("accuracy", at.Softmax()),
    "logistic": ("sigmoid_cross_entropy", None), "hinge": ("hinge_loss", None),
}  # fmt: skip


def _loss(default: str) -> Maker:
    """A loss by its name; labels, whose sizes no file tells, are not among what it reads."""

    def make(layer: Layer, depths: Depths) -> Made | None:
        found = LOSSES.get(text(layer.fields, "loss", default).lower())
        return Made(*found, depth=1, reads=1) if found else None

    return make


def _dropout(layer: Layer, depths: Depths) -> Made:
    return Made("dropout", at.Dropout(number(layer.fields, "rate", 0.5)), depths[0])


def _concat(layer: Layer, depths: Depths) -> Made | None:
    (dim,) = whole((number(layer.fields, "dim", 3),), "dim")
    if dim not in AXES:
        return None
    depth = depths[0]
    if dim == 3:
        told = [each for each in depths if each is not None]
        depth = sum(told) if len(told) == len(depths) else None
    return Made("concat", at.Concat(AXES[dim]), depth)


def _sum(layer: Layer, depths: Depths) -> Made:
    return Made("add", None, next((depth for depth in depths if depth is not None), None))


def _scale(layer: Layer, depths: Depths) -> Made | None:
    """By a learned value per channel, or by a second input."""
    bias = flag(layer.fields, "hasBias", True)
    if len(depths) == 2 and not bias:
        return Made("mul", None, depths[0])
    stored = layer.array(0)
    if len(depths) > 1 or stored is None or stored.elements != depths[0]:
        return None
    has_bias = bias and _checked(layer, 1, "biases", depths[0]) is not None
    return Made("scale", at.Scale(bias=has_bias), depths[0], params=("weight", "bias"))


def _crop(layer: Layer, depths: Depths) -> Made | None:
    offsets = pair(layer.fields, "crop", default=0)
    return Made("crop", at.Crop(2, offsets), depths[0]) if len(depths) == 2 else None


def _reshape(layer: Layer, depths: Depths) -> Made | None:
    """Height, width and depth, of which 0 keeps what is there and an empty one takes the rest."""
    found: list[float] = list(numbers(layer.fields, "shape", "dims"))
    for value in items(layer.fields.get("shape")):
        size = (value.numbers or (-1,)) if isinstance(value, Array) else ()
        found.extend(size)
    if len(found) != 3 or any(size != int(size) or size < -1 for size in found):
        return None
    height, width, depth = map(int, found)
    known = depths[0] if depth == 0 else depth
    return Made("reshape", at.Reshape((0, depth, height, width)), None if known == -1 else known)


def _flatten(layer: Layer, depths: Depths) -> Made | None:
    usual = number(layer.fields, "firstAxis", 1) == 1 and number(layer.fields, "axis", 3) == 3
    return Made("reshape", at.Reshape((0, -1, 1, 1))) if usual else None


def _permute(layer: Layer, depths: Depths) -> Made | None:
    order = whole(numbers(layer.fields, "order"), "order")
    if sorted(order) != [1, 2, 3, 4]:
        return None
    ours = {axis: AXES[order[dim - 1]] for dim, axis in AXES.items()}
    return Made("permute", at.Permute(tuple(ours[axis] for axis in range(4))))


def _roi_pool(layer: Layer, depths: Depths) -> Made | None:
    bins = pair(layer.fields, "subdivisions", default=6)
    usual = text(layer.fields, "method", "max").lower() == "max" and len(depths) == 2
    scale = number(layer.fields, "transform", 1.0)
    flat, depth = flag(layer.fields, "flatten", False), depths[0]
    if flat and depth is not None:
        depth *= bins[0] * bins[1]
    return Made("roi_pool", at.RoIPool(bins, scale), depth, flat=flat) if usual else None


SIMPLE: dict[str, Maker] = {
    "conv": _conv, "convt": _conv_transpose, "pool": _pool, "relu": _relu, "bnorm": _batch_norm,
    "sigmoid": _activation("sigmoid"), "tanh": _activation("tanh"), "normalize": _lrn, "lrn": _lrn,
    "softmax": _softmax, "softmaxloss": _loss("softmaxlog"), "loss": _loss("softmaxlog"),
    "dropout": _dropout,
}  # fmt: skip

DAG: dict[str, Maker] = {
    "dagnn.Conv": _conv, "dagnn.ConvTranspose": _conv_transpose, "dagnn.Pooling": _pool,
    "dagnn.GlobalPooling": _global_pool, "dagnn.ReLU": _relu, "dagnn.BatchNorm": _batch_norm,
    "dagnn.Sigmoid": _activation("sigmoid"), "dagnn.Tanh": _activation("tanh"),
    "dagnn.LRN": _lrn, "dagnn.SoftMax": _softmax, "dagnn.Loss": _loss("softmaxlog"),
    "dagnn.SoftMaxLoss": _loss("softmaxlog"), "dagnn.DropOut": _dropout, "dagnn.Concat": _concat,
    "dagnn.Sum": _sum, "dagnn.Scale": _scale, "dagnn.Crop": _crop, "dagnn.Reshape": _reshape,
    "dagnn.Flatten": _flatten, "dagnn.Permute": _permute, "dagnn.ROIPooling": _roi_pool,
}  # fmt: skip
