"""What operators compute from small constant arrays, such as shape arithmetic."""

from __future__ import annotations

from layerscope.formats.onnx.arrays import Evaluate
from layerscope.formats.onnx.folding import elementwise, indexing, layout, reduction

EVALUATE: dict[str, Evaluate] = {
    **elementwise.EVALUATE,
    **layout.EVALUATE,
    **indexing.EVALUATE,
    **reduction.EVALUATE,
}
# Evaluators of these also read the number of outputs and the opset, which are no attributes.
WITH_CONTEXT = frozenset(
    ("Split", "Unique", "Concat", "Tile", "CenterCropPad", "Softmax", "LogSoftmax", "Hardmax")
)
