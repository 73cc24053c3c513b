"""Fields and words that Caffe does not have make their layer unknown; those of forks are read."""

from __future__ import annotations

import pytest

from layerscope import Report
from layerscope.formats.caffe.fields import ANYWHERE, SETTINGS
from layerscope.formats.caffe.layers import FIELDS_UNCHECKED, LAYERS
from layerscope.graph import attributes as at
from tests.formats.caffe.caffe_nets import DATA, layer, net, one

CONV = "convolution_param {{ num_output: 4 kernel_size: 3 {} }}"
POOL = "pooling_param {{ kernel_size: 2 stride: 2 {} }}"


def output(report: Report) -> object:
    return report.layers[-1].output


def windows(size: tuple[int, int], kernel: int, stride: int, pads: tuple[int, ...]) -> int:
    """Positions of a window, by trying every start."""
    count = 1
    for length, before, after in zip(size, pads[::2], pads[1::2], strict=True):
        starts = range(-before, length + after - kernel + 1, stride)
        count *= len(starts)
    return count


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("pads", [(1, 0, 0, 0), (0, 1, 2, 0), (2, 1, 1, 2), (0, 0, 0, 3)])
def test_padding_of_each_side(pads: tuple[int, ...], stride: int) -> None:
    told = "pad_t: {} pad_b: {} pad_l: {} pad_r: {} stride: {}".format(*pads, stride)
    report = one("Convolution", CONV.format(told))
    assert report.total_macs == 2 * 6 * 4 * 9 * windows((9, 7), 3, stride, pads)


@pytest.mark.parametrize("stride", [1, 2, 3, 4])
@pytest.mark.parametrize(("kind", "told"), [("Convolution", CONV), ("Pooling", POOL)])
def test_same_padding(kind: str, told: str, stride: int) -> None:
    text = told.format("pad_type: 1").replace("stride: 2", "")
    report = one(kind, text.replace("pad_type", f"stride: {stride} pad_type"))
    channels = 4 if kind == "Convolution" else 6
    assert output(report) == (2, channels, -(-9 // stride), -(-7 // stride))


def test_padding_that_no_fork_reads_so_makes_its_layer_unknown() -> None:
    for told in ("pad_l: 1 pad: 1", "pad_type: 2", "pad_left: 1 pad_h: 2"):
        report = one("Convolution", CONV.format(told))
        assert report.coverage.unknown
        assert "pad" in report.graph.notes[0]
    same = one("Convolution", CONV.format("pad_l: 1 pad_type: 1"))  # SAME goes first
    assert output(same) == (2, 4, 9, 7)


@pytest.mark.parametrize(
    ("word", "counts"), [("AVE", True), ("AVE_EXC_PAD", False), ("AVE_TF", False)]
)
def test_averages_without_padding(word: str, counts: bool) -> None:
    report = one("Pooling", POOL.format(f"pool: {word} pad: 1"))
    node = report.layers[-1].node
    assert node.op == "avg_pool"
    assert isinstance(node.attributes, at.Pool)
    assert node.attributes.count_include_pad is counts


TYPES = {  # a layer of each type with settings, and what it needs beside them
    "convolution_param": ("Convolution", "num_output: 4 kernel_size: 3"),
    "pooling_param": ("Pooling", "kernel_size: 2"),
    "inner_product_param": ("InnerProduct", "num_output: 4"),
    "lrn_param": ("LRN", ""),
    "batch_norm_param": ("BatchNorm", ""),
    "scale_param": ("Scale", ""),
    "relu_param": ("ReLU", ""),
    "dropout_param": ("Dropout", ""),
    "softmax_param": ("Softmax", ""),
    "eltwise_param": ("Eltwise", ""),
    "power_param": ("Power", ""),
    "flatten_param": ("Flatten", ""),
    "reduction_param": ("Reduction", ""),
    "tile_param": ("Tile", "tiles: 2"),
    "elu_param": ("ELU", ""),
    "mvn_param": ("MVN", ""),
}


@pytest.mark.parametrize("param", TYPES)
@pytest.mark.parametrize("field", ["strde: 2", "a_new_field { b: 1 }"])
def test_a_layer_with_an_unknown_field_is_unknown(param: str, field: str) -> None:
    kind, needs = TYPES[param]
    known = one(kind, f"{param} {{ {needs} }}")
    assert not known.coverage.unknown
    report = one(kind, f"\n\n{param} {{ {needs} {field} }}")
    assert report.coverage.unknown
    word = field.split()[0].strip(":")
    [note] = report.graph.notes
    assert note.startswith(f"it is unknown: {param}.{word} (line 3) is no field of Caffe")


@pytest.mark.parametrize("text", ["bottm: 'data'", "made_up_param { a: 1 }", "kernel_size: 3"])
def test_unknown_fields_of_the_layer_itself(text: str) -> None:
    report = one("ReLU", text)
    assert report.coverage.unknown
    assert "is no field of Caffe" in report.graph.notes[0]


@pytest.mark.parametrize("param", TYPES)
def test_how_to_start_and_train_changes_no_figure(param: str) -> None:
    kind, needs = TYPES[param]
    plain = one(kind, f"{param} {{ {needs} }}")
    for field in ANYWHERE:
        report = one(kind, f"lr_mult: 1 {param} {{ {needs} {field}: 1 }}")
        assert report.totals == plain.totals
        assert not report.graph.notes


def test_a_foreign_word_makes_its_layer_unknown_and_the_rest_is_read() -> None:
    text = DATA + layer("Pooling", "\npooling_param { pool: MEDIAN kernel_size: 2 }", top="a")
    graph = net(text + layer("Convolution", CONV.format(""), name="other"))
    assert [node.op for node in graph.nodes] == ["Pooling", "conv"]
    [note] = graph.notes
    assert note.startswith("it is unknown: net.prototxt:2:23: pool MEDIAN, expected MAX or AVE")


def test_every_setting_that_a_converter_reads_is_known() -> None:
    """Read off the sources: `layer.param("x_param")` and the fields asked of it."""
    import ast
    import inspect
    import sys

    counted = [make for kind, make in LAYERS.items() if kind not in FIELDS_UNCHECKED]
    for make in {sys.modules[make.__module__] for make in counted}:
        for node in ast.walk(ast.parse(inspect.getsource(make))):
            if isinstance(node, ast.Constant) and str(node.value).endswith("_param"):
                assert node.value in SETTINGS or node.value == "nms_param", node.value
