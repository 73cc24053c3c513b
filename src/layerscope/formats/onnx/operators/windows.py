"""What convolutions and pooling are told of their windows."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.site import Site
from layerscope.graph import attributes as at


def window(s: Site, kernel: tuple[int, ...]) -> at.Window:
    """The window of a convolution or of pooling."""
    rank = len(kernel)
    auto = s.text("auto_pad", "NOTSET")
    strides = s.wholes("strides") or (1,) * rank
    dilations = s.wholes("dilations") or (1,) * rank
    pads: at.Pads | at.Same
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        pads = "same_upper" if auto == "SAME_UPPER" else "same_lower"
    elif auto == "VALID":
        pads = ((0, 0),) * rank
    else:
        given = s.wholes("pads") or (0,) * (2 * rank)
        if len(given) != 2 * rank:
            raise ShapeError(f"{len(given)} pads for a window of {rank} axes")
        pads = tuple((given[n], given[n + rank]) for n in range(rank))
    rounding: at.Rounding = "floor"
    if s.whole("ceil_mode"):
        rounding = "torch"
    return at.Window(kernel, strides, pads, dilations, rounding)
