"""Region-of-interest operators of torchvision."""

from __future__ import annotations

from msgspec import Struct

from layerscope.formats.torch.aten.signatures import OneOutput, takes
from layerscope.formats.torch.lowering import Lowering, TensorRef, Unsupported
from layerscope.graph import attributes as at


class RoIAlignArgs(Struct, frozen=True):
    """Arguments of torchvision::roi_align."""

    input: TensorRef
    rois: TensorRef
    spatial_scale: float
    pooled_height: int
    pooled_width: int
    sampling_ratio: int
    aligned: bool = False


@takes(RoIAlignArgs)
def roi_align(d: Lowering, args: RoIAlignArgs) -> TensorRef:
    if args.sampling_ratio < 1:
        raise Unsupported("a number of samples that depends on the size of each region")
    attrs = at.RoIAlign(
        (args.pooled_height, args.pooled_width), args.sampling_ratio, args.spatial_scale
    )
    return d.add("roi_align", args.input, args.rois, at=attrs)


TABLE: dict[str, OneOutput] = {"roi_align": roi_align}
