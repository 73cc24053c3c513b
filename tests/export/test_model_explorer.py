"""Node data for Model Explorer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import layerscope
from layerscope import Graph
from layerscope.cli import run
from layerscope.export.model_explorer import FIGURES, files, write
from layerscope.graph.types import Node, Source, Tensor


def test_ids_are_the_names_in_an_onnx_file(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    path = tmp_path / "net.onnx"
    assert run(["export", "resnet18", "-o", str(path)]) == 0
    names = {node.name for node in onnx.load(str(path), load_external_data=False).graph.node}
    report = layerscope.analyze(str(path))
    for figure in FIGURES:
        results = json.loads(write(report, figure))["results"]
        assert set(results) <= names
    macs = json.loads(write(report))["results"]
    assert sum(each["value"] for each in macs.values()) == report.totals.macs


def test_layers_of_one_node_are_added_and_unknown_ones_left_out() -> None:
    nodes = (
        Node("a", "relu", ("x",), ("y",), source=Source("f", 0, "Op", "node")),
        Node("a/2", "relu", ("y",), ("z",), source=Source("f", 0, "Op", "node")),
        Node("b", "no.such", ("z",), ("w",)),
    )
    report = layerscope.analyze(Graph("n", (Tensor("x", (1, 8)),), nodes, ("w",)))
    assert json.loads(write(report, "flops"))["results"] == {"node": {"value": 16}}


def test_one_file_per_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "figures"
    assert run(["export", "lenet5", "--to", "model-explorer", "-o", f"{folder}/"]) == 0
    report = layerscope.analyze("lenet5")
    assert {path.name for path in folder.iterdir()} == {f"{name}.json" for name in FIGURES}
    assert (folder / "params.json").read_text(encoding="utf-8") == files(report)["params.json"]
    assert run(["export", "lenet5", "--to", "model-explorer", "--figure", "time"]) == 2
    assert "choose from params" in capsys.readouterr().err
    assert run(["export", "lenet5", "--to", "dot", "--figure", "macs"]) == 2
