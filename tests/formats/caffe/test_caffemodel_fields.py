"""Numbers of fields that Caffe does not have make their layer unknown, as names do in text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from layerscope import Report, analyze
from layerscope.cli import run
from layerscope.codecs.schema import SKIP, Schema
from layerscope.formats.caffe.schema import SETTINGS
from tests.codecs.wire import dims, field, layer

Analyze = Callable[[bytes], Report]
INPUT = field(3, "data") + field(8, dims(1, 4, 8, 8))
STRANGE = 4001  # a number that no message of Caffe has

# Type of layer, and the fields of its settings that it cannot do without.
TYPES = {
    "convolution_param": ("Convolution", field(1, 2) + field(4, 3)),
    "pooling_param": ("Pooling", field(2, 2)),
    "inner_product_param": ("InnerProduct", field(1, 2)),
    "lrn_param": ("LRN", b""),
    "batch_norm_param": ("BatchNorm", b""),
    "scale_param": ("Scale", b""),
    "bias_param": ("Bias", b""),
    "relu_param": ("ReLU", b""),
    "prelu_param": ("PReLU", b""),
    "elu_param": ("ELU", b""),
    "sigmoid_param": ("Sigmoid", b""),
    "tanh_param": ("TanH", b""),
    "swish_param": ("Swish", b""),
    "clip_param": ("Clip", b""),
    "dropout_param": ("Dropout", b""),
    "softmax_param": ("Softmax", b""),
    "eltwise_param": ("Eltwise", b""),
    "concat_param": ("Concat", b""),
    "power_param": ("Power", b""),
    "exp_param": ("Exp", b""),
    "log_param": ("Log", b""),
    "flatten_param": ("Flatten", b""),
    "reshape_param": ("Reshape", field(1, dims(0, 256))),
    "reduction_param": ("Reduction", b""),
    "tile_param": ("Tile", field(2, 2)),
    "mvn_param": ("MVN", b""),
    "spp_param": ("SPP", field(1, 2)),
    "argmax_param": ("ArgMax", b""),
    "threshold_param": ("Threshold", b""),
}


@pytest.fixture
def read(tmp_path: Path) -> Analyze:
    def read(data: bytes) -> Report:
        path = tmp_path / "net.caffemodel"
        path.write_bytes(INPUT + data)
        return analyze(str(path))

    return read


def made(param: str, more: bytes = b"") -> bytes:
    kind, needs = TYPES[param]
    return layer("x", kind, "data", "x", field(SETTINGS[param][0], needs + more))


@pytest.mark.parametrize("value", [1, 1.0, b"text", field(1, 1)], ids=repr)
@pytest.mark.parametrize("param", TYPES)
def test_a_number_that_is_not_known(read: Analyze, param: str, value: int | float | bytes) -> None:
    assert not read(made(param)).coverage.unknown
    report = read(made(param, field(STRANGE, value)))
    assert [x.status for x in report.layers] == ["unknown"]
    [note] = report.graph.notes
    assert note.startswith(f"x is unknown: {param}.field {STRANGE} (byte ")
    assert note.endswith(") is no field of Caffe")


@pytest.mark.parametrize("param", TYPES)
def test_numbers_that_change_no_figure(read: Analyze, param: str) -> None:
    """Those listed without a name, in any form: a filler is a message, an engine a number."""
    holds = SETTINGS[param][2]
    plain = read(made(param))
    if isinstance(holds, Schema):
        for number, (_, what) in holds.fields.items():
            if what == SKIP:
                for value in (1, 1.0, field(1, "xavier")):
                    report = read(made(param, field(number, value)))
                    assert (report.totals, report.graph.notes) == (plain.totals, ())


@pytest.mark.parametrize("param", TYPES)
def test_a_known_number_of_another_kind(read: Analyze, param: str) -> None:
    """What protobuf takes for an unknown field: a fork uses the number for something else."""
    holds = SETTINGS[param][2]
    if isinstance(holds, Schema):
        for number, (name, what) in holds.fields.items():
            if what in ("int", "bool"):
                report = read(made(param, field(number, 1.0)))
                assert report.coverage.unknown, name


@pytest.mark.parametrize("number", [19, 20, 21, 22])
def test_numbers_that_forks_use_for_different_things(read: Analyze, number: int) -> None:
    """19 of a convolution is padding in one fork, an algorithm or a fused ReLU in others."""
    assert read(made("convolution_param", field(number, 1))).coverage.unknown


def test_numbers_of_the_layer(read: Analyze) -> None:
    for value in (1, field(1, 3)):
        report = read(layer("x", "ReLU", "data", "x", field(STRANGE, value)))
        assert report.coverage.unknown
        assert f"field {STRANGE} (byte" in report.graph.notes[0]
    for number in (147, 148, 149, 150, 151, 152):  # number types of NVIDIA's fork
        assert not read(layer("x", "ReLU", "data", "x", field(number, 1))).coverage.unknown
    assert not read(layer("x", "ReLU", "data", "x", field(149, "MKLDNN:"))).coverage.unknown
    assert not read(layer("x", "ReLU", "data", "x", field(5, 1.0), field(11, 1))).coverage.unknown


def test_numbers_within_param_and_rules(read: Analyze) -> None:
    for number in (6, 8):
        known = {6: field(3, 1.0) + field(4, 0.0), 8: field(1, 1)}[number]
        assert not read(layer("x", "ReLU", "data", "x", field(number, known))).coverage.unknown
        report = read(layer("x", "ReLU", "data", "x", field(number, known + field(9, 1))))
        assert report.coverage.unknown


def test_numbers_of_older_layers(read: Analyze) -> None:
    start = field(2, "data") + field(3, "x") + field(4, "x") + field(5, 18)
    assert not read(field(2, start)).coverage.unknown
    assert read(field(2, start + field(77, 1))).coverage.unknown
    within = field(1, "x") + field(2, "relu")
    oldest = field(2, "data") + field(3, "x")
    assert not read(field(2, field(1, within) + oldest)).coverage.unknown
    assert read(field(2, field(1, within + field(77, 1)) + oldest)).coverage.unknown


def test_numbers_of_the_network(read: Analyze) -> None:
    plain = layer("x", "ReLU", "data", "x")
    assert not read(plain + field(9, 1)).coverage.unknown  # how it is computed
    report = read(plain + field(101, field(1, "y")))
    assert [x.status for x in report.layers] == ["exact", "unknown"]
    assert "is no field of Caffe's networks" in report.graph.notes[0]


@pytest.mark.parametrize(
    ("param", "number", "value"),
    [("pooling_param", 1, 9), ("lrn_param", 4, 5), ("eltwise_param", 1, 77),
     ("reduction_param", 1, 0), ("spp_param", 2, -1), ("pooling_param", 13, 4)],
)  # fmt: skip
def test_words_out_of_range(read: Analyze, param: str, number: int, value: int) -> None:
    report = read(made(param, field(number, value)))
    assert report.coverage.unknown
    assert "expected" in report.graph.notes[0]


def test_types_out_of_range(read: Analyze) -> None:
    report = read(field(2, field(2, "data") + field(3, "x") + field(4, "x") + field(5, 99)))
    assert report.coverage.unknown


def test_phases_out_of_range(read: Analyze) -> None:
    report = read(
        layer("x", "ReLU", "data", "x") + layer("y", "ReLU", "x", "y", field(8, field(1, 5)))
    )
    assert [x.name for x in report.layers] == ["x"]
    assert report.graph.notes == ("y is left out: phase 5",)


@pytest.mark.parametrize("suffix", ["prototxt", "caffemodel"])
def test_strict_fails_for_both_forms(
    tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"net.{suffix}"
    if suffix == "prototxt":
        path.write_text(
            "input: 'data' input_shape { dim: 1 dim: 4 dim: 8 dim: 8 } layer { name: 'x' "
            "type: 'Convolution' bottom: 'data' top: 'x' convolution_param { num_output: 2 "
            "kernel_size: 3 strde: 2 } }"
        )
    else:
        path.write_bytes(INPUT + made("convolution_param", field(STRANGE, 2)))
    assert run(["show", str(path)]) == 0
    assert "is no field of Caffe" in capsys.readouterr().out
    assert run(["show", str(path), "--strict"]) == 1
    assert "unknown: Convolution ×1" in capsys.readouterr().err


def test_a_fused_relu_and_padding_of_forks(read: Analyze) -> None:
    report = read(made("batch_norm_param", field(10, 1)))
    assert [node.op for node in report.graph.nodes] == ["batch_norm", "relu"]
    padded = read(made("convolution_param", field(26, 1) + field(29, 1)))
    assert padded.layers[0].output == (1, 2, 7, 7)
    average = read(made("pooling_param", field(1, 3)))
    assert average.graph.nodes[0].op == "avg_pool"


def test_batch_norm_of_segnet(read: Analyze) -> None:
    """Its mode has the number that is the momentum of another fork."""
    for value, op in ((1, "scale"), (0, "batch_norm"), (0.9, "batch_norm")):
        report = read(layer("x", "BN", "data", "x", field(137, field(3, value))))
        assert [node.op for node in report.graph.nodes] == [op]
