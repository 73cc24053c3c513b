"""Layers of detectors: prior boxes, proposals, pooling of regions, detections."""

from __future__ import annotations

from math import isclose

from layerscope.formats import DEFAULTS
from layerscope.formats.caffe.layer import CaffeLayer, Converter, Tensors
from layerscope.formats.caffe.layers.uncounted import anchor_target, proposal_target
from layerscope.formats.caffe.names import key
from layerscope.graph import attributes as at

PYTHON = "a layer in Python, which is not run"
MOST_BINS = 1 << 12  # of pooled regions, an axis
MOST_RATIOS = 256  # of a prior box


def _prior_box(layer: CaffeLayer) -> Tensors:
    """One box per min_size and aspect ratio (each ratio also flipped), and one per max_size."""
    param = layer.param("prior_box_param")
    ratios = [1.0]
    given = param.numbers("aspect_ratio")
    if len(given) > MOST_RATIOS:
        what = f"{len(given)} aspect ratios, expected at most {MOST_RATIOS}"
        raise layer.error(what, param, "aspect_ratio")
    for ratio in given:
        if not any(isclose(ratio, other, abs_tol=1e-6, rel_tol=0) for other in ratios):
            ratios.append(ratio)
            if param.flag("flip", True) and ratio:
                ratios.append(1 / ratio)
    sizes = len(param.numbers("min_size"))
    boxes = len(ratios) * sizes + len(param.numbers("max_size"))
    if param.numbers("box_width"):  # forks of OpenCV and Synopsys: every box by its sides
        boxes = len(param.numbers("box_width"))
    if not boxes or param.flag("faceboxes") or param.flag("tf"):
        return layer.unknown(why="prior boxes by the rules of a fork")
    bottoms = layer.bottoms if len(layer.bottoms) == 2 else (layer.x, layer.x)
    return layer.add("prior_box", at.PriorBox(boxes), bottoms)


def _detections(layer: CaffeLayer) -> Tensors:
    param = layer.param("detection_output_param")
    if len(layer.bottoms) != 3 or "objectness_score" in param:
        return layer.unknown(why=f"{len(layer.bottoms)} bottoms, or the objectness of RefineDet")
    attrs = at.Detections(
        layer.positive(param, "num_classes"),
        param.whole("keep_top_k", -1),
        param.message("nms_param").whole("top_k", -1),
        param.flag("share_location", True),
    )
    return layer.add("detections", attrs, layer.bottoms[:3])


def _bins(layer: CaffeLayer, *params: str) -> tuple[int, int]:
    param = layer.param(*params)
    size = (layer.positive(param, "pooled_h", 1), layer.positive(param, "pooled_w", 1))
    if max(size) > MOST_BINS:
        raise layer.error(f"regions pooled into {size}, expected at most {MOST_BINS}", param)
    return size


def _roi_pooling(layer: CaffeLayer) -> Tensors:
    param = layer.param("roi_pooling_param")
    attrs = at.RoIPool(_bins(layer, "roi_pooling_param"), param.number("spatial_scale", 1.0))
    return layer.add("roi_pool", attrs, layer.bottoms[:2])


def _roi_align(layer: CaffeLayer) -> Tensors:
    names = ("roi_align_param", "roi_pooling_param")
    param = layer.param(*names)
    samples = param.whole("sampling_ratio", param.whole("sample_num", 2))
    attrs = at.RoIAlign(
        _bins(layer, *names), samples if samples > 0 else 2, param.number("spatial_scale", 1.0)
    )
    return layer.add("roi_align", attrs, layer.bottoms[:2])


def _psroi_pooling(layer: CaffeLayer) -> Tensors:
    param = layer.param("psroi_pooling_param", "rfcn_psroi_pooling_param")
    group = layer.positive(param, "group_size")
    if group > MOST_BINS:
        raise layer.error(f"group_size {group}, expected at most {MOST_BINS}", param)
    attrs = at.PSRoIPool(
        layer.positive(param, "output_dim"), group, param.number("spatial_scale", 1.0)
    )
    return layer.add("psroi_pool", attrs, layer.bottoms[:2])


def _proposal(layer: CaffeLayer) -> Tensors:
    """The best boxes, and with a second top their scores.

    Their number is that of the file, unless the option `proposals` is given.
    """
    param = layer.param("proposal_param")
    own = max(param.whole("post_nms_topn"), param.whole("post_nms_top_n"), param.whole("max_rois"))
    count = layer.options.proposals
    if own > 0 and count == DEFAULTS.proposals:
        count = own
    if len(layer.bottoms) < 2:
        return layer.unknown([(count, 5)], why="no scores and offsets of anchors")
    before = max(param.whole("pre_nms_topn"), param.whole("pre_nms_top_n"))
    attrs = at.Proposals(count, before) if before > 0 else at.Proposals(count)
    outputs = layer.add("proposals", attrs, layer.bottoms[:2])
    if len(layer.tops) > 1:  # one score per box, computed together with it
        outputs += layer.add("slice", at.Slice((1,), (0,), (1,)), outputs, part="scores")
    return outputs


def _python(layer: CaffeLayer) -> Tensors:
    """Layers in Python that many repositories share, by the name of their class or module."""
    param = layer.param("python_param")
    module, name = param.text("module"), param.text("layer")
    own = f"Python.{name or module}" if name or module else "Python"
    words = (key(name), key(module.rpartition(".")[2]))
    if "proposal" in words:
        return _proposal(layer)
    if "proposaltarget" in words:
        return proposal_target(layer, own)
    if "anchortarget" in words:
        return anchor_target(layer, own)
    if "reorg" in words:  # that of Darknet, by any of its names
        return layer.add("pixel_shuffle", at.PixelShuffle(2, inverse=True))
    if layer.in_place:
        return layer.unknown(op=own, infer="same", sizes=(0,), why=PYTHON)
    return layer.unknown(op=own, why=PYTHON)


LAYERS: dict[str, Converter] = {
    "priorbox": _prior_box,
    "detectionoutput": _detections,
    "roipooling": _roi_pooling,
    "roialign": _roi_align,
    "psroipooling": _psroi_pooling,
    "proposal": _proposal,
    "python": _python,
}
