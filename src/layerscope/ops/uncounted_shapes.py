"""Output shapes of Caffe layers whose operations depend on data and cannot be counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from layerscope.graph.attributes import Opaque
from layerscope.graph.types import Shape, Tensor

Shapes = tuple[Shape | None, ...]
Inputs = Sequence[Shape | None]


def _shapes_of_inputs(inputs: Inputs, sizes: tuple[int, ...]) -> Shapes:
    """Output n has the shape of input `sizes[n]`."""
    return tuple([inputs[n] if 0 <= n < len(inputs) else None for n in sizes])


def _anchor_targets(inputs: Inputs, sizes: tuple[int, ...]) -> Shapes:
    """Labels, targets and two weights of A anchors at each position of N x 2A x H x W scores."""
    scores = inputs[0] if inputs else None
    if scores is None or len(scores) != 4 or scores[1] % 2:
        return ()
    batch, pairs, height, width = scores
    anchors = pairs // 2
    boxes = (batch, 4 * anchors, height, width)
    return ((batch, 1, anchors * height, width), boxes, boxes, boxes)


def _correlation(inputs: Inputs, sizes: tuple[int, ...]) -> Shapes:
    """A map for each displacement; `sizes` are pad, kernel, displacement, stride, maps, flat.

    With `flat` displacements and padding are along the width alone.
    """
    if not inputs or inputs[0] is None or len(inputs[0]) != 4:
        return ()
    pad, kernel, most, step, maps, flat = sizes
    batch, _, height, width = inputs[0]
    radius = (kernel - 1) // 2
    rows = height - 2 * radius if flat else height + 2 * (pad - most - radius)
    columns = width + 2 * (pad - most - radius)
    spatial = (-(-rows // step), -(-columns // step))
    return ((batch, maps, *spatial),) if min(spatial) > 0 else ()


def _features(inputs: Inputs, sizes: tuple[int, ...]) -> Shapes:
    """A vector of so many features for each image."""
    return ((inputs[0][0], *sizes),) if inputs and inputs[0] else ()


def _resized(inputs: Inputs, sizes: tuple[int, ...]) -> Shapes:
    """N x C x `sizes` of N x C x H x W; without sizes, those of the second input."""
    if not inputs or inputs[0] is None or len(inputs[0]) != 4:
        return ()
    if not sizes:
        if len(inputs) < 2 or inputs[1] is None or len(inputs[1]) != 4:
            return ()
        sizes = inputs[1][2:]
    return ((*inputs[0][:2], *sizes),)


def _regions(inputs: Inputs, sizes: tuple[int, ...]) -> Shapes:
    """R x C x bins of R regions, the second input; C is that of the first where `sizes` has 0."""
    features, regions = (*inputs, None, None)[:2]
    if features is None or len(features) != 4 or not regions:
        return ()
    channels, *bins = sizes
    return ((regions[0], channels or features[1], *bins),)


OUTPUTS: Mapping[str, Callable[[Inputs, tuple[int, ...]], Shapes]] = {
    "same": _shapes_of_inputs,
    "anchor_targets": _anchor_targets,
    "correlation": _correlation,
    "features": _features,
    "resized": _resized,
    "regions": _regions,
}


def opaque_shapes(opaque: Opaque, inputs: Sequence[Tensor]) -> Shapes:
    """Shapes of the outputs of a node without a rule; () where those of its inputs are unknown."""
    return OUTPUTS[opaque.infer]([tensor.shape for tensor in inputs], opaque.sizes)
