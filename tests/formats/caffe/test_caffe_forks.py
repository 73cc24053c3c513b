"""Networks as forks of Caffe write them: each loads, with figures worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from layerscope import Report, analyze
from layerscope.errors import FormatError
from layerscope.formats.caffe.layers import FIELDS_UNCHECKED, LAYERS
from layerscope.formats.caffe.names import key
from layerscope.formats.caffe.prototxt import message, recognise
from tests.formats.caffe.caffe_fork import Fork, Row
from tests.formats.caffe.caffe_forks import FORKS

TRUTH = Path(__file__).resolve().parents[4] / "shared" / "truth"


def rows(report: Report) -> dict[str, Row]:
    found = {}
    for layer in report.layers:
        counted = layer.status != "unknown"
        macs, params = (layer.ops.mac, layer.params) if counted else (0, 0)
        found[layer.name] = Row(layer.output, macs, params, layer.status)
    return found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "net.prototxt"


@pytest.mark.parametrize("fork", FORKS, ids=lambda fork: fork.name)
def test_a_file_of_a_fork(fork: Fork, file: Path) -> None:
    file.write_bytes(fork.text.encode())
    assert recognise(fork.text.encode()[:4096])
    report = analyze(str(file), **fork.options)
    assert rows(report) == fork.rows
    assert report.totals.macs == sum(row.macs for row in fork.rows.values())
    assert report.totals.params == sum(row.params for row in fork.rows.values())


@pytest.mark.parametrize("fork", FORKS, ids=lambda fork: fork.name)
def test_why_a_layer_is_unknown(fork: Fork, file: Path) -> None:
    """Every unknown row has a reason, and the first of each type and reason is noted."""
    file.write_bytes(fork.text.encode())
    report = analyze(str(file), **fork.options)
    for layer in report.layers:
        if layer.status == "unknown":
            assert report.costs[layer.name].note


def test_there_are_enough() -> None:
    assert len(FORKS) >= 60
    assert len({fork.name for fork in FORKS}) == len(FORKS)


def types(fork: Fork, file: Path) -> set[str]:
    """The types of layers in a file."""
    file.write_bytes(fork.text.encode())
    net = message(str(file))
    return {key(layer.text("type")) for layer in net.messages("layer")}


def test_every_layer_without_counts_has_a_case(file: Path) -> None:
    seen = set().union(*(types(fork, file) for fork in FORKS))
    assert seen >= FIELDS_UNCHECKED
    assert seen <= set(LAYERS) | {key(kind) for kind in OTHERS}


OTHERS = (  # types without a converter
    "max_pool", "RegionLoss", "CenterLoss", "FocalLoss", "RReLU", "MultiStageMeanfield", "ImResize",
    "Nms", "AnnotatedData", "Data", "DenseImageData", "ImageSegData", "Silence",
)  # fmt: skip


# -- what is refused, and what it says


ASKS = "the file tells no shape of input"
# Text, options, what the error says.
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ('layer { name: "d" type: "Data" top: "data" include { phase: TRAIN } } '
     'layer { name: "r" type: "ReLU" bottom: "data" top: "r" }', {},
     ": r: reads 'data', which no layer before it produces in phase test; d does in --phase train"),
    ('layer { name: "d" type: "Data" top: "data" include { phase: TEST } } '
     'layer { name: "r" type: "ReLU" bottom: "data" top: "r" }', {"phase": "train"},
     ": r: reads 'data', which no layer before it produces in phase train; d does in --phase test"),
    ('layer { name: "d" type: "Data" top: "data" include { phase: TRAIN } } '
     'layer { name: "r" type: "ReLU" bottom: "data" top: "r" include { phase: TRAIN } }', {},
     ": no inputs in phase test, expected an input or a data layer; there are in --phase train"),
    ('input: "data" input: "rois" layer { name: "r" type: "ROIPooling" bottom: "data" '
     'bottom: "rois" top: "r" roi_pooling_param { pooled_h: 2 pooled_w: 2 } }',
     {"input": {"data": (1, 3, 8, 8)}},
     f"{ASKS} 'rois', which r reads; give it with --input rois=300x5 or what it is"),
    ('input: "data" layer { name: "c" type: "Convolution" bottom: "data" top: "c" '
     "convolution_param { num_output: 1 kernel_size: 3 } }", {},
     f"{ASKS} 'data', which c reads; give it with --input data=1x3x224x224 or what it is"),
    ('input: "data" layer { name: "c" type: "Convolution" bottom: "data" top: "c" '
     "convolution_param { num_output: 1 kernel_size: 3 kernel_size: 3 kernel_size: 3 } }", {},
     f"{ASKS} 'data', which c reads; give it with --input data=1x3x16x112x112 or what it is"),
    ('input: "x" input: "cont" layer { name: "l" type: "LSTM" bottom: "x" bottom: "cont" top: "l" '
     "recurrent_param { num_output: 3 } }", {},
     f"{ASKS} 'x', which l reads; give it with --input x=20x1x256 or what it is"),
    ('input: "x" input: "cont" layer { name: "l" type: "LSTM" bottom: "x" bottom: "cont" top: "l" '
     "recurrent_param { num_output: 3 } }", {"input": {"x": (2, 1, 4)}},
     f"{ASKS} 'cont', which l reads; give it with --input cont=20x1 or what it is"),
    ('input: "im_info" layer { name: "p" type: "Power" bottom: "im_info" top: "p" }', {},
     f"{ASKS} 'im_info', which p reads; give it with --input im_info=1x3 or what it is"),
    ('input: "gt_boxes" layer { name: "p" type: "Power" bottom: "gt_boxes" top: "p" }', {},
     f"{ASKS} 'gt_boxes', which p reads; give it with --input gt_boxes=20x5 or what it is"),
    ('input: "label" layer { name: "i" type: "Interp" bottom: "label" top: "i" '
     "interp_param { shrink_factor: 8 } }", {},
     f"{ASKS} 'label', which i reads; give it with --input label=1x1x224x224 or what it is"),
    ('layer { name: "d" type: "Input" top: "data" input_param { shape { dim: 1 dims: 3 } } } '
     'layer { name: "r" type: "ReLU" bottom: "data" top: "r" }', {},
     f"{ASKS} 'data', which r reads"),
    ('input: "data" input_dim: $HEIGHT$ layer { name: "r" type: "ReLU" bottom: "data" }', {},
     ":1:26: found '$HEIGHT$', a placeholder of a template: replace it with a value of "
     "input_dim"),
    ('item { name: "a" label: 1 display_name: "b" } layer_map { }', {},
     "labels of classes and no network"),
    ("base_lr: 0.01 net: 'x.prototxt'", {}, "a solver of Caffe, which holds no layers"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "options", "said"), REFUSED)
def test_a_file_that_is_refused(text: str, options: dict[str, Any], said: str, file: Path) -> None:
    file.write_text(text)
    with pytest.raises(FormatError) as error:
        analyze(str(file), **options)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


# Files in which an input is there in training alone, and one that misspells a blob.
TRAINING = ("inceptionv3", "inceptionv3_orig", "inceptionv4_resnet")
MISSPELLED = "fcn-16s"


@pytest.mark.skipif(not TRUTH.is_dir(), reason="../shared/truth is not there")
def test_every_file_of_the_truth_loads() -> None:
    files = sorted(TRUTH.rglob("*.prototxt"))
    assert len(files) >= 30
    for path in files:
        options: dict[str, Any] = {}
        if path.stem in TRAINING:
            with pytest.raises(FormatError, match="in --phase train"):
                analyze(str(path))
            options = {"phase": "train"}
        if path.stem == MISSPELLED:
            with pytest.raises(FormatError, match="did you mean 'score-pool44c'"):
                analyze(str(path))
            options = {"keep_going": True}
        report = analyze(str(path), **options)
        assert report.totals.macs > 0
        assert not report.coverage.unknown, path.name
