"""ONNX models of convolutions."""

from __future__ import annotations

import math
from typing import Any

from layerscope.graph import attributes as at
from layerscope.graph.attributes import Conv, DeformConv, TransposedConv, Window
from tests.brute.engine import Model, Writer


def window_kwargs(window: Window) -> dict[str, object]:
    told: dict[str, object] = {"kernel_shape": window.kernel, "strides": window.stride}
    if isinstance(window.pads, str):
        return {**told, "auto_pad": window.pads.upper()}
    begins, ends = zip(*window.pads, strict=True)
    return {**told, "pads": [*begins, *ends]}


def conv(m: Model) -> str:
    a: Conv = m.attributes
    told = {**window_kwargs(a.window), "dilations": a.window.dilation, "group": a.groups}
    return m.node("Conv", m.x, *m.params, **told)


def conv_transpose(m: Model) -> str:
    a: TransposedConv = m.attributes
    told = {**window_kwargs(a.window), "dilations": a.window.dilation, "group": a.groups}
    extra = a.output_padding
    if all(e < s for e, s in zip(extra, a.window.stride, strict=False)):
        if extra:
            told["output_padding"] = extra
        return m.node("ConvTranspose", m.x, *m.params, **told)
    # onnxruntime takes output padding only below the stride, torch also below the dilation:
    # made without any padding, then padded and cut to size.
    assert not isinstance(a.window.pads, str)
    ends = [e - end for e, (_, end) in zip(extra, a.window.pads, strict=True)]
    begins = [-begin for begin, _ in a.window.pads]
    del told["pads"]
    y = m.node("ConvTranspose", m.x, "weight", **told)
    y = m.node("Pad", y, m.ints(0, 0, *begins, 0, 0, *ends))
    return m.node("Add", y, m.node("Reshape", "bias", m.ints(a.out_channels, 1, 1)))


def window_attributes(window: at.Window) -> dict[str, Any]:
    begins, ends = zip(*window.pads, strict=True)
    return {
        "kernel_shape": list(window.kernel),
        "strides": list(window.stride),
        "pads": [*begins, *ends],
    }


def im2col(m: Model) -> str:
    """A convolution each filter of which picks one tap of one channel."""
    window: at.Window = m.attributes.window
    size = m.shape[1] * math.prod(window.kernel)
    eye = [float(row == column) for row in range(size) for column in range(size)]
    weight = m.tensor(eye, (size, m.shape[1], *window.kernel))
    return m.node("Conv", m.x, weight, **window_attributes(window), dilations=list(window.dilation))


def deform_conv(m: Model) -> str:
    a: DeformConv = m.attributes
    begins, ends = zip(*a.window.pads, strict=True)
    told = {"kernel_shape": a.window.kernel, "strides": a.window.stride, "group": a.groups}
    told.update(pads=(*begins, *ends), dilations=a.window.dilation, offset_group=a.offset_groups)
    names = [m.x, "weight", m.of(1), "bias" if a.bias else ""]
    return m.node("DeformConv", *names, *[m.of(2)] * (len(m.inputs) == 3), **told)


MODELS: dict[str, Writer] = {
    "conv": conv,
    "conv_transpose": conv_transpose,
    "im2col": im2col,
    "deform_conv": deform_conv,
}
