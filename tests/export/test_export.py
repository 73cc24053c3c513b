"""Exports: what is printed adds up again, and machines can read it."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

import layerscope
from layerscope import Builder
from layerscope.errors import MissingExtra, UnknownName
from layerscope.report.columns import COLUMNS
from layerscope.report.numbers import bytes_text, percent_text, ratio_text, short_text
from layerscope.report.tree import tree_rows
from tests.networks import waves

Golden = Callable[[str, str], None]
NETWORKS = ("resnet50", "googlenet", "waves")


def report(name: str, **options: Any) -> layerscope.Report:
    return layerscope.analyze(waves() if name == "waves" else name, **options)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("form", ["text", "markdown", "latex", "html", "csv"])
def test_goldens(name: str, form: str, golden: Golden) -> None:
    golden(f"{form}/{name}.txt", getattr(report(name), f"to_{form}")())


def whole(text: str) -> int:
    return int(text.replace(",", "") or 0)


@pytest.mark.parametrize("name", NETWORKS)
def test_text_adds_up_again(name: str) -> None:
    text = report(name).to_text(columns=("name", "params", "macs"), fold=False)
    rows = [re.split(r"\s{2,}", line.strip()) for line in text.splitlines() if "─" not in line][1:]
    layers = {layer.name.split(".")[-1] for layer in report(name).layers}
    depths = [len(line) - len(line.lstrip()) for line in text.splitlines() if "─" not in line][1:]
    leaves = [
        row
        for row, depth, after in zip(rows, depths, [*depths[1:], 0], strict=True)
        if after <= depth and row[0] != "total"
    ]
    assert {row[0].split(".")[-1] for row in leaves} <= layers
    assert sum(whole(row[1]) for row in leaves) == whole(rows[-1][1]) == report(name).totals.params
    assert sum(whole(row[2]) for row in leaves) == whole(rows[-1][2]) == report(name).totals.macs


@pytest.mark.parametrize("name", NETWORKS)
def test_csv_adds_up_again(name: str) -> None:
    rows = list(csv.DictReader(io.StringIO(report(name).to_csv())))
    totals = report(name).totals
    for column, total in {
        "params": totals.params, "buffers": totals.buffers, "macs": totals.macs,
        "flops": totals.flops, "add": totals.ops.add, "activations": totals.activations,
        "read": totals.read_bytes, "write": totals.write_bytes,
    }.items():  # fmt: skip
        assert sum(int(row[column]) for row in rows) == total, column
    assert [row["name"] for row in rows] == [layer.name for layer in report(name).layers]


@pytest.mark.parametrize("name", NETWORKS)
def test_json_follows_its_schema_and_adds_up(name: str) -> None:
    import jsonschema

    from layerscope.export.json import schema

    document = json.loads(report(name).to_json())
    jsonschema.validate(document, json.loads(schema()))
    totals, layers = document["totals"], document["layers"]
    assert totals["params"] == sum(layer["params"] for layer in layers)
    assert totals["macs"] == sum(layer["ops"]["mac"] for layer in layers)
    assert totals["flops"] == totals["convention_ops"] == sum(layer["flops"] for layer in layers)
    assert totals["activations"] == sum(layer["activations"] for layer in layers)
    assert totals["params"] == sum(
        _size(weight["shape"])
        for layer in layers
        for weight in layer["weights"]
        if weight["role"] != "statistic"
    )
    assert document["stamp"]["convention"] == "exact"
    assert document["coverage"]["known"] == len(layers)
    assert document["memory"]["bytes"] == totals["peak_activation_bytes"]
    assert document["memory"]["bytes"] == sum(held["bytes"] for held in document["memory"]["alive"])


def _size(shape: list[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def test_json_under_a_convention_has_its_figures_beside_the_exact_ones() -> None:
    document = json.loads(report("mtcnn-pnet", like="netscope").to_json())
    layers = {layer["name"]: layer for layer in document["layers"]}
    prelu = layers["PReLU1"]
    assert prelu["params"] == 0
    assert (prelu["ops"]["comp"], prelu["ops"]["mul"], prelu["convention_ops"]) == (1000, 1000, 0)
    assert document["totals"]["convention_ops"] == document["totals"]["macs"] == 44760
    assert document["totals"]["params"] == 6574
    assert document["totals"]["convention_activations"] == sum(
        layer["convention_activations"] for layer in document["layers"]
    ) + _size(document["inputs"][0]["shape"])
    assert document["totals"]["activations"] == report("mtcnn-pnet").totals.activations
    assert document["stamp"]["figure"] == "macc"
    assert (
        json.loads(report("lenet5", like="matconvnet").to_json())["totals"]["convention_ops"]
        is None
    )
    assert json.loads(report("lenet5", like="cs231n").to_json())["totals"]["convention_ops"] is None
    boda = json.loads(report("lenet5", like="boda").to_json())["totals"]
    assert boda["convention_ops"] == 2 * report("lenet5").totals.macs
    assert boda["flops"] == report("lenet5").totals.flops


def test_fields_in_json() -> None:
    b = Builder("upsampled")
    x = b.conv(b.input("data", (1, 3, 30, 30)), 4, 3, padding=1, name="conv")
    x = b.max_pool(x, 2, name="pool")
    x = b.resize(x, 3, name="up")
    b.global_pool(x, name="all")
    layers = json.loads(layerscope.analyze(b.build()).to_json())["layers"]
    fields = {layer["name"]: layer["field"] for layer in layers}
    assert fields["conv"] == {
        "input": "data", "size": [3, 3], "stride": [1, 1], "offset": [0, 0], "aligned": True,
    }  # fmt: skip
    assert fields["pool"]["size"] == [4, 4]
    assert fields["pool"]["offset"] == [0.5, 0.5]
    assert fields["up"]["stride"] == ["2/3", "2/3"]
    assert fields["all"]["size"] == ["everything", "everything"]
    assert fields["all"]["stride"] == [None, None]


def test_unknown_layers_have_no_figures_anywhere() -> None:
    b = Builder("odd")
    x = b.add_node("warp::drive", (b.input("data", (1, 3, 8, 8)),), name="odd")[0]
    b.relu(x, name="after")
    account = layerscope.analyze(b.build())
    document = json.loads(account.to_json())
    assert [layer["status"] for layer in document["layers"]] == ["unknown", "unknown"]
    assert document["layers"][0]["ops"] is None
    assert document["layers"][0]["outputs"][0]["shape"] is None
    assert document["layers"][1]["note"] == "shape of odd is unknown"
    assert document["totals"]["complete"] is False
    assert document["coverage"]["unknown"] == {"warp::drive": 1, "relu": 1}
    row = next(csv.DictReader(io.StringIO(account.to_csv())))
    assert (row["macs"], row["flops"], row["params"], row["status"]) == ("?", "?", "?", "unknown")


def test_the_frame_has_exact_figures() -> None:
    frame = report("resnet50").to_pandas()
    assert int(frame["params"].sum()) == 25_557_032
    assert int(frame["macs"].sum()) == 4_089_184_256
    assert frame.attrs["network"] == "resnet50"


def test_without_pandas_the_pip_command_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match=r"pip install 'layerscope\[frame\]'") as raised:
        report("lenet5").to_pandas()
    assert raised.value.exit_code == 4


def test_notebooks_get_a_table() -> None:
    html = report("lenet5")._repr_html_()
    assert html.startswith("<table")
    assert "61,706" in html


def test_str_is_the_table() -> None:
    assert str(report("lenet5")) == report("lenet5").to_text()


def test_folding_keeps_the_totals() -> None:
    account = report("resnet152")
    folded = tree_rows(account)
    assert any(row.times > 1 and "×" in row.label for row in folded)
    top = [row for row in folded if row.depth == 0]
    assert sum(row.params for row in top) == account.totals.params
    assert sum(row.ops.mac for row in top) == account.totals.macs
    for depth in (1, 2, 3):
        rows = tree_rows(account, depth)
        assert max(row.depth for row in rows) == depth - 1
    scopes = [row for row in folded if row.kind == "scope"]
    for row in scopes:
        inside = _children(folded, row)
        assert sum(child.params for child in inside) * row.times == row.params


def _children(rows: list[Any], row: Any) -> list[Any]:
    start = rows.index(row) + 1
    inside = []
    for following in rows[start:]:
        if following.depth <= row.depth:
            break
        if following.depth == row.depth + 1:
            inside.append(following)
    return inside


def test_sort_and_top() -> None:
    account = report("vgg16")
    lines = account.to_csv(columns=("name", "macs"), sort="macs", top=3).splitlines()
    assert lines[0] == "name,macs"
    assert len(lines) == 4
    figures = [int(line.split(",")[1]) for line in lines[1:]]
    assert figures == sorted((layer.ops.mac for layer in account.layers), reverse=True)[:3]
    assert "3 of 40 rows" in account.to_text(sort="macs", top=3)
    names = account.to_csv(columns=("name",), sort="name").splitlines()[1:]
    assert names == sorted(names)


@pytest.mark.parametrize("name", COLUMNS)
def test_every_column_prints(name: str) -> None:
    lines = report("resnet18").to_text(columns=(name,)).splitlines()
    title = "FLOPs" if name == "convention_ops" else COLUMNS[name].title
    assert lines[0].strip() == title
    assert len(lines) > 30


def test_a_wrong_column_is_named() -> None:
    with pytest.raises(UnknownName, match="did you mean macs"):
        report("lenet5").to_text(columns=("macz",))


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (999, "999"), (1000, "1.00k"), (1792, "1.79k"), (9999, "10.0k"), (99_950, "100k"),
     (999_499, "999k"), (999_500, "1.00M"), (15_470_264_320, "15.5G"), (10**21, "1000E")],
)  # fmt: skip
def test_short_numbers(value: int, text: str) -> None:
    assert short_text(value) == text


def test_other_numbers() -> None:
    assert bytes_text(999) == "999 B"
    assert bytes_text(25_690_112) == "25.7 MB"
    assert percent_text(Fraction(0)) == ""
    assert percent_text(None) == ""
    assert percent_text(Fraction(1, 10_000)) == "<0.1"
    assert percent_text(Fraction(1)) == "100.0"
    assert ratio_text(Fraction(1, 8)) == "0.12"
    assert ratio_text(Fraction(987, 10)) == "98.7"
    assert ratio_text(Fraction(4321, 10)) == "432"
