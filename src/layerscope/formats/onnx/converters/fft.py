"""Fourier transforms and signal windows."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.converters.convolution import window
from layerscope.formats.onnx.converters.layout import pad
from layerscope.formats.onnx.dtypes import DTYPES
from layerscope.formats.onnx.node import OnnxNode, Op, OpTable
from layerscope.formats.onnx.tensor_info import NeedsValue
from layerscope.graph import attributes as at
from layerscope.graph.types import elements
from layerscope.ops.spec import axis_of, broadcast


def transform(node: OnnxNode) -> None:
    """DFT; since opset 20 the axis is an input."""
    axis = node.int_attr("axis", 1)
    if node.opset >= 20:
        axis = int(node.need_value("axis").item) if node.has("axis") else -2
    length = int(node.need_value("dft_length").item) if node.has("dft_length") else 0
    rank = len(node.shape("input"))
    inverse, onesided = bool(node.int_attr("inverse")), bool(node.int_attr("onesided"))
    attrs = at.DFT(axis_of(axis, rank) - rank, inverse, onesided, length)
    node.emit("dft", (node.input("input"),), attrs)


def short_transform(node: OnnxNode) -> None:
    """STFT; the length of frames is an input, else that of the window."""
    step = int(node.need_value("frame_step").item)
    frame = (
        int(node.need_value("frame_length").item)
        if node.has("frame_length")
        else node.shape("window")[0]
    )
    x = node.input("signal")
    shape = node.shape("signal")
    if len(shape) == 2:
        x = node.emit_shaped("select", (x,), ((*shape, 1),), (x.dtype,), part="real")[0]
    more = node.given("window")
    node.mark_constant("window")
    attrs = at.STFT(frame, step, bool(node.int_attr("onesided", 1)))
    node.emit("stft", (x, *more), attrs, roles="constant")


def taper(node: OnnxNode) -> None:
    """HannWindow, HammingWindow, BlackmanWindow: a constant."""
    size = int(node.need_value("size").item)
    node.emit_shaped(
        "constant", (), ((size,),), (DTYPES.get(node.int_attr("output_datatype", 1), "fp32"),)
    )


def mel(node: OnnxNode) -> None:
    """MelWeightMatrix: a constant."""
    bins, length = (
        int(node.need_value("num_mel_bins").item),
        int(node.need_value("dft_length").item),
    )
    node.mark_constant("sample_rate", "lower_edge_hertz", "upper_edge_hertz")
    dtype = DTYPES.get(node.int_attr("output_datatype", 1), "fp32")
    node.emit_shaped("constant", (), ((length // 2 + 1, bins),), (dtype,))


def affine_grid(node: OnnxNode) -> None:
    """AffineGrid."""
    attrs = at.AffineGrid(node.need_value("size").ints(), bool(node.int_attr("align_corners")))
    node.emit("affine_grid", (node.input("theta"),), attrs)


def col2im(node: OnnxNode) -> None:
    """Col2Im: blocks are added where they overlap."""
    x = node.shape("input")
    sizes, block = node.need_value("image_shape").ints(), node.need_value("block_shape").ints()
    count = elements(block)
    if len(x) != 3 or count < 1 or x[1] % count:
        raise ShapeError(f"blocks of {block} in {x}")
    slides = window(node, block).slide(sizes)
    if elements(slides) != x[2]:
        raise ShapeError(f"{x[2]} blocks of {block} over {sizes}, expected {elements(slides)}")
    y = node.emit("add", (node.input("input"),), part="sums")[0]
    node.emit_shaped("select", (y,), ((x[0], x[1] // count, *sizes),), (node.dtype("input"),))


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


def real_transform(node: OnnxNode) -> None:
    """Rfft and Irfft of com.microsoft, along the last axis."""
    if node.int_attr("signal_ndim", 1) != 1 or not node.int_attr("onesided", 1):
        raise NeedsValue("only transforms of one axis with one side are counted")
    x, shape = node.input(), node.shape()
    if node.op == "Rfft":
        x = node.emit_shaped("select", (x,), ((*shape, 1),), (x.dtype,), part="real")[0]
        node.emit("dft", (x,), at.DFT(-2, onesided=True))
        return
    y = node.emit("dft", (x,), at.DFT(-2, inverse=True, onesided=True), part="inverse")[0]
    assert y.shape is not None
    node.emit_shaped("select", (y,), (y.shape[:-1],), (y.dtype,))


def crop_resize(node: OnnxNode) -> None:
    """CropAndResize: one sample at each position of each region."""
    height, width = node.need_value("crop_size").ints()
    attrs = at.RoIAlign((height, width), 1)
    node.emit("roi_align", (node.input("X"), node.input("rois")), attrs)


def complex_mul(node: OnnxNode) -> None:
    """ComplexMul, ComplexMulConj: four products and two sums each."""
    broadcast((node.shape("A"), node.shape("B")))
    left = node.emit("mul", (node.input("A"), node.input("B")), part="straight")[0]
    right = node.emit("mul", (node.input("A"), node.input("B")), part="across")[0]
    node.emit("add", (left, right))


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


def expand_dims(node: OnnxNode) -> None:
    """ExpandDims: one more axis."""
    x = list(node.shape("X"))
    axis = axis_of(int(node.need_value("axis").item), len(x) + 1)
    x.insert(axis, 1)
    node.emit("reshape", (node.input("X"),), at.Reshape(tuple(x)))


OPERATORS: OpTable = {
    ("", "DFT"): Op(transform, "input dft_length axis"),
    ("", "STFT"): Op(short_transform, "signal frame_step window frame_length"),
    ("", "HannWindow"): Op(taper, "size"),
    ("", "HammingWindow"): Op(taper, "size"),
    ("", "BlackmanWindow"): Op(taper, "size"),
    ("", "MelWeightMatrix"): Op(
        mel, "num_mel_bins dft_length sample_rate lower_edge_hertz upper_edge_hertz"
    ),
    ("", "AffineGrid"): Op(affine_grid, "theta size"),
    ("", "Col2Im"): Op(col2im, "input image_shape block_shape"),
    ("", "Det"): Op(det, "X"),
    ("com.microsoft", "Rfft"): Op(real_transform, "X"),
    ("com.microsoft", "Irfft"): Op(real_transform, "X"),
    ("com.microsoft", "Inverse"): Op(inverse, "X"),
    ("com.microsoft", "CropAndResize"): Op(crop_resize, "X rois batch_indices crop_size"),
    ("com.microsoft", "ComplexMul"): Op(complex_mul, "A B"),
    ("com.microsoft", "ComplexMulConj"): Op(complex_mul, "A B"),
    ("com.microsoft", "CDist"): Op(distances, "A B"),
    ("com.microsoft", "ExpandDims"): Op(expand_dims, "X axis"),
    ("com.microsoft", "Pad"): Op(pad, "data pads value"),
}
