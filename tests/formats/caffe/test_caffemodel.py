from __future__ import annotations

import os
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from layerscope import analyze, load
from layerscope.errors import FormatError, LayerscopeError, ShapeError, UsageError
from layerscope.formats import DEFAULTS, HEAD_BYTES
from layerscope.formats.caffe import caffemodel, prototxt
from layerscope.formats.caffe.caffemodel import stored_blobs
from tests.codecs import wire
from tests.codecs.wire import blob, blobs, conv, dims, field, layer, linear, varint
from tests.fuzz.targets import fuzz_protobuf

LENET = """name: "LeNet" input: "data" input_shape { dim: 64 dim: 1 dim: 28 dim: 28 }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 20 kernel_size: 5 } }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
  pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "conv2" type: "Convolution" bottom: "pool1" top: "conv2"
  convolution_param { num_output: 50 kernel_size: 5 } }
layer { name: "pool2" type: "Pooling" bottom: "conv2" top: "pool2"
  pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "ip1" type: "InnerProduct" bottom: "pool2" top: "ip1"
  inner_product_param { num_output: 500 } }
layer { name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }
layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
  inner_product_param { num_output: 10 } }
layer { name: "prob" type: "Softmax" bottom: "ip2" top: "prob" }
"""
Write = Callable[..., str]
INPUT = field(3, "data") + field(8, dims(1, 4, 8, 8))


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(data: bytes | str, name: str = "net.caffemodel") -> str:
        path = tmp_path / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return str(path)

    return write


def shapes(path: str, name: str = "x") -> dict[str, tuple[int, ...]]:
    node = next(node for node in load(path).nodes if node.name == name)
    return {param.name: param.shape for param in node.params or ()}


# -- what is read


@pytest.mark.parametrize("data", [wire.lenet(), wire.old_lenet()], ids=["layer", "layers"])
def test_lenet_is_what_its_prototxt_says(write: Write, data: bytes) -> None:
    told = analyze(write(LENET, "deploy.prototxt"))
    found = analyze(write(data))
    assert found.totals == told.totals
    assert found.totals.params == 431_080
    assert [node.op for node in found.graph.nodes] == [node.op for node in told.graph.nodes]
    assert [n.attributes for n in found.graph.nodes] == [n.attributes for n in told.graph.nodes]
    assert found.graph.nodes[0].params is not None
    assert [(p.name, p.role, p.shape) for p in found.graph.nodes[4].params or ()] == [
        ("weight", "weight", (500, 800)),
        ("bias", "bias", (500,)),
    ]


def test_number_types_follow_what_is_asked(write: Write) -> None:
    path = write(wire.lenet())
    assert analyze(path).totals.param_bytes == 4 * 431_080
    assert analyze(path, dtype="fp16").totals.param_bytes == 2 * 431_080


def test_settings_come_through(write: Write) -> None:
    settings = field(9, 1) + field(10, 2) + field(11, 3) + field(12, 5) + field(13, 2)
    settings += field(14, 1) + field(18, 1) + field(5, 2) + field(2, 0)
    x = layer("x", "Convolution", "data", "x", field(106, field(1, 6) + settings))
    lrn = layer("n", "LRN", "x", "n", field(118, field(1, 3) + field(2, 0.1) + field(4, 1)))
    graph = load(write(INPUT + x + lrn))
    a = graph.nodes[0].attributes
    assert (a.window.kernel, a.window.stride, a.window.pads) == ((3, 5), (2, 1), ((1, 1), (2, 2)))
    assert (a.groups, a.bias) == (2, False)
    b = graph.nodes[1].attributes
    assert (b.size, b.alpha, b.within_channel) == (3, 0.1, True)  # 0.1, not 0.10000000149


def test_packed_and_unpacked_numbers_are_the_same(write: Write) -> None:
    one = field(106, field(1, 2) + field(4, 3, 5))
    other = field(106, field(1, 2) + field(4, varint(3) + varint(5)))
    made = [load(write(INPUT + layer("x", "Convolution", "data", "x", p))) for p in (one, other)]
    assert made[0].nodes == made[1].nodes


@pytest.mark.parametrize("number", [143, 147, 149, 2143, 8266711])
def test_settings_of_forks_are_known_by_the_type(write: Write, number: int) -> None:
    told = layer("x", "Interp", "data", "x", field(number, field(3, 2)))
    assert analyze(write(INPUT + told)).shapes.tensors["x"].shape == (1, 4, 15, 15)
    engine = layer("x", "Interp", "data", "x", field(number, field(3, 2)), field(200, "CAFFE"))
    assert analyze(write(INPUT + engine)).shapes.tensors["x"].shape == (1, 4, 15, 15)


def test_arrays_of_batch_norm_scale_and_prelu(write: Write) -> None:
    report = analyze(write(
        INPUT
        + layer("b", "BatchNorm", "data", "b", blobs((4,), (4,), (1,)))
        + layer("s", "Scale", "b", "b", field(142, field(4, 1)), blobs((4,), (4,)))
        + layer("p", "PReLU", "b", "p", field(131, field(2, 1)), blobs(()))
        + layer("f", "BN", "p", "f", blobs((1, 4, 1, 1), (1, 4, 1, 1), (4,), (4,)))
        + layer("n", "BatchNorm", "f", "n", blobs((4,), (4,), (1,), (4,), (4,)))
    ))  # fmt: skip
    assert [(cost.param_count, cost.buffer_count) for cost in report.costs.values()] == [
        (0, 8), (8, 0), (1, 0), (8, 8), (8, 8),
    ]  # fmt: skip


def test_transposed_and_old_matrices(write: Write) -> None:
    told = field(117, field(1, 3) + field(6, 1))
    x = layer("x", "InnerProduct", "data", "x", told, blobs((256, 3), (3,)))
    assert shapes(write(INPUT + x)) == {"weight": (3, 256), "bias": (3,)}
    old = field(7, wire.old_blob(3, 256)) + field(7, wire.old_blob(3))
    x = layer("x", "InnerProduct", "data", "x", linear(3), old)
    assert shapes(write(INPUT + x)) == {"weight": (3, 256), "bias": (3,)}
    assert analyze(write(INPUT + x)).totals.params == 771


def test_arrays_of_unknown_types_are_counted(write: Write) -> None:
    report = analyze(write(INPUT + layer("x", "Mystery", "data", "x", blobs((3, 5), (7,)))))
    assert report.totals.params == 22
    assert report.coverage.unknown == {"Mystery": 1}


def test_tied_arrays_are_counted_once(write: Write) -> None:
    shared = field(6, field(1, "w"), field(1, "b"))
    one = layer("c", "Convolution", "data", "c", conv(4, 1), shared, blobs((4, 4, 1, 1), (4,)))
    two = layer("d", "Convolution", "c", "d", conv(4, 1), shared, blobs((4, 4, 1, 1), (4,)))
    assert analyze(write(INPUT + one + two)).totals.params == 20


def test_number_types_as_stored(write: Write) -> None:
    shape = field(7, dims(4, 4, 1, 1))
    none = field(2, 0)
    for data, dtype in (
        (field(8, bytes(8 * 16)), "fp64"),
        (field(5, bytes(4 * 16)), "fp32"),
        (field(5, bytes(4 * 10)) + field(5, *[0.5] * 6), "fp32"),  # in pieces, some unpacked
        (field(10, 2) + field(12, bytes(2 * 16)), "fp16"),
    ):
        x = layer("x", "Convolution", "data", "x", conv(4, 1, 106, none), field(7, shape + data))
        params = load(write(INPUT + x)).nodes[0].params
        assert params is not None
        assert params[0].dtype == dtype


def test_first_caffe(write: Write) -> None:
    inner = (
        field(1, "x") + field(2, "conv") + field(3, 4) + field(8, 3) + field(50, blob(4, 4, 3, 3))
    )
    old = field(2, field(1, inner + field(50, blob(4))) + field(2, "data") + field(3, "x"))
    assert analyze(write(INPUT + old)).totals.params == 148


def test_a_stored_network_is_of_one_phase(write: Write) -> None:
    train = field(8, field(1, 0))
    crop = field(100, field(3, 8))
    data = layer("data", "Data", "", "data label", train, crop)
    rest = layer("x", "Convolution", "data", "x", conv(2, 3), blobs((2, 3, 3, 3), (2,)))
    assert analyze(write(data + rest)).shapes.tensors["x"].shape == (1, 2, 6, 6)
    test = layer("data", "Data", "", "data label", field(8, field(1, 1)), field(100, field(3, 9)))
    both = data + test + rest  # as a prototxt made binary
    assert analyze(write(both)).shapes.tensors["x"].shape == (1, 2, 7, 7)
    assert analyze(write(both), phase="train").shapes.tensors["x"].shape == (1, 2, 6, 6)


def test_without_an_input_the_error_says_how_to_give_one(write: Write) -> None:
    path = write(layer("x", "Convolution", "data", "x", conv(2, 3), blobs((2, 3, 3, 3), (2,))))
    assert load(path).inputs[0].shape is None
    with pytest.raises(FormatError, match=r"no shape of input 'data'.*--input data="):
        analyze(path)
    assert analyze(path, input=(1, 3, 8, 8)).totals.params == 56
    with pytest.raises(ShapeError, match="weight is 2x3x3x3 in the file, expected 2x4x3x3"):
        analyze(path, input=(1, 4, 8, 8))


def test_real_protobuf_writes_what_is_read(write: Write) -> None:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="caffe.proto", package="c", syntax="proto2")
    kinds = {"t": 9, "i": 3, "f": 2, "b": 8}

    def message(name: str, *fields: tuple[str, int, str, bool]) -> None:
        made = file.message_type.add(name=name)
        for label, number, kind, packed in fields:
            one = made.field.add(name=label, number=number, label=3, type=kinds.get(kind, 11))
            if kind not in kinds:
                one.type_name = f".c.{kind}"
            one.options.packed = packed

    message("Shape", ("dim", 1, "i", True))
    message("Blob", ("data", 5, "f", True), ("shape", 7, "Shape", False))
    message("Conv", ("num_output", 1, "i", False), ("kernel_size", 4, "i", False))
    message(
        "Layer", ("name", 1, "t", False), ("type", 2, "t", False), ("bottom", 3, "t", False),
        ("top", 4, "t", False), ("blobs", 7, "Blob", False),
        ("convolution_param", 106, "Conv", False),
    )  # fmt: skip
    message(
        "Net", ("name", 1, "t", False), ("input", 3, "t", False),
        ("input_shape", 8, "Shape", False), ("layer", 100, "Layer", False),
    )  # fmt: skip
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    net = message_factory.GetMessageClass(pool.FindMessageTypeByName("c.Net"))(
        name=["n"], input=["data"], input_shape=[{"dim": [1, 4, 8, 8]}]
    )
    x = net.layer.add(name=["x"], type=["Convolution"], bottom=["data"], top=["x"])
    x.convolution_param.add(num_output=[300], kernel_size=[3])
    for shape in ((300, 4, 3, 3), (300,)):
        x.blobs.add(data=[0.5] * wire.count(shape), shape=[{"dim": shape}])
    report = analyze(write(net.SerializeToString()))
    assert report.totals.params == 300 * 37
    assert report.shapes.tensors["x"].shape == (1, 300, 6, 6)


# -- with a prototxt


def test_weights_of_a_prototxt(write: Write) -> None:
    deploy, weights = write(LENET, "deploy.prototxt"), write(wire.lenet())
    graph = load(deploy, weights=weights)
    assert all(node.params is not None for node in graph.nodes if node.op in ("conv", "linear"))
    assert graph.notes == ()
    assert analyze(deploy, weights=weights).totals == analyze(deploy).totals
    assert load(deploy, weights=write(wire.old_lenet())).notes == ()


def test_a_wrong_shape_names_the_layer_and_both_shapes(write: Write) -> None:
    deploy = write(LENET.replace("num_output: 500", "num_output: 400"), "deploy.prototxt")
    with pytest.raises(ShapeError) as caught:
        load(deploy, weights=write(wire.lenet()))
    said = str(caught.value)
    assert said.startswith(f"{deploy}:10: ip1: weight is 500x800 in ")
    assert said.endswith("net.caffemodel, expected 400x800 for an input of 64x50x4x4")


def test_a_missing_array_names_the_layer(write: Write) -> None:
    deploy = write(INPUT_TEXT + CONV, "deploy.prototxt")
    one = layer("c", "Convolution", "data", "c", conv(2, 3), blobs((2, 4, 3, 3)))
    with pytest.raises(ShapeError, match=r"c: weight stored in .*, expected weight, bias"):
        load(deploy, weights=write(one))
    with pytest.raises(ShapeError, match=r"c: nothing stored in .*, expected weight, bias"):
        load(deploy, weights=write(layer("c", "Convolution", "data", "c", conv(2, 3))))
    three = layer("c", "Convolution", "data", "c", blobs((2, 4, 3, 3), (2,), (2,)))
    with pytest.raises(FormatError, match="c: 3 arrays are stored, expected at most 2"):
        load(deploy, weights=write(three))


INPUT_TEXT = 'input: "data" input_dim: 1 input_dim: 4 input_dim: 8 input_dim: 8\n'
CONV = """layer { name: "c" type: "Convolution" bottom: "data" top: "c"
  convolution_param { num_output: 2 kernel_size: 3 } }
"""


def test_layers_of_one_file_alone_are_noted(write: Write) -> None:
    more = CONV.replace('"c"', '"d"').replace('"data"', '"c"')
    deploy = write(INPUT_TEXT + CONV + more, "deploy.prototxt")
    stored = layer("c", "Convolution", "data", "c", blobs((2, 4, 3, 3), (2,)))
    extra = layer("e", "Convolution", "data", "e", blobs((2, 4, 3, 3), (2,)))
    weights = write(stored + extra)
    assert load(deploy, weights=weights).notes == (
        "weights of layers that are not here: e",
        f"no weights in {weights} for d",
    )
    shown = subprocess.run(
        [sys.executable, "-m", "layerscope", "show", deploy, "--weights", weights],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "weights of layers that are not here: e" in shown.stdout
    with pytest.raises(FormatError, match="weights of no layer"):
        load(deploy, weights=write(extra))


def test_weights_go_with_a_prototxt(write: Write) -> None:
    path = write(wire.lenet())
    with pytest.raises(UsageError, match="goes with a prototxt"):
        load(path, weights=path)
    deploy = write(LENET, "deploy.prototxt")
    with pytest.raises(FormatError, match="No such file"):
        load(deploy, weights="none.caffemodel")
    with pytest.raises(LayerscopeError):
        load(deploy, weights=deploy)


# -- what is refused


def test_recognise() -> None:
    assert caffemodel.recognise(wire.lenet()[:HEAD_BYTES])
    assert caffemodel.recognise(wire.old_lenet()[:HEAD_BYTES])
    for other in (LENET.encode(), b"", b"MATLAB 5.0 MAT-file", b"\x89HDF\r\n\x1a\n", b"PK\x03\x04"):
        assert not caffemodel.recognise(other)
    assert not prototxt.recognise(wire.lenet()[:HEAD_BYTES])


@pytest.mark.parametrize(
    "data, said",
    [
        (b"", "no layers, this is no .caffemodel"),
        (field(1, "n"), "no layers, this is no .caffemodel"),
        (b"\x89HDF\r\n\x1a\n" + bytes(9), "an HDF5 file, expected a binary .caffemodel"),
        (INPUT + field(100, b""), "a layer: no type"),
        (INPUT + b"\xa2\x06" + varint(2**60), f"of {2**60} bytes, but only 0 are left"),
        (
            INPUT + layer("x", "Mystery", "data", "x", field(7, field(7, dims(3, 3)))),
            "x: an array of 3x3 has 9 numbers, 0 are stored",
        ),
        (
            INPUT + layer("x", "Mystery", "data", "x", field(7, field(7, dims(*[2**40] * 9)))),
            "expected sizes from 0 to",
        ),
        (
            INPUT + layer("x", "Mystery", "data", "x", field(7, field(7, dims(2**31 - 1)))),
            "has 2147483647 numbers, 0 are stored",
        ),
        (
            INPUT + layer("x", "Convolution", "data", "x", field(7, field(5, b"12345"))),
            "data of 5 bytes, 4 each",
        ),
        (INPUT + layer("x", "Convolution", "none", "x", conv(2, 3)), "reads 'none'"),
    ],
)
def test_errors(write: Write, data: bytes, said: str) -> None:
    with pytest.raises(FormatError) as caught:
        analyze(write(data))
    assert said in str(caught.value)
    assert "net.caffemodel" in str(caught.value)


def small() -> bytes:
    return (
        INPUT
        + layer("c", "Convolution", "data", "c", conv(2, 3), blobs((2, 4, 3, 3), (2,)))
        + layer("p", "Pooling", "c", "p", wire.pool(2, 2))
        + layer("f", "InnerProduct", "p", "f", linear(3), blobs((3, 18), (3,)))
    )


def test_cut_off_at_every_byte(write: Write) -> None:
    data = small()
    assert analyze(write(data)).totals.params == 131
    for end in range(len(data)):
        path = write(data[:end])
        try:
            caffemodel.read(path, DEFAULTS)
        except FormatError as error:
            assert "net.caffemodel" in str(error)  # noqa: PT017


@given(st.data())
@settings(
    max_examples=200,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_changed_bytes_give_a_graph_or_a_named_error(data: st.DataObject) -> None:
    held = bytearray(small())
    for _ in range(data.draw(st.integers(1, 6))):
        held[data.draw(st.integers(0, len(held) - 1))] = data.draw(st.integers(0, 255))
    fuzz_protobuf(bytes(held))


@given(st.binary(max_size=300))
def test_any_bytes_give_a_graph_or_a_named_error(data: bytes) -> None:
    fuzz_protobuf(data)
    fuzz_protobuf(INPUT + field(100, data))


def test_deep_nesting_and_floods_are_bounded(write: Write) -> None:
    deep = b""
    for _ in range(10_000):
        deep = field(106, deep)
    begin = time.process_time()
    with pytest.raises(FormatError):
        analyze(write(INPUT + field(100, deep)))
    with pytest.raises(FormatError, match="no network has"):
        analyze(write(INPUT + b"\xa2\x06\x00" * 600_000))  # layers of nothing
    with pytest.raises(FormatError, match="no network has"):
        analyze(write(field(4, b"\x01" * 600_000)))  # a shape of many sizes
    assert time.process_time() - begin < 30


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="no /proc to ask for memory")
def test_big_files_are_skimmed(write: Write, tmp_path: Path) -> None:
    """A file of 4 GB, all holes: read in no time, weights untouched."""
    size = 4 << 30
    sizes = (1 << 15, 1 << 15)
    head = field(1, "x") + field(2, "InnerProduct") + field(3, "data") + field(4, "x")
    head += field(117, field(1, 1 << 15) + field(2, 0))
    shape = field(7, dims(*sizes))
    data = varint(5 << 3 | 2) + varint(size)
    blobs = varint(7 << 3 | 2) + varint(len(shape + data) + size) + shape + data
    whole = varint(100 << 3 | 2) + varint(len(head + blobs) + size) + head + blobs
    path = tmp_path / "big.caffemodel"
    with path.open("wb") as file:
        file.write(field(3, "data") + field(8, dims(1, 1 << 15)) + whole)
        file.truncate(file.tell() + size)
    code = (
        "import sys; from layerscope import analyze;"
        "assert analyze(sys.argv[1]).totals.params == 1 << 30;"
        "print(next(line for line in open('/proc/self/status') if 'VmHWM' in line))"
    )
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    ran = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True, env=env
    )
    assert int(ran.stdout.split()[1]) < 60_000  # kB


def test_stored_blobs(write: Write) -> None:
    found = stored_blobs(write(wire.lenet()))
    assert [b.shape for b in found["conv2"]] == [(50, 20, 5, 5), (50,)]
    assert found["pool1"] == ()


def test_floats_are_the_shortest_that_they_can_be() -> None:
    from layerscope.codecs.schema import _shortest

    for text in ("0.1", "1e-05", "0.75", "3", "-0.0001", "1.1754944e-38", "0.99999994"):
        (number,) = struct.unpack("<f", struct.pack("<f", float(text)))
        assert float(_shortest(number)) == float(text)
    assert _shortest(float("inf")) == "inf"
    assert _shortest(struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]) == "3.4028235e+38"
