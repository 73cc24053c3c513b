"""Layers of detectors: prior boxes, proposals, pooling of regions, what is found in the end."""

from __future__ import annotations

from math import isclose

from layerscope.formats.caffe.layer import Layer
from layerscope.graph import attributes as at

Tensors = tuple[str, ...]
MOST_BINS = 1 << 12  # of pooled regions, an axis; of ratios, a prior box


def _prior_box(layer: Layer) -> Tensors:
    """A box for every size and ratio, each ratio also flipped, and one for every larger size."""
    param = layer.param("prior_box_param")
    ratios = [1.0]
    told = param.numbers("aspect_ratio")
    if len(told) > MOST_BINS:
        raise layer.error(f"{len(told)} aspect ratios, expected at most {MOST_BINS}", param)
    for ratio in told:
        if not any(isclose(ratio, known, abs_tol=1e-6, rel_tol=0) for known in ratios):
            ratios.append(ratio)
            if param.flag("flip", True) and ratio:
                ratios.append(1 / ratio)
    sizes = len(param.numbers("min_size"))
    if not sizes:
        return layer.unknown()
    boxes = len(ratios) * sizes + len(param.numbers("max_size"))
    bottoms = layer.bottoms if len(layer.bottoms) == 2 else (layer.x, layer.x)
    return layer.add("prior_box", at.PriorBox(boxes), bottoms)


def _detections(layer: Layer) -> Tensors:
    param = layer.param("detection_output_param")
    if len(layer.bottoms) < 3:
        return layer.unknown()
    told = at.Detections(
        layer.positive(param, "num_classes"),
        param.whole("keep_top_k", -1),
        param.message("nms_param").whole("top_k", -1),
        param.flag("share_location", True),
    )
    return layer.add("detections", told, layer.bottoms[:3])


def _bins(layer: Layer, *params: str) -> tuple[int, int]:
    param = layer.param(*params)
    size = (layer.positive(param, "pooled_h", 1), layer.positive(param, "pooled_w", 1))
    if max(size) > MOST_BINS:
        raise layer.error(f"regions pooled into {size}, expected at most {MOST_BINS}", param)
    return size


def _roi_pooling(layer: Layer) -> Tensors:
    param = layer.param("roi_pooling_param")
    told = at.RoIPool(_bins(layer, "roi_pooling_param"), param.number("spatial_scale", 1.0))
    return layer.add("roi_pool", told, layer.bottoms[:2])


def _roi_align(layer: Layer) -> Tensors:
    names = ("roi_align_param", "roi_pooling_param")
    param = layer.param(*names)
    samples = param.whole("sampling_ratio", param.whole("sample_num", 2))
    told = at.RoIAlign(
        _bins(layer, *names), samples if samples > 0 else 2, param.number("spatial_scale", 1.0)
    )
    return layer.add("roi_align", told, layer.bottoms[:2])


def _psroi_pooling(layer: Layer) -> Tensors:
    param = layer.param("psroi_pooling_param", "rfcn_psroi_pooling_param")
    group = layer.positive(param, "group_size")
    if group > MOST_BINS:
        raise layer.error(f"group_size {group}, expected at most {MOST_BINS}", param)
    told = at.PSRoIPool(
        layer.positive(param, "output_dim"), group, param.number("spatial_scale", 1.0)
    )
    return layer.add("psroi_pool", told, layer.bottoms[:2])


def _proposal(layer: Layer) -> Tensors:
    """The best boxes, as many as the reader is told, and if asked for their scores."""
    count = layer.options.proposals
    if len(layer.bottoms) < 2:
        return layer.unknown([(count, 5)])
    return layer.add("proposals", at.Proposals(count), layer.bottoms[:2])


def _python(layer: Layer) -> Tensors:
    """Of layers in Python those of region proposals are known, by their module."""
    param = layer.param("python_param")
    module, name = param.text("module"), param.text("layer")
    if module.rpartition(".")[2] == "proposal_layer" or name == "ProposalLayer":
        return _proposal(layer)
    count = layer.options.proposals
    if module.rpartition(".")[2] == "proposal_target_layer" or name == "ProposalTargetLayer":
        return layer.unknown([(count, 5), (count,)], op=f"Python.{name or module}")
    return layer.unknown(op=f"Python.{name or module}" if name or module else "Python")


LAYERS = {
    "priorbox": _prior_box,
    "detectionoutput": _detections,
    "roipooling": _roi_pooling,
    "roialign": _roi_align,
    "psroipooling": _psroi_pooling,
    "proposal": _proposal,
    "python": _python,
}
