"""Operators whose output shape is run-time data: NonZero, Unique, Compress."""

from __future__ import annotations

from layerscope.formats.onnx.node import Converter, ConverterTable, OnnxNode
from layerscope.formats.onnx.tensor_info import NeedsValue
from layerscope.graph import attributes as at
from layerscope.graph.types import Shape, elements
from layerscope.ops.spec import axis_of


def non_zero(node: OnnxNode) -> None:
    """NonZero: the number of elements is run-time data, unless the file declares it."""
    shape = node.declared_output(0)
    if shape is None:
        raise NeedsValue("the number of elements that are not zero is run-time data")
    node.emit_shaped("non_zero", (node.input(),), (shape,), ("int64",), **node.declared_options(0))


def unique(node: OnnxNode) -> None:
    """Unique: the number of elements is run-time data, unless the file declares it."""
    names = node.outputs
    shapes = [node.declared_output(n) for n in range(len(names)) if names[n]]
    if len(shapes) != len(names) or any(shape is None for shape in shapes):
        raise NeedsValue("the number of unique elements is run-time data")
    declared = [shape for shape in shapes if shape is not None]
    dtypes = (node.dtype(), "int64", "int64", "int64")[: len(declared)]
    node.emit_shaped("unique", (node.input(),), declared, dtypes, **node.declared_options(0))


def compress(node: OnnxNode) -> None:
    """Compress by a constant condition, or to a shape that the file declares."""
    x = node.shape("input")
    shape: Shape | None
    given = node.value("condition")
    if given is None:
        shape = node.declared_output(0)
        if shape is None:
            raise NeedsValue(
                f"{node.unknown_value('condition')}; how many are true is run-time data"
            )
        attrs = at.DeclaredOutputs((shape,), (node.dtype("input"),))
        node.emit(
            "compress",
            (node.input("input"), node.input("condition")),
            attrs,
            **node.declared_options(0),
        )
        return
    chosen = [n for n, value in enumerate(given.values) if value]
    if "axis" not in node.attrs:
        shape = (len([n for n in chosen if n < elements(x)]),)
    else:
        axis = axis_of(node.int_attr("axis"), len(x))
        shape = (*x[:axis], len([n for n in chosen if n < x[axis]]), *x[axis + 1 :])
    node.emit_shaped(
        "compress",
        (node.input("input"), node.input("condition")),
        (shape,),
        (node.dtype("input"),),
        roles="constant",
    )


OPERATORS: ConverterTable = {
    ("", "NonZero"): Converter(non_zero, "X"),
    ("", "Unique"): Converter(unique, "X"),
    ("com.microsoft", "Unique"): Converter(unique, "x"),
    ("", "Compress"): Converter(compress, "input condition"),
}
