"""Concat, Split and Slice."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.arrays import SmallArray, parts, slices
from layerscope.formats.onnx.node import Converter, ConverterTable, OnnxNode
from layerscope.graph import attributes as at
from layerscope.graph.types import elements
from layerscope.ops.spec import axis_of


def concat(node: OnnxNode) -> None:
    """Concat; parts without elements are left out, as engines do."""
    tensors = node.given()
    kept = [each for each in tensors if each.shape is None or elements(each.shape)] or tensors[:1]
    node.emit("concat", kept, at.Concat(node.int_attr("axis", 1)))


def split(node: OnnxNode) -> None:
    """Split."""
    x = node.shape("input")
    axis = axis_of(node.int_attr("axis"), len(x))
    sizes = node.need_value("split").ints() if node.has("split") else node.ints_attr("split")
    count = len(node.outputs)
    cut = parts(x[axis], sizes, node.int_attr("num_outputs", count))
    if sum(cut) != x[axis] or min(cut) < 0 or len(cut) != count:
        raise ShapeError(f"an axis of {x[axis]} cut into {cut}, {count} outputs")
    node.emit("split", (node.input("input"),), at.Split(axis, cut))


def slice_(node: OnnxNode) -> None:
    """Slice."""
    x = node.shape("data")
    more: list[SmallArray | None] = []
    if "starts" not in node.attrs:  # since opset 10
        names = ("starts", "ends", "axes", "steps")
        more = [node.need_value(name) if node.has(name) else None for name in names]
    axes, starts, ends, steps = slices(node.attrs, more, len(x))
    axes = tuple(axis_of(axis, len(x)) for axis in axes)
    shape = list(x)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        shape[axis] = len(range(shape[axis])[start:end:step])
    if 0 in shape:  # no elements
        node.emit_shaped("constant", (), (tuple(shape),), (node.dtype("data"),))
        return
    attrs = at.Slice(axes, starts, ends, () if set(steps) == {1} else steps)
    node.emit("slice", (node.input("data"),), attrs)


OPERATORS: ConverterTable = {
    ("", "Concat"): Converter(concat, "inputs"),
    ("", "Split"): Converter(split, "input split"),
    ("", "Slice"): Converter(slice_, "data starts ends axes steps"),
}
