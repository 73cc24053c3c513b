"""Operations on regions of interest."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.graph.attributes import NonMaxSuppression, PriorBox, RoIAlign, RoIPool
from layerscope.graph.types import Shape, elements
from layerscope.ops.reach import NOT_READ, everything
from layerscope.ops.rule import FREE, Call, Ops, Rule, no_inputs, passes
from layerscope.ops.saved import Saved, nothing


def _roi_shape(call: Call) -> tuple[Shape, ...]:
    a: RoIPool = call.attributes
    features, regions = call.inputs
    if len(features) != 4 or len(regions) < 2 or elements(regions[1:]) != 5:
        raise ShapeError(f"RoI pooling takes N x C x H x W and R x 5, got {features} and {regions}")
    if min(a.output) < 1:
        raise ShapeError(f"RoI pooling into {a.output}, expected at least 1 everywhere")
    return ((regions[0], features[1], *a.output),)


def _roi_ops(call: Call) -> Ops:
    """The bound: a region as large as the whole map, bins sharing a row or column at an edge."""
    positions = 1
    for size, bins in zip(call.x[2:], call.y[2:], strict=True):
        positions *= sum(-(-(i + 1) * size // bins) - i * size // bins for i in range(bins))
    return Ops(comp=call.y[0] * call.y[1] * positions - elements(call.y))


def _align_shape(call: Call) -> tuple[Shape, ...]:
    a: RoIAlign = call.attributes
    features, regions = call.inputs[:2]
    if len(features) != 4 or len(regions) != 2 or regions[1] not in (4, 5):
        raise ShapeError(f"RoI align takes N x C x H x W and R x 5, got {features} and {regions}")
    if len(call.inputs) == 3 and call.inputs[2] != regions[:1]:
        raise ShapeError(f"RoI align of {regions[0]} regions in images {call.inputs[2]}")
    if min(a.output) < 1 or a.samples < 1:
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
    area (mul 1), that of both together (add 2), a division and a comparison. Areas are made once.
    """
    images, boxes, classes = _boxes(call)
    a: NonMaxSuppression = call.attributes
    rounds = images * classes * min(a.most, boxes)
    overlap = Ops(comp=7, add=4, mul=1, div=1)
    areas = Ops(add=2, mul=1) * (images * boxes)
    return areas + overlap * (rounds * boxes) + Ops(comp=rounds * (boxes - 1))


def _prior_shape(call: Call) -> tuple[Shape, ...]:
    if len(call.x) != 4:
        raise ShapeError(f"prior boxes of {call.x}, expected N x C x H x W")
    if call.attributes.boxes < 1:
        raise ShapeError(f"{call.attributes.boxes} prior boxes a place, expected at least 1")
    return ((1, 2, 4 * call.attributes.boxes * call.x[2] * call.x[3]),)


def _prior_ops(call: Call) -> Ops:
    """Centres, then four edges a box from its centre and size, scaled by the image's."""
    a: PriorBox = call.attributes
    places = call.x[2] * call.x[3]
    return Ops(add=2, mul=2) * places + Ops(add=4, div=4) * (places * a.boxes)


RULES = {
    "roi_align": Rule(
        family="regions",
        shape=_align_shape,
        saves=lambda call: Saved(inputs=(1,)),
        ops=_align_ops,
        reach=lambda call: everything(call.inputs),
        backward=lambda call: (
            Ops(mul=4, add=4) * (call.attributes.samples**2 * elements(call.y)),
            FREE,
        ),
        arity=(2, 3),
    ),
    "nms": Rule(
        family="regions",
        shape=_nms_shape,
        saves=nothing,
        ops=_nms_ops,
        reach=lambda call: everything(call.inputs),
        backward=passes,
        arity=(2, 2),
        makes=("int64",),
        estimate="bound: as many boxes kept as may be",
    ),
    "prior_box": Rule(
        family="regions",
        shape=_prior_shape,
        saves=nothing,
        ops=_prior_ops,
        reach=lambda call: (NOT_READ, NOT_READ),
        reads=no_inputs,
        backward=passes,
        arity=(2, 2),
    ),
    "roi_pool": Rule(
        family="regions",
        shape=_roi_shape,
        saves=lambda call: Saved(inputs=(0, 1), extra=((elements(call.y), "int32"),)),
        ops=_roi_ops,
        reach=lambda call: everything(call.inputs),
        backward=lambda call: (Ops(add=call.out_elements), FREE),
        arity=(2, 2),
        estimate="bound: every region covers the whole map",
    ),
}
