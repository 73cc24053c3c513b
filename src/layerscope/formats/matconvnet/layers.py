"""Converters of MatConvNet's layer types, and a table of them for SimpleNN and for DagNN.

A converter takes the layer and the depth of each input (None if unknown). It returns None for a
layer that it cannot convert exactly; the layer then becomes an op without a rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from msgspec import Struct

from layerscope.codecs.matlab import MatArray
from layerscope.errors import FormatError
from layerscope.formats.matconvnet.fields import (
    MatLayer,
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
AXES = {1: 2, 2: 3, 3: 1, 4: 0}  # MATLAB's height, width, depth, num -> axis of NCHW


class ConvertedLayer(Struct, frozen=True):
    """The op of a layer, the depth of its output, and the names of its arrays as params."""

    op: str
    attributes: object = None
    depth: int | None = None
    reads: int | None = None  # number of inputs that are read, to leave out labels; None for all
    params: tuple[str, ...] = ()
    flat: bool = False  # whether the output is flattened into the depth


Converter = Callable[[MatLayer, Depths], ConvertedLayer | None]


def _checked(layer: MatLayer, n: int, what: str, count: int | None) -> MatArray | None:
    """The n-th array; raises unless it has `count` numbers."""
    array = layer.array(n)
    if array is not None and count is not None and array.elements != count:
        raise FormatError(f"{array.elements} {what}, expected {count}")
    return array


def filters_of(layer: MatLayer) -> tuple[int, int, int, int] | None:
    """Height, width, depth and number of filters, from the array or a DagNN block's `size`."""
    array = layer.array(0)
    sizes = array.shape if array is not None else whole(numbers(layer.fields, "size"), "size")
    return four(sizes) if sizes and 0 not in sizes else None


def _has_bias(layer: MatLayer, count: int) -> bool:
    stored = _checked(layer, 1, "biases", count)
    if layer.params:  # of a DagNN, which may be without values
        return len(layer.params) > 1 and flag(layer.fields, "hasBias", True)
    return stored is not None or (not layer.arrays and flag(layer.fields, "hasBias", True))


def _conv(layer: MatLayer, depths: Depths) -> ConvertedLayer | None:
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
    return ConvertedLayer("conv", attributes, count, params=("weight", "bias"))


def _conv_transpose(layer: MatLayer, depths: Depths) -> ConvertedLayer | None:
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
    return ConvertedLayer("conv_transpose", attributes, count, params=("weight", "bias"))


def _pool(layer: MatLayer, depths: Depths) -> ConvertedLayer | None:
    method = text(layer.fields, "method", "max").lower()
    if method not in ("max", "avg"):
        return None
    window = at.Window(
        pair(layer.fields, "pool", "poolSize"),
        pair(layer.fields, "stride"),
        margins(layer.fields, "pad"),
        (1, 1),
    )
    return ConvertedLayer(f"{method}_pool", at.Pool(window, count_include_pad=False), depths[0])


def _global_pool(layer: MatLayer, depths: Depths) -> ConvertedLayer | None:
    method = text(layer.fields, "method", "avg").lower()
    if method not in ("max", "avg"):
        return None
    return ConvertedLayer(f"global_{method}_pool", at.GlobalPool(), depths[0])


def _relu(layer: MatLayer, depths: Depths) -> ConvertedLayer:
    leak = number(layer.fields, "leak", 0.0)
    options = items(layer.fields.get("opts"))  # older DagNN: {'leak', 0.1}
    for name, value in pairwise(options):
        if name == "leak" and isinstance(value, MatArray):
            leak = (value.numbers or (0.0,))[0]
    if leak > 0:
        return ConvertedLayer("leaky_relu", at.Activation(leak), depths[0])
    return ConvertedLayer("relu", at.Activation(), depths[0])


def _activation(op: str) -> Converter:
    return lambda layer, depths: ConvertedLayer(op, at.Activation(), depths[0])


def _lrn(layer: MatLayer, depths: Depths) -> ConvertedLayer:
    size, kappa, alpha, beta = (*numbers(layer.fields, "param"), *(5, 1, 0.00002, 0.75))[:4]
    (near,) = whole((size,), "param")
    # MatConvNet's alpha multiplies the sum of squares, that of LocalResponseNorm their mean.
    return ConvertedLayer("lrn", at.LocalResponseNorm(near, alpha * near, beta, kappa), depths[0])


def _batch_norm(layer: MatLayer, depths: Depths) -> ConvertedLayer:
    depth = depths[0]
    _checked(layer, 0, "multipliers", depth)
    _checked(layer, 1, "biases", depth)
    _checked(layer, 2, "moments", None if depth is None else 2 * depth)
    attributes = at.BatchNorm(eps=number(layer.fields, "epsilon", 1e-4))
    params = ("weight", "bias", "running_mean", "running_var")
    return ConvertedLayer("batch_norm", attributes, depth, params=params)


def _softmax(layer: MatLayer, depths: Depths) -> ConvertedLayer:
    return ConvertedLayer("softmax", at.Softmax(), depths[0])


LOSSES = {
    "softmaxlog": ("softmax_loss", at.Softmax()), "log": ("log_loss", at.Softmax()),
    "classerror": ("accuracy", at.Softmax()), "topkerror": ("accuracy", at.Softmax()),
    "logistic": ("sigmoid_cross_entropy", None), "hinge": ("hinge_loss", None),
}  # fmt: skip


def _loss(default: str) -> Converter:
    """A loss by its name; labels are left out, as files do not have their sizes."""

    def convert(layer: MatLayer, depths: Depths) -> ConvertedLayer | None:
        found = LOSSES.get(text(layer.fields, "loss", default).lower())
        return ConvertedLayer(*found, depth=1, reads=1) if found else None

    return convert


def _dropout(layer: MatLayer, depths: Depths) -> ConvertedLayer:
    return ConvertedLayer("dropout", at.Dropout(number(layer.fields, "rate", 0.5)), depths[0])


def _concat(layer: MatLayer, depths: Depths) -> ConvertedLayer | None:
    (dim,) = whole((number(layer.fields, "dim", 3),), "dim")
    if dim not in AXES:
        return None
    depth = depths[0]
    if dim == 3:
        given = [each for each in depths if each is not None]
        depth = sum(given) if len(given) == len(depths) else None
    return ConvertedLayer("concat", at.Concat(AXES[dim]), depth)


def _sum(layer: MatLayer, depths: Depths) -> ConvertedLayer:
    return ConvertedLayer("add", None, next((depth for depth in depths if depth is not None), None))


def _scale(layer: MatLayer, depths: Depths) -> ConvertedLayer | None:
    """Scale by a learned value per channel, or by a second input."""
    bias = flag(layer.fields, "hasBias", True)
    if len(depths) == 2 and not bias:
        return ConvertedLayer("mul", None, depths[0])
    stored = layer.array(0)
    if len(depths) > 1 or stored is None or stored.elements != depths[0]:
        return None
    has_bias = bias and _checked(layer, 1, "biases", depths[0]) is not None
    return ConvertedLayer("scale", at.Scale(bias=has_bias), depths[0], params=("weight", "bias"))


def _crop(layer: MatLayer, depths: Depths) -> ConvertedLayer | None:
    offsets = pair(layer.fields, "crop", default=0)
    return ConvertedLayer("crop", at.Crop(2, offsets), depths[0]) if len(depths) == 2 else None


def _reshape(layer: MatLayer, depths: Depths) -> ConvertedLayer | None:
    """To height, width and depth; 0 keeps the size, an empty one is inferred from the others."""
    found: list[float] = list(numbers(layer.fields, "shape", "dims"))
    for value in items(layer.fields.get("shape")):
        size = (value.numbers or (-1,)) if isinstance(value, MatArray) else ()
        found.extend(size)
    if len(found) != 3 or any(size != int(size) or size < -1 for size in found):
        return None
    height, width, depth = map(int, found)
    shape = at.Reshape((0, depth, height, width))
    result = depths[0] if depth == 0 else depth
    return ConvertedLayer("reshape", shape, None if result == -1 else result)


def _flatten(layer: MatLayer, depths: Depths) -> ConvertedLayer | None:
    usual = number(layer.fields, "firstAxis", 1) == 1 and number(layer.fields, "axis", 3) == 3
    return ConvertedLayer("reshape", at.Reshape((0, -1, 1, 1))) if usual else None


def _permute(layer: MatLayer, depths: Depths) -> ConvertedLayer | None:
    order = whole(numbers(layer.fields, "order"), "order")
    if sorted(order) != [1, 2, 3, 4]:
        return None
    nchw = {axis: AXES[order[dim - 1]] for dim, axis in AXES.items()}
    return ConvertedLayer("permute", at.Permute(tuple(nchw[axis] for axis in range(4))))


def _roi_pool(layer: MatLayer, depths: Depths) -> ConvertedLayer | None:
    bins = pair(layer.fields, "subdivisions", default=6)
    usual = text(layer.fields, "method", "max").lower() == "max" and len(depths) == 2
    scale = number(layer.fields, "transform", 1.0)
    flat, depth = flag(layer.fields, "flatten", False), depths[0]
    if flat and depth is not None:
        depth *= bins[0] * bins[1]
    return ConvertedLayer("roi_pool", at.RoIPool(bins, scale), depth, flat=flat) if usual else None


SIMPLE_NN: dict[str, Converter] = {
    "conv": _conv, "convt": _conv_transpose, "pool": _pool, "relu": _relu, "bnorm": _batch_norm,
    "sigmoid": _activation("sigmoid"), "tanh": _activation("tanh"), "normalize": _lrn, "lrn": _lrn,
    "softmax": _softmax, "softmaxloss": _loss("softmaxlog"), "loss": _loss("softmaxlog"),
    "dropout": _dropout,
}  # fmt: skip

DAG_NN: dict[str, Converter] = {
    "dagnn.Conv": _conv, "dagnn.ConvTranspose": _conv_transpose, "dagnn.Pooling": _pool,
    "dagnn.GlobalPooling": _global_pool, "dagnn.ReLU": _relu, "dagnn.BatchNorm": _batch_norm,
    "dagnn.Sigmoid": _activation("sigmoid"), "dagnn.Tanh": _activation("tanh"),
    "dagnn.LRN": _lrn, "dagnn.SoftMax": _softmax, "dagnn.Loss": _loss("softmaxlog"),
    "dagnn.SoftMaxLoss": _loss("softmaxlog"), "dagnn.DropOut": _dropout, "dagnn.Concat": _concat,
    "dagnn.Sum": _sum, "dagnn.Scale": _scale, "dagnn.Crop": _crop, "dagnn.Reshape": _reshape,
    "dagnn.Flatten": _flatten, "dagnn.Permute": _permute, "dagnn.ROIPooling": _roi_pool,
}  # fmt: skip
