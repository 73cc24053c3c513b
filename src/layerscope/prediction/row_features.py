"""What a row has to do, in the few figures that its time depends on."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2

from msgspec import Struct

from layerscope.graph.attributes import Window
from layerscope.prediction.fusing import run_of
from layerscope.prediction.layout import NONE, Layouts
from layerscope.report import Layer, Report
from layerscope.report.timed import moved_by

AND = " and "  # before what else a kind of row does
# What a convolution does to its results in a further pass; a relu it does as it stores them.
AFTERWARDS = {
    **dict.fromkeys(
        ("relu6", "clip", "sigmoid", "tanh", "leaky_relu", "hard_sigmoid"), f"{AND}bounds"
    ),
    "hard_swish": f"{AND}hard_swish",
}


class Work(Struct, frozen=True):
    """A kind of row, what it computes and moves, and where among its kind it lies (logarithms)."""

    kind: str
    flops: float
    bytes: float
    weight_bytes: float
    place: tuple[float, ...]


def work_of(
    row: Sequence[Layer], report: Report, readers: dict[str, list[str]], layouts: Layouts = NONE
) -> Work:
    """The work of layers that run as one; the first that has products tells the kind."""
    blocked = row[0].name in layouts.blocked
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
        place = (_log(scores), _log(main.cost.ops.mac / max(scores, 1)), _log(heads))
        return Work("attention", 2.0 * main.cost.ops.mac, size + 12.0 * scores, 0.0, place)
    if gemm is not None:
        kind = "linear" if weights else "matmul"
        # One vector is a product of its own: all it does is read the weights.
        kind = f"{kind} of a vector" if gemm.m * gemm.count == 1 else kind
        place = (_log(gemm.m * gemm.count), _log(gemm.n), _log(gemm.k))
        return Work(kind, 2.0 * main.cost.ops.mac, size, weights, place)
    window = getattr(main.node.attributes, "window", None)
    taps = window.positions if isinstance(window, Window) else 1
    if main.op == "permute":
        taps = max(run_of(row), 1)
    ratio = main.outputs[0].elements / max(main.inputs[0].elements if main.inputs else 1, 1)
    lies = (_log(size), _log(ratio), _log(taps), _apart(blocked))
    return Work(main.op, float(main.cost.ops.flops), size, 0.0, lies)


def reorder_of(moved: Sequence[int], blocked: bool) -> Work:
    """The work of giving tensors of so many bytes another layout, out of blocks or into them."""
    place = (_log(sum(moved)), 0.0 if blocked else 1.0)
    return Work("layout", 0.0, 2.0 * sum(moved), 0.0, place)


def _apart(blocked: bool) -> float:
    """A place on an axis along which what runs in blocks of channels lies far from the rest."""
    return 0.0 if blocked else 4.0


def _convolution(
    row: Sequence[Layer], main: Layer, size: float, weights: float, layouts: Layouts
) -> Work:
    call = main.call
    assert call is not None
    groups = getattr(main.node.attributes, "groups", 1)
    window: Window = main.node.attributes.window
    channels = call.x[1]
    area, stride = window.positions, window.stride[0]
    images = main.outputs[0].elements // call.y[1]  # positions of all images
    apart = _apart(main.name in layouts.blocked)
    after = AFTERWARDS.get(row[-1].op, "") if row[-1] is not main else ""
    if groups == channels == call.y[1] and groups > 1:
        flops = 2.0 * images * layouts.filled(main.name, channels) * area
        lies = (_log(images), _log(channels), _log(area), _log(stride), apart)
        return Work(f"depthwise{after}", flops, size, weights, lies)
    plain = layouts.reads_plain(channels)
    kind = "grouped" if groups > 1 else "stem" if plain else "conv"
    if kind == "conv":
        kind = "conv 1x1" if area == 1 else "conv"
    wide, deep = call.y[1], channels // groups * area
    if groups == 1:
        wide = layouts.filled(main.name, wide)
        deep = deep if plain else layouts.filled(main.name, channels) * area
    flops = 2.0 * images * wide * deep
    place = (_log(images), _log(call.y[1] // groups), _log(channels // groups), _log(area),
             _log(stride), _log(call.y[-1]), _log(groups), apart)  # fmt: skip
    return Work(f"{kind}{after}", flops, size, weights, place)


def _length(shape: Sequence[int]) -> int:
    return shape[-2] if len(shape) > 1 else 1


def _log(value: float) -> float:
    return log2(max(value, 1e-9))
