"""What kind of layer a cell says."""

from __future__ import annotations

import pytest

from layerscope.auditing.document import sheets_of
from layerscope.sheets.kinds import is_block, kind_of

KINDS = [
    ("layer_norm", "norm"), ("LayerNorm", "norm"), ("rms_norm", "norm"), ("norm1", "lrn"),
    ("scaled_dot_product_attention", "unknown"), ("Scale", "scale"), ("reduce_mean", "unknown"),
    ("layers.16 (ReLU)", "activation"), ("layers.0.conv1", "conv"), ("submodule(21)", "unknown"),
    ("conv layers", "unknown"), ("features.norm0", "lrn"), ("Bilinear upsampling", "upsample"),
    ("nl_1 (Nonlinearity, CONV_2D)", "activation"), ("nl_9 (Nonlinearity, SOFTMAX)", "softmax"),
    ("conv_2 (Conv2D, DEPTHWISE_CONV_2D)", "depthwise"), ("w_dense (Placeholder, )", "unknown"),
    ("layer\\char`_norm", "norm"), ("layer\\_norm", "norm"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind"), KINDS)
def test_kind_of(text: str, kind: str) -> None:
    assert kind_of(text) == kind


def test_blocks() -> None:
    assert is_block("submodule(2)")
    assert is_block("3 conv layers")
    assert not is_block("layers.16")


def test_a_row_is_what_its_type_says() -> None:
    """Not what its name, a label among its figures or the layer that it takes says."""
    text = """
| Layer | Type | Output Shape | Mem | Connected to |
| --- | --- | --- | --- | --- |
| conv1 | submodule(2) | 8x8x4 | activation 512 | data |
| mean | reduce_mean | 1x1x4 | activation 4 | conv1 |
| conv2 | | 8x8x4 | activation 256 | mean |
"""
    (sheet,) = sheets_of(text)
    assert [row.kind for row in sheet.rows] == ["unknown", "unknown", "conv"]
