"""Region-of-interest operators of torchvision."""

from __future__ import annotations

from layerscope.formats.torch.aten.signatures import OneOutput
from layerscope.formats.torch.draft import Draft, NoWords, Ref
from layerscope.graph import attributes as at


def roi_align(
    d: Draft,
    input: Ref,
    rois: Ref,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool = False,
) -> Ref:
    if sampling_ratio < 1:
        raise NoWords("a number of samples that depends on the size of each region")
    attrs = at.RoIAlign((pooled_height, pooled_width), sampling_ratio, spatial_scale)
    return d.add("roi_align", input, rois, at=attrs)


TABLE: dict[str, OneOutput] = {"roi_align": roi_align}
