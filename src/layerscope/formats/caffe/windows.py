"""Kernel size, stride, padding and dilation of a layer, in the spelling of Caffe and its forks."""

from __future__ import annotations

from layerscope.codecs.message import Message, UnknownWord
from layerscope.formats.caffe.inputs import MOST_AXES
from layerscope.formats.caffe.layer import CaffeLayer
from layerscope.graph import attributes as at

# Padding of each side, as Synopsys's fork and others call it.
SIDES = (
    (("pad_t", "pad_b"), ("pad_l", "pad_r")),
    (("pad_top", "pad_bottom"), ("pad_left", "pad_right")),
)
LEAST = {"kernel": 1, "stride": 1, "dilation": 1, "hole": 1, "kstride": 1, "pad": 0}


def window_of(layer: CaffeLayer, param: Message, rounding: at.Rounding = "floor") -> at.Window:
    """The window of a layer: as many axes as its settings give, else as the network's input has."""
    rank = _rank(layer, param)
    kernel = _per_axis(layer, param, "kernel", None, rank)
    stride = _per_axis(layer, param, "stride", 1, rank)
    dilation = _per_axis(layer, param, _dilation(param), 1, rank)
    return at.Window(kernel, stride, _pads(layer, param, rank), dilation, rounding)


def window_3d(layer: CaffeLayer, param: Message, rounding: at.Rounding = "floor") -> at.Window:
    """The window of C3D's layers, which have fields of their own for the depth axis."""
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


def _per_axis(
    layer: CaffeLayer, param: Message, word: str, default: int | None, rank: int
) -> tuple[int, ...]:
    """One value per spatial axis: given once for all, once for each, or as `word_h`, `word_w`."""
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
    for number, value in enumerate(values):
        several = len(param.fields.get(name, ())) > 1
        layer.need_size(param, name, value, LEAST[word], number if several else -1)
    return tuple(values)


def _rank(layer: CaffeLayer, param: Message) -> int:
    """Number of spatial axes: the most values of any setting, else that of the network's input."""
    if "kernel_h" in param or "kernel_w" in param:
        return 2
    most = max(
        len(param.fields.get(name, ()))
        for name in ("kernel_size", "stride", "pad", "dilation", "hole", "kstride")
    )
    if most > MOST_AXES:
        raise layer.error(f"a window of {most} axes, expected at most {MOST_AXES}", param)
    return most if most > 1 else layer.rank


def _dilation(param: Message) -> str:
    """The field for dilation: `hole` in DeepLab's forks, `kstride` in the OpenCL fork."""
    for word in ("hole", "kstride"):
        if any(name in param for name in (word, f"{word}_h", f"{word}_w")):
            return word
    return "dilation"


def _pads(layer: CaffeLayer, param: Message, rank: int) -> at.Pads | at.Same:
    """The padding: Caffe's `pad`, or of each side or `SAME` as in Synopsys's fork."""
    pads = tuple([(pad, pad) for pad in _per_axis(layer, param, "pad", 0, rank)])
    names = SIDES[any(name in param for pair in SIDES[1] for name in pair)]
    sides = tuple([(param.whole(before), param.whole(after)) for before, after in names])
    for field, value in zip(sum(names, ()), sum(sides, ()), strict=True):
        layer.need_size(param, field, value, 0)
    kind = param.whole("pad_type")
    if kind not in (0, 1):
        raise _unknown(layer, param, f"pad_type {kind}, expected 0 or 1 (SAME)")
    if kind:  # takes precedence over the padding of each side
        return "same_upper"
    if not any(map(any, sides)):
        return pads
    if rank != 2 or any(map(any, pads)):
        raise _unknown(layer, param, f"{names[0][0]} and its like beside pad, or not of 2 axes")
    return sides


def _unknown(layer: CaffeLayer, param: Message, what: str) -> UnknownWord:
    """An error that makes the layer unknown: a fork may give the value a meaning."""
    return UnknownWord.like(layer.error(what, param))
