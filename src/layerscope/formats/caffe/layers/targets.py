"""Layers of detectors whose work depends on what is in the images: their shapes, and the reason.

Fields of these layers are not looked at one by one: no figure is printed for them.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from layerscope.formats.caffe.layer import Layer

Tensors = tuple[str, ...]
BOXES = "its work depends on the number of boxes in the images"
CLASSES = re.compile(r"num_classes['\"]?\s*[:=]\s*(\d{1,6})")


def anchor_target(layer: Layer, op: str = "") -> Tensors:
    """Labels, targets and weights of every anchor."""
    return layer.unknown(op=op, infer="anchor_targets", why=BOXES)


def proposal_target(layer: Layer, op: str = "") -> Tensors:
    """Regions, labels, then targets and two weights of four numbers a class."""
    param = layer.param("proposal_target_param")
    batch = param.whole("batch_size")
    count = batch if batch > 0 else layer.options.proposals
    found = CLASSES.search(layer.param("python_param").text("param_str")[:10_000])
    classes = int(found[1]) if found else param.whole("cls_num", param.whole("num_classes"))
    boxes = layer.param("bbox_reg_param")
    if "cls_aware" in boxes and not boxes.flag("cls_aware"):
        classes = 2
    wide = (count, 4 * classes) if classes > 0 else None
    return layer.unknown([(count, 5), (count,), wide, wide, wide], op, why=BOXES)


def _hard_examples(layer: Layer) -> Tensors:
    """Labels and weights of the last two bottoms, those of easy regions switched off."""
    last = len(layer.bottoms)
    return layer.unknown(infer="same", sizes=(last - 2, last - 1), why="a sort by losses")


def _decoded(layer: Layer) -> Tensors:
    """Regions of the second bottom, moved."""
    return layer.unknown(infer="same", sizes=(1,), why=BOXES)


def _grouped(layer: Layer) -> Tensors:
    """The best boxes of several maps."""
    param = layer.param("box_group_output_param", "box_output_param")
    most = param.whole("max_post_nms_num", param.whole("max_nms_num"))
    count = most if most > 0 else layer.options.proposals
    return layer.unknown([(count, 5)], why=BOXES)


def _data_dependent(why: str = BOXES) -> Callable[[Layer], Tensors]:
    return lambda layer: layer.unknown(why=why)


def _scalar(layer: Layer) -> Tensors:
    return layer.unknown([()], why=BOXES)


def _detect_net(layer: Layer) -> Tensors:
    """NVIDIA's: images of one size, and a label for each cell of a grid."""
    param = layer.param("detectnet_groundtruth_param")
    size = (param.whole("image_size_y", 384), param.whole("image_size_x", 1248))
    return layer.unknown([(1, 3, *size), None], why="an augmentation of images")


def _augmented(layer: Layer) -> Tensors:
    """FlowNet's: images as they are, or cut to a size."""
    param = layer.param("augmentation_param")
    size = (param.whole("crop_height"), param.whole("crop_width"))
    if min(size) > 0:
        return layer.unknown(infer="resized", sizes=size, why="an augmentation of images")
    return layer.unknown(infer="same", sizes=(0,), why="an augmentation of images")


def _regions(*params: str, channels: str = "") -> Callable[[Layer], Tensors]:
    """Regions sampled into bins; channels are those of the maps, or what a field says."""

    def make(layer: Layer) -> Tensors:
        param = layer.param(*params)
        side = param.whole("group_size", param.whole("pooled_size"))
        bins = (param.whole("pooled_h", side), param.whole("pooled_w", side))
        if min(bins) < 1:
            return layer.unknown(why="no number of bins")
        depth = param.whole(channels) if channels else 0
        why = "samples that depend on the regions"
        return layer.unknown(infer="regions", sizes=(depth, *bins), why=why)

    return make


def _transformer(layer: Layer) -> Tensors:
    """Images sampled on a grid that a second bottom turns."""
    param = layer.param("st_param")
    size = (param.whole("output_H"), param.whole("output_W"))
    told = size if min(size) > 0 else ()
    if not told:
        return layer.unknown(infer="same", sizes=(0,), why="no rule for a spatial transformer")
    return layer.unknown(infer="resized", sizes=told, why="no rule for a spatial transformer")


def _bilinear(layer: Layer) -> Tensors:
    features = layer.param("compact_bilinear_param").whole("num_output")
    if features < 1:
        return layer.unknown(why="no num_output")
    return layer.unknown(infer="features", sizes=(features,), why="no rule for count sketches")


LAYERS = {
    "anchortarget": anchor_target,
    "proposaltarget": proposal_target,
    "boxannotatorohem": _hard_examples,
    "decodebbox": _decoded,
    "boxoutput": _grouped,
    "boxgroupoutput": _grouped,
    "multiboxloss": _scalar,
    "detectionevaluate": _data_dependent("a row for every detection, which images decide"),
    "evaldetection": _data_dependent(),
    "yolodetectionoutput": _data_dependent(),
    "yolov3detectionoutput": _data_dependent(),
    "yolov3": _scalar,
    "region": _data_dependent(),
    "detectnettransformation": _detect_net,
    "dataaugmentation": _augmented,
    "psroialign": _regions("psroi_align_param", "psroi_pooling_param", channels="output_dim"),
    "deformablepsroipooling": _regions("deformable_psroi_pooling_param", channels="output_dim"),
    "roiwarping": _regions("roi_warping_param", "roi_pooling_param"),
    "roiwarpingtest": _regions("roi_warping_test_param", "roi_warping_param"),
    "spatialtransformer": _transformer,
    "compactbilinear": _bilinear,
}
