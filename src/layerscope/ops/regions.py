"""Operations on regions of interest."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.graph.attributes import RoIPool
from layerscope.graph.types import Shape, elements
from layerscope.ops.reach import everything
from layerscope.ops.rule import FREE, Call, Ops, Rule


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


RULES = {
    "roi_pool": Rule(
        family="regions",
        shape=_roi_shape,
        ops=_roi_ops,
        reach=lambda call: everything(call.inputs),
        backward=lambda call: (Ops(add=call.out_elements), FREE),
        arity=(2, 2),
        estimate="bound: every region covers the whole map",
    ),
}
