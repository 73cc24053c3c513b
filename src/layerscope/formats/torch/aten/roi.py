"""Region-of-interest operators of torchvision."""

from __future__ import annotations

from layerscope.formats.torch.aten.signatures import OneOutput
from layerscope.formats.torch.lowering import Lowering, TensorRef, Unsupported
from layerscope.graph import attributes as at


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
        raise Unsupported("a number of samples that depends on the size of each region")
    attrs = at.RoIAlign((pooled_height, pooled_width), sampling_ratio, spatial_scale)
    return d.add("roi_align", input, rois, at=attrs)


TABLE: dict[str, OneOutput] = {"roi_align": roi_align}
