"""Tables of zoo networks that had findings although all of their figures are right."""

from __future__ import annotations

import pytest

from layerscope.auditing.document import audit_text
from tests.auditing.test_mutations import document, of_figures

RIGHT = [
    # one depthwise convolution, whose filters have depth 1
    ("inception_v2-slim", "matconvnet.csv"),
    # pools with a window have operations, and the global pool has none
    ("inception_v2-no-separable-conv-slim", "darknet.2019"),
    # more than 60 convolutions, of which a late one shows that figures are rounded
    ("resnet_v1_101-slim", "backbone"),
    # convolutions with six groups
    ("regnet_y_400mf", "keras"),
    # fully connected layers of the last axis
    ("vit_b_16", "netscope"),
    # [1, 768] in a table of [1, 128, 768]
    ("bert_base", "torchinfo"),
]


@pytest.mark.parametrize(("name", "notation"), RIGHT)
def test_right_tables_have_no_findings(name: str, notation: str) -> None:
    assert of_figures(audit_text(document(name, notation), name).findings) == []
