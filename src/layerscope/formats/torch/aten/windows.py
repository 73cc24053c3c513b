"""Convolutions, pooling, resampling: what slides or samples over space."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from layerscope.formats.torch.aten.shaping import reshape
from layerscope.formats.torch.lowering import Lowering, Refused, TensorRef, Unsupported, same_dtypes
from layerscope.graph import attributes as at
from layerscope.graph.types import Shape, Source, elements

Sizes = int | Sequence[int]
IN_WORDS = ".padding"  # of a convolution that is told to pad to the same size


def _sizes(value: Sizes, rank: int) -> tuple[int, ...]:
    if isinstance(value, int):
        return (value,) * rank
    sizes = tuple([int(each) for each in value])  # a module may keep integers of numpy
    return sizes * rank if len(sizes) == 1 else sizes


@lru_cache(4096)
def _window(kernel: Shape, stride: Shape, pads: at.Pads, dilation: Shape) -> at.Window:
    return at.Window(kernel, stride, pads, dilation)


def _batched(d: Lowering, x: TensorRef, rank: int) -> TensorRef:
    """With the axis of the batch, which PyTorch lets one leave out."""
    return x if x.rank == rank + 2 else reshape(d, x, (1, *x.shape))


def _unbatched(d: Lowering, made: TensorRef, x: TensorRef, rank: int) -> TensorRef:
    return made if x.rank == rank + 2 else reshape(d, made, made.shape[1:])


def conv(
    d: Lowering,
    input: TensorRef,
    weight: TensorRef,
    bias: TensorRef | None = None,
    stride: Sizes = 1,
    padding: Any = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> TensorRef:
    kernel = weight.shape[2:]
    rank = len(kernel)
    x = _batched(d, input, rank)
    if x.shape[1] != weight.shape[1] * groups or weight.shape[0] % groups:
        raise Unsupported("channels that do not agree")
    spread = _sizes(dilation, rank)
    if isinstance(padding, str):
        d.source = Source(op=f"{d.source.op}{IN_WORDS}")  # an operator of its own to PyTorch
        pads: Any = ((0, 0),) * rank
        if padding == "same":
            whole = [gap * (size - 1) for gap, size in zip(spread, kernel, strict=True)]
            pads = tuple([(each // 2, each - each // 2) for each in whole])
    else:
        pads = tuple([(each, each) for each in _sizes(padding, rank)])
    window = _window(kernel, _sizes(stride, rank), pads, spread)
    told = at.Conv(window, weight.shape[0], int(groups), bias is not None)
    made = d.with_param_inputs("conv", x, told, {"weight": weight, "bias": bias})
    return _unbatched(d, made, input, rank)


def conv_transpose(
    d: Lowering,
    input: TensorRef,
    weight: TensorRef,
    bias: TensorRef | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> TensorRef:
    kernel = weight.shape[2:]
    rank = len(kernel)
    x = _batched(d, input, rank)
    if x.shape[1] != weight.shape[0]:
        raise Refused(f"an input of {x.shape[1]} channels, the weight is for {weight.shape[0]}")
    pads = tuple((each, each) for each in _sizes(padding, rank))
    window = at.Window(kernel, _sizes(stride, rank), pads, _sizes(dilation, rank))
    extra = _sizes(output_padding, rank)
    groups = int(groups)
    told = at.TransposedConv(
        window, weight.shape[1] * groups, groups, bias is not None, extra if any(extra) else ()
    )
    made = d.with_param_inputs("conv_transpose", x, told, {"weight": weight, "bias": bias})
    return _unbatched(d, made, input, rank)


def convolution(
    d: Lowering,
    input: TensorRef,
    weight: TensorRef,
    bias: TensorRef | None,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    transposed: bool,
    output_padding: Sizes,
    groups: int,
    *_: Any,
) -> TensorRef:
    if transposed:
        return conv_transpose(
            d, input, weight, bias, stride, padding, output_padding, groups, dilation
        )
    return conv(d, input, weight, bias, stride, padding, dilation, groups)


def _pool(kind: str, rank: int) -> Any:
    def translate(
        d: Lowering,
        self: TensorRef,
        kernel_size: Sizes,
        stride: Any = None,
        padding: Sizes = 0,
        *told: Any,
    ) -> Any:
        kernel = _sizes(kernel_size, rank)
        steps = _sizes(stride, rank) if stride not in (None, [], ()) else kernel
        pads = tuple((each, each) for each in _sizes(padding, rank))
        rest = list(told)
        spread = _sizes(rest.pop(0), rank) if kind == "max" and rest else (1,) * rank
        ceil = bool(rest.pop(0)) if rest else False
        window = at.Window(kernel, steps, pads, spread, "torch" if ceil else "floor")
        x = _batched(d, self, rank)
        include = bool(rest.pop(0)) if kind == "avg" and rest else True
        made = d.add(f"{kind}_pool", x, at=at.Pool(window, include))
        return _unbatched(d, made, self, rank)

    return translate


def _max_with_indices(rank: int) -> Any:
    def translate(
        d: Lowering,
        self: TensorRef,
        kernel_size: Sizes,
        stride: Any = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
    ) -> list[TensorRef]:
        kernel = _sizes(kernel_size, rank)
        steps = _sizes(stride, rank) if stride not in (None, [], ()) else kernel
        pads = tuple((each, each) for each in _sizes(padding, rank))
        rounding: Any = "torch" if ceil_mode else "floor"
        window = at.Window(kernel, steps, pads, _sizes(dilation, rank), rounding)
        x = _batched(d, self, rank)
        made = d.several("max_pool", x, at=at.Pool(window, indices=True))
        return [_unbatched(d, each, self, rank) for each in made]

    return translate


def _adaptive(kind: str, rank: int, indices: bool = False) -> Any:
    def translate(d: Lowering, self: TensorRef, output_size: Any) -> Any:
        if self.rank - rank not in (1, 2):
            raise Unsupported(f"pooling of {self.rank} axes")
        if not isinstance(output_size, int) and len(output_size) != rank:
            raise Unsupported(f"{len(output_size)} sizes to pool to")
        sizes = _sizes(output_size, rank)
        x = _batched(d, self, rank)
        op = f"adaptive_{kind}_pool"
        if indices:
            made = d.several(op, x, at=at.AdaptivePool(sizes, indices=True))
            return [_unbatched(d, each, self, rank) for each in made]
        return _unbatched(d, d.add(op, x, at=at.AdaptivePool(sizes)), self, rank)

    return translate


def _upsample(mode: str) -> Any:
    def translate(
        d: Lowering, self: TensorRef, output_size: Any = None, *told: Any, **more: Any
    ) -> TensorRef:
        """To a size, or by factors; the size is what counts, factors tell how positions map."""
        rank = self.rank - 2
        rest = list(told)
        align = False
        if mode != "nearest":
            align = bool(rest.pop(0)) if rest else bool(more.get("align_corners", False))
        factors = more.get("scale_factors")
        if rest and isinstance(rest[0], (list, tuple)):
            factors = rest[0]
        if output_size is not None:
            sizes = tuple(output_size)
        elif factors is not None:
            pairs = zip(self.shape[2:], factors, strict=True)
            sizes = tuple(int(size * factor) for size, factor in pairs)
        else:
            raise Unsupported("a size that is not told")
        word: Any = mode
        assert len(sizes) == rank
        return d.add("resize", self, at=at.Resize(word, size=sizes, align_corners=align))

    return translate


MODES = {0: "bilinear", 1: "nearest", 2: "bicubic"}


def grid_sample(
    d: Lowering, input: TensorRef, grid: TensorRef, interpolation_mode: int = 0, *_: Any, **__: Any
) -> TensorRef:
    word: Any = MODES[interpolation_mode]
    return d.add("grid_sample", input, grid, at=at.GridSample(word))


def affine_grid(
    d: Lowering, theta: TensorRef, size: Sequence[int], align_corners: bool
) -> TensorRef:
    return d.add("affine_grid", theta, at=at.AffineGrid(tuple(size), align_corners))


def fractional_pool(
    d: Lowering, self: TensorRef, kernel_size: Sizes, output_size: Sizes, *_: Any
) -> TensorRef:
    """Windows of one size at places that are drawn, each its largest element."""
    rank = len(output_size) if isinstance(output_size, (list, tuple)) else self.rank - 2
    kernel, sizes = _sizes(kernel_size, rank), _sizes(output_size, rank)
    shape = (*self.shape[: self.rank - rank], *sizes)
    compared = (elements(kernel) - 1) * elements(shape)
    return d.add("custom", self, at=at.CustomCost((shape,), (self.dtype,), comp=compared))


def im2col(
    d: Lowering, self: TensorRef, kernel_size: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes
) -> TensorRef:
    x = _batched(d, self, 2)
    pads = tuple((each, each) for each in _sizes(padding, 2))
    window = at.Window(_sizes(kernel_size, 2), _sizes(stride, 2), pads, _sizes(dilation, 2))
    made = d.add("im2col", x, at=at.Im2Col(window))
    flat = reshape(d, made, (*made.shape[:2], -1))
    return flat if self.rank == 4 else reshape(d, flat, flat.shape[1:])


def col2im(
    d: Lowering,
    self: TensorRef,
    output_size: Sequence[int],
    kernel_size: Sizes,
    dilation: Sizes,
    padding: Sizes,
    stride: Sizes,
) -> TensorRef:
    """Columns added up where they stood: every element is one addition."""
    x = self if self.rank == 3 else reshape(d, self, (1, *self.shape))
    pads = tuple((each, each) for each in _sizes(padding, 2))
    kernel = _sizes(kernel_size, 2)
    window = at.Window(kernel, _sizes(stride, 2), pads, _sizes(dilation, 2))
    taps = elements(kernel)
    if x.shape[2] != elements(window.slide(tuple(output_size))) or x.shape[1] % taps:
        raise Unsupported("columns of another image")
    batch, channels = x.shape[0], x.shape[1] // taps
    sides = [s + 2 * p for s, p in zip(output_size, _sizes(padding, 2), strict=True)]
    updates = reshape(d, x, (batch, channels, taps * x.shape[2]))
    ground = at.DeclaredOutputs(((batch, channels, sides[0] * sides[1]),), (x.dtype,))
    places = at.DeclaredOutputs((updates.shape,), ("int64",))
    made = d.add(
        "scatter",
        d.add("constant", at=ground),
        d.add("constant", at=places),
        updates,
        at=at.Scatter(2, add=True),
    )
    image = reshape(d, made, (batch, channels, *sides))
    if any(_sizes(padding, 2)):
        starts = _sizes(padding, 2)
        ends = tuple(p + s for p, s in zip(starts, output_size, strict=True))
        image = d.add("slice", image, at=at.Slice((2, 3), starts, ends, (1, 1)))
    return image if self.rank == 3 else reshape(d, image, image.shape[1:])


def max_unpool(
    d: Lowering, self: TensorRef, indices: TensorRef, output_size: Sequence[int], *_: Any
) -> TensorRef:
    sizes = tuple(output_size)
    x, places = (_batched(d, each, len(sizes)) for each in (self, indices))
    made = d.add("unpool", x, places, at=at.Unpool(size=sizes))
    return _unbatched(d, made, self, len(sizes))


def roi_align(
    d: Lowering,
    input: TensorRef,
    rois: TensorRef,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool = False,
) -> TensorRef:
    if sampling_ratio < 1:
        raise Unsupported("samples that the size of a region decides")
    told = at.RoIAlign((pooled_height, pooled_width), sampling_ratio, spatial_scale)
    return d.add("roi_align", input, rois, at=told)


TABLE: dict[str, Any] = {
    **dict.fromkeys(("convolution", "_convolution"), same_dtypes(convolution)),
    "im2col": im2col,
    "col2im": col2im,
    "max_unpool2d": max_unpool,
    "max_unpool3d": max_unpool,
    "grid_sampler": grid_sample,
    "grid_sampler_2d": grid_sample,
    "grid_sampler_3d": grid_sample,
    "affine_grid_generator": affine_grid,
    "fractional_max_pool2d": fractional_pool,
    "fractional_max_pool3d": fractional_pool,
    "roi_align": roi_align,
    **dict.fromkeys([f"conv{n}d" for n in (1, 2, 3)], same_dtypes(conv)),
    **dict.fromkeys([f"conv_transpose{n}d" for n in (1, 2, 3)], same_dtypes(conv_transpose)),
    **{f"max_pool{n}d": _pool("max", n) for n in (1, 2, 3)},
    **{f"avg_pool{n}d": _pool("avg", n) for n in (1, 2, 3)},
    **{f"max_pool{n}d_with_indices": _max_with_indices(n) for n in (1, 2, 3)},
    **{f"adaptive_avg_pool{n}d": _adaptive("avg", n) for n in (1, 2, 3)},
    **{f"_adaptive_avg_pool{n}d": _adaptive("avg", n) for n in (2, 3)},
    **{f"adaptive_max_pool{n}d": _adaptive("max", n, indices=True) for n in (1, 2, 3)},
    **{f"upsample_nearest{n}d": _upsample("nearest") for n in (1, 2, 3)},
    **{f"_upsample_nearest_exact{n}d": _upsample("nearest") for n in (1, 2, 3)},
    "upsample_linear1d": _upsample("bilinear"),
    "upsample_bilinear2d": _upsample("bilinear"),
    "upsample_trilinear3d": _upsample("bilinear"),
    "upsample_bicubic2d": _upsample("bicubic"),
    "_upsample_bilinear2d_aa": _upsample("bilinear"),
    "_upsample_bicubic2d_aa": _upsample("bicubic"),
}
