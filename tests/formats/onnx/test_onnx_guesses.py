"""What an ONNX file does not tell plainly is told as unknown or as a bound, never as exact."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx  # noqa: TID251
import pytest
from onnx import helper  # noqa: TID251

import layerscope
from layerscope import Report
from layerscope.errors import ShapeError

IMAGE, GRID = ("x", 1, [1, 2, 6, 6]), ("g", 1, [1, 3, 3, 2])


def read(folder: Path, node: Any, inputs: list[Any], stored: list[Any] | None = None) -> Report:
    given = [helper.make_tensor_value_info(*each) for each in inputs]
    made = [helper.make_tensor_value_info("z", 1, None)]
    graph = helper.make_graph([node], "g", given, made, stored or [])
    path = str(folder / "one.onnx")
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)]), path)
    return layerscope.analyze(path)


@pytest.mark.parametrize("mode, taps", [("nearest", 1), ("bilinear", 4), ("bicubic", 16)])
def test_each_way_of_sampling_has_its_own_count(mode: str, taps: int, tmp_path: Path) -> None:
    node = helper.make_node("GridSample", ["x", "g"], ["z"], mode=mode)
    ops = read(tmp_path, node, [IMAGE, GRID]).totals.ops
    places = 2 * 3 * 3
    assert (ops.mul, ops.add) == ((places * taps, places * (taps - 1)) if taps > 1 else (0, 0))


def test_a_mode_that_nobody_defined_is_refused(tmp_path: Path) -> None:
    sizes = helper.make_tensor("s", 7, [4], [1, 2, 12, 12])
    for node, inputs, stored in (
        (helper.make_node("GridSample", ["x", "g"], ["z"], mode="odd"), [IMAGE, GRID], []),
        (helper.make_node("Resize", ["x", "", "", "s"], ["z"], mode="odd"), [IMAGE], [sizes]),
    ):
        with pytest.raises(ShapeError, match="mode 'odd', expected nearest"):
            read(tmp_path, node, inputs, stored)


def test_samples_that_only_the_run_knows_are_a_bound(tmp_path: Path) -> None:
    inputs = [IMAGE, ("r", 1, [3, 4]), ("b", 7, [3])]
    for ratio, status in ((0, "estimate"), (2, "exact")):
        node = helper.make_node(
            "RoiAlign", ["x", "r", "b"], ["z"],
            output_height=2, output_width=2, sampling_ratio=ratio,
        )  # fmt: skip
        (layer,) = read(tmp_path, node, inputs).layers
        assert layer.status == status
        assert layer.output == (3, 2, 2, 2)


def test_a_loss_that_is_no_plain_mean(tmp_path: Path) -> None:
    inputs = [("a", 1, [4, 5]), ("l", 7, [4])]
    node = helper.make_node("SoftmaxCrossEntropyLoss", ["a", "l"], ["z"], reduction="none")
    report = read(tmp_path, node, inputs)
    assert not report.coverage.unknown
    assert report.tensors["z"].shape == (4,)
    mean = read(tmp_path, helper.make_node("SoftmaxCrossEntropyLoss", ["a", "l"], ["z"]), inputs)
    assert not mean.coverage.unknown
    assert mean.tensors["z"].shape == ()


def test_a_running_sum_along_an_axis_that_is_an_input_is_a_bound(tmp_path: Path) -> None:
    node = helper.make_node("CumSum", ["x", "k"], ["z"])
    report = read(tmp_path, node, [IMAGE, ("k", 7, [])])
    (layer,) = report.layers
    assert layer.status == "estimate"
    assert "the values of graph input 'k' are run-time data" in layer.cost.note
    assert report.totals.ops.add == 1 * 2 * 5 * 6
    assert report.tensors["z"].shape == (1, 2, 6, 6)
