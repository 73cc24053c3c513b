"""Layers that slide a window: convolutions, pooling, im2col, and those that undo pooling."""

from __future__ import annotations

from collections.abc import Callable

from layerscope.codecs.message import Message
from layerscope.formats.caffe.layer import Layer
from layerscope.graph import attributes as at

Tensors = tuple[str, ...]
POOLS = ("MAX", "AVE", "STOCHASTIC", "AVE_EXC_PAD", "AVE_TF")  # the last two of Synopsys's fork
KINDS = {"MAX": "max", "STOCHASTIC": "stochastic"}  # "avg" else
SIDES = (("pad_t", "pad_b"), ("pad_l", "pad_r"))


def _each(
    layer: Layer, param: Message, word: str, default: int | None, rank: int
) -> tuple[int, ...]:
    """A setting for every axis: once for all, once for each, or as `word_h` and `word_w`."""
    name = {"kernel": "kernel_size"}.get(word, word)
    high, wide = f"{word}_h", f"{word}_w"
    if high in param or wide in param:
        if rank != 2:
            raise layer.error(f"{high} for {rank} spatial axes, expected 2", param)
        base = param.wholes(name)[-1:] or [default if default is not None else 0]
        return param.whole(high, base[0]), param.whole(wide, base[0])
    values = param.wholes(name)
    if not values:
        if default is None:
            raise layer.error(f"no {name}", param)
        values = [default]
    if len(values) == 1:
        values *= rank
    if len(values) != rank:
        raise layer.error(f"{len(values)} times {name} for {rank} spatial axes", param, name)
    if max(values) >= 1 << 31:
        raise layer.error(f"{name} {max(values)}, expected less than 2^31", param, name)
    return tuple(values)


def _rank(layer: Layer, param: Message) -> int:
    """Spatial axes: as many as any setting has values, else those of the network's input."""
    if "kernel_h" in param or "kernel_w" in param:
        return 2
    told = max(
        len(param.fields.get(name, ())) for name in ("kernel_size", "stride", "pad", "dilation")
    )
    return told if told > 1 else layer.rank


def window_of(layer: Layer, param: Message, rounding: at.Rounding = "floor") -> at.Window:
    """The window that the settings of a layer describe."""
    rank = _rank(layer, param)
    kernel = _each(layer, param, "kernel", None, rank)
    stride = _each(layer, param, "stride", 1, rank)
    dilation = _each(layer, param, "dilation", 1, rank)
    return at.Window(kernel, stride, _pads(layer, param, rank), dilation, rounding)


def _pads(layer: Layer, param: Message, rank: int) -> at.Pads | at.Same:
    """The padding: as Caffe has it, or of each side or `SAME`, as Synopsys's fork has it."""
    pads = tuple([(pad, pad) for pad in _each(layer, param, "pad", 0, rank)])
    sides = tuple([(param.whole(before), param.whole(after)) for before, after in SIDES])
    kind = param.whole("pad_type")
    if not any(map(any, sides)):
        if kind not in (0, 1):
            raise layer.error(f"pad_type {kind}, expected 0 or 1 (SAME)", param, "pad_type")
        return "same_upper" if kind else pads
    if rank != 2 or kind or any(map(any, pads)):
        raise layer.error("pad_l and its like beside other padding, or not of 2 axes", param)
    return sides


def _deep_window(layer: Layer, param: Message, rounding: at.Rounding = "floor") -> at.Window:
    """As C3D has it: the depth of each setting apart from height and width."""
    flat = window_of(layer, param, rounding)
    if isinstance(flat.pads, str):
        raise layer.error("pad_type for 3 spatial axes, expected 2", param, "pad_type")
    depth = layer.positive(param, "kernel_depth", 1)
    step = layer.positive(param, "temporal_stride", 1)
    pad = param.whole("temporal_pad")
    return at.Window(
        (depth, *flat.kernel[-2:]),
        (step, *flat.stride[-2:]),
        ((pad, pad), *flat.pads[-2:]),
        (1, 1, 1),
        rounding,
    )


def _convolution(
    op: str, *, depthwise: bool = False, deep: bool = False
) -> Callable[[Layer], Tensors]:
    def make(layer: Layer) -> Tensors:
        """One node a bottom, all with the weights of the first."""
        param = layer.param("convolution_param", "convolution3d_param")
        if param.whole("axis", 1) != 1:
            return layer.unknown()
        channels = layer.positive(param, "num_output")
        groups = layer.positive(param, "group", channels if depthwise else 1)
        window = (_deep_window if deep else window_of)(layer, param)
        kind = at.Conv if op == "conv" else at.TransposedConv
        told = kind(window, channels, groups, param.flag("bias_term", True))
        made = list(layer.add(op, told))
        for n, bottom in enumerate(layer.bottoms[1 : max(len(layer.tops), 1)], 2):
            made += layer.add(op, told, (bottom,), part=str(n))
            first, again = layer.drafts[0], layer.drafts[-1]
            named = first.ties or {}
            again.ties = {p: named.get(p, f"{first.name}.{p}") for p in ("weight", "bias")}
        return tuple(made)

    return make


def _pooling(layer: Layer) -> Tensors:
    """Positions that only partly fit are kept, unless a fork's own setting says otherwise."""
    param = layer.param("pooling_param", "pooling3d_param")
    word = param.choice("pool", POOLS, "MAX")
    kind = KINDS.get(word, "avg")
    if param.flag("global_pooling"):
        return layer.add(f"global_{kind}_pool", at.GlobalPool())
    floor = param.choice("round_mode", ("CEIL", "FLOOR"), "CEIL") == "FLOOR"
    floor = floor or not param.flag("ceil_mode", True)
    rounding: at.Rounding = "floor" if floor else "caffe"
    deep = layer.kind == "pooling3d" or "kernel_depth" in param
    window = (_deep_window if deep else window_of)(layer, param, rounding)
    indices = len(layer.tops) == 2 and kind == "max"
    return layer.add(
        f"{kind}_pool",
        at.Pool(window, word in ("MAX", "AVE", "STOCHASTIC"), indices=indices, index_dtype=""),
        outputs=1 + indices,
    )


def _im2col(layer: Layer) -> Tensors:
    return layer.add("im2col", at.Im2Col(window_of(layer, layer.param("convolution_param"))))


def _pyramid(layer: Layer) -> Tensors:
    param = layer.param("spp_param")
    kind = KINDS.get(param.choice("pool", POOLS[:3], "MAX"), "avg")
    return layer.add(f"pyramid_{kind}_pool", at.Pyramid(layer.positive(param, "pyramid_height")))


def _upsample(layer: Layer) -> Tensors:
    """With a mask what SegNet has, which undoes max pooling; without one, nearest neighbours."""
    param = layer.param("upsample_param", "unpooling_param")
    size = tuple(param.wholes("upsample_h")[-1:] + param.wholes("upsample_w")[-1:])
    scale = layer.positive(param, "stride" if "stride" in param else "scale", 2)
    scales = (layer.positive(param, "scale_h", scale), layer.positive(param, "scale_w", scale))
    if len(layer.bottoms) > 1:
        less = (int(param.flag("pad_out_h")), int(param.flag("pad_out_w")))
        if size and (len(size) != 2 or min(size) < 1):
            raise layer.error(f"upsample to {size}, expected two sizes", param)
        return layer.add("unpool", at.Unpool(size, scales, less), layer.bottoms[:2])
    if "unpooling_param" in layer.message and "scale" not in param:
        return layer.unknown()
    return layer.add("resize", at.Resize("nearest", scale=tuple((by, 1) for by in scales)))


def _interp(layer: Layer) -> Tensors:
    param = layer.param("interp_param")
    crop = (-param.whole("pad_beg"), -param.whole("pad_end"))
    shrink, zoom = (
        layer.positive(param, "shrink_factor", 1),
        layer.positive(param, "zoom_factor", 1),
    )
    size: tuple[int, ...] = ()
    if "shrink_factor" not in param and "zoom_factor" not in param:
        if "height" not in param or "width" not in param:
            if len(layer.bottoms) > 1:  # to the size of another blob
                return layer.unknown()
            raise layer.error("no zoom_factor, shrink_factor or height and width", param)
        size = (layer.positive(param, "height"), layer.positive(param, "width"))
    return layer.add("interp", at.Interp(size, shrink, zoom, crop))


def _padding(layer: Layer) -> Tensors:
    pad = layer.param("padding_param").whole("pad")
    return layer.add("pad", at.Pad(((0, 0), (0, 0), (pad, pad), (pad, pad))))


LAYERS = {
    "convolution": _convolution("conv"),
    "depthwiseconvolution": _convolution("conv", depthwise=True),
    "convolution3d": _convolution("conv", deep=True),
    "deconvolution": _convolution("conv_transpose"),
    "depthwisedeconvolution": _convolution("conv_transpose", depthwise=True),
    "pooling": _pooling,
    "pooling3d": _pooling,
    "im2col": _im2col,
    "spp": _pyramid,
    "upsample": _upsample,
    "interp": _interp,
    "padding": _padding,
}
