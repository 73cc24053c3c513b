"""Layers of a printed module with windows or sizes: convolutions, pools, padding, resampling."""

from __future__ import annotations

from collections.abc import Sequence

from layerscope.formats.document.module_arguments import Arguments, Value, is_count
from layerscope.formats.document.module_layer import RANKS, Reader, TextLayer, plane
from layerscope.graph import attributes as at
from layerscope.graph.types import Shape

POOLED = "ceil_mode and count_include_pad (False and True)"


def _window(a: Arguments, rank: int, sizes: Sequence[tuple[int, ...]] | None = None) -> at.Window:
    kernel, stride = sizes or (a.sizes("kernel_size", rank), a.sizes("stride", rank, 1))
    pads: at.Pads | at.Same
    padding = a.value("padding")
    if padding in ("same", "same_lower"):
        pads = "same_upper" if padding == "same" else "same_lower"
    elif padding == "valid":
        pads = ((0, 0),) * rank
    elif isinstance(padding, tuple) and any(isinstance(pair, tuple) for pair in padding):
        pads = _uneven(a, padding, rank)
    else:
        pads = tuple((size, size) for size in a.sizes("padding", rank, 0))
    rounding: at.Rounding = "torch" if a.flag("ceil_mode", default=False) else "floor"
    return at.Window(kernel, stride, pads, a.sizes("dilation", rank, 1), rounding)


def _uneven(a: Arguments, padding: tuple[Value, ...], rank: int) -> at.Pads:
    """Padding before and after each axis, which PyTorch does not have and layerscope prints."""
    found = []
    for pair in padding:
        each = pair if isinstance(pair, tuple) else (pair, pair)
        sizes = [size for size in each if isinstance(size, int) and is_count(size)]
        if len(sizes) == 2 == len(each):
            found.append((sizes[0], sizes[1]))
    if len(found) != rank or len(padding) != rank:
        raise a.named["padding"].refuse(a.where, f"{rank} whole numbers or pairs of them")
    return tuple(found)


def _roomy(channels: int, window: at.Window) -> Shape:
    """An input that a window fits into."""
    return (1, channels, *window.extents)


def _conv(rank: int) -> Reader:
    def read(a: Arguments) -> TextLayer:
        channels, out = a.count(0), a.count(1)
        window = _window(a, rank)
        attributes = at.Conv(window, out, a.count("groups", 1), a.flag("bias", default=True))
        if not channels:  # a lazy module
            return TextLayer("conv", attributes, params=(), why="its input channels are not set")
        mode = a.word("padding_mode", "zeros")
        return TextLayer(
            "conv", attributes, _roomy(channels, window), channels, rank=rank + 2,
            keeps_text=mode != "zeros" or a.value("padding") == "valid",
        )  # fmt: skip

    return read


def _conv_transpose(rank: int) -> Reader:
    def read(a: Arguments) -> TextLayer:
        channels, out = a.count(0), a.count(1)
        window, extra = _window(a, rank), a.sizes("output_padding", rank, 0)
        bias = a.flag("bias", default=True)
        attributes = at.TransposedConv(window, out, a.count("groups", 1), bias, extra)
        return TextLayer(
            "conv_transpose", attributes, plane(channels, rank), channels, rank=rank + 2
        )

    return read


def _pool(kind: str, rank: int, left_open: str = "") -> Reader:
    def read(a: Arguments) -> TextLayer:
        kernel = a.sizes("kernel_size", rank)
        stride = kernel if a.value("stride") is None else a.sizes("stride", rank)
        window = _window(a, rank, (kernel, stride))
        power = int(a.number("norm_type", 2))
        attributes = at.Pool(window, p=power)
        return TextLayer(f"{kind}_pool", attributes, rank=rank + 2, left_open=left_open)

    return read


def _adaptive_pool(kind: str, rank: int) -> Reader:
    def read(a: Arguments) -> TextLayer:
        given = a.value("output_size")
        if not a.has("output_size"):
            raise KeyError("output_size")
        each = given if isinstance(given, tuple) else (given,) * rank
        bins = tuple(size if isinstance(size, int) else None for size in each)
        if len(bins) != rank:
            raise a.named["output_size"].refuse(a.where, f"{rank} sizes")
        # as the writer prints them: one size for a global pool, all sizes for an adaptive one
        if rank > 1 and given == 1:
            return TextLayer(f"global_{kind}_pool", at.GlobalPool(), rank=rank + 2)
        return TextLayer(f"adaptive_{kind}_pool", at.AdaptivePool(bins), rank=rank + 2)

    return read


def _pad(mode: at.Filling, rank: int) -> Reader:
    def read(a: Arguments) -> TextLayer:
        key: str | int = "padding" if a.has("padding") else 0
        given = a.value(key)
        each = given if isinstance(given, tuple) else (given,) * (2 * rank)
        sizes = [size for size in each if isinstance(size, int)]
        if len(sizes) != 2 * rank:
            raise KeyError(key)
        pairs = [(sizes[n], sizes[n + 1]) for n in range(0, 2 * rank, 2)][::-1]
        return TextLayer(
            "pad", at.Pad(((0, 0), (0, 0), *pairs), mode), rank=rank + 2, keeps_text=True
        )

    return read


def _upsample(a: Arguments) -> TextLayer:
    modes: dict[str, at.Sampling] = {"bicubic": "bicubic", "nearest": "nearest"}
    mode = modes.get(a.word("mode", "nearest").removesuffix("-exact"), "bilinear")
    size = a.value("size")
    if size is not None:
        sizes = size if isinstance(size, tuple) else (size,)
        whole = tuple(each for each in sizes if isinstance(each, int))
        if len(whole) == 1:
            raise KeyError("size")  # of every axis, and their number is not printed
        return TextLayer("resize", at.Resize(mode, whole), keeps_text=True)
    scale = a.value("scale_factor")
    factors = scale if isinstance(scale, tuple) else (scale,)
    ratios = []
    for factor in factors:
        if isinstance(factor, (bool, str, tuple)) or factor is None or not 0 < factor < 1e6:
            raise KeyError("scale_factor")
        ratios.append(float(factor).as_integer_ratio())
    return TextLayer("resize", at.Resize(mode, scale=tuple(ratios)), keeps_text=True)


def _shuffle(*, inverse: bool) -> Reader:
    name = "downscale_factor" if inverse else "upscale_factor"
    return lambda a: TextLayer(
        "pixel_shuffle", at.PixelShuffle(a.count(name), inverse), keeps_text=inverse
    )


WINDOWED: dict[str, Reader] = {
    **{f"Conv{n}d": _conv(n) for n in RANKS},
    **{f"ConvTranspose{n}d": _conv_transpose(n) for n in RANKS},
    **{f"MaxPool{n}d": _pool("max", n) for n in RANKS},
    **{f"AvgPool{n}d": _pool("avg", n, POOLED) for n in RANKS},
    **{f"LPPool{n}d": _pool("lp", n) for n in RANKS},
    **{f"AdaptiveMaxPool{n}d": _adaptive_pool("max", n) for n in RANKS},
    **{f"AdaptiveAvgPool{n}d": _adaptive_pool("avg", n) for n in RANKS},
    **{f"ZeroPad{n}d": _pad("constant", n) for n in RANKS},
    **{f"ConstantPad{n}d": _pad("constant", n) for n in RANKS},
    **{f"ReflectionPad{n}d": _pad("reflect", n) for n in RANKS},
    **{f"ReplicationPad{n}d": _pad("edge", n) for n in RANKS},
    **{f"CircularPad{n}d": _pad("wrap", n) for n in RANKS},
    "Upsample": _upsample, "UpsamplingNearest2d": _upsample, "UpsamplingBilinear2d": _upsample,
    "PixelShuffle": _shuffle(inverse=False), "PixelUnshuffle": _shuffle(inverse=True),
}  # fmt: skip
