"""Shapes that an ONNX file only declares: marked in every form, and so is what rests on them."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from layerscope import Report, analyze
from layerscope.formats.onnx.converters import COMMON
from layerscope.formats.onnx.converters.table import CONVERTERS
from tests.formats.onnx.onnx_files import array, model, node, value, zeros

ODD = node("o = Odd x", "odd", domain="its.own")
CONV = node("y = Conv o w", "conv")
KERNEL = zeros("w", 4, 3, 1, 1)


@pytest.fixture
def account(tmp_path: Path) -> Any:
    def made(
        nodes: Sequence[Any],
        stored: Sequence[Any] = (),
        declared: Sequence[Any] = (),
        outputs: str = "y",
        **options: Any,
    ) -> Report:
        proto = model(nodes, "x 1x3x8x8", outputs, stored, domains=("its.own",))
        proto.graph.value_info.extend(declared)
        path = tmp_path / "m.onnx"
        path.write_bytes(proto.SerializeToString())
        return analyze(str(path), **options)

    return made


@pytest.fixture
def odd(account: Any) -> Report:
    report: Report = account([ODD, CONV], [KERNEL], [value("o", [1, 3, 5, 7])])
    return report


def test_a_declared_shape_is_marked(odd: Report) -> None:
    layer, after = odd.layers
    assert layer.outputs[0].declared
    assert layer.status == "unknown"
    assert not after.outputs[0].declared  # inferred, if from a declared one


def test_what_rests_on_it_is_an_estimate_that_says_so(odd: Report) -> None:
    layer = odd.by_name["conv"]
    assert (layer.output, layer.ops.mac) == ((1, 4, 5, 7), 4 * 3 * 35)
    assert layer.status == "estimate"
    assert layer.cost.note == "from the declared shape of o, 1x3x5x7"
    assert odd.coverage.estimated == 1


@pytest.mark.parametrize("form", ["text", "markdown", "latex", "html", "csv"])
def test_every_form_says_declared(odd: Report, form: str) -> None:
    text = getattr(odd, f"to_{form}")().replace("shape of o, 1x3x5x7", "")  # the note
    assert text.count("1x3x5x7 (declared)") == text.count("1x3x5x7") > 0


def test_csv_and_json(odd: Report) -> None:
    rows = list(csv.DictReader(io.StringIO(odd.to_csv())))
    assert [row["output"] for row in rows] == ["1x3x5x7 (declared)", "1x4x5x7"]
    layers = json.loads(odd.to_json())["layers"]
    assert layers[0]["outputs"][0]["declared"] is True
    assert "declared" not in layers[1]["outputs"][0]
    assert layers[1]["inputs"][0]["declared"] is True


def test_without_a_declaration_it_is_unknown(account: Any) -> None:
    report = account([ODD, CONV], [KERNEL])
    assert [layer.output for layer in report.layers] == [None, None]
    assert "declared" not in report.to_text()


def test_a_shape_worked_out_from_a_declared_one(account: Any) -> None:
    """Through Shape, Gather and Reshape, where no tensor but numbers pass it on."""
    nodes = [
        ODD,
        node("s = Shape o"), node("n = Gather s two"), node("t = Concat n minus", axis=0),
        node("r = Reshape x t", "reshape"), node("q = Relu x", "other"), node("y = Relu r", "end"),
    ]  # fmt: skip
    stored = [array("two", [2]), array("minus", [-1])]
    report = account(nodes, stored, [value("o", [1, 3, 4, 7])])
    assert report.by_name["end"].output == (4, 48)
    for name in ("reshape", "end"):
        assert report.by_name[name].status == "estimate"
        assert "declared shape of o, 1x3x4x7" in report.by_name[name].cost.note
    assert report.by_name["other"].status == "exact"


def test_through_the_branches_of_an_if(account: Any) -> None:
    from onnx import TensorProto, helper  # noqa: TID251

    then = helper.make_graph([node("a = Relu o")], "then", [], [value("a")])
    other = helper.make_graph([node("b = Neg o")], "else", [], [value("b")])
    chosen = helper.make_node("If", ["c"], ["i"], name="if", then_branch=then, else_branch=other)
    nodes = [ODD, node("g = ReduceSum x", keepdims=0), node("z = Cast g", to=TensorProto.BOOL)]
    nodes += [node("c = Identity z"), chosen, node("y = Conv i w", "conv")]
    report = account(nodes, [KERNEL], [value("o", [1, 3, 5, 7])])
    assert report.by_name["conv"].status == "estimate"
    assert "declared shape of o" in report.by_name["conv"].cost.note


def test_other_inputs_make_declared_shapes_unknown(account: Any) -> None:
    """They were declared for inputs of other sizes."""
    declared = [value("o", [1, 3, 5, 7])]
    assert account([ODD, CONV], [KERNEL], declared).by_name["odd"].output == (1, 3, 5, 7)
    for options in ({"batch": 2}, {"input": (1, 3, 9, 9)}):
        report = account([ODD, CONV], [KERNEL], declared, **options)
        assert [layer.output for layer in report.layers] == [None, None]


def test_the_inferred_shape_wins_and_a_note_says_so(account: Any) -> None:
    nodes = [node("a = Relu x"), node("y = Conv a w", "conv")]
    declared = [value("a", [1, 3, 9, 9])]
    report = account(nodes, [KERNEL], declared, "y 1x4x8x9")
    assert report.by_name["conv"].output == (1, 4, 8, 8)
    assert report.by_name["conv"].status == "exact"
    assert report.graph.notes == (
        "declared shapes that do not hold: a 1x3x9x9 (is 1x3x8x8), y 1x4x8x9 (is 1x4x8x8)",
    )
    changed = account(nodes, [KERNEL], declared, "y 1x4x8x9", batch=2)
    assert not changed.graph.notes  # declared for another batch


def test_names_and_open_sizes_contradict_nothing(account: Any) -> None:
    nodes = [node("a = Relu x"), node("y = Relu a")]
    report = account(nodes, (), [value("a", ["n", 3, None, 8])], "y nx3x8x8")
    assert not report.graph.notes
    ranked = account(nodes, (), [value("a", ["n", 3, None])])
    assert ranked.graph.notes == ("declared shapes that do not hold: a nx3x? (is 1x3x8x8)",)


def test_onnx_is_believed_before_a_declaration(
    account: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a rule here, onnx infers a shape from that of the input."""
    monkeypatch.delitem(CONVERTERS, ("", "Det"))
    report = account([node("d = Det x", "det")], (), (), "d 7")
    layer = report.by_name["det"]
    assert layer.status == "unknown"
    assert (layer.output, layer.outputs[0].declared) == ((1, 3), False)
    assert report.graph.notes == (
        "declared shapes that do not hold: d 7 (is 1x3)",
        "output shapes inferred by the onnx package: Det",
    )
    behind = account([ODD, node("d = Det o", "det")], (), [value("o", [1, 3, 8, 8])], "d")
    assert behind.by_name["det"].outputs[0].declared  # from a shape that is only declared


def test_figures_that_need_the_onnx_package_say_so(
    account: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An operator without a rule: with onnx its shape is inferred, without it is unknown."""
    monkeypatch.delitem(COMMON, ("", "Relu"))
    monkeypatch.delitem(CONVERTERS, ("", "Relu"))
    nodes = [node("o = Relu x", "relu"), CONV]
    with_onnx = account(nodes, [KERNEL])
    assert with_onnx.by_name["conv"].ops.mac == 4 * 3 * 64
    assert "output shapes inferred by the onnx package: Relu" in with_onnx.graph.notes
    monkeypatch.setitem(sys.modules, "onnx", None)
    without = account(nodes, [KERNEL])
    assert without.by_name["conv"].status == "unknown"
    note = "the onnx package may infer output shapes of Relu: pip install 'layerscope[onnx]'"
    assert note in without.graph.notes
