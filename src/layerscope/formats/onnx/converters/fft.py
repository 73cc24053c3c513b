"""Fourier transforms and signal windows."""

from __future__ import annotations

from layerscope.formats.onnx.dtypes import DTYPES
from layerscope.formats.onnx.node import Converter, ConverterTable, OnnxNode
from layerscope.formats.onnx.tensor_info import NeedsValue
from layerscope.graph import attributes as at
from layerscope.ops.spec import axis_of


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


OPERATORS: ConverterTable = {
    ("", "DFT"): Converter(transform, "input dft_length axis"),
    ("", "STFT"): Converter(short_transform, "signal frame_step window frame_length"),
    ("", "HannWindow"): Converter(taper, "size"),
    ("", "HammingWindow"): Converter(taper, "size"),
    ("", "BlackmanWindow"): Converter(taper, "size"),
    ("", "MelWeightMatrix"): Converter(
        mel, "num_mel_bins dft_length sample_rate lower_edge_hertz upper_edge_hertz"
    ),
    ("com.microsoft", "Rfft"): Converter(real_transform, "X"),
    ("com.microsoft", "Irfft"): Converter(real_transform, "X"),
}
