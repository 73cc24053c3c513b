"""Pooling under windows, over everything, and of regions."""

from __future__ import annotations

from layerscope.formats.onnx.operators.windows import window
from layerscope.formats.onnx.site import Convert, Site
from layerscope.graph import attributes as at

KINDS = {"MaxPool": "max_pool", "AveragePool": "avg_pool", "LpPool": "lp_pool"}
WHOLE = {
    "GlobalMaxPool": "global_max_pool",
    "GlobalAveragePool": "global_avg_pool",
    "GlobalLpPool": "global_lp_pool",
}


def pool(s: Site) -> None:
    """MaxPool, AveragePool, LpPool."""
    kernel = s.wholes("kernel_shape")
    indices = len(s.operator.outputs) > 1 and bool(s.operator.outputs[1])
    told = at.Pool(
        window(s, kernel),
        bool(s.whole("count_include_pad")),
        s.whole("p", 2),
        indices=indices,
    )
    s.emit(KINDS[s.op], (s.given(0),), told)


def whole(s: Site) -> None:
    """Pooling over all positions."""
    told = at.GlobalPool(s.whole("p", 2)) if s.op == "GlobalLpPool" else None
    s.emit(WHOLE[s.op], (s.given(0),), told)


def unpool(s: Site) -> None:
    """MaxUnpool: elements back to where their maxima were."""
    x = s.shape(0)
    kernel = s.wholes("kernel_shape")
    rank = len(kernel)
    strides, pads = s.wholes("strides") or (1,) * rank, s.wholes("pads") or (0,) * (2 * rank)
    if s.has(2):
        sizes = s.need(2).ints()[-rank:]
    else:
        sizes = tuple(
            (x[n + 2] - 1) * strides[n] + kernel[n] - pads[n] - pads[n + rank] for n in range(rank)
        )
    s.emit("unpool", (s.given(0), s.given(1)), at.Unpool(size=sizes))


def roi_pool(s: Site) -> None:
    """MaxRoiPool."""
    height, width = s.wholes("pooled_shape")
    told = at.RoIPool((height, width), s.real("spatial_scale", 1.0))
    s.emit("roi_pool", (s.given(0), s.given(1)), told)


OPERATORS: dict[tuple[str, str], Convert] = {
    **{("", op): pool for op in KINDS},
    **{("", op): whole for op in WHOLE},
    ("", "MaxUnpool"): unpool,
    ("", "MaxRoiPool"): roi_pool,
}
