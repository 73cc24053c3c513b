"""Features of a row (layers that run as one) from which its time is predicted."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2

from msgspec import Struct, field

from layerscope.graph.attributes import Window
from layerscope.prediction.fusion import contiguous_run
from layerscope.prediction.layout import NONE, Layouts
from layerscope.report import Layer, Report
from layerscope.report.timed import moved_by

AND = " and "  # separates the activation in a kind of row
# Activations that a convolution applies in a further pass over its output, unlike a relu.
AFTERWARDS = {
    **dict.fromkeys(
        ("relu6", "clip", "sigmoid", "tanh", "leaky_relu", "hard_sigmoid"), f"{AND}bounds"
    ),
    "hard_swish": f"{AND}hard_swish",
}


class RowWork(Struct, frozen=True):
    """Kind of a row, its operations and bytes, and its coordinates (logarithms) among its kind."""

    kind: str
    flops: float
    bytes: float
    weight_bytes: float
    coordinates: tuple[float, ...] = field(name="place")  # its name in calibration files


def work_of(
    row: Sequence[Layer], report: Report, readers: dict[str, list[str]], layouts: Layouts = NONE
) -> RowWork:
    """The work of layers that run as one; the layer with most multiply-adds sets the kind."""
    blocked = row[0].name in layouts.blocked
    coordinates: tuple[float, ...]
    main = max(row, key=lambda layer: layer.cost.ops.mac)
    moved = moved_by(row, report, readers)
    size = float(moved.read_bytes + moved.write_bytes)
    weights = float(moved.weight_bytes)
    gemm = main.gemm
    if main.op in ("conv", "conv_transpose") and gemm is not None and main.call is not None:
        return _convolution(row, main, size, weights, layouts)
    if main.op == "attention" and main.call is not None:
        heads = getattr(main.node.attributes, "heads", 1)
        queries, keys = main.call.inputs[0], main.call.inputs[1]
        scores = main.outputs[0].elements // max(queries[-1], 1) * heads * _length(keys)
        coordinates = (_log(scores), _log(main.cost.ops.mac / max(scores, 1)), _log(heads))
        return RowWork("attention", 2.0 * main.cost.ops.mac, size + 12.0 * scores, 0.0, coordinates)
    if gemm is not None:
        kind = "linear" if weights else "matmul"
        # The product with one vector is a kind of its own: reading the weights takes all its time.
        kind = f"{kind} of a vector" if gemm.m * gemm.count == 1 else kind
        coordinates = (_log(gemm.m * gemm.count), _log(gemm.n), _log(gemm.k))
        return RowWork(kind, 2.0 * main.cost.ops.mac, size, weights, coordinates)
    window = getattr(main.node.attributes, "window", None)
    taps = window.positions if isinstance(window, Window) else 1
    if main.op == "permute":
        taps = max(contiguous_run(row), 1)
    ratio = main.outputs[0].elements / max(main.inputs[0].elements if main.inputs else 1, 1)
    coordinates = (_log(size), _log(ratio), _log(taps), _apart(blocked))
    return RowWork(main.op, float(main.cost.ops.flops), size, 0.0, coordinates)


def reorder_of(moved: Sequence[int], blocked: bool) -> RowWork:
    """The work of reordering tensors of so many bytes, out of blocks of channels or into them."""
    coordinates = (_log(sum(moved)), 0.0 if blocked else 1.0)
    return RowWork("layout", 0.0, 2.0 * sum(moved), 0.0, coordinates)


def _apart(blocked: bool) -> float:
    """A coordinate that keeps rows in blocks of channels far from the others."""
    return 0.0 if blocked else 4.0


def _convolution(
    row: Sequence[Layer], main: Layer, size: float, weights: float, layouts: Layouts
) -> RowWork:
    call = main.call
    assert call is not None
    coordinates: tuple[float, ...]
    groups = getattr(main.node.attributes, "groups", 1)
    window: Window = main.node.attributes.window
    channels = call.x[1]
    area, stride = window.positions, window.stride[0]
    images = main.outputs[0].elements // call.y[1]  # output positions of all images
    apart = _apart(main.name in layouts.blocked)
    after = AFTERWARDS.get(row[-1].op, "") if row[-1] is not main else ""
    if groups == channels == call.y[1] and groups > 1:
        flops = 2.0 * images * layouts.filled(main.name, channels) * area
        coordinates = (_log(images), _log(channels), _log(area), _log(stride), apart)
        return RowWork(f"depthwise{after}", flops, size, weights, coordinates)
    plain = layouts.reads_plain(channels)
    kind = "grouped" if groups > 1 else "stem" if plain else "conv"
    if kind == "conv":
        kind = "conv 1x1" if area == 1 else "conv"
    wide, deep = call.y[1], channels // groups * area
    if groups == 1:
        wide = layouts.filled(main.name, wide)
        deep = deep if plain else layouts.filled(main.name, channels) * area
    flops = 2.0 * images * wide * deep
    coordinates = (_log(images), _log(call.y[1] // groups), _log(channels // groups), _log(area),
             _log(stride), _log(call.y[-1]), _log(groups), apart)  # fmt: skip
    return RowWork(f"{kind}{after}", flops, size, weights, coordinates)


def _length(shape: Sequence[int]) -> int:
    return shape[-2] if len(shape) > 1 else 1


def _log(value: float) -> float:
    return log2(max(value, 1e-9))
