"""Layers of FlowNet's fork that no rule counts: the shapes of their outputs, and the reason."""

from __future__ import annotations

from layerscope.formats.caffe.layer import CaffeLayer, Converter, Tensors


def _downsample(layer: CaffeLayer) -> Tensors:
    """Resize to a size, or to that of a second bottom."""
    param = layer.param("downsample_param", "accum_param")
    size = (param.whole("top_height"), param.whole("top_width"))
    if param.whole("size_divisible_by"):
        return layer.unknown(why="a size that its fork rounds")
    sizes = size if min(size) > 0 else ()
    return layer.unknown(infer="resized", sizes=sizes, why="weights that depend on the scale")


def _correlation(layer: CaffeLayer) -> Tensors:
    """A map for each displacement of the second bottom against the first."""
    param = layer.param("correlation_param")
    most, apart = param.whole("max_displacement"), layer.positive(param, "stride_2", 1)
    is_1d = layer.kind == "correlation1d"
    maps = 2 * (most // apart) + 1
    if is_1d and param.whole("single_direction"):
        maps = most // apart + 1
    sizes = (
        param.whole("pad"),
        layer.positive(param, "kernel_size", 1),
        most,
        layer.positive(param, "stride_1", 1),
        maps if is_1d else maps * maps,
        int(is_1d),
    )
    return layer.unknown(infer="correlation", sizes=sizes, why="no rule for a correlation")


LAYERS: dict[str, Converter] = {
    "downsample": _downsample,
    "accum": _downsample,
    "correlation": _correlation,
    "correlation1d": _correlation,
}
