"""Layers gathered by module and by operation: nothing is lost, nothing counted twice."""

from __future__ import annotations

import pytest

import layerscope
from layerscope.errors import UnknownName, UsageError
from layerscope.graph.types import Graph, Node, Tensor
from layerscope.report.groups import GROUPS, grouped

NETWORKS = ("resnet50", "vit-b-16", "densenet121", "mobilenet-v2", "gpt2")


@pytest.mark.parametrize("by", GROUPS)
@pytest.mark.parametrize("name", NETWORKS)
def test_rows_add_up(name: str, by: str) -> None:
    report = layerscope.analyze(name)
    rows = grouped(report, by)
    assert sum(row.params for row in rows) == report.totals.params
    assert sum(row.ops.mac for row in rows) == report.totals.macs
    assert sum(row.ops.flops for row in rows) == report.totals.flops
    assert sum(row.moved_bytes for row in rows) == (
        report.totals.read_bytes + report.totals.write_bytes
    )
    assert len({row.name for row in rows}) == len(rows)


def test_by_op() -> None:
    rows = {row.label: row for row in grouped(layerscope.analyze("resnet50"), "op")}
    assert list(rows)[:4] == ["conv × 53", "batch_norm × 53", "relu × 49", "max_pool"]
    assert rows["batch_norm × 53"].params == 53_120
    text = layerscope.analyze("resnet50").to_text(by="op", sort="macs", top=2)
    lines = text.splitlines()
    assert lines[2].split()[:4] == ["conv", "×", "53", "convolution"]
    assert lines[3].split()[:2] == ["linear", "linear"]
    assert "output" not in lines[0]
    assert lines[-1] == "2 of 8 rows"


def test_by_module() -> None:
    """A module has what it does itself; one that runs often, once and in all."""
    report = layerscope.analyze("resnet50")
    rows = {row.label: row for row in grouped(report, "module")}
    assert len(rows["layer1.0.relu"].members) == 3
    assert [layer.op for layer in rows["layer1.0 (itself)"].members] == ["add"]
    assert "layer1" not in rows
    assert rows["layer1.0.conv1"].layer is report.by_name["layer1.0.conv1"]
    window = report.to_csv(by="module", columns=["name", "window"]).splitlines()
    assert window[1] == "conv1,7x7/2"


def test_without_modules_each_layer_is_one() -> None:
    relu = Node("a", "relu", ("x",), ("a",)), Node("b", "relu", ("a",), ("b",))
    graph = Graph("two", (Tensor("x", (1, 2)),), relu, ("b",))
    assert [row.label for row in grouped(layerscope.analyze(graph), "module")] == ["a", "b"]


def test_unknown_layers_are_seen() -> None:
    nodes = (Node("a", "odd", ("x",), ("a",)), Node("b", "relu", ("x",), ("b",)),
             Node("c", "odd", ("x",), ("c",)))  # fmt: skip
    report = layerscope.analyze(Graph("odd", (Tensor("x", (1, 2)),), nodes, ("b",)))
    assert report.to_text(by="op", columns=["name", "macs"]).splitlines()[2].split()[-1] == "?"
    assert report.to_text(by="module", columns=["name", "macs"]).splitlines()[2].split()[-1] == "?"


def test_refusals() -> None:
    report = layerscope.analyze("alexnet")
    with pytest.raises(UnknownName, match="did you mean module"):
        report.to_text(by="modul")
    with pytest.raises(UsageError, match="cannot be combined with --by"):
        report.to_text(by="op", depth=2)
