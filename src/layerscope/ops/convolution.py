"""Convolution and transposed convolution of any rank: N x C x spatial axes."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.graph.attributes import Conv, DeformConv, Im2Col, Pads, TransposedConv
from layerscope.graph.types import Param, Shape, elements
from layerscope.ops.access_map import SAME, AccessMap, Map, TransposedMap, WindowMap, keep
from layerscope.ops.autograd import FIRST, Saved, every_input, nothing
from layerscope.ops.spec import (
    FREE,
    Call,
    Gemm,
    Ops,
    OpSpec,
    free,
    need_rank,
    param,
    product_backward,
    with_param_inputs,
)


def _channels(call: Call) -> tuple[int, int]:
    """Input and output channels of one group."""
    a: Conv | TransposedConv = call.attributes
    need_rank(call, 3, "convolution")
    if a.groups < 1:
        raise ShapeError(f"groups {a.groups}, expected at least 1")
    if a.out_channels < 1:
        raise ShapeError(f"{a.out_channels} output channels, expected at least 1")
    for what, channels in (("input", call.x[1]), ("output", a.out_channels)):
        if channels % a.groups:
            raise ShapeError(f"{channels} {what} channels cannot be cut into {a.groups} groups")
    return call.x[1] // a.groups, a.out_channels // a.groups


def conv_shape(call: Call) -> tuple[Shape, ...]:
    _channels(call)
    a: Conv = call.attributes
    return ((call.x[0], a.out_channels, *a.window.slide(call.x[2:])),)


def conv_ops(call: Call) -> Ops:
    a: Conv = call.attributes
    out = elements(call.y)
    return Ops(mac=out * (call.x[1] // a.groups) * a.window.positions, add=out if a.bias else 0)


def conv_params(call: Call) -> tuple[Param, ...]:
    a: Conv = call.attributes
    weight = param("weight", (a.out_channels, call.x[1] // a.groups, *a.window.kernel), "weight")
    return (weight, param("bias", (a.out_channels,), "bias")) if a.bias else (weight,)


def conv_gemm(call: Call) -> Gemm:
    a: Conv = call.attributes
    rows = call.y[0] * elements(call.y[2:])
    depth = call.x[1] // a.groups * a.window.positions
    return Gemm(m=rows, n=a.out_channels // a.groups, k=depth, count=a.groups)


def window_access(call: Call) -> tuple[AccessMap, ...]:
    """Spatial axes by the window, the batch elementwise, all channels."""
    w = call.attributes.window
    access: dict[int, tuple[int, Map]] = {0: (0, SAME)}
    for n, (begin, _) in enumerate(w.resolve(call.x[2:])):
        access[n + 2] = (n + 2, WindowMap(w.kernel[n], w.stride[n], w.dilation[n], begin))
    return (access,)


def transposed_shape(call: Call) -> tuple[Shape, ...]:
    _channels(call)
    a: TransposedConv = call.attributes
    w = a.window
    sizes = call.x[2:]
    if len(sizes) != w.rank:
        raise ShapeError(f"a window of {w.rank} axes over {len(sizes)} spatial axes {sizes}")
    extra = a.output_padding or (0,) * w.rank
    if len(extra) != w.rank or any(
        not 0 <= e < max(s, d) for e, s, d in zip(extra, w.stride, w.dilation, strict=True)
    ):
        raise ShapeError(f"output padding {extra}, expected from 0 to below stride or dilation")
    out = []
    for n, size in enumerate(sizes):
        if isinstance(w.pads, str):  # SAME: the output is the input times the stride
            out.append(size * w.stride[n])
            continue
        begin, end = w.pads[n]
        length = (size - 1) * w.stride[n] - begin - end + w.extents[n] + extra[n]
        if length < 1:
            raise ShapeError(f"pads {begin}, {end} leave nothing of a transposed convolution")
        out.append(length)
    return ((call.x[0], a.out_channels, *out),)


def transposed_ops(call: Call) -> Ops:
    a: TransposedConv = call.attributes
    mac = elements(call.x) * (a.out_channels // a.groups) * a.window.positions
    return Ops(mac=mac, add=elements(call.y) if a.bias else 0)


def transposed_params(call: Call) -> tuple[Param, ...]:
    a: TransposedConv = call.attributes
    weight = param("weight", (call.x[1], a.out_channels // a.groups, *a.window.kernel), "weight")
    return (weight, param("bias", (a.out_channels,), "bias")) if a.bias else (weight,)


def transposed_gemm(call: Call) -> Gemm:
    a: TransposedConv = call.attributes
    rows = call.x[0] * elements(call.x[2:])
    columns = a.out_channels // a.groups * a.window.positions
    return Gemm(m=rows, n=columns, k=call.x[1] // a.groups, count=a.groups)


def transposed_access(call: Call) -> tuple[AccessMap, ...]:
    w = call.attributes.window
    access: dict[int, tuple[int, Map]] = {0: (0, SAME)}
    for n, (begin, _) in enumerate(transposed_pads(call)):
        access[n + 2] = (n + 2, TransposedMap(w.kernel[n], w.stride[n], w.dilation[n], begin))
    return (access,)


def transposed_pads(call: Call) -> Pads:
    """Begin and end pads per axis; SAME cuts what exceeds input · stride, less first if upper."""
    w = call.attributes.window
    if not isinstance(w.pads, str):
        pads: Pads = w.pads
        return pads
    found = []
    for n, extra in enumerate(call.attributes.output_padding or (0,) * w.rank):
        total = max(w.extents[n] + extra - w.stride[n], 0)
        less = total // 2
        found.append((less, total - less) if w.pads == "same_upper" else (total - less, less))
    return tuple(found)


def _deform_shape(call: Call) -> tuple[Shape, ...]:
    a: DeformConv = call.attributes
    (shape,) = conv_shape(call)
    groups = a.offset_groups
    if len(call.x) != 4 or groups < 1 or call.x[1] % groups:
        raise ShapeError(f"moving {call.x} in {groups} groups, expected N x C x H x W")
    for given, numbers in zip(call.inputs[1:], (2, 1), strict=False):
        wanted = (call.x[0], groups * a.window.positions * numbers, *shape[2:])
        if given != wanted:
            raise ShapeError(f"moving what is under a window by {given}, expected {wanted}")
    return (shape,)


def _deform_samples(call: Call) -> Ops:
    """Bilinear samples of four neighbours for every kernel element, times an optional weight."""
    a: DeformConv = call.attributes
    samples = call.x[0] * call.x[1] * a.window.positions * elements(call.y[2:])
    return Ops(mul=4 + (len(call.inputs) == 3), add=3) * samples


def _deform_access(call: Call) -> tuple[AccessMap, ...]:
    """Offsets decide which elements are read; the offsets themselves are read elementwise."""
    own = keep((0, 2, 3))
    return (keep((0,)), own, own)[: len(call.inputs)]


def _deform_backward(call: Call) -> tuple[Ops, Ops]:
    for_inputs, for_params = product_backward(conv_ops(call).mac, _bias_sums(call))
    return for_inputs + _deform_samples(call) * 2, for_params


def _bias_sums(call: Call) -> int:
    return call.out_elements if call.attributes.bias else 0


def _conv_saves(call: Call) -> Saved:
    """The input; padded by more on one side, a copy of it that has these elements."""
    pads = call.attributes.window.pads
    if all(before == after for before, after in pads):
        return FIRST
    sizes = [size + abs(a - b) for size, (a, b) in zip(call.x[2:], pads, strict=True)]
    return Saved(extra=((elements((*call.x[:2], *sizes)), ""),))


def _im2col_shape(call: Call) -> tuple[Shape, ...]:
    need_rank(call, 3, "im2col")
    w = call.attributes.window
    return ((call.x[0], call.x[1] * w.positions, *w.slide(call.x[2:])),)


SPECS = {
    "im2col": OpSpec(
        family="shaping",
        attributes=Im2Col,
        shape=_im2col_shape,
        ops=free,
        access_map=window_access,
        backward=lambda call: (Ops(add=call.out_elements), FREE),
        saved_for_backward=nothing,
    ),
    "conv": with_param_inputs(
        OpSpec(
            family="convolution",
            attributes=Conv,
            names={
                "torch": "Conv{}d",
                "torch_function": "conv{}d",
                "caffe": "Convolution",
                "matconvnet": "conv",
                "dagnn": "Conv",
                "keras": "Conv{}D",
                "sheet": "conv",
                "plural": "convolutions",
            },
            shape=conv_shape,
            ops=conv_ops,
            params=conv_params,
            gemm=conv_gemm,
            access_map=window_access,
            backward=lambda call: product_backward(conv_ops(call).mac, _bias_sums(call)),
            saved_for_backward=_conv_saves,
        ),
        2,
    ),
    "deform_conv": OpSpec(
        family="convolution",
        attributes=DeformConv,
        names={"plural": "deformable convolutions"},
        shape=_deform_shape,
        ops=lambda call: conv_ops(call) + _deform_samples(call),
        params=conv_params,
        gemm=conv_gemm,
        access_map=_deform_access,
        backward=_deform_backward,
        saved_for_backward=every_input,
        arity=(2, 3),
    ),
    "conv_transpose": with_param_inputs(
        OpSpec(
            family="convolution",
            attributes=TransposedConv,
            names={
                "torch": "ConvTranspose{}d",
                "torch_function": "conv_transpose{}d",
                "caffe": "Deconvolution",
                "matconvnet": "convt",
                "dagnn": "ConvTranspose",
                "keras": "Conv{}DTranspose",
                "sheet": "deconv",
                "plural": "transposed convolutions",
            },
            shape=transposed_shape,
            ops=transposed_ops,
            params=transposed_params,
            gemm=transposed_gemm,
            access_map=transposed_access,
            backward=lambda call: product_backward(transposed_ops(call).mac, _bias_sums(call)),
        ),
        2,
    ),
}
