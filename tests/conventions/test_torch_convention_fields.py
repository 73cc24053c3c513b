"""Conventions on captured modules: the model of test_conventions.py, and causes seen in no zoo."""

from __future__ import annotations

import pytest

from layerscope import analyze, explain
from layerscope.conventions import CONVENTIONS
from tests.conventions.peers.models import partly_frozen
from tests.conventions.test_convention_fields import EXPECTED, Expected
from tests.formats.torch.torch_nets import vision

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("name", CONVENTIONS)
def test_figures_are_those_of_the_counter(name: str) -> None:
    model, data = partly_frozen()
    totals = analyze(model.eval(), input_data=data, like=name).totals
    kinds, activations = totals.convention_kinds, totals.convention_activations
    found = totals.params, totals.convention_ops, kinds.flops, activations
    assert Expected(*found) == EXPECTED[name]


def test_linear_layers_that_a_counted_class_hides() -> None:
    vision()
    pytest.importorskip("timm", reason="timm is not installed")
    (said,) = explain("timm:vit_tiny_patch16_224", counters=("ptflops",)).opinions
    hidden = "linear layers inside attention modules missed, a class it counts hides what is inside"
    assert hidden in [part.what for part in said.parts]
