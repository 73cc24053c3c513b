"""Layers that no rule counts: the shapes of their outputs, and the reason.

The work of most depends on the images, such as on the number of boxes. Their fields are not checked
one by one, as no figure is printed for them.
"""

from __future__ import annotations

import re

from layerscope.formats.caffe.layer import CaffeLayer, Converter, Tensors

BOXES = "its work depends on the number of boxes in the images"
CLASSES = re.compile(r"num_classes['\"]?\s*[:=]\s*(\d{1,6})")


def anchor_target(layer: CaffeLayer, op: str = "") -> Tensors:
    """Labels, targets and weights of every anchor."""
    return layer.unknown(op=op, infer="anchor_targets", why=BOXES)


def proposal_target(layer: CaffeLayer, op: str = "") -> Tensors:
    """Regions, labels, targets and two weights, the last three with four numbers per class."""
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


def _box_annotator(layer: CaffeLayer) -> Tensors:
    """Hard example mining: labels and weights of the last two bottoms, zero for easy regions."""
    last = len(layer.bottoms)
    return layer.unknown(infer="same", sizes=(last - 2, last - 1), why="a sort by losses")


def _decode_boxes(layer: CaffeLayer) -> Tensors:
    """The regions of the second bottom, moved by offsets."""
    return layer.unknown(infer="same", sizes=(1,), why=BOXES)


def _box_output(layer: CaffeLayer) -> Tensors:
    """The best boxes of several maps."""
    param = layer.param("box_group_output_param", "box_output_param")
    most = param.whole("max_post_nms_num", param.whole("max_nms_num"))
    count = most if most > 0 else layer.options.proposals
    return layer.unknown([(count, 5)], why=BOXES)


def _without_shape(why: str = BOXES) -> Converter:
    return lambda layer: layer.unknown(why=why)


def _scalar(layer: CaffeLayer) -> Tensors:
    return layer.unknown([()], why=BOXES)


def _detectnet(layer: CaffeLayer) -> Tensors:
    """NVIDIA's: images of one size, and a label for each cell of a grid."""
    param = layer.param("detectnet_groundtruth_param")
    size = (param.whole("image_size_y", 384), param.whole("image_size_x", 1248))
    return layer.unknown([(1, 3, *size), None], why="an augmentation of images")


def _augmentation(layer: CaffeLayer) -> Tensors:
    """FlowNet's: images of the same size, or cropped to a size."""
    param = layer.param("augmentation_param")
    size = (param.whole("crop_height"), param.whole("crop_width"))
    if min(size) > 0:
        return layer.unknown(infer="resized", sizes=size, why="an augmentation of images")
    return layer.unknown(infer="same", sizes=(0,), why="an augmentation of images")


def _sampled_regions(*params: str, channels: str = "") -> Converter:
    """Regions sampled into bins, with the channels of the maps or of a field."""

    def convert(layer: CaffeLayer) -> Tensors:
        param = layer.param(*params)
        side = param.whole("group_size", param.whole("pooled_size"))
        bins = (param.whole("pooled_h", side), param.whole("pooled_w", side))
        if min(bins) < 1:
            return layer.unknown(why="no number of bins")
        depth = param.whole(channels) if channels else 0
        why = "samples that depend on the regions"
        return layer.unknown(infer="regions", sizes=(depth, *bins), why=why)

    return convert


def _spatial_transformer(layer: CaffeLayer) -> Tensors:
    """Images sampled on a grid that a second bottom transforms."""
    param = layer.param("st_param")
    size = (param.whole("output_H"), param.whole("output_W"))
    if min(size) <= 0:
        return layer.unknown(infer="same", sizes=(0,), why="no rule for a spatial transformer")
    return layer.unknown(infer="resized", sizes=size, why="no rule for a spatial transformer")


def _compact_bilinear(layer: CaffeLayer) -> Tensors:
    features = layer.param("compact_bilinear_param").whole("num_output")
    if features < 1:
        return layer.unknown(why="no num_output")
    return layer.unknown(infer="features", sizes=(features,), why="no rule for count sketches")


LAYERS: dict[str, Converter] = {
    "anchortarget": anchor_target,
    "proposaltarget": proposal_target,
    "boxannotatorohem": _box_annotator,
    "decodebbox": _decode_boxes,
    "boxoutput": _box_output,
    "boxgroupoutput": _box_output,
    "multiboxloss": _scalar,
    "detectionevaluate": _without_shape("a row for every detection, which images decide"),
    "evaldetection": _without_shape(),
    "yolodetectionoutput": _without_shape(),
    "yolov3detectionoutput": _without_shape(),
    "yolov3": _scalar,
    "region": _without_shape(),
    "detectnettransformation": _detectnet,
    "dataaugmentation": _augmentation,
    "psroialign": _sampled_regions(
        "psroi_align_param", "psroi_pooling_param", channels="output_dim"
    ),
    "deformablepsroipooling": _sampled_regions(
        "deformable_psroi_pooling_param", channels="output_dim"
    ),
    "roiwarping": _sampled_regions("roi_warping_param", "roi_pooling_param"),
    "roiwarpingtest": _sampled_regions("roi_warping_test_param", "roi_warping_param"),
    "spatialtransformer": _spatial_transformer,
    "compactbilinear": _compact_bilinear,
}
