"""Reading ONNX: sizes bound, odd names, functions, bodies, scopes, weights wherever they are."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np  # noqa: TID251
import onnx  # noqa: TID251
import pytest
from onnx import helper  # noqa: TID251

import layerscope
from layerscope import Report
from layerscope.cli import run as command
from layerscope.errors import FormatError, ShapeError, UnknownName, UsageError
from tests.codecs.wire import field, varint
from tests.formats.onnx.onnx_files import array, conv, graph, model, node, zeros

Read = Callable[..., Report]
KERNEL = zeros("w1", 4, 3, 3, 3)  # 108 numbers; 4 x 3 x 9 x 64 = 6,912 multiply-adds on 8x8
MACS = 4 * 3 * 9 * 64


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Write a model and analyze it."""

    def made(proto: Any, **options: Any) -> Report:
        path = tmp_path / "made.onnx"
        path.write_bytes(proto.SerializeToString())
        return layerscope.analyze(str(path), **options)

    return made


def shapes(report: Report) -> dict[str, Any]:
    return {name: tensor.shape for name, tensor in report.tensors.items()}


def roles(report: Report) -> dict[str, str]:
    """What every array of the file turned out to be."""
    found: dict[str, str] = {
        param.storage or param.name: param.role for param in report.graph.params
    }
    for each in report.graph.nodes:
        for param in each.params or ():
            found.setdefault(param.storage, param.role)
    return found


# -- sizes


OPEN = model([conv()], "x Nx3xHxW", "y", [KERNEL])


@pytest.mark.parametrize(
    ("options", "shape"),
    [
        ({}, (1, 4, 224, 224)),
        ({"dims": {"N": 4}}, (4, 4, 224, 224)),
        ({"dims": {"H": 8, "W": 6}}, (1, 4, 8, 6)),
        ({"dims": {"H": 8, "W": 6}, "batch": 5}, (5, 4, 8, 6)),
        ({"input": (2, 3, 8, 8)}, (2, 4, 8, 8)),
        ({"input": (3, 8, 8)}, (1, 4, 8, 8)),
        ({"input": (3, 8, 8), "batch": 7}, (7, 4, 8, 8)),
        ({"input": {"x": (3, 8, 8)}, "dims": {"N": 6}}, (6, 4, 8, 8)),
        ({"input": {"x": (3, 3, 8, 8)}, "batch": 3}, (3, 4, 8, 8)),
    ],
)
def test_open_sizes(read: Read, options: dict[str, Any], shape: Any) -> None:
    report = read(OPEN, **options)
    assert report.tensors["y"].shape == shape
    assert report.totals.macs == 27 * 4 * shape[0] * shape[2] * shape[3]


def test_what_is_assumed_is_said(read: Read) -> None:
    notes = " ".join(read(OPEN, dims={"H": 8}).graph.notes)
    assert "x 1x3x8x224 (N 1, W 224)" in notes
    assert "--input or --dim" in notes
    assert not read(OPEN, input=(1, 3, 8, 8)).graph.notes


@pytest.mark.parametrize(
    ("options", "kind", "says"),
    [
        ({"dims": {"batch": 4}}, UnknownName, "leaves open H, N, W"),
        ({"dims": {"N": 0}}, UsageError, "expected at least 1"),
        ({"input": {"z": (1, 3, 8, 8)}}, UnknownName, "has x"),
        (
            {"input": (8, 8)},
            UsageError,
            "2 sizes, expected 4 as in Nx3xHxW, or 3 without the batch",
        ),
        ({"input": (1, 1, 3, 8, 8)}, UsageError, "5 sizes, expected 4"),
        ({"input": (1, 3, -8, 8)}, UsageError, "no size below 0"),
        ({"batch": 0}, UsageError, "batch 0"),
        ({"input": (1, 4, 8, 8)}, ShapeError, "4 channels and a kernel for 3"),
    ],
)
def test_wrong_options(read: Read, options: Any, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says):
        read(OPEN, **options)


def test_a_size_that_is_a_sum(read: Read) -> None:
    made = model(
        [node("k = Concat past new", axis=1), node("y = Add k mask")],
        "past NxPx4, new NxSx4, mask NxP + Sx4".replace("P + S", "P+S"),
    )
    assert read(made, dims={"P": 5, "S": 2}).tensors["y"].shape == (1, 7, 4)
    with_spaces = model([node("y = Relu x")], "x")
    with_spaces.graph.input[0].CopyFrom(
        helper.make_tensor_value_info("x", 1, ["batch", "past + seq"])
    )
    report = read(with_spaces, dims={"past": 3, "seq": 4, "batch": 2})
    assert report.tensors["y"].shape == (2, 7)


def test_a_size_of_minus_one_is_open(read: Read) -> None:
    report = read(model([conv()], "x -1x3x?x?", "y", [KERNEL]), input=(3, 8, 8))
    assert report.tensors["y"].shape == (1, 4, 8, 8)
    assert report.totals.macs == MACS


def test_sizes_of_one_name_are_one_size(read: Read) -> None:
    made = model([node("y = Add a b")], "a nxk, b nxk")
    assert read(made, input={"a": (3, 5)}).tensors["b"].shape == (3, 5)
    assert read(made, batch=4, dims={"k": 2}).tensors["y"].shape == (4, 2)


def test_batch_of_fixed_inputs(read: Read) -> None:
    fixed = model([conv()], "x 1x3x8x8", "y", [KERNEL])
    assert read(fixed, batch=3).totals.macs == 3 * MACS


def test_initializers_among_inputs(read: Read) -> None:
    made = model([conv()], "x 1x3x8x8, w1 4x3x3x3", "y", [KERNEL], ir=3)
    report = read(made)
    assert [tensor.name for tensor in report.inputs] == ["x"]
    assert report.totals.params == 108


def test_without_a_default_opset(read: Read) -> None:
    bare = model([conv()], "x 1x3x8x8", "y", [KERNEL], opset=0)
    assert read(bare).totals.macs == MACS


ODD = ["gpu_0/data_0", "input:0", "two\nlines", "\x1b[31mred\x1b[0m", "a b", "…", "'\"", "-1"]


@pytest.mark.parametrize("name", ODD)
def test_odd_names(read: Read, name: str, capsys: Any, tmp_path: Path) -> None:
    made = model([helper.make_node("Conv", [name, "w1"], [f"{name}_y"], name=name)], "", "")
    made.graph.initializer.append(KERNEL)
    made.graph.input.append(helper.make_tensor_value_info(name, 1, [1, 3, 8, 8]))
    made.graph.output.append(helper.make_tensor_value_info(f"{name}_y", 1, None))
    report = read(made, input={name: (1, 3, 6, 6)})
    assert report.tensors[f"{name}_y"].shape == (1, 4, 4, 4)
    assert report.totals.macs == 27 * 4 * 16
    json.loads(report.to_json())
    assert "\x1b" not in report.to_text(width=120)
    path = str(tmp_path / "made.onnx")
    assert command(["show", path, "--input", f"{name}=1x3x6x6"]) == 0
    assert "\x1b[31m" not in capsys.readouterr().out


def test_channels_last(read: Read) -> None:
    nodes = [node("t = Transpose x", perm=[0, 3, 1, 2]), conv(source="t")]
    report = read(model(nodes, "x Nx8x8x3", "y", [KERNEL]))
    assert report.tensors["y"].shape == (1, 4, 8, 8)
    assert report.totals.macs == MACS


def test_scalars(read: Read) -> None:
    made = model([node("y = Mul x rate")], "x 2x3, rate ()", "y")
    report = read(made)
    assert shapes(report)["rate"] == ()
    assert report.tensors["y"].shape == (2, 3)


def test_a_size_that_data_decides_is_open_in_its_rows_alone(read: Read) -> None:
    nodes = [
        node("places = NonZero x"), node("found = Transpose places"), conv(into="z"),
        node("y = Relu z"),
    ]  # fmt: skip
    made = model(nodes, "x 1x3x8x8", "y, found", [KERNEL])
    report = read(made)
    assert report.tensors["places"].shape is None
    assert report.tensors["found"].shape is None
    assert report.tensors["y"].shape == (1, 4, 8, 8)
    assert report.totals.macs == MACS
    assert "NonZero" in report.coverage.unknown
    assert "NonZero" in report.to_text()


# -- functions


def test_a_function_with_attributes_of_its_caller(read: Read) -> None:
    inner = node("b = Conv a k")
    reference = onnx.AttributeProto(
        name="pads", ref_attr_name="pads", type=onnx.AttributeProto.INTS
    )
    inner.attribute.append(reference)
    block = helper.make_function(
        "own", "Block", ["a", "k"], ["c"], [inner, node("c = Relu b")],
        [helper.make_opsetid("", 20)], ["pads"],
    )  # fmt: skip
    nodes = [
        node("m = Block x w1", "first", "own", pads=[1, 1, 1, 1]),
        node("y = Block m w2", "second", "own", pads=[0, 0, 0, 0]),
    ]
    stored = [KERNEL, zeros("w2", 5, 4, 3, 3)]
    report = read(model(nodes, stored=stored, domains=["own"], functions=[block]))
    assert report.tensors["m"].shape == (1, 4, 8, 8)
    assert report.tensors["y"].shape == (1, 5, 6, 6)
    assert report.totals.macs == MACS + 5 * 4 * 9 * 36
    assert report.totals.params == 108 + 180
    assert {each.scope for each in report.graph.nodes} == {("first",), ("second",)}


def test_a_function_has_defaults_and_calls_others(read: Read) -> None:
    leaky = helper.make_function(
        "own", "Twice", ["a"], ["c"], [node("b = Add a a"), node("c = Add b b")],
        [helper.make_opsetid("", 20)],
    )  # fmt: skip
    inner = node("b = Transpose a")
    inner.attribute.append(
        onnx.AttributeProto(name="perm", ref_attr_name="order", type=onnx.AttributeProto.INTS)
    )
    outer = helper.make_function(
        "own", "Outer", ["a"], ["c"], [inner, node("c = Twice b", domain="own")],
        [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)], [],
        [helper.make_attribute("order", [0, 2, 3, 1])],
    )  # fmt: skip
    nodes = [node("y = Outer x", "first", "own")]
    report = read(model(nodes, domains=["own"], functions=[leaky, outer]))
    assert report.tensors["y"].shape == (1, 8, 8, 3)
    assert [each.op for each in report.graph.nodes] == ["permute", "add", "add"]


# -- branches and loops


def branches(condition: str) -> list[Any]:
    small = graph([node("a0 = Conv x w1", pads=[1, 1, 1, 1]), node("a = Relu a0")], "", "a")
    large = graph(
        [node("b0 = Conv x w1", pads=[1, 1, 1, 1]), node("b = Conv b0 w2", pads=[1, 1, 1, 1])],
        "", "b",
    )  # fmt: skip
    chosen = node(f"z = If {condition}", "choice", then_branch=small, else_branch=large)
    return [chosen, node("y = Relu z", "after")]


TWO = [KERNEL, zeros("w2", 4, 4, 3, 3)]
LARGE = MACS + 4 * 4 * 9 * 64


def test_of_an_unknown_condition_the_larger_branch_counts(read: Read) -> None:
    report = read(model(branches("flag"), "x 1x3x8x8, flag () bool", "y", TWO))
    assert report.totals.macs == LARGE
    assert report.totals.params == 108 + 144
    assert report.tensors["y"].shape == (1, 4, 8, 8)
    assert "its else branch is counted (the larger)" in " ".join(report.graph.notes)
    scopes = {each.scope for each in report.graph.nodes}
    assert {("choice", "then"), ("choice", "else")} <= scopes  # both are shown


@pytest.mark.parametrize(("flag", "macs"), [(True, MACS), (False, LARGE)])
def test_of_a_known_condition_that_branch_counts(read: Read, flag: bool, macs: int) -> None:
    stored = [*TWO, array("flag", flag, np.bool_)]
    report = read(model(branches("flag"), "x 1x3x8x8", "y", stored))
    assert report.totals.macs == macs
    assert "known before the run" in " ".join(report.graph.notes)


def test_a_branch_that_cannot_run_on_these_shapes_is_not_counted(read: Read) -> None:
    wide = graph([node("a = Conv x w1")], "", "a")  # 3 channels
    narrow = graph([node("b = Conv x w3"), node("b1 = Relu b")], "", "b")  # 5 channels
    nodes = [node("y = If flag", "choice", then_branch=wide, else_branch=narrow)]
    made = model(nodes, "x 1xCx8x8, flag () bool", "y", [KERNEL, zeros("w3", 2, 5, 3, 3)])
    three = read(made, dims={"C": 3})
    assert three.totals.macs == 27 * 4 * 36
    assert three.tensors["y"].shape == (1, 4, 6, 6)
    assert three.totals.params == 108 + 90
    assert not three.coverage.unknown
    assert "the other cannot run on these shapes" in " ".join(three.graph.notes)
    assert read(made, dims={"C": 5}).totals.macs == 45 * 2 * 36
    with pytest.raises(ShapeError, match="4 channels and a kernel for"):
        read(made, dims={"C": 4})


def test_branches_of_different_shapes_make_an_open_one(read: Read) -> None:
    one = graph([node("a = Relu x")], "", "a")
    two = graph([node("b = Flatten x")], "", "b")
    nodes = [node("z = If flag", then_branch=one, else_branch=two), node("y = Relu z")]
    report = read(model(nodes, "x 1x3x8x8, flag () bool", "y"))
    assert report.tensors["z"].shape is None
    assert report.tensors["y"].shape is None


def looped(body_end: str = "on = Identity going") -> list[Any]:
    body = graph(
        [node(body_end), node("m = MatMul s w"), node("out = Relu m")],
        "n () int64, going () bool, s", "on () bool, m, out",
    )  # fmt: skip
    return [node("last each = Loop count _ x", "again", body=body)]


SQUARE = zeros("w", 6, 6)


def test_a_loop_of_constant_length(read: Read) -> None:
    made = model(looped(), "x 2x6", "last, each", [SQUARE, array("count", 5)])
    report = read(made)
    assert report.totals.macs == 5 * 2 * 36
    assert report.totals.params == 36
    assert report.tensors["last"].shape == (2, 6)
    assert report.tensors["each"].shape == (5, 2, 6)
    assert "× 5 in a loop" in {each.cost.note for each in report.layers}
    assert "× 5 in a loop" in report.to_json()


def test_a_loop_whose_length_an_input_tells(read: Read) -> None:
    report = read(model(looped(), "x 2x6, count () int64", "last, each", [SQUARE]))
    assert report.totals.macs == 2 * 36  # one round, and said so
    assert report.tensors["last"].shape == (2, 6)
    assert report.tensors["each"].shape is None
    assert "how often it runs is not known" in " ".join(report.graph.notes)
    assert "× ?" in report.to_text(width=200)


def test_a_loop_that_ends_by_its_condition(read: Read) -> None:
    made = model(
        looped("on = Less n two"), "x 2x6", "last, each",
        [SQUARE, array("count", 50), array("two", 2)],
    )  # fmt: skip
    assert read(made).totals.macs == 3 * 2 * 36  # rounds 0, 1 and 2; then on is false


def test_a_loop_in_a_loop(read: Read) -> None:
    inner = looped()[0]
    inner.input[2] = "s"
    body = graph(
        [node("on = Identity going"), inner], "n () int64, going () bool, s", "on () bool, last"
    )
    nodes = [node("y = Loop three _ x", "outer", body=body)]
    stored = [SQUARE, array("count", 5), array("three", 3)]
    assert read(model(nodes, "x 2x6", "y", stored)).totals.macs == 15 * 2 * 36


def test_a_scan(read: Read) -> None:
    body = graph([node("m = MatMul one w"), node("sum = Add state m")], "state, one", "sum, m")
    nodes = [node("last all = Scan start x", "scan", body=body, num_scan_inputs=1)]
    report = read(model(nodes, "start 2x6, x 7x2x6", "last, all", [SQUARE]))
    assert report.totals.macs == 7 * 2 * 36
    assert report.tensors["last"].shape == (2, 6)
    assert report.tensors["all"].shape == (7, 2, 6)


def test_sequences(read: Read) -> None:
    nodes = [
        node("parts = SplitToSequence x four", axis=1),
        node("first = SequenceAt parts zero"),
        node("longer = SequenceInsert parts first"),
        node("y = ConcatFromSequence longer", axis=1),
        node("count = SequenceLength longer"),
    ]
    made = model(nodes, "x 2x10", "y, count", [array("four", 4), array("zero", 0)])
    report = read(made)
    assert report.tensors["first"].shape == (2, 4)
    assert report.tensors["y"].shape == (2, 14)
    assert report.tensors["count"].shape == ()
    assert not report.coverage.unknown


# -- modules


def test_modules_by_names(read: Read) -> None:
    nodes = [
        node("a = Conv x w1", "/layer1/block.0/conv/Conv", pads=[1, 1, 1, 1]),
        node("b = Relu a", "/layer1/block.0/act/Relu"),
        node("c = Conv b w2", "/layer1/block.1/conv/Conv", pads=[1, 1, 1, 1]),
        node("y = Relu c", "/head/Relu"),
    ]
    report = read(model(nodes, stored=TWO))
    scopes = [each.scope for each in report.graph.nodes]
    assert scopes[0] == scopes[1] == ("layer1", "block.0")
    assert scopes[2] == ("layer1",)  # of a single node there is no line
    assert scopes[3] == ()


def test_modules_by_what_the_exporter_says(read: Read) -> None:
    nodes = [conv(into="a"), node("b = Relu a", "relu"), node("y = Relu b", "again")]
    paths = (
        ["", "layer1", "layer1.conv", "conv"], ["", "layer1", "layer1.act", "relu"], ["", "again"],
    )  # fmt: skip
    for each, told in zip(nodes, paths, strict=True):
        each.metadata_props.add(key="pkg.torch.onnx.name_scopes", value=repr(told))
        each.metadata_props.add(key="namespace", value="nothing")
    report = read(model(nodes, stored=[KERNEL]))
    assert [each.scope for each in report.graph.nodes] == [("layer1",), ("layer1",), ()]


@pytest.mark.parametrize("text", ["", "[", "[1", "['a', __import__('os')]", "(" * 5000, "{}", "[]"])
def test_metadata_that_is_no_list_of_names(read: Read, text: str) -> None:
    nodes = [conv()]
    nodes[0].metadata_props.add(key="pkg.torch.onnx.name_scopes", value=text)
    assert read(model(nodes, stored=[KERNEL])).totals.macs == MACS


# -- weights


def weight_nodes(kind: str) -> tuple[list[Any], list[Any]]:
    """Nodes and arrays that make the kernel `w1` in another way."""
    kernel = zeros("raw", 4, 3, 3, 3)
    ways: dict[str, tuple[list[Any], list[Any]]] = {
        "initializer": ([], [KERNEL]),
        "Identity": ([node("w1 = Identity raw")], [kernel]),
        "Cast": ([node("w1 = Cast raw", to=1)], [zeros("raw", 4, 3, 3, 3, dtype=np.float16)]),
        "Transpose": (
            [node("w1 = Transpose raw", perm=[2, 3, 0, 1])], [zeros("raw", 3, 3, 4, 3)],
        ),
        "Reshape": ([node("w1 = Reshape raw s")], [zeros("raw", 108), array("s", [4, 3, 3, -1])]),
        "DequantizeLinear": (
            [node("w1 = DequantizeLinear raw scale zero", axis=0)],
            [zeros("raw", 4, 3, 3, 3, dtype=np.int8), zeros("scale", 4),
             zeros("zero", 4, dtype=np.int8)],
        ),
        "Constant": ([helper.make_node("Constant", [], ["w1"], value=KERNEL)], []),
        "ConstantOfShape": ([node("w1 = ConstantOfShape s")], [array("s", [4, 3, 3, 3])]),
        "Constant and ConstantOfShape": (
            [helper.make_node("Constant", [], ["s"], value=array("", [4, 3, 3, 3])),
             node("w1 = ConstantOfShape s")], [],
        ),
        "several": (
            [node("a = Cast raw", to=1), node("b = Identity a"),
             node("w1 = Transpose b", perm=[2, 3, 0, 1])],
            [zeros("raw", 3, 3, 4, 3, dtype=np.float16)],
        ),
    }  # fmt: skip
    return ways[kind]


@pytest.mark.parametrize(
    "kind",
    ["initializer", "Identity", "Cast", "Transpose", "Reshape", "DequantizeLinear", "Constant",
     "ConstantOfShape", "Constant and ConstantOfShape", "several"],
)  # fmt: skip
def test_a_weight_wherever_it_is(read: Read, kind: str) -> None:
    nodes, stored = weight_nodes(kind)
    report = read(model([*nodes, conv()], stored=stored))
    assert report.totals.params == 108
    assert report.totals.macs == MACS
    assert report.totals.buffers == (8 if kind == "DequantizeLinear" else 0)
    assert report.tensors["y"].shape == (1, 4, 8, 8)
    assert len([each for each in report.layers if each.params]) == 1


def test_half_and_bytes_are_counted_by_their_size(read: Read) -> None:
    nodes, stored = weight_nodes("DequantizeLinear")
    quantised = read(model([*nodes, conv()], stored=stored))
    assert quantised.totals.param_bytes == 108 + 4 * 4 + 4
    nodes, stored = weight_nodes("Cast")
    assert read(model([*nodes, conv()], stored=stored)).totals.param_bytes == 216


def test_a_weight_used_twice_counts_once(read: Read) -> None:
    nodes = [
        node("e = Gather table x"), node("h = Relu e"), node("t = Transpose table"),
        node("y = MatMul h t"),
    ]  # fmt: skip
    report = read(model(nodes, "x 2x5 int64", "y", [zeros("table", 100, 16)]))
    assert report.totals.params == 1600
    assert report.totals.macs == 10 * 16 * 100
    assert report.totals.param_bytes == 6400


def test_what_is_neither_parameter_nor_buffer(read: Read) -> None:
    nodes = [
        conv(into="a"), node("b = BatchNormalization a gamma beta mean var"),
        node("c = Mul b half"), node("y = Reshape c shape"),
    ]  # fmt: skip
    stored = [
        KERNEL, zeros("gamma", 4), zeros("beta", 4), zeros("mean", 4), zeros("var", 4),
        array("half", 0.5, np.float32), array("shape", [1, -1]), zeros("nobody", 1000),
    ]  # fmt: skip
    report = read(model(nodes, stored=stored))
    assert (report.totals.params, report.totals.buffers) == (108 + 8, 8)
    found = roles(report)
    assert found["nobody"] == "unused"
    assert found["half"] == found["shape"] == "constant"
    assert found["mean"] == found["var"] == "statistic"


def test_weights_inside_bodies(read: Read) -> None:
    one = graph([node("a = Conv x w1", pads=[1, 1, 1, 1])], "", "a", [KERNEL])
    value = zeros("", 4, 3, 3, 3)
    two = graph(
        [helper.make_node("Constant", [], ["w2"], value=value),
         node("b = Conv x w2", pads=[1, 1, 1, 1])], "", "b",
    )  # fmt: skip
    nodes = [node("y = If flag", then_branch=one, else_branch=two)]
    report = read(model(nodes, "x 1x3x8x8, flag () bool", "y"))
    assert report.totals.params == 216
    assert report.totals.macs == MACS


def test_a_kernel_that_another_layer_makes(read: Read) -> None:
    nodes = [node("k0 = MatMul code w"), node("k = Reshape k0 s"), node("y = Conv x k")]
    stored = [zeros("w", 6, 108), array("s", [4, 3, 3, 3])]
    report = read(model(nodes, "x 1x3x8x8, code 1x6", "y", stored))
    assert report.totals.params == 648
    assert report.totals.macs == 648 + 108 * 36


# -- where the numbers are


def external(location: str) -> Any:
    """A model whose kernel is in another file, which is not there."""
    made = model([conv()], "x 1x3x8x8", "y", [KERNEL])
    tensor = made.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    tensor.external_data.add(key="offset", value="4096")
    tensor.external_data.add(key="length", value="432")
    return made


WATCHED = """
import sys
import layerscope
from layerscope.formats.onnx import read  # what is imported is opened before
from layerscope.formats.onnx.converters.table import CONVERTERS
layerscope.analyze(sys.argv[2])
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event in (
    "open", "os.open", "os.scandir", "os.listdir") else None)
report = layerscope.analyze(sys.argv[1])
print(report.totals.params, report.totals.macs)
print(*sorted({path for path in opened if not path.endswith((".py", ".pyc"))}), sep="\\n")
"""


@pytest.mark.parametrize(
    "location", ["made.data", "../../../secret", "/etc/hostname", "", "no/such/folder/x", "\0"]
)
def test_external_data_is_never_opened(location: str, tmp_path: Path) -> None:
    path, plain = tmp_path / "made.onnx", tmp_path / "plain.onnx"
    path.write_bytes(external(location).SerializeToString())
    plain.write_bytes(model([conv()], stored=[KERNEL]).SerializeToString())
    ran = subprocess.run(
        [sys.executable, "-c", WATCHED, str(path), str(plain)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    figures, *opened = ran.stdout.split("\n")
    assert figures == f"108 {MACS}"
    assert set(filter(None, opened)) == {str(path)}


def write_large(path: Path, numbers: int) -> int:
    """A linear layer of so many float numbers, all of them a hole in the file."""
    rows = numbers // 1000
    dims = field(1, b"".join(map(varint, (rows, 1000))))
    size = 4 * rows * 1000
    head = dims + field(2, 1) + field(8, "w") + varint(9 << 3 | 2) + varint(size)
    shape = field(1, field(1, 2)) + field(1, field(1, rows))
    x = field(1, "x") + field(2, field(1, field(1, 1) + field(2, shape)))
    y = field(1, "y") + field(2, field(1, field(1, 1)))
    call = field(1, "x", "w") + field(2, "y") + field(4, "MatMul")
    after = field(11, x) + field(12, y)
    stored = varint(5 << 3 | 2) + varint(len(head) + size) + head
    inside = field(1, call) + stored
    opened = field(1, 8) + varint(7 << 3 | 2) + varint(len(inside) + size + len(after)) + inside
    with path.open("wb") as file:
        file.write(opened)
        file.seek(size, 1)
        file.write(after + field(8, field(2, 17)))
    return rows


HEAVY = """
import sys
import layerscope
report = layerscope.analyze(sys.argv[1])
print(report.totals.params, report.totals.macs)
assert not {"onnx", "numpy", "onnxruntime"} & set(sys.modules)
status = open("/proc/self/status").read().split("VmHWM:")[1].split()[0]
print(int(status) // 1024)
"""


def test_a_file_of_more_than_two_gibibytes(tmp_path: Path) -> None:
    path = tmp_path / "large.onnx"
    rows = write_large(path, 875_000_000)  # 3.5 GB, none of it on the disk
    assert path.stat().st_size > 3_500_000_000
    ran = subprocess.run(
        [sys.executable, "-c", HEAVY, str(path)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    figures, peak = ran.stdout.split("\n")[:2]
    assert figures == f"{rows * 1000} {2 * rows * 1000}"
    assert int(peak) < 80


def test_text_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "made.onnx"
    for data in (b"", b"\0" * 100, b"version https://git-lfs.github.com/spec/v1\n", b"<html>"):
        path.write_bytes(data)
        with pytest.raises(FormatError):
            layerscope.analyze(str(path))


def test_weights_do_not_go_with_a_model(read: Read) -> None:
    with pytest.raises(UsageError, match="has its own weights"):
        read(OPEN, weights="other.caffemodel")
