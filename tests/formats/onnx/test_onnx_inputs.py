"""Inputs that are no plain tensors, axes without elements, and what is said of unknown values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto, helper  # noqa: TID251

import layerscope
from layerscope import Report
from layerscope.errors import FormatError, UsageError
from tests.formats.onnx.onnx_files import array, conv, graph, model, node, zeros


def analyze(made: Any, folder: Path, **options: Any) -> Report:
    path = folder / "made.onnx"
    path.write_bytes(made.SerializeToString())
    return layerscope.analyze(str(path), **options)


def typed(made: Any, name: str, kind: Any) -> Any:
    """The model with another type for an input."""
    for value in made.graph.input:
        if value.name == name:
            value.type.CopyFrom(kind)
    return made


TENSOR = helper.make_tensor_type_proto(TensorProto.FLOAT, [2, 3])
SEQUENCE = helper.make_sequence_type_proto(TENSOR)


def joined(kind: Any) -> Any:
    """A sequence joined along its first axis, then a layer."""
    nodes = [node("c = ConcatFromSequence x", axis=0), node("y = MatMul c w")]
    return typed(model(nodes, "x 2x3", "y", [zeros("w", 3, 4)]), "x", kind)


def test_a_sequence_holds_one_tensor_unless_told(tmp_path: Path) -> None:
    report = analyze(joined(SEQUENCE), tmp_path)
    assert report.tensors["y"].shape == (2, 4)
    assert any("x (holds 1)" in note for note in report.graph.notes)
    report = analyze(joined(SEQUENCE), tmp_path, dims={"x": 5})
    assert [tensor.name for tensor in report.graph.inputs] == [f"x[{n}]" for n in range(5)]
    assert report.tensors["y"].shape == (10, 4)
    assert report.total_macs == 10 * 3 * 4
    with pytest.raises(UsageError, match="expected at most 4096 in a sequence"):
        analyze(joined(SEQUENCE), tmp_path, dims={"x": 4097})


def test_the_length_of_a_sequence(tmp_path: Path) -> None:
    nodes = [node("n = SequenceLength x"), node("y = Range zero n one")]
    made = typed(model(nodes, "x 2x3", "y", [array("zero", 0), array("one", 1)]), "x", SEQUENCE)
    assert analyze(made, tmp_path, dims={"x": 7}).tensors["y"].shape == (7,)


@pytest.mark.parametrize("kind", [TENSOR, SEQUENCE])
def test_an_optional_has_an_element_unless_told(kind: Any, tmp_path: Path) -> None:
    then = graph([node("t = Add z z")], "", "t")
    other = graph([node("e = Relu z")], "", "e")
    nodes = [
        node("has = OptionalHasElement x"), node("y = If has", then_branch=then, else_branch=other)
    ]  # fmt: skip
    made = typed(model(nodes, "x 2x3, z 4", "y"), "x", helper.make_optional_type_proto(kind))
    assert analyze(made, tmp_path).totals.ops.add == 4
    if kind is TENSOR:
        report = analyze(made, tmp_path, dims={"x": 0})
        assert (report.totals.ops.add, report.totals.ops.comp) == (0, 4)


def test_the_element_of_an_optional(tmp_path: Path) -> None:
    nodes = [node("t = OptionalGetElement x"), node("y = MatMul t w")]
    made = model(nodes, "x 2x3", "y", [zeros("w", 3, 4)])
    typed(made, "x", helper.make_optional_type_proto(TENSOR))
    assert analyze(made, tmp_path).total_macs == 2 * 3 * 4


def test_types_in_types_have_an_end(tmp_path: Path) -> None:
    kind = TENSOR
    for _ in range(9):
        kind = helper.make_sequence_type_proto(kind)
    with pytest.raises(FormatError, match="types nested more than 4 deep"):
        analyze(joined(kind), tmp_path)


def test_a_map_is_read(tmp_path: Path) -> None:
    nodes = [node("y = DictVectorizer x", domain="ai.onnx.ml", string_vocabulary=["a", "b", "c"])]
    made = model(nodes, "x 1", "y 1x3", domains=["ai.onnx.ml"])
    kind = helper.make_map_type_proto(TensorProto.STRING, TENSOR)
    report = analyze(typed(made, "x", kind), tmp_path)
    assert not report.coverage.unknown
    assert report.tensors["y"].shape == (1, 3)


def test_a_graph_without_inputs(tmp_path: Path) -> None:
    nodes = [node("a = RandomNormal", shape=[2, 3]), node("y = MatMul a w")]
    report = analyze(model(nodes, "", "y", [zeros("w", 3, 4)]), tmp_path)
    assert report.total_macs == 24
    assert report.batch == 1
    assert "MatMul" in str(report) or "linear" in str(report)


@pytest.mark.parametrize("inputs", ["x 0x3x8x8", "x 1x3x0x8"])
def test_axes_without_elements(inputs: str, tmp_path: Path) -> None:
    nodes = [node("a = Relu x"), node("b = Add a a"), node("y = Transpose b", perm=[0, 2, 3, 1])]
    report = analyze(model(nodes, inputs, "y"), tmp_path)
    assert report.totals.flops == 0
    assert report.totals.activations == 0
    sizes = [int(size) for size in inputs.split()[1].split("x")]
    assert report.tensors["y"].shape == (sizes[0], sizes[2], sizes[3], sizes[1])


def test_no_elements_are_convolved_for_nothing(tmp_path: Path) -> None:
    report = analyze(model([conv()], "x 0x3x8x8", "y", [zeros("w1", 4, 3, 3, 3)]), tmp_path)
    assert report.total_macs == 0
    assert report.total_params == 108
    assert report.tensors["y"].shape == (0, 4, 8, 8)


def test_a_part_without_elements(tmp_path: Path) -> None:
    nodes = [node("a b = Split x sizes", axis=1), node("y = Relu a")]
    report = analyze(model(nodes, "x 2x3", "y, b", [array("sizes", [3, 0])]), tmp_path)
    assert report.tensors["b"].shape == (2, 0)
    assert report.tensors["y"].shape == (2, 3)


# -- what is unknown


def notes(report: Report) -> dict[str, str]:
    return {
        layer.node.name: layer.cost.note for layer in report.layers if layer.status == "unknown"
    }


def test_a_size_that_data_decides_is_named_where_it_is_missing(tmp_path: Path) -> None:
    nodes = [
        node("flags = Greater x zero", "flags"), node("places = NonZero flags", "places"),
        node("rows = Transpose places", "rows"), node("picked = GatherND x rows", "picked"),
        node("row = Unsqueeze picked axis", "row"), node("y = MatMul row w", "product"),
    ]  # fmt: skip
    stored = [array("zero", 0.0, "float32"), array("axis", [0]), zeros("w", 6, 4)]
    found = notes(analyze(model(nodes, "x 2x3", "y", stored), tmp_path))
    assert found["places"] == "the number of elements that are not zero is run-time data"
    assert found["product"] == (
        "the shape of 'row' is unknown: places (NonZero): "
        "the number of elements that are not zero is run-time data"
    )
    assert not any("no rule" in note for note in found.values())


def test_a_value_that_is_an_input_is_named(tmp_path: Path) -> None:
    nodes = [
        node("half = Div sizes two", "half"), node("z = Resize x _ _ half", "resize"),
        node("y = Conv z w", "conv"),
    ]  # fmt: skip
    stored = [array("two", 2), zeros("w", 4, 3, 3, 3)]
    made = model(nodes, "x 1x3x8x8, sizes 4 int64", "y", stored)
    found = notes(analyze(made, tmp_path))
    assert found["resize"] == (
        "sizes is unknown: the values of 'half', computed by half (Div) from graph input 'sizes', "
        "of which only the shape is known"
    )
    assert found["conv"].startswith(
        "the shape of 'z' is unknown: resize (Resize): sizes is unknown"
    )


def test_an_input_without_a_shape_is_named(tmp_path: Path) -> None:
    found = notes(analyze(model([node("y = Relu x", "relu")], "x", "y"), tmp_path))
    assert found["relu"] == (
        "the shape of 'x' is unknown: graph input 'x' has no declared shape; --input tells it"
    )


def test_an_operator_of_nobody_has_no_rule(tmp_path: Path) -> None:
    made = model([node("y = Odd x", domain="own")], domains=["own"])
    assert list(notes(analyze(made, tmp_path)).values()) == ["no rule for op own::Odd"]


# -- sizes that the file declares


def test_a_declared_output_tells_a_size_that_is_computed(tmp_path: Path) -> None:
    nodes = [
        node("r = Reshape x sizes"),
        node("z = TopK r k".replace("z", "z i")),
        node("y = Relu z"),
    ]
    made = model(nodes, "x 4x6, sizes 2 int64, k 1 int64", "y 8x2", opset=20)
    made.graph.value_info.extend(
        helper.make_tensor_value_info(name, kind, shape)
        for name, kind, shape in (("r", 1, [8, 3]), ("z", 1, [8, 2]), ("i", 7, [8, 2]))
    )
    report = analyze(made, tmp_path)
    assert not report.coverage.unknown
    assert {layer.status for layer in report.layers} == {"estimate"}
    assert report.tensors["y"].shape == (8, 2)


# -- loops whose shapes change


def test_a_loop_that_grows_a_tensor_is_followed(tmp_path: Path) -> None:
    body = graph(
        [node("on = Identity going"), node("more = Concat kept x", axis=0),
         node("made = MatMul more w")],
        "n () int64, going () bool, kept", "on () bool, more, made",
    )  # fmt: skip
    body.output.pop()
    nodes = [node("y = Loop count _ x", body=body)]
    report = analyze(model(nodes, "x 2x3", "y", [array("count", 3), zeros("w", 3, 4)]), tmp_path)
    assert report.tensors["y"].shape == (8, 3)
    assert report.total_macs == (4 + 6 + 8) * 3 * 4


def test_a_loop_that_fills_a_sequence(tmp_path: Path) -> None:
    body = graph(
        [node("on = Identity going"), node("more = SequenceInsert kept x")],
        "n () int64, going () bool, kept", "on () bool, more",
    )  # fmt: skip
    nodes = [
        node("empty = SequenceEmpty"), node("s = Loop count _ empty", body=body),
        node("y = ConcatFromSequence s", axis=0),
    ]  # fmt: skip
    report = analyze(model(nodes, "x 2x3", "y", [array("count", 4)]), tmp_path)
    assert not report.coverage.unknown
    assert report.tensors["y"].shape == (8, 3)
