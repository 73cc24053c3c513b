"""Determinants, inverses and pairwise distances."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.node import Converter, ConverterTable, OnnxNode
from layerscope.graph import attributes as at


def det(node: OnnxNode) -> None:
    """Det."""
    node.emit("det", (node.input(),))


def inverse(node: OnnxNode) -> None:
    """Inverse of square matrices."""
    x = node.shape()
    if len(x) < 2 or x[-1] != x[-2]:
        raise ShapeError(f"the inverse of {x}")
    note = "n³ products for n x n, as elimination takes"
    node.emit("matmul", (node.input(), node.input()), estimate=True, note=note)


def distances(node: OnnxNode) -> None:
    """CDist: every row of one with every row of the other."""
    a, b = node.shape("A"), node.shape("B")
    if len(a) != 2 or len(b) != 2 or a[1] != b[1]:
        raise ShapeError(f"distances of {a} and {b}")
    sides = [
        node.emit_shaped("select", (node.input(n),), (shape,), (node.dtype(n),), part=f"rows{n}")[0]
        for n, shape in enumerate(((a[0], 1, a[1]), (1, *b)))
    ]
    y = node.emit("sub", sides, part="differences")[0]
    root = node.str_attr("metric", "sqeuclidean") == "euclidean"
    op = "reduce_l2" if root else "reduce_sum_square"
    node.emit(op, (y,), at.Reduce((2,)))


OPERATORS: ConverterTable = {
    ("", "Det"): Converter(det, "X"),
    ("com.microsoft", "Inverse"): Converter(inverse, "X"),
    ("com.microsoft", "CDist"): Converter(distances, "A B"),
}
