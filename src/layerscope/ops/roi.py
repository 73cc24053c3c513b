"""Operations on regions of interest."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.graph.attributes import (
    Detections,
    NonMaxSuppression,
    PriorBox,
    Proposals,
    PSRoIPool,
    RoIAlign,
    RoIPool,
)
from layerscope.graph.types import Shape, elements
from layerscope.ops.access_map import NOT_READ, everything
from layerscope.ops.autograd import Saved, nothing
from layerscope.ops.pooling import bin_positions
from layerscope.ops.spec import FREE, Call, Ops, OpSpec, no_inputs, passes


def _roi_shape(call: Call) -> tuple[Shape, ...]:
    a: RoIPool = call.attributes
    features, regions = call.inputs
    if len(features) != 4 or len(regions) < 2 or elements(regions[1:]) != 5:
        raise ShapeError(f"RoI pooling takes N x C x H x W and R x 5, got {features} and {regions}")
    if min(a.output, default=0) < 1:
        raise ShapeError(f"RoI pooling into {a.output}, expected at least 1 everywhere")
    return ((regions[0], features[1], *a.output),)


def _roi_ops(call: Call) -> Ops:
    """The bound: a region as large as the whole map, bins sharing a row or column at an edge."""
    positions = 1
    for size, bins in zip(call.x[2:], call.y[2:], strict=True):
        positions *= bin_positions(size, bins)
    return Ops(comp=call.y[0] * call.y[1] * positions - elements(call.y))


def _align_shape(call: Call) -> tuple[Shape, ...]:
    a: RoIAlign = call.attributes
    features, regions = call.inputs[:2]
    if len(features) != 4 or len(regions) != 2 or regions[1] not in (4, 5):
        raise ShapeError(f"RoI align takes N x C x H x W and R x 5, got {features} and {regions}")
    if len(call.inputs) == 3 and call.inputs[2] != regions[:1]:
        raise ShapeError(f"RoI align of {regions[0]} regions in images {call.inputs[2]}")
    if min(a.output, default=0) < 1 or a.samples < 1:
        raise ShapeError(f"RoI align into {a.output} of {a.samples} samples, expected at least 1")
    return ((regions[0], features[1], *a.output),)


def _align_ops(call: Call) -> Ops:
    """Bilinear samples in every bin, and their mean."""
    a: RoIAlign = call.attributes
    samples = a.samples * a.samples
    each = Ops(mul=4 * samples, add=3 * samples + samples - 1, div=1)
    return each * elements(call.y)


def _boxes(call: Call) -> tuple[int, int, int]:
    """Images, boxes and classes of suppression."""
    boxes, scores = call.inputs[:2]
    if len(boxes) != 3 or boxes[2] != 4 or len(scores) != 3 or scores[::2] != boxes[:2]:
        raise ShapeError(f"suppression takes N x B x 4 and N x C x B, got {boxes} and {scores}")
    if call.attributes.most < 1:
        raise ShapeError(f"suppression to {call.attributes.most} boxes, expected at least 1")
    return boxes[0], boxes[1], scores[1]


def _nms_shape(call: Call) -> tuple[Shape, ...]:
    images, boxes, classes = _boxes(call)
    return ((images * classes * min(call.attributes.most, boxes), 3),)


def _nms_ops(call: Call) -> Ops:
    """The bound: each kept box is the best of all and meets all, those gone as well.

    An overlap is the edges shared (comp 4), their distances (add 2), none below 0 (comp 2), the
    area (mul 1), that of both together (add 2), a division and a comparison. Areas
    are computed once.
    """
    images, boxes, classes = _boxes(call)
    a: NonMaxSuppression = call.attributes
    rounds = images * classes * min(a.most, boxes)
    overlap = Ops(comp=7, add=4, mul=1, div=1)
    areas = Ops(add=2, mul=1) * (images * boxes)
    return areas + overlap * (rounds * boxes) + Ops(comp=rounds * (boxes - 1))


OVERLAP = Ops(comp=7, add=4, mul=1, div=1)  # of two boxes, as in _nms_ops
# Centre and size of an anchor, moved and scaled by offsets, and its edges again.
DECODE = Ops(add=10, mul=8, exp=2)


def _proposals_shape(call: Call) -> tuple[Shape, ...]:
    a: Proposals = call.attributes
    scores, offsets = call.inputs
    agree = len(scores) == len(offsets) == 4 and offsets[1] == 2 * scores[1]
    if not agree or scores[2:] != offsets[2:] or offsets[1] % 4:
        raise ShapeError(f"proposals of {scores} and {offsets}, expected N x 2A and N x 4A x H x W")
    if min(a.count, a.before) < 1:
        raise ShapeError(f"{a.count} proposals out of {a.before}, expected at least 1")
    return ((a.count, 5),)


def _proposals_ops(call: Call) -> Ops:
    """The bound: every anchor moved, cut to the image and sorted; each kept box meets all left."""
    a: Proposals = call.attributes
    anchors = call.inputs[1][0] * call.inputs[1][1] // 4 * elements(call.inputs[1][2:])
    left = min(a.before, anchors)
    sort = Ops(comp=anchors * max((left - 1).bit_length(), 1))
    each = DECODE + Ops(comp=4 + 2, add=2)  # edges within the image, sides not too small
    return each * anchors + sort + OVERLAP * (min(a.count, left) * left)


def _priors(call: Call) -> tuple[int, int, int]:
    """Images, prior boxes and sets of offsets of detection output."""
    a: Detections = call.attributes
    offsets, scores, priors = (*call.inputs, ())[:3]
    boxes = priors[2] // 4 if len(priors) == 3 else 0
    sets = 1 if a.shared else a.classes
    images = offsets[0] if offsets else 0
    if (
        a.classes < 1
        or elements(offsets) != images * boxes * 4 * sets
        or elements(scores) != images * boxes * a.classes
        or not boxes
    ):
        raise ShapeError(
            f"detections of {a.classes} classes from offsets {offsets}, scores {scores} and "
            f"priors {priors}: they do not agree"
        )
    return images, boxes, sets


def _detections_shape(call: Call) -> tuple[Shape, ...]:
    a: Detections = call.attributes
    images, boxes, _ = _priors(call)
    most = a.classes * (boxes if a.top < 0 else min(a.top, boxes))
    kept = most if a.keep < 0 else min(a.keep, most)
    return ((1, 1, max(images * kept, 1), 7),)


def _detections_ops(call: Call) -> Ops:
    """The bound: every box moved, every class sorted, its best compared each with each."""
    a: Detections = call.attributes
    images, boxes, sets = _priors(call)
    top = boxes if a.top < 0 else min(a.top, boxes)
    sort = Ops(comp=boxes * max((top - 1).bit_length(), 1))
    per_class = sort + OVERLAP * (top * (top - 1) // 2)
    return DECODE * (images * boxes * sets) + per_class * (images * a.classes)


def _ps_shape(call: Call) -> tuple[Shape, ...]:
    a: PSRoIPool = call.attributes
    features, regions = call.inputs
    if len(features) != 4 or len(regions) < 2 or elements(regions[1:]) != 5:
        raise ShapeError(f"RoI pooling takes N x C x H x W and R x 5, got {features} and {regions}")
    if min(a.channels, a.group) < 1 or features[1] != a.channels * a.group**2:
        raise ShapeError(
            f"{features[1]} channels, expected {a.channels} for each of {a.group}x{a.group} bins"
        )
    return ((regions[0], a.channels, a.group, a.group),)


def _ps_ops(call: Call) -> Ops:
    """The bound, as for RoI pooling, with means instead of maxima."""
    return Ops(add=_roi_ops(call).comp, div=elements(call.y))


def _prior_shape(call: Call) -> tuple[Shape, ...]:
    if len(call.x) != 4:
        raise ShapeError(f"prior boxes of {call.x}, expected N x C x H x W")
    if call.attributes.boxes < 1:
        raise ShapeError(f"{call.attributes.boxes} prior boxes per position, expected at least 1")
    return ((1, 2, 4 * call.attributes.boxes * call.x[2] * call.x[3]),)


def _prior_ops(call: Call) -> Ops:
    """Centres, then four edges a box from its centre and size, scaled by the image's."""
    a: PriorBox = call.attributes
    positions = call.x[2] * call.x[3]
    return Ops(add=2, mul=2) * positions + Ops(add=4, div=4) * (positions * a.boxes)


SPECS = {
    "roi_align": OpSpec(
        family="regions",
        attributes=RoIAlign,
        shape=_align_shape,
        saved_for_backward=lambda call: Saved(inputs=(1,)),
        ops=_align_ops,
        access_map=lambda call: everything(call.inputs),
        backward=lambda call: (
            Ops(mul=4, add=4) * (call.attributes.samples**2 * elements(call.y)),
            FREE,
        ),
        arity=(2, 3),
    ),
    "nms": OpSpec(
        family="regions",
        attributes=NonMaxSuppression,
        shape=_nms_shape,
        saved_for_backward=nothing,
        ops=_nms_ops,
        access_map=lambda call: everything(call.inputs),
        backward=passes,
        arity=(2, 2),
        out_dtypes=("int64",),
        data_sized=True,
        estimate="bound: as many boxes kept as may be",
    ),
    "prior_box": OpSpec(
        family="regions",
        attributes=PriorBox,
        shape=_prior_shape,
        saved_for_backward=nothing,
        ops=_prior_ops,
        access_map=lambda call: (NOT_READ, NOT_READ),
        input_elements=no_inputs,
        backward=passes,
        arity=(2, 2),
    ),
    "proposals": OpSpec(
        family="regions",
        attributes=Proposals,
        shape=_proposals_shape,
        saved_for_backward=nothing,
        ops=_proposals_ops,
        access_map=lambda call: everything(call.inputs),
        backward=passes,
        arity=(2, 2),
        data_sized=True,
        estimate="bound: as many boxes as may be, each compared with all",
    ),
    "detections": OpSpec(
        family="regions",
        attributes=Detections,
        shape=_detections_shape,
        saved_for_backward=nothing,
        ops=_detections_ops,
        access_map=lambda call: everything(call.inputs),
        backward=passes,
        arity=(3, 3),
        data_sized=True,
        estimate="bound: as many boxes as may be, each compared with all",
    ),
    "psroi_pool": OpSpec(
        family="regions",
        attributes=PSRoIPool,
        shape=_ps_shape,
        saved_for_backward=lambda call: Saved(inputs=(1,)),
        ops=_ps_ops,
        access_map=lambda call: everything(call.inputs),
        backward=lambda call: (Ops(add=_roi_ops(call).comp, div=elements(call.y)), FREE),
        arity=(2, 2),
        estimate="bound: every region covers the whole map",
    ),
    "roi_pool": OpSpec(
        family="regions",
        attributes=RoIPool,
        names={"caffe": "ROIPooling", "dagnn": "ROIPooling"},
        shape=_roi_shape,
        saved_for_backward=lambda call: Saved(inputs=(0, 1), extra=((elements(call.y), "int32"),)),
        ops=_roi_ops,
        access_map=lambda call: everything(call.inputs),
        backward=lambda call: (Ops(add=call.out_elements), FREE),
        arity=(2, 2),
        estimate="bound: every region covers the whole map",
    ),
}
