"""The parameter total is a lower bound only where a layer's parameters are unknown."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from msgspec.structs import replace

from layerscope import Builder, analyze
from tests.codecs.wire import blobs, field, lenet
from tests.codecs.wire import layer as stored_layer
from tests.formats.caffe.caffe_nets import DATA, layer, net

MYSTERY = layer("Mystery", top="m", name="m")
CONV = "convolution_param { num_output: 4 kernel_size: 3 }"


def test_a_network_that_is_known_is_complete() -> None:
    assert analyze("resnet18").params_complete


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        (layer("Convolution", CONV), True),
        (MYSTERY, False),
        (MYSTERY + layer("Convolution", CONV, bottom="m"), False),
        (layer("Convolution", CONV, top="c", name="c") + layer("Mystery", bottom="c"), False),
    ],
)
def test_a_prototxt_has_no_parameters_of_unknown_layers(text: str, complete: bool) -> None:
    assert analyze(net(DATA + text)).params_complete is complete


@pytest.mark.parametrize("op", ["relu", "max_pool"])
def test_an_op_without_parameters_leaves_the_total_complete(op: str) -> None:
    b = Builder("n")
    x = b.add_node("identity", (b.input("x", (1, 3, 8, 8)),), name="first")[0]
    graph = b.build(b.relu(x) if op == "relu" else b.max_pool(x, 2))
    blank = replace(graph.inputs[0], shape=None)
    report = analyze(replace(graph, inputs=(blank,)))
    assert report.coverage.unknown
    assert report.params_complete


def test_stored_arrays_of_unknown_layers_are_all_there_are(tmp_path: Path) -> None:
    path = tmp_path / "net.caffemodel"
    known = lenet()
    mystery = stored_layer("x", "Mystery", "data", "x", blobs((3, 5), (7,)))
    empty = stored_layer("z", "Riddle", "x", "z")
    path.write_bytes(known + mystery + empty)
    report = analyze(str(path))
    assert report.coverage.unknown == {"Mystery": 1, "Riddle": 1}
    assert report.params_complete
    weights, text = tmp_path / "w.caffemodel", tmp_path / "n.prototxt"
    weights.write_bytes(field(1, "n") + stored_layer("m", "Mystery", "data", "m", blobs((3, 5))))
    text.write_text(DATA + MYSTERY)
    report = analyze(str(text), weights=str(weights))
    assert report.totals.params == 15
    assert report.params_complete


def test_a_file_of_weights_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "net.safetensors"
    head = json.dumps({"a.weight": {"dtype": "F32", "shape": [4, 3], "data_offsets": [0, 48]}})
    path.write_bytes(struct.pack("<Q", len(head)) + head.encode() + bytes(48))
    report = analyze(str(path))
    assert report.coverage.unknown
    assert report.totals.params == 12
    assert report.params_complete


def test_an_unknown_operator_of_onnx_has_the_arrays_it_reads(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    from tests.formats.onnx import onnx_files as f

    nodes = [f.node("y = Mystery x w", domain="its.own"), f.node("z = Conv y k")]
    stored = [f.zeros("w", 3, 5), f.zeros("k", 2, 3, 1, 1)]
    path = tmp_path / "net.onnx"
    path.write_bytes(f.model(nodes, outputs="z", stored=stored).SerializeToString())
    report = analyze(str(path))
    assert report.coverage.unknown == {"its.own::Mystery": 1, "Conv": 1}
    assert report.totals.params == 15 + 6
    assert report.params_complete
