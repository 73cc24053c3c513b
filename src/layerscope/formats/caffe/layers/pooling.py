"""Max, average and stochastic pooling, and spatial pyramid pooling."""

from __future__ import annotations

from layerscope.formats.caffe.layer import CaffeLayer, Converter, Tensors
from layerscope.formats.caffe.windows import window_3d, window_of
from layerscope.graph import attributes as at

POOLS = ("MAX", "AVE", "STOCHASTIC", "AVE_EXC_PAD", "AVE_TF")  # the last two of Synopsys's fork
KINDS = {"MAX": "max", "STOCHASTIC": "stochastic"}  # all others are "avg"


def _pooling(layer: CaffeLayer) -> Tensors:
    """Output sizes are rounded up, unless a setting of a fork says otherwise."""
    param = layer.param("pooling_param", "pooling3d_param")
    word = param.choice("pool", POOLS, "MAX")
    kind = KINDS.get(word, "avg")
    if param.flag("global_pooling"):
        return layer.add(f"global_{kind}_pool", at.GlobalPool())
    floor = param.choice("round_mode", ("CEIL", "FLOOR"), "CEIL") == "FLOOR"
    floor = floor or not param.flag("ceil_mode", True) or param.flag("round_below")
    rounding: at.Rounding = "floor" if floor else "caffe"
    is_3d = layer.kind == "pooling3d" or "kernel_depth" in param
    window = (window_3d if is_3d else window_of)(layer, param, rounding)
    indices = len(layer.tops) == 2 and kind == "max"
    include_pad = word in ("MAX", "AVE", "STOCHASTIC") and param.flag("avg_include_pad", True)
    return layer.add(
        f"{kind}_pool",
        at.Pool(window, include_pad, indices=indices, index_dtype=""),
        outputs=1 + indices,
    )


def _pyramid(layer: CaffeLayer) -> Tensors:
    param = layer.param("spp_param")
    kind = KINDS.get(param.choice("pool", POOLS[:3], "MAX"), "avg")
    return layer.add(f"pyramid_{kind}_pool", at.Pyramid(layer.positive(param, "pyramid_height")))


LAYERS: dict[str, Converter] = {
    "pooling": _pooling,
    "pooling3d": _pooling,
    "spp": _pyramid,
}
