"""Convolutions, and windows told by explicit padding, as every version of every engine has it."""

from __future__ import annotations

from typing import Any

from layerscope.graph.attributes import Conv, DeformConv, Im2Col, TransposedConv, Window
from layerscope.graph.types import Shape
from layerscope.lower.builder import Site, Writer


def explicit_pads(window: Window, sizes: Shape) -> list[tuple[int, int]]:
    """Padding under which rounding down gives the placements that the window's rounding does."""
    pads = list(window.resolve(sizes))
    if window.rounding == "floor":
        return pads
    counts = window.slide(sizes)
    made = []
    for n, (begin, _) in enumerate(pads):
        reach = (counts[n] - 1) * window.stride[n] + window.extents[n]
        made.append((begin, max(reach - sizes[n] - begin, 0)))
    return made


def flat(pads: list[tuple[int, int]]) -> list[int]:
    """All begins, then all ends, as ONNX has them."""
    return [begin for begin, _ in pads] + [end for _, end in pads]


def told(window: Window, pads: list[tuple[int, int]]) -> dict[str, Any]:
    """A window as ONNX is told of it."""
    return {
        "kernel_shape": window.kernel,
        "strides": window.stride,
        "dilations": window.dilation,
        "pads": flat(pads),
    }


def _weights(s: Site) -> tuple[str, ...]:
    names = ("weight", "bias") if s.attributes.bias else ("weight",)
    return tuple(s.param(name) for name in names)


def conv(s: Site) -> str:
    a: Conv = s.attributes
    pads = explicit_pads(a.window, s.shape[2:])
    return s.add("Conv", s.x, *_weights(s), group=a.groups, **told(a.window, pads))


def _frame(s: Site) -> tuple[list[tuple[int, int]], list[int]]:
    """Padding and output padding; SAME is written out, the odd one behind if upper."""
    a: TransposedConv = s.attributes
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


def conv_transpose(s: Site) -> str:
    a: TransposedConv = s.attributes
    pads, extra = _frame(s)
    weights = _weights(s)
    if all(e < step for e, step in zip(extra, a.window.stride, strict=True)):
        more: dict[str, Any] = {"output_padding": extra} if any(extra) else {}
        frame = told(a.window, pads)
        return s.add("ConvTranspose", s.x, *weights, group=a.groups, **frame, **more)
    # onnxruntime takes output padding only below the stride, torch also below the dilation:
    # made without any padding, then padded and cut to size.
    bare = told(a.window, [(0, 0)] * a.window.rank)
    y = s.add("ConvTranspose", s.x, weights[0], group=a.groups, **bare)
    cut = [(-begin, e - end) for e, (begin, end) in zip(extra, pads, strict=True)]
    y = s.add("Pad", y, s.ints(*flat([(0, 0), (0, 0), *cut])))
    if not a.bias:
        return y
    return s.add("Add", y, s.param("bias", (a.out_channels, *[1] * a.window.rank)))


def deform_conv(s: Site) -> str:
    a: DeformConv = s.attributes
    frame = told(a.window, explicit_pads(a.window, s.shape[2:]))
    bias = s.param("bias") if a.bias else ""
    offsets, *weights = (s.operand(n, s.dtype) for n in range(1, len(s.inputs)))
    names = [s.x, s.param("weight"), offsets, bias, *weights]
    return s.add("DeformConv", *names, group=a.groups, offset_group=a.offset_groups, **frame)


def im2col(s: Site) -> str:
    """A convolution of each channel by kernels with a single one in them."""
    a: Im2Col = s.attributes
    channels, taps = s.shape[1], a.window.positions
    once = [float(tap == place) for tap in range(taps) for place in range(taps)]
    kernel = s.numbers(once * channels, (channels * taps, 1, *a.window.kernel))
    pads = explicit_pads(a.window, s.shape[2:])
    return s.add("Conv", s.x, kernel, group=channels, **told(a.window, pads))


WRITERS: dict[str, Writer] = {
    "conv": conv,
    "conv_transpose": conv_transpose,
    "im2col": im2col,
    "deform_conv": deform_conv,
}
