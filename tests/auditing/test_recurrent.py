"""Recurrent layers in tables of Keras and torchinfo: gates, directions and layers."""

from __future__ import annotations

import pytest

from layerscope.auditing.document import audit_text

# 4 x 32 x (64 + 32 + 1) x 2 = 24,832; 3 x 16 x (64 + 16 + 2) = 3,936
KERAS = """
| Layer (type) | Output Shape | Param # |
|---|---|---|
| embedding (Embedding) | (None, 100, 64) | 640,000 |
| bidirectional (Bidirectional) | (None, 100, 64) | 24,832 |
| gru (GRU) | (None, 16) | 3,936 |
| dense (Dense) | (None, 1) | 17 |

Total params: 668,785
"""
# two layers of 4 x 32 gates, two biases each: 4 x 32 x (16 + 32 + 2) + 4 x 32 x (32 + 32 + 2)
STACKED = """
| Layer (type) | Output Shape | Param # |
|---|---|---|
| embedding (Embedding) | (None, 50, 16) | 16,000 |
| lstm (LSTM) | (None, 50, 32) | 14,848 |
| dense (Dense) | (None, 50, 8) | 264 |
| dense_1 (Dense) | (None, 50, 4) | 36 |
"""


@pytest.mark.parametrize("text", [KERAS, STACKED])
def test_right_tables(text: str) -> None:
    found = audit_text(text, "recurrent")
    assert found.findings == ()
    assert not any("listed" in note for table in found.tables for note in table.notes)


def test_outputs_that_are_not_joined_are_not_judged() -> None:
    """Both directions have 64 units and are added: no rule gives 2 x 33,024."""
    text = KERAS.replace("24,832", "66,048").replace("668,785", "710,001")
    assert audit_text(text, "added").findings == ()


def test_a_wrong_figure_of_two_layers_is_found() -> None:
    """Two recurrent layers of one kind, of which one shows the rule."""
    row = "| bidirectional (Bidirectional) | (None, 100, 64) | 24,832 |\n"
    text = KERAS.replace(row, row + row).replace("668,785", "693,617")
    assert audit_text(text, "two").findings == ()
    (finding,) = audit_text(text.replace("24,832", "24,837", 1), "changed").findings
    assert (finding.column, finding.expected) == ("Param #", "24,832")
