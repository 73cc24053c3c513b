"""Netscope's CH and DIM of blobs of every rank, and of layers that it calls implicit."""

from __future__ import annotations

import pytest

from layerscope import Builder, Report, analyze
from layerscope.graph.types import Shape
from layerscope.notations import write
from tests.formats.caffe.caffe_nets import net
from tests.formats.caffe.test_caffe_detectors import FASTER
from tests.notations.test_notation_netscope import Cells, Entries, parse

# Caffe's axes are batch, channels, height, width; Netscope writes width x height.
RANKS: dict[Shape, tuple[str, str]] = {
    (7,): ("1", "1x1"),
    (7, 21): ("21", "1x1"),
    (7, 5, 21): ("5", "1x21"),
    (7, 5, 3, 2): ("5", "2x3"),
    (7, 5, 4, 3, 2): ("5", "2x3x4"),
}


def rows_of(report: Report) -> tuple[dict[str, tuple[Cells, Entries]], Entries]:
    *rows, (_, total, _) = parse(write(report, "netscope"))
    return {cells[1]: (cells, entries) for cells, entries, _ in rows}, total


@pytest.mark.parametrize("shape", RANKS)
def test_channels_and_sizes_of_every_rank(shape: Shape) -> None:
    b = Builder("ranks")
    report = analyze(b.build(b.relu(b.input("x", shape), name="y")), like="netscope")
    rows, _ = rows_of(report)
    assert rows["x"][0][3:] == RANKS[shape] * 2
    assert rows["y"][0][3:] == RANKS[shape] * 2


def test_a_reshape_to_three_axes() -> None:
    """SSD's `mbox_conf_reshape`: 21 classes of every box are the height."""
    text = """input: 'conf' input_shape { dim: 1 dim: 84 dim: 1 dim: 1 }
    layer { name: 'reshape' type: 'Reshape' bottom: 'conf' top: 'reshape'
      reshape_param { shape { dim: 0 dim: -1 dim: 21 } } }
    layer { name: 'softmax' type: 'Softmax' bottom: 'reshape' top: 'softmax'
      softmax_param { axis: 2 } }"""
    rows, _ = rows_of(analyze(net(text), like="netscope"))
    assert rows["reshape"][0][3:] == ("84", "1x1", "4", "1x21")
    assert rows["softmax"][0][3:] == ("4", "1x21", "4", "1x21")


# The end of Netscope's presets of Faster R-CNN.
BOXES = """
layer { name: 'bbox_pred' type: 'InnerProduct' bottom: 'fc6' top: 'bbox_pred'
  inner_product_param { num_output: 84 } }
layer { name: 'bbox_out' type: 'implicit' bottom: 'bbox_pred' }
"""


def test_a_detector_has_netscopes_rows_and_total() -> None:
    report = analyze(net(FASTER + BOXES), like="netscope")
    rows, total = rows_of(report)
    assert rows["im_info"][0][2:] == ("implicit", "?", "?x?", "?", "?x?")
    assert rows["im_info"][1] == {}
    assert rows["bbox_out"][0][2:] == ("implicit", "84", "1x1", "84", "1x1")
    assert rows["bbox_out"][1] == {"activation": "25.2k"}
    map_ = 4 * 6
    activation = (
        3 * 64 * 96  # data; none of im_info
        + (8 + 18 + 36 + 18) * map_  # convolutions, softmax; reshapes have none
        + 300 * 5 + 300 * 8 * 49 + 300 * (16 + 21 + 21)
        + 300 * 84 * 2  # bbox_pred and bbox_out
    )  # fmt: skip
    assert report.totals.convention_activations == activation
    # data decides how many proposals are kept
    assert total["activation"] == f"~{activation / 1e3:.2f}".rstrip("0").rstrip(".") + "k"
    assert not report.coverage.unknown


def test_an_implicit_layer_costs_nothing_by_exact_rules() -> None:
    report = analyze(net(FASTER + BOXES))
    layer = report.by_name["bbox_out"]
    assert (layer.output, layer.params, layer.ops.flops) == ((300, 84), 0, 0)
    assert [tensor.shape for tensor in report.inputs] == [(1, 3, 64, 96), (1, 3)]


def test_only_inputs_ahead_of_layers_need_four_sizes() -> None:
    b = Builder("vector")
    report = analyze(b.build(b.linear(b.input("x", (2, 6)), 3, name="fc")), like="netscope")
    rows, _ = rows_of(report)
    assert rows["x"][0][2:] == ("data", "6", "1x1", "6", "1x1")
    assert rows["x"][1] == {"activation": "12"}
    text = """layer { name: 'v' type: 'Input' top: 'v' input_param { shape { dim: 2 dim: 6 } } }
    layer { name: 'r' type: 'ReLU' bottom: 'v' top: 'r' }"""
    rows, _ = rows_of(analyze(net(text), like="netscope"))
    assert rows["v"][0][2:] == ("Input", "6", "1x1", "6", "1x1")
