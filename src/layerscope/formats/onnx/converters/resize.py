"""Resize, upsampling and sampling at computed positions."""

from __future__ import annotations

from math import floor
from typing import Unpack

from msgspec.structs import replace

from layerscope.errors import ShapeError
from layerscope.formats.onnx.node import Converter, ConverterTable, OnnxNode
from layerscope.formats.onnx.node_view import EstimateOptions
from layerscope.formats.onnx.tensor_info import NeedsValue
from layerscope.graph import attributes as at
from layerscope.graph.types import Shape
from layerscope.ops.spec import axis_of

MODES: dict[str, at.Sampling] = {
    "nearest": "nearest",
    "linear": "bilinear",
    "bilinear": "bilinear",
    "cubic": "bicubic",
    "bicubic": "bicubic",  # GridSample before opset 20
}


def _mode(node: OnnxNode, default: str) -> at.Sampling:
    """The interpolation."""
    mode = node.str_attr("mode", default)
    if mode not in MODES:
        raise ShapeError(f"mode {mode!r}, expected {', '.join(MODES)}")
    return MODES[mode]


def resize(node: OnnxNode) -> None:
    """Resize by scales or to sizes; Upsample by scales."""
    x = node.shape("X")
    scales, sizes = _scales_or_sizes(node)
    axes = node.ints_attr("axes") or tuple(range(len(x)))
    axes = tuple(axis_of(axis, len(x)) for axis in axes)
    wanted = list(x)
    given = sizes if sizes is not None else scales
    if given is None:
        raise NeedsValue("neither scales nor sizes are given")
    if len(given) != len(axes):
        raise ShapeError(f"{len(given)} sizes or scales for {len(axes)} axes")
    if sizes is not None:
        policy = node.str_attr("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            ratios = [size / x[axis] for size, axis in zip(sizes, axes, strict=True)]
            ratio = min(ratios) if policy == "not_larger" else max(ratios)
            sizes = tuple(floor(ratio * x[axis] + 0.5) for axis in axes)
        for axis, size in zip(axes, sizes, strict=True):
            wanted[axis] = int(size)
    else:
        for axis, scale in zip(axes, given, strict=True):
            wanted[axis] = floor(x[axis] * scale)
    resize_to(node, tuple(wanted))


def resize_to(node: OnnxNode, wanted: Shape, **more: Unpack[EstimateOptions]) -> None:
    """Resize to a shape; `more` are options of `emit`."""
    x = node.shape("X")
    mode = _mode(node, "nearest")
    corners = node.str_attr("coordinate_transformation_mode", "half_pixel") == "align_corners"
    if len(x) >= 3 and wanted[:2] == x[:2]:
        attrs = at.Resize(mode, wanted[2:], align_corners=corners)
        node.emit("resize", (node.input("X"),), attrs, **more)
        return
    if wanted == x:
        node.emit("identity", (node.input("X"),), outputs=node.outputs[:1], **more)
        return
    _any_axes(node, wanted, at.Resize(mode, (), align_corners=corners), more)


def _any_axes(node: OnnxNode, wanted: Shape, how: at.Resize, more: EstimateOptions) -> None:
    """Resize of other than the last axes, which are moved to the end and back."""
    x = node.shape("X")
    moved = [n for n in range(len(x)) if wanted[n] != x[n]]
    kept = [n for n in range(len(x)) if n not in moved]
    lead = tuple(x[n] for n in kept)
    order = (*kept, *moved)
    count = 1
    for size in lead:
        count *= size
    y = node.emit("permute", (node.input("X"),), at.Permute(order), part="axes")[0]
    flat = at.Reshape((1, count, *(x[n] for n in moved)))
    y = node.emit("reshape", (y,), flat, part="flat")[0]
    attrs = replace(how, size=tuple(wanted[n] for n in moved))
    y = node.emit("resize", (y,), attrs, part="resize", **more)[0]
    full = at.Reshape((*lead, *(wanted[n] for n in moved)))
    y = node.emit("reshape", (y,), full, part="full")[0]
    back = tuple(order.index(n) for n in range(len(x)))
    node.emit("permute", (y,), at.Permute(back))


Floats = tuple[float, ...] | None


def _scales_or_sizes(node: OnnxNode) -> tuple[Floats, tuple[int, ...] | None]:
    """Scales or sizes, from attributes or inputs by version; an empty input counts as missing."""
    if node.op == "Upsample" or node.opset < 11:
        if "scales" in node.attrs:
            return tuple(float(v) for v in node.attrs["scales"]), None
        if "height_scale" in node.attrs:
            return (1.0, 1.0, node.float_attr("height_scale"), node.float_attr("width_scale")), None
        return tuple(float(v) for v in node.need_value(1).values), None  # scales
    node.mark_constant("roi")
    if node.has("sizes"):
        sizes = node.need_value("sizes")
        if sizes.values:
            return None, sizes.ints()
    if node.has("scales"):
        scales = node.need_value("scales")
        if scales.values:
            return tuple(float(v) for v in scales.values), None
    raise NeedsValue("neither scales nor sizes are given")


def grid_sample(node: OnnxNode) -> None:
    """GridSample."""
    mode = _mode(node, "linear")
    node.emit("grid_sample", (node.input("X"), node.input(1)), at.GridSample(mode))


def shuffle(node: OnnxNode) -> None:
    """DepthToSpace, SpaceToDepth."""
    attrs = at.PixelShuffle(node.int_attr("blocksize", 1), inverse=node.op == "SpaceToDepth")
    node.emit("pixel_shuffle", (node.input(),), attrs)


def unpool(node: OnnxNode) -> None:
    """MaxUnpool: elements back at the positions of their maxima."""
    x = node.shape("X")
    kernel = node.ints_attr("kernel_shape")
    rank = len(kernel)
    strides, pads = (
        node.ints_attr("strides") or (1,) * rank,
        node.ints_attr("pads") or (0,) * (2 * rank),
    )
    if node.has("output_shape"):
        sizes = node.need_value("output_shape").ints()[-rank:]
    else:
        sizes = tuple(
            (x[n + 2] - 1) * strides[n] + kernel[n] - pads[n] - pads[n + rank] for n in range(rank)
        )
    node.emit("unpool", (node.input("X"), node.input("I")), at.Unpool(size=sizes))


def affine_grid(node: OnnxNode) -> None:
    """AffineGrid."""
    attrs = at.AffineGrid(node.need_value("size").ints(), bool(node.int_attr("align_corners")))
    node.emit("affine_grid", (node.input("theta"),), attrs)


OPERATORS: ConverterTable = {
    ("", "Resize"): Converter(resize, "X roi scales sizes"),
    ("", "Upsample"): Converter(resize, "X scales"),
    ("", "GridSample"): Converter(grid_sample, "X grid"),
    ("com.microsoft", "GridSample"): Converter(grid_sample, "X Grid"),
    ("", "DepthToSpace"): Converter(shuffle, "input"),
    ("", "SpaceToDepth"): Converter(shuffle, "input"),
    ("", "MaxUnpool"): Converter(unpool, "X I output_shape"),
    ("", "AffineGrid"): Converter(affine_grid, "theta size"),
}
