"""Upsampling, grid sampling, unpooling and pixel shuffle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from layerscope.formats.torch.aten.convolution import add_batch_axis, drop_batch_axis
from layerscope.formats.torch.aten.layout import reshape
from layerscope.formats.torch.aten.signatures import OneOutput
from layerscope.formats.torch.lowering import Lowering, TensorRef, Unsupported
from layerscope.graph import attributes as at

Mode = Literal["nearest", "bilinear", "bicubic"]
GRID_MODES: dict[int, Mode] = {0: "bilinear", 1: "nearest", 2: "bicubic"}


def upsample(mode: Mode) -> OneOutput:
    """A converter to `resize`.

    Positional options are align_corners, except for nearest, then scale factors: a list of all in
    the overload `vec`, one float per axis in the others, which have an output size.
    """

    def convert(
        d: Lowering,
        self: TensorRef,
        output_size: Sequence[int] | None = None,
        *options: object,
        align_corners: bool = False,
        scale_factors: Sequence[float] | None = None,
        **_: object,
    ) -> TensorRef:
        rest = list(options)
        align = False
        if mode != "nearest":
            align = bool(rest.pop(0)) if rest else bool(align_corners)
        factors = scale_factors
        if rest and isinstance(rest[0], (list, tuple)):
            factors = rest[0]
        if output_size is not None:
            sizes = tuple(output_size)
        elif factors is not None:
            pairs = zip(self.shape[2:], factors, strict=True)
            sizes = tuple(int(size * factor) for size, factor in pairs)
        else:
            raise Unsupported("neither an output size nor scale factors")
        assert len(sizes) == self.rank - 2
        return d.add("resize", self, at=at.Resize(mode, size=sizes, align_corners=align))

    return convert


def upsample_backward(mode: Mode) -> OneOutput:
    """A converter of the gradient of `upsample`."""

    def convert(
        d: Lowering,
        grad_output: TensorRef,
        output_size: Sequence[int],
        input_size: Sequence[int],
        *options: object,
        **_: object,
    ) -> TensorRef:
        align = mode != "nearest" and bool(options and options[0])
        attrs = at.Resize(mode, size=tuple(output_size), align_corners=align)
        return d.gradient("resize", grad_output, tuple(input_size), attrs)

    return convert


def grid_sample(
    d: Lowering,
    input: TensorRef,
    grid: TensorRef,
    interpolation_mode: int = 0,
    *_: object,
    **__: object,
) -> TensorRef:
    return d.add("grid_sample", input, grid, at=at.GridSample(GRID_MODES[interpolation_mode]))


def affine_grid(
    d: Lowering, theta: TensorRef, size: Sequence[int], align_corners: bool
) -> TensorRef:
    return d.add("affine_grid", theta, at=at.AffineGrid(tuple(size), align_corners))


def max_unpool(
    d: Lowering, self: TensorRef, indices: TensorRef, output_size: Sequence[int], *_: object
) -> TensorRef:
    sizes = tuple(output_size)
    x, index = (add_batch_axis(d, each, len(sizes)) for each in (self, indices))
    y = d.add("unpool", x, index, at=at.Unpool(size=sizes))
    return drop_batch_axis(d, y, self, len(sizes))


def pixel_shuffle(d: Lowering, self: TensorRef, upscale_factor: int) -> TensorRef:
    return _shuffle(d, self, at.PixelShuffle(upscale_factor))


def pixel_unshuffle(d: Lowering, self: TensorRef, downscale_factor: int) -> TensorRef:
    return _shuffle(d, self, at.PixelShuffle(downscale_factor, inverse=True))


def _shuffle(d: Lowering, x: TensorRef, attrs: at.PixelShuffle) -> TensorRef:
    if x.rank not in (3, 4):
        raise Unsupported(f"pixel shuffle of a tensor of rank {x.rank}")
    y = d.add("pixel_shuffle", add_batch_axis(d, x, 2), at=attrs)
    return y if x.rank == 4 else reshape(d, y, y.shape[1:])


# By the part of an operator's name between `upsample_` and `_backward`.
UPSAMPLE: dict[str, Mode] = {
    **dict.fromkeys(("nearest1d", "nearest2d", "nearest3d"), "nearest"),
    **dict.fromkeys(("linear1d", "bilinear2d", "trilinear3d"), "bilinear"),
    "bicubic2d": "bicubic",
}

TABLE: dict[str, OneOutput] = {
    **{f"upsample_{name}": upsample(mode) for name, mode in UPSAMPLE.items()},
    **{f"upsample_{name}_backward": upsample_backward(mode) for name, mode in UPSAMPLE.items()},
    **{f"_upsample_nearest_exact{n}d": upsample("nearest") for n in (1, 2, 3)},
    "_upsample_bilinear2d_aa": upsample("bilinear"),
    "_upsample_bicubic2d_aa": upsample("bicubic"),
    "grid_sampler": grid_sample,
    "grid_sampler_2d": grid_sample,
    "grid_sampler_3d": grid_sample,
    "affine_grid_generator": affine_grid,
    "max_unpool2d": max_unpool,
    "max_unpool3d": max_unpool,
    "pixel_shuffle": pixel_shuffle,
    "pixel_unshuffle": pixel_unshuffle,
}
