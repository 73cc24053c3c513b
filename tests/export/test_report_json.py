"""Schema 2 of the report JSON: tree, tensors, timeline, cells, conventions, older files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from msgspec.structs import replace

import layerscope
from layerscope import Builder, Graph, Report
from layerscope.cli import run
from layerscope.conventions import CONVENTIONS, convention
from layerscope.export.json import schema, write
from layerscope.export.table import TableView
from layerscope.export.text import write as text_table
from layerscope.graph.types import Node, Tensor
from layerscope.report.columns import COLUMNS
from layerscope.report.numbers import exact_text
from tests.analysis.test_memory import networks

TEN = ("lenet5", "alexnet", "vgg16", "resnet18", "resnet50", "googlenet", "densenet121",
       "mobilenet_v2", "vit_b_16", "bert_base")  # fmt: skip
SAMPLE = ("lenet5", "resnet18", "googlenet", "vit_b_16", "unet")
SUMMED = [column.name for column in COLUMNS.values() if column.summable]
Json = dict[str, Any]


def document(report: Report, *conventions: str) -> Json:
    found: Json = json.loads(write(report, conventions=conventions))
    return found


def groups(tree: list[Any]) -> Iterator[Json]:
    """All groups of a tree, in preorder."""
    for child in tree:
        if not isinstance(child, int):
            yield child
            yield from groups(child["children"])


def leaves(tree: list[Any]) -> Iterator[int]:
    for child in tree:
        if isinstance(child, int):
            yield child
        elif child.get("repeat", 1) > 1 or not child["children"]:
            yield from child["layers"]
        else:
            yield from leaves(child["children"])


def check(found: Json, report: Report) -> None:
    """Relations that the JSON of every report has."""
    layers, count = found["layers"], len(found["layers"])
    numbered = list(groups(found["tree"]))
    assert [group["row"] for group in numbered] == list(range(count, count + len(numbered)))
    for group in numbered:
        if group["type"] == "unused":
            continue
        inside = [layers[n] for n in group["layers"]]
        assert group["sums"]["params"] == sum(x["params"] or 0 for x in inside)
        assert group["sums"]["macs"] == sum(x["ops"]["mac"] for x in inside if x["ops"])
        assert group["sums"]["memory"] == sum(x["activation_bytes"] or 0 for x in inside)
        assert group["sums"]["read"] == sum(x["read_bytes"] or 0 for x in inside)
        assert set(group["sums"]) == set(SUMMED)
        if group.get("repeat", 1) > 1:
            assert len(group["instances"]) == group["repeat"]
            inside_all = [n for instance in group["instances"] for n in instance]
            assert sorted(inside_all) == sorted(group["layers"])
    idle = {n for n, x in enumerate(report.layers) if x.op == "constant" and not x.cost.params}
    assert sorted(leaves(found["tree"])) == [n for n in range(count) if n not in idle]
    timeline = found["memory"]["timeline"]
    assert len(timeline) == count
    assert max(timeline, default=0) == found["memory"]["bytes"]
    for step, size in enumerate(timeline):
        alive = [t for t in found["tensors"] if t["first"] <= step <= t["last"]]
        assert sum(t["counted_bytes"] for t in alive) == size
    for n, tensor in enumerate(found["tensors"]):
        owner = found["tensors"][tensor["storage"]]
        assert owner["storage"] == tensor["storage"]
        assert tensor["counted_bytes"] == 0 or tensor["storage"] == n
        assert (tensor["first"], tensor["last"]) == (owner["first"], owner["last"])
        if tensor["producer"] is not None:
            assert tensor["name"] in [t["name"] for t in layers[tensor["producer"]]["outputs"]]
        for reader in tensor["consumers"]:
            assert tensor["name"] in [t["name"] for t in layers[reader]["inputs"]]
            assert owner["first"] <= reader <= owner["last"]


@pytest.mark.parametrize("name", SAMPLE)
def test_the_zoo_follows_the_schema_and_adds_up(name: str) -> None:
    report = layerscope.analyze(name)
    found = document(report, "exact", "fvcore")
    jsonschema.validate(found, json.loads(schema()))
    check(found, report)


@given(networks())
@settings(max_examples=60)
def test_random_networks_add_up(graph: Graph) -> None:
    report = layerscope.analyze(graph)
    check(document(report), report)


@pytest.mark.parametrize("in_place", [False, True])
@given(graph=networks())
@settings(max_examples=30)
def test_lifetimes_are_those_of_an_allocator(graph: Graph, in_place: bool) -> None:
    """A tensor is alive from its layer to the last reader of anything in its storage."""
    report = layerscope.analyze(graph, in_place=in_place)
    tensors = document(report)["tensors"]
    end = max(len(graph.nodes) - 1, 0)
    for n, tensor in enumerate(tensors):
        shared = [t for t in tensors if t["storage"] == tensor["storage"]]
        if tensor["storage"] != n:
            continue
        last = max([r for t in shared for r in t["consumers"]], default=tensor["producer"] or 0)
        last = max([last, *(t["producer"] for t in shared if t["producer"] is not None)])
        if any(t["name"] in graph.outputs for t in shared):
            last = end
        assert tensor["first"] == (tensor["producer"] or 0)
        assert tensor["last"] == last


def printed(report: Report, names: tuple[str, ...], view: TableView) -> list[list[str]]:
    """Cells of the table that `show` prints, read by the positions of its columns."""
    rows = []
    for name in names:
        lines = text_table(report, replace(view, columns=(name,))).splitlines()
        rows.append([line.strip() for line in lines if not line.startswith("─")][1:])
    return rows


@pytest.mark.parametrize("name", TEN)
def test_texts_are_those_that_show_prints(name: str) -> None:
    report = layerscope.analyze(name)
    found = document(report, *CONVENTIONS)
    shown = [n for n, g in enumerate(groups(found["tree"])) if g["type"] != "unused"]
    columns = ("type", "window", "output", "params", "params%", "macs", "macs%", "flops", "memory",
               "alive", "read", "field", "intensity", "activations%")  # fmt: skip
    for rules in CONVENTIONS:
        counted = replace(report, convention=convention(rules))
        names = columns if rules == "exact" else (
            "params", "params%", "convention_ops", "convention_ops%", "convention_activations"
        )  # fmt: skip
        for column in names:
            layers = printed(counted, (column,), TableView(by="layer"))[0]
            tree = printed(counted, (column,), TableView(all=True))[0]
            texts = cell_texts(found, column, rules)
            total = texts[-1]
            assert layers[-1] == total, (rules, column)
            assert texts[: len(report.layers)] == layers[: len(report.layers)], (rules, column)
            count = len(report.layers)
            groups_of = [texts[count + n] for n in shown]
            rows = [row for row in tree_rows_of(counted) if row.kind == "scope"]
            if len(rows) == len(shown):  # the convention folds as the exact one does
                at = [k for k, row in enumerate(tree_rows_of(counted)) if row.kind == "scope"]
                assert groups_of == [tree[k] for k in at], (rules, column)


def tree_rows_of(report: Report) -> list[Any]:
    from layerscope.report.tree import tree_rows

    return tree_rows(report, idle=True)


def cell_texts(found: Json, column: str, rules: str) -> list[str]:
    """The texts of a column as the page reads them."""
    own = found["conventions"][rules]["cells"]
    cells = own[column] if column in own else found["cells"].get(column, {})
    if "texts" in cells:
        return list(cells["texts"])
    rows = len(found["layers"]) + len(list(groups(found["tree"]))) + 1
    values = cells.get("values") or [None] * rows
    return ["" if value is None else exact_text(value) for value in values]


def test_large_counts_have_texts() -> None:
    """Readers of JSON in a browser keep 53 bits."""
    report = layerscope.analyze("llama-3-405b", batch=4096, tokens=4096)
    cells = document(report, "exact")["cells"]
    assert max(cells["macs"]["values"]) > 2**53
    assert cells["macs"]["texts"][-1] == exact_text(report.totals.macs)


def test_cells_only_where_they_are_asked_for() -> None:
    found = document(layerscope.analyze("lenet5"))
    assert found["cells"] == found["conventions"] == {}
    assert {each["kind"] for each in found["findings"]} <= {
        "activations", "params", "macs", "precision", "peak", "language",
    }  # fmt: skip


def test_older_files_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = document(layerscope.analyze("lenet5"))
    old = {key: value for key, value in found.items() if key not in
           ("tree", "tensors", "columns", "cells", "conventions")}  # fmt: skip
    old |= {"schema": 1, "findings": [each["text"] for each in found["findings"]]}
    for layer in old["layers"]:
        layer |= {"source": ""}
        del layer["attributes"], layer["window"], layer["convention_params"]
    path = tmp_path / "old.json"
    path.write_text(json.dumps(old), encoding="utf-8")
    for command in (["show", str(path)], ["compare", str(path), "lenet5"]):
        assert run(command) == 0
    assert "61,706" in capsys.readouterr().out
    assert run(["report", str(path), "--as", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["reports"][0]["network"] == "lenet5"
    path.write_text(json.dumps({**old, "schema": 3}), encoding="utf-8")
    assert run(["show", str(path)]) == 3
    assert "schemas 1 to 2" in capsys.readouterr().err


def test_no_absolute_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "a secret folder"
    folder.mkdir()
    model = folder / "net.prototxt"
    model.write_text(
        'name: "n" input: "data" input_dim: 1 input_dim: 3 input_dim: 8 input_dim: 8\n'
        'layer { name: "c" type: "Convolution" bottom: "data" top: "c"\n'
        "  convolution_param { num_output: 2 kernel_size: 3 } }\n",
        encoding="utf-8",
    )
    for command in (["show", "--as", "json", "--conventions", "all"], ["report", "--as", "json"]):
        assert run([command[0], str(model), *command[1:]]) == 0
        out = capsys.readouterr().out
        assert "secret" not in out
        assert str(tmp_path) not in out
    found = json.loads(out)["reports"][0]["layers"][0]
    assert found["source"] == {"file": "net.prototxt", "line": 2, "column": 7}


def test_attributes_and_windows() -> None:
    b = Builder("n")
    x = b.input("x", (1, 8, 16, 16))
    x = b.conv(x, 16, 3, stride=2, padding=1, groups=4, name="c")
    found = document(layerscope.analyze(b.build(x)))["layers"][0]
    assert found["window"] == "3x3/2 g4"
    assert found["attributes"]["kernel"] == [3, 3]
    assert found["attributes"]["pads"] == [[1, 1], [1, 1]]
    assert found["attributes"]["groups"] == 4
    assert found["convention_params"] == found["params"] == 16 * 2 * 9 + 16


def test_unknown_layers_are_unknown_in_cells() -> None:
    tensor = Tensor("x", (1, 4, 4, 4))
    nodes = (Node("a", "relu", ("x",), ("y",)), Node("b", "no.such", ("y",), ("z",)))
    found = document(layerscope.analyze(Graph("n", (tensor,), nodes, ("z",))), *CONVENTIONS)
    assert found["cells"]["flops"]["texts"] == ["64", "?", "≥64"]
    assert found["cells"]["flops"]["values"][1] is None
    assert found["conventions"]["fvcore"]["difference"] == "?"
