"""Convolutions, transposed and deformable ones."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.known import Known
from layerscope.formats.onnx.operators.activations import activated
from layerscope.formats.onnx.operators.windows import window
from layerscope.formats.onnx.site import Convert, Site
from layerscope.graph import attributes as at
from layerscope.graph.types import Param
from layerscope.ops import SPECS, Call


def weights(s: Site, kernel: int, bias: int) -> tuple[list[Param], list[Known]]:
    """Kernel and bias: arrays of the file are the node's own, others further inputs."""
    params: list[Param] = []
    given: list[Known] = []
    for n, name in ((kernel, "weight"), (bias, "bias")):
        if not s.has(n):
            continue
        if s.stored(n):
            params.append(s.param(n, name, "weight" if name == "weight" else "bias"))
        else:
            given.append(s.given(n))
    return params, given


def _kernel(s: Site, n: int, rank: int) -> tuple[int, ...]:
    shape = s.shape(n)
    if len(shape) != rank:
        raise ShapeError(f"a kernel of {len(shape)} axes for an input of {rank}")
    return shape


def conv_attributes(s: Site, kernel: int = 1, bias: bool | None = None) -> at.Conv:
    """What a convolution is told, by the shape of its kernel."""
    x = s.shape(0)
    shape = _kernel(s, kernel, len(x))
    groups = s.whole("group", 1)
    if groups < 1 or x[1] != shape[1] * groups:
        raise ShapeError(f"{x[1]} channels and a kernel for {shape[1]} in {groups} groups")
    biased = s.has(2) if bias is None else bias
    made: at.Conv = s.words.once(
        (shape, groups, biased), lambda: at.Conv(window(s, shape[2:]), shape[0], groups, biased)
    )
    return made


def conv(s: Site) -> None:
    """Conv."""
    params, given = weights(s, 1, 2)
    s.emit("conv", (s.given(0), *given), conv_attributes(s), params=params)


def fused_conv(s: Site) -> None:
    """A convolution with a sum and an activation behind it."""
    finished(s, s.given(0), conv_attributes(s))


def finished(s: Site, x: Known, attributes: at.Conv) -> None:
    """A convolution by the second and third input, a sum with the fourth, an activation."""
    params, given = weights(s, 1, 2)
    named = s.text("activation")
    part = "conv" if s.has(3) or named else ""
    made = s.emit("conv", (x, *given), attributes, params=params, part=part)[0]
    if s.has(3):
        made = s.emit("add", (made, s.given(3)), part="add" if named else "")[0]
    if named:
        activated(s, named, made)


def conv_transpose(s: Site) -> None:
    """ConvTranspose; asked for an output shape, it pads as that needs."""
    x, kernel = s.shape(0), _kernel(s, 1, len(s.shape(0)))
    rank = len(x) - 2
    groups = s.whole("group", 1)
    if groups < 1 or x[1] != kernel[0]:
        raise ShapeError(f"{x[1]} channels and a kernel for {kernel[0]}")
    told = window(s, kernel[2:])
    extra = s.wholes("output_padding") or (0,) * rank
    wanted = s.wholes("output_shape")
    auto = s.text("auto_pad", "NOTSET")
    if wanted or auto.startswith("SAME"):
        sizes = (
            wanted[-rank:]
            if wanted
            else tuple(size * step for size, step in zip(x[2:], told.stride, strict=True))
        )
        pads = []
        for n, size in enumerate(sizes):
            full = (x[n + 2] - 1) * told.stride[n] + told.extents[n] + extra[n]
            total = max(full - size, 0)
            less = total // 2
            pads.append((total - less, less) if auto == "SAME_UPPER" else (less, total - less))
            extra = (*extra[:n], extra[n] + max(size - full, 0), *extra[n + 1 :])
        told = at.Window(told.kernel, told.stride, tuple(pads), told.dilation)
    params, given = weights(s, 1, 2)
    attributes = at.TransposedConv(told, kernel[1] * groups, groups, s.has(2), extra)
    s.emit("conv_transpose", (s.given(0), *given), attributes, params=params)


def deform_conv(s: Site) -> None:
    """DeformConv: the kernel's places are moved by offsets."""
    x = s.shape(0)
    kernel = _kernel(s, 1, len(x))
    attributes = at.DeformConv(
        window(s, kernel[2:]), kernel[0], s.whole("group", 1), s.has(3), s.whole("offset_group", 1)
    )
    params, computed = weights(s, 1, 3)
    more = [s.given(n) for n in (2, 4) if s.has(n)]
    if not computed:
        s.emit("deform_conv", (s.given(0), *more), attributes, params=params)
        return
    rule = SPECS["deform_conv"]  # which takes its arrays only stored
    call = Call(attributes, (x, *[known.shape for known in more if known.shape is not None]))
    call = Call(attributes, call.inputs, rule.shape(call))
    ops = rule.ops(call)
    told = at.CustomCost(call.outputs, (s.dtype(0),), mac=ops.mac, add=ops.add, mul=ops.mul)
    s.counted((s.given(0), *more, *computed), told, params=params)


OPERATORS: dict[tuple[str, str], Convert] = {
    ("", "Conv"): conv,
    ("", "ConvTranspose"): conv_transpose,
    ("", "DeformConv"): deform_conv,
    ("com.microsoft", "FusedConv"): fused_conv,
}
