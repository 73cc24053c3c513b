"""Convolutions. Windows have explicit padding, which all engines support."""

from __future__ import annotations

from typing import Any, TypedDict

from layerscope.graph.attributes import Conv, DeformConv, Im2Col, TransposedConv, Window
from layerscope.graph.types import Shape
from layerscope.lower.builder import Emitter, NodeEmitter


class WindowAttributes(TypedDict):
    """ONNX attributes of Conv, ConvTranspose and the pools."""

    kernel_shape: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: list[int]


def explicit_pads(window: Window, sizes: Shape) -> list[tuple[int, int]]:
    """Padding with which rounding down gives as many positions as the window's own rounding."""
    pads = list(window.resolve(sizes))
    if window.rounding == "floor":
        return pads
    counts = window.slide(sizes)
    explicit = []
    for n, (begin, _) in enumerate(pads):
        span = (counts[n] - 1) * window.stride[n] + window.extents[n]
        explicit.append((begin, max(span - sizes[n] - begin, 0)))
    return explicit


def flat_pads(pads: list[tuple[int, int]]) -> list[int]:
    """All begins, then all ends: the order of ONNX's attribute pads."""
    return [begin for begin, _ in pads] + [end for _, end in pads]


def window_attributes(window: Window, pads: list[tuple[int, int]]) -> WindowAttributes:
    """ONNX attributes of a window."""
    return {
        "kernel_shape": window.kernel,
        "strides": window.stride,
        "dilations": window.dilation,
        "pads": flat_pads(pads),
    }


def _weights(node: NodeEmitter) -> tuple[str, ...]:
    names = ("weight", "bias") if node.attributes.bias else ("weight",)
    return tuple(node.param(name) for name in names)


def conv(node: NodeEmitter) -> str:
    a: Conv = node.attributes
    pads = explicit_pads(a.window, node.shape[2:])
    return node.add(
        "Conv", node.x, *_weights(node), group=a.groups, **window_attributes(a.window, pads)
    )


def _frame(node: NodeEmitter) -> tuple[list[tuple[int, int]], list[int]]:
    """Padding and output padding; SAME becomes explicit, the odd element at the end if upper."""
    a: TransposedConv = node.attributes
    w = a.window
    extra = list(a.output_padding or (0,) * w.rank)
    if not isinstance(w.pads, str):
        return list(w.pads), extra
    pads = []
    for n, (extent, step) in enumerate(zip(w.extents, w.stride, strict=True)):
        cut = extent + extra[n] - step
        if cut < 0:
            extra[n] = step - extent
        less, more = max(cut, 0) // 2, max(cut, 0) - max(cut, 0) // 2
        pads.append((less, more) if w.pads == "same_upper" else (more, less))
    return pads, extra


def conv_transpose(node: NodeEmitter) -> str:
    a: TransposedConv = node.attributes
    pads, extra = _frame(node)
    weights = _weights(node)
    if all(e < step for e, step in zip(extra, a.window.stride, strict=True)):
        more: dict[str, Any] = {"output_padding": extra} if any(extra) else {}
        frame = window_attributes(a.window, pads)
        return node.add("ConvTranspose", node.x, *weights, group=a.groups, **frame, **more)
    # onnxruntime needs an output padding below the stride, PyTorch also allows it below the
    # dilation. Compute without padding, then pad and crop to size.
    bare = window_attributes(a.window, [(0, 0)] * a.window.rank)
    y = node.add("ConvTranspose", node.x, weights[0], group=a.groups, **bare)
    cut = [(-begin, e - end) for e, (begin, end) in zip(extra, pads, strict=True)]
    y = node.add("Pad", y, node.ints(*flat_pads([(0, 0), (0, 0), *cut])))
    if not a.bias:
        return y
    return node.add("Add", y, node.param("bias", (a.out_channels, *[1] * a.window.rank)))


def deform_conv(node: NodeEmitter) -> str:
    a: DeformConv = node.attributes
    frame = window_attributes(a.window, explicit_pads(a.window, node.shape[2:]))
    bias = node.param("bias") if a.bias else ""
    offsets, *weights = (node.operand(n, node.dtype) for n in range(1, len(node.inputs)))
    names = [node.x, node.param("weight"), offsets, bias, *weights]
    return node.add("DeformConv", *names, group=a.groups, offset_group=a.offset_groups, **frame)


def im2col(node: NodeEmitter) -> str:
    """A convolution of each channel with one-hot kernels."""
    a: Im2Col = node.attributes
    channels, taps = node.shape[1], a.window.positions
    one_hot = [float(tap == n) for tap in range(taps) for n in range(taps)]
    kernel = node.numbers(one_hot * channels, (channels * taps, 1, *a.window.kernel))
    pads = explicit_pads(a.window, node.shape[2:])
    return node.add("Conv", node.x, kernel, group=channels, **window_attributes(a.window, pads))


EMITTERS: dict[str, Emitter] = {
    "conv": conv,
    "conv_transpose": conv_transpose,
    "im2col": im2col,
    "deform_conv": deform_conv,
}
