"""Operators whose output shapes depend on run-time data, by the shapes that the file declares."""

from __future__ import annotations

from collections.abc import Callable

from layerscope.formats.onnx.converters.reduction import KINDS
from layerscope.formats.onnx.converters.resize import resize_to
from layerscope.formats.onnx.node import OnnxNode
from layerscope.graph import attributes as at
from layerscope.graph.types import Shape, elements
from layerscope.ops.spec import axis_of

Shapes = list[Shape]


def convert_by_declared(node: OnnxNode) -> bool:
    """Whether a node was converted by the declared shapes of its outputs."""
    convert = BY_SHAPES.get(node.op) if not node.domain else None
    if convert is None or node.unknown_shape:
        return False
    shapes = [node.declared_output(n) for n, name in enumerate(node.outputs) if name]
    declared = [shape for shape in shapes if shape is not None]
    if not declared or len(declared) != len(node.outputs):
        return False
    return convert(node, declared)


def _reshape(node: OnnxNode, shapes: Shapes) -> bool:
    if elements(shapes[0]) != elements(node.shape()):
        return False
    node.emit("reshape", (node.input(),), at.Reshape(shapes[0]), **node.declared_options(0))
    return True


def _expand(node: OnnxNode, shapes: Shapes) -> bool:
    node.emit("expand", (node.input(),), at.Expand(shapes[0]), **node.declared_options(0))
    return True


def _copy(node: OnnxNode, shapes: Shapes) -> bool:
    attrs = at.CustomCost(tuple(shapes), (node.dtype(),) * len(shapes))
    node.emit_custom((node.input(),), attrs, **node.declared_options(0))
    return True


def _range(node: OnnxNode, shapes: Shapes) -> bool:
    node.emit_shaped("range", (), shapes, (node.dtype(),), **node.declared_options(0))
    return True


def _constant(node: OnnxNode, shapes: Shapes) -> bool:
    node.emit_shaped("constant", (), shapes, (node.declared_dtype(0),), **node.declared_options(0))
    return True


def _top_k(node: OnnxNode, shapes: Shapes) -> bool:
    axis = node.int_attr("axis", -1)
    k = shapes[0][axis_of(axis, len(shapes[0]))]
    node.emit("top_k", (node.input(),), at.TopK(k, axis), **node.declared_options(0))
    return True


def _one_hot(node: OnnxNode, shapes: Shapes) -> bool:
    axis = node.int_attr("axis", -1)
    attrs = at.OneHot(shapes[0][axis_of(axis, len(shapes[0]))], axis)
    y = node.emit("one_hot", (node.input(),), attrs, **node.declared_options(0))[0]
    y.dtype = node.dtype("values")
    return True


def _reduce(node: OnnxNode, shapes: Shapes) -> bool:
    """Reduced are axes that the output lacks or has with one element.

    Which of several axes of equal size is reduced makes no difference to the figures.
    """
    x, y, keep = node.shape(), shapes[0], bool(node.int_attr("keepdims", 1))
    if keep:
        axes = tuple(n for n, size in enumerate(y) if size == 1 and x[n] != 1)
        if len(y) != len(x):
            return False
    else:
        rest, gone = list(y), []
        for n, size in enumerate(x):
            if rest and rest[0] == size and len(rest) <= len(x) - n:
                rest.pop(0)
            else:
                gone.append(n)
        if rest:
            return False
        axes = tuple(gone)
    if not axes:
        return y == x and _copy(node, shapes)
    node.emit(
        KINDS[node.op], (node.input(),), at.Reduce(axes, keep=keep), **node.declared_options(0)
    )
    return True


def _resize(node: OnnxNode, shapes: Shapes) -> bool:
    if len(shapes[0]) != len(node.shape()):
        return False
    resize_to(node, shapes[0], **node.declared_options(0))
    return True


def _unpool(node: OnnxNode, shapes: Shapes) -> bool:
    attrs = at.Unpool(size=shapes[0][2:])
    node.emit("unpool", (node.input(), node.input(1)), attrs, **node.declared_options(0))
    return True


def _affine_grid(node: OnnxNode, shapes: Shapes) -> bool:
    size = (node.shape()[0], 1, *shapes[0][1:-1])
    attrs = at.AffineGrid(size, bool(node.int_attr("align_corners")))
    node.emit("affine_grid", (node.input(),), attrs, **node.declared_options(0))
    return True


BY_SHAPES: dict[str, Callable[[OnnxNode, Shapes], bool]] = {
    **dict.fromkeys(("Reshape", "Squeeze", "Unsqueeze", "Flatten"), _reshape),
    **dict.fromkeys(("Slice", "Split", "Tile", "Pad", "CenterCropPad"), _copy),
    **dict.fromkeys(("ConstantOfShape", "HannWindow", "HammingWindow", "BlackmanWindow",
                     "MelWeightMatrix"), _constant),
    **dict.fromkeys(KINDS, _reduce),
    **dict.fromkeys(("Resize", "Upsample"), _resize),
    "Expand": _expand, "Range": _range, "TopK": _top_k, "OneHot": _one_hot, "MaxUnpool": _unpool,
    "AffineGrid": _affine_grid,
}  # fmt: skip
