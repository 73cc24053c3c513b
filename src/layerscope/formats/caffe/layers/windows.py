"""Layers that slide a window: convolutions, pooling, im2col."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from layerscope.codecs.message import Message, UnknownWord
from layerscope.formats.caffe.inputs import MOST_AXES
from layerscope.formats.caffe.layer import Layer
from layerscope.graph import attributes as at

Tensors = tuple[str, ...]
POOLS = ("MAX", "AVE", "STOCHASTIC", "AVE_EXC_PAD", "AVE_TF")  # the last two of Synopsys's fork
KINDS = {"MAX": "max", "STOCHASTIC": "stochastic"}  # "avg" else
# Padding of each side, as Synopsys's fork and others call it.
SIDES = (
    (("pad_t", "pad_b"), ("pad_l", "pad_r")),
    (("pad_top", "pad_bottom"), ("pad_left", "pad_right")),
)
CONVOLUTION = (
    "convolution_param", "convolution3d_param", "squeeze_convolution_param", "cconvolution_param",
    "deformable_convolution_param", "modulated_deformable_convolution_param",
)  # fmt: skip
# Forks that prune store a mask behind each array.
MASKED = ("squeezeconvolution", "cconvolution")
LEAST = {"kernel": 1, "stride": 1, "dilation": 1, "hole": 1, "kstride": 1, "pad": 0}


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
        pair = param.whole(high, base[0]), param.whole(wide, base[0])
        for field, value in zip((high, wide), pair, strict=True):
            layer.need_size(param, field if field in param else name, value, LEAST[word])
        return pair
    values = param.wholes(name)
    if not values:
        if default is None:
            raise layer.error(f"no {name}", param)
        values = [default]
    if len(values) == 1:
        values *= rank
    if len(values) != rank:
        raise layer.error(f"{len(values)} times {name} for {rank} spatial axes", param, name)
    for value in values:
        layer.need_size(param, name, value, LEAST[word])
    return tuple(values)


def _rank(layer: Layer, param: Message) -> int:
    """Spatial axes: as many as any setting has values, else those of the network's input."""
    if "kernel_h" in param or "kernel_w" in param:
        return 2
    told = max(
        len(param.fields.get(name, ()))
        for name in ("kernel_size", "stride", "pad", "dilation", "hole", "kstride")
    )
    if told > MOST_AXES:
        raise layer.error(f"a window of {told} axes, expected at most {MOST_AXES}", param)
    return told if told > 1 else layer.rank


def window_of(layer: Layer, param: Message, rounding: at.Rounding = "floor") -> at.Window:
    """The window that the settings of a layer describe."""
    rank = _rank(layer, param)
    kernel = _each(layer, param, "kernel", None, rank)
    stride = _each(layer, param, "stride", 1, rank)
    dilation = _each(layer, param, _dilation(param), 1, rank)
    return at.Window(kernel, stride, _pads(layer, param, rank), dilation, rounding)


def _dilation(param: Message) -> str:
    """What a file calls dilation: `hole` in DeepLab's forks, `kstride` in that for OpenCL."""
    for word in ("hole", "kstride"):
        if any(name in param for name in (word, f"{word}_h", f"{word}_w")):
            return word
    return "dilation"


def _pads(layer: Layer, param: Message, rank: int) -> at.Pads | at.Same:
    """The padding: as Caffe has it, or of each side or `SAME`, as Synopsys's fork has it."""
    pads = tuple([(pad, pad) for pad in _each(layer, param, "pad", 0, rank)])
    names = SIDES[any(name in param for pair in SIDES[1] for name in pair)]
    sides = tuple([(param.whole(before), param.whole(after)) for before, after in names])
    for field, value in zip(sum(names, ()), sum(sides, ()), strict=True):
        layer.need_size(param, field, value, 0)
    kind = param.whole("pad_type")
    if kind not in (0, 1):
        raise _unread(layer, param, f"pad_type {kind}, expected 0 or 1 (SAME)")
    if kind:  # which the padding of each side gives way to
        return "same_upper"
    if not any(map(any, sides)):
        return pads
    if rank != 2 or any(map(any, pads)):
        raise _unread(layer, param, f"{names[0][0]} and its like beside pad, or not of 2 axes")
    return sides


def _unread(layer: Layer, param: Message, what: str) -> UnknownWord:
    """What makes a layer unknown, as an error to raise: a fork may mean something by it."""
    return UnknownWord(str(layer.error(what, param)))


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
        param = layer.param(*CONVOLUTION)
        if param.whole("axis", 1) != 1:
            return layer.unknown(why=f"convolution along axis {param.whole('axis', 1)}")
        channels = layer.positive(param, "num_output")
        groups = layer.positive(param, "group", channels if depthwise else 1)
        window = (_deep_window if deep else window_of)(layer, param)
        kind = at.Conv if op == "conv" else at.TransposedConv
        told = kind(window, channels, groups, param.flag("bias_term", True))
        masked = ("weight", "bias", "", "") if layer.kind in MASKED else None
        made = list(layer.add(op, told, blobs=masked))
        for n, bottom in enumerate(layer.bottoms[1 : max(len(layer.tops), 1)], 2):
            made += layer.add(op, told, (bottom,), part=str(n))
            first, again = layer.drafts[0], layer.drafts[-1]
            named = first.ties or {}
            again.ties = {p: named.get(p, f"{first.name}.{p}") for p in ("weight", "bias")}
        return fused_relu(layer, param, made)

    return make


def fused_relu(layer: Layer, param: Message, made: Sequence[str]) -> Tensors:
    """What Intel's fork computes behind a layer in the same pass."""
    if not param.flag("relu"):
        return tuple(made)
    slope = param.number("negative_slope")
    op, told = ("leaky_relu", at.Activation(alpha=slope)) if slope else ("relu", at.Activation())
    parts = ["relu", *(f"relu{n}" for n in range(2, len(made) + 1))]
    return tuple(
        layer.add(op, told, (x,), part=part)[0] for x, part in zip(made, parts, strict=True)
    )


def _deformable(layer: Layer) -> Tensors:
    """Samples at positions that a second bottom shifts, and a third one weights."""
    param = layer.param(*CONVOLUTION[::-1])
    if not 2 <= len(layer.bottoms) <= 3:
        return layer.unknown(why=f"{len(layer.bottoms)} bottoms, expected maps and offsets")
    if "deformable_group" not in param:
        return layer.unknown(why="no deformable_group, whose default is not the same in all forks")
    told = at.DeformConv(
        window_of(layer, param),
        layer.positive(param, "num_output"),
        layer.positive(param, "group", 1),
        param.flag("bias_term", True),
        layer.positive(param, "deformable_group"),
    )
    return layer.add("deform_conv", told, layer.bottoms)


def _pooling(layer: Layer) -> Tensors:
    """Positions that only partly fit are kept, unless a fork's own setting says otherwise."""
    param = layer.param("pooling_param", "pooling3d_param")
    word = param.choice("pool", POOLS, "MAX")
    kind = KINDS.get(word, "avg")
    if param.flag("global_pooling"):
        return layer.add(f"global_{kind}_pool", at.GlobalPool())
    floor = param.choice("round_mode", ("CEIL", "FLOOR"), "CEIL") == "FLOOR"
    floor = floor or not param.flag("ceil_mode", True) or param.flag("round_below")
    rounding: at.Rounding = "floor" if floor else "caffe"
    deep = layer.kind == "pooling3d" or "kernel_depth" in param
    window = (_deep_window if deep else window_of)(layer, param, rounding)
    indices = len(layer.tops) == 2 and kind == "max"
    counts = word in ("MAX", "AVE", "STOCHASTIC") and param.flag("avg_include_pad", True)
    return layer.add(
        f"{kind}_pool",
        at.Pool(window, counts, indices=indices, index_dtype=""),
        outputs=1 + indices,
    )


def _im2col(layer: Layer) -> Tensors:
    return layer.add("im2col", at.Im2Col(window_of(layer, layer.param("convolution_param"))))


def _pyramid(layer: Layer) -> Tensors:
    param = layer.param("spp_param")
    kind = KINDS.get(param.choice("pool", POOLS[:3], "MAX"), "avg")
    return layer.add(f"pyramid_{kind}_pool", at.Pyramid(layer.positive(param, "pyramid_height")))


LAYERS = {
    "convolution": _convolution("conv"),
    "depthwiseconvolution": _convolution("conv", depthwise=True),
    "squeezeconvolution": _convolution("conv"),
    "cconvolution": _convolution("conv"),
    "deformableconvolution": _deformable,
    "modulateddeformableconvolution": _deformable,
    "convolution3d": _convolution("conv", deep=True),
    "deconvolution": _convolution("conv_transpose"),
    "depthwisedeconvolution": _convolution("conv_transpose", depthwise=True),
    "pooling": _pooling,
    "pooling3d": _pooling,
    "im2col": _im2col,
    "spp": _pyramid,
}
