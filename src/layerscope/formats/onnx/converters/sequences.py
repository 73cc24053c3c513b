"""Sequences and optionals, if their lengths are constant."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.arrays import SmallArray
from layerscope.formats.onnx.folding.fold import emit_constants
from layerscope.formats.onnx.input_shapes import MOST_ITEMS
from layerscope.formats.onnx.node import Converter, ConverterTable, OnnxNode
from layerscope.formats.onnx.tensor_info import NeedsValue, TensorInfo
from layerscope.graph import attributes as at
from layerscope.ops.spec import axis_of


def _items(node: OnnxNode) -> list[TensorInfo]:
    tensor = node.input()
    if tensor.items is None:
        raise NeedsValue(f"the length of sequence {tensor.name!r} is unknown")
    return tensor.items


def _position(node: OnnxNode, length: int) -> int:
    position = int(node.need_value("position").item)
    if not -length <= position < length:
        raise ShapeError(f"item {position} of a sequence of {length}")
    return position % length


def _sequence(node: OnnxNode, items: list[TensorInfo]) -> None:
    name = node.outputs[0]
    node.reader.value_budget -= len(items)  # each sequence is a copy
    if node.reader.value_budget < 0:
        raise NeedsValue("sequences of more tensors in all than are followed")
    node.env[name] = TensorInfo(name, None, items[0].dtype if items else "fp32", items=items)


def construct(node: OnnxNode) -> None:
    """SequenceConstruct."""
    _sequence(node, node.given())


def empty(node: OnnxNode) -> None:
    """SequenceEmpty."""
    _sequence(node, [])


def insert(node: OnnxNode) -> None:
    """SequenceInsert."""
    items = list(_items(node))
    position = int(node.need_value("position").item) if node.has("position") else len(items)
    items.insert(position, node.input("tensor"))
    _sequence(node, items)


def erase(node: OnnxNode) -> None:
    """SequenceErase."""
    items = list(_items(node))
    del items[_position(node, len(items)) if node.has("position") else -1]
    _sequence(node, items)


def item(node: OnnxNode) -> None:
    """SequenceAt."""
    items = _items(node)
    node.alias(items[_position(node, len(items))])


def length(node: OnnxNode) -> None:
    """SequenceLength."""
    emit_constants(node, [SmallArray((), [len(_items(node))], "int64")])


def concat(node: OnnxNode) -> None:
    """ConcatFromSequence."""
    items = _items(node)
    axis = node.int_attr("axis")
    if not items:
        raise NeedsValue("the sequence has no tensor whose shape would tell that of the result")
    if node.int_attr("new_axis"):
        rank = len(items[0].shape or ()) + 1
        at_axis = axis_of(axis, rank)
        parts = []
        for n, tensor in enumerate(items):
            if tensor.shape is None:
                raise NeedsValue(node.reader.trace.shape(tensor.name))
            shape = (*tensor.shape[:at_axis], 1, *tensor.shape[at_axis:])
            parts.append(node.emit("reshape", (tensor,), at.Reshape(shape), part=f"item{n}")[0])
        items, axis = parts, at_axis
    node.emit("concat", items, at.Concat(axis))


def split(node: OnnxNode) -> None:
    """SplitToSequence."""
    x = node.shape("input")
    axis = axis_of(node.int_attr("axis"), len(x))
    keep = bool(node.int_attr("keepdims", 1))
    size = 1
    sizes: tuple[int, ...] | None = None
    if node.has("split"):
        given = node.need_value("split")
        if given.shape == ():
            size = int(given.item)
        else:
            sizes = given.ints()
        keep = True
    starts = range(0, x[axis], max(size, 1))
    count = len(starts) if sizes is None else len(sizes)
    if count > MOST_ITEMS:
        raise NeedsValue(
            f"a sequence of {count:,} tensors, more than {MOST_ITEMS:,} are not followed"
        )
    if sizes is None:
        sizes = tuple(min(size, x[axis] - start) for start in starts)
    y = node.emit("split", (node.input("input"),), at.Split(axis, sizes), part="split")
    if not keep:
        shape = (*x[:axis], *x[axis + 1 :])
        y = [
            node.emit("reshape", (tensor,), at.Reshape(shape), part=f"item{n}")[0]
            for n, tensor in enumerate(y)
        ]
    _sequence(node, y)


def optional(node: OnnxNode) -> None:
    """Optional, OptionalGetElement."""
    name = node.outputs[0]
    if node.op == "OptionalGetElement" and (not node.has("input") or node.input().empty):
        raise ShapeError("the element of an optional that has none")
    node.env[name] = (
        node.input() if node.has("input") else TensorInfo(name, None, "fp32", empty=True)
    )


def has_element(node: OnnxNode) -> None:
    """OptionalHasElement."""
    emit_constants(node, [SmallArray((), [node.has("input") and not node.input().empty], "bool")])


OPERATORS: ConverterTable = {
    ("", "SequenceConstruct"): Converter(construct, "inputs"),
    ("", "SequenceEmpty"): Converter(empty),
    ("", "SequenceInsert"): Converter(insert, "input_sequence tensor position"),
    ("", "SequenceErase"): Converter(erase, "input_sequence position"),
    ("", "SequenceAt"): Converter(item, "input_sequence position"),
    ("", "SequenceLength"): Converter(length, "input_sequence"),
    ("", "ConcatFromSequence"): Converter(concat, "input_sequence"),
    ("", "SplitToSequence"): Converter(split, "input split"),
    ("", "Optional"): Converter(optional, "input"),
    ("", "OptionalGetElement"): Converter(optional, "input"),
    ("", "OptionalHasElement"): Converter(has_element, "input"),
}
