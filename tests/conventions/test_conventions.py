"""Under a convention: one figure in the table, its total and JSON; everything else stays exact."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest

import layerscope
from layerscope.cli import run
from layerscope.conventions import CONVENTIONS, convention
from layerscope.errors import UsageError
from layerscope.report.budgets import Budget, judge

NETWORKS = ("resnet18", "vit_b_16", "googlenet", "unet", "mtcnn-onet")
WITH_FIGURE = tuple(n for n in CONVENTIONS if n != "exact" and convention(n).figure)
EXACT = ("buffers", "macs", "flops", "ops", "activations", "activation_bytes", "read_bytes",
         "write_bytes", "param_bytes", "peak_activation_bytes", "intensity")  # fmt: skip


@pytest.mark.parametrize("like", CONVENTIONS)
@pytest.mark.parametrize("name", NETWORKS)
def test_totals_other_than_the_conventions_are_exact(name: str, like: str) -> None:
    exact, counted = (layerscope.analyze(name, like=way).totals for way in ("exact", like))
    for figure in EXACT:
        assert getattr(counted, figure) == getattr(exact, figure), figure


@pytest.mark.parametrize("like", CONVENTIONS)
def test_layers_are_exact_too(like: str) -> None:
    exact, counted = (layerscope.analyze("unet", like=way).layers for way in ("exact", like))
    for ours, theirs in zip(exact, counted, strict=True):
        assert (ours.ops, ours.activations, ours.activation_bytes, ours.intensity) == (
            theirs.ops, theirs.activations, theirs.activation_bytes, theirs.intensity,
        )  # fmt: skip


@pytest.mark.parametrize("like", WITH_FIGURE)
@pytest.mark.parametrize("name", NETWORKS)
def test_column_total_and_json_are_one_figure(name: str, like: str) -> None:
    report = layerscope.analyze(name, like=like)
    document = json.loads(report.to_json())
    total = document["totals"]["convention_ops"]
    assert total == report.totals.convention_ops
    assert total == sum(layer["convention_ops"] for layer in document["layers"])
    assert document["stamp"]["figure"] == convention(like).figure

    lines = [line for line in report.to_text().splitlines() if "─" not in line]
    head = re.split(r"\s{2,}", lines[0].strip())
    assert convention(like).figure in head
    assert "MACs" not in head or convention(like).figure == "MACs"
    columns = ("name", "convention_ops")
    text = report.to_text(columns=columns, fold=False).splitlines()
    assert text[0].split()[-1] == convention(like).figure
    assert text[-1].split()[-1] == f"{total:,}"

    rows = list(csv.DictReader(io.StringIO(report.to_csv())))
    assert sum(int(row["convention_ops"]) for row in rows) == total
    assert sum(int(row["macs"]) for row in rows) == report.totals.macs
    for form in ("markdown", "latex", "html"):
        assert f"{total:,}" in getattr(report, f"to_{form}")()
        assert convention(like).figure in getattr(report, f"to_{form}")()


def test_our_figure_and_theirs_beside_each_other_are_told_apart() -> None:
    report = layerscope.analyze("lenet5", like="thop")
    head = report.to_text(columns=("name", "macs", "convention_ops")).splitlines()[0]
    assert re.split(r"\s{2,}", head) == ["layer", "MACs", "MACs (thop)"]


@pytest.mark.parametrize("like", ["matconvnet", "cs231n"])
def test_a_convention_without_a_figure_leaves_ours(like: str) -> None:
    report = layerscope.analyze("lenet5", like=like)
    assert report.to_text().split()[6] == "MACs"
    assert "416,520" in report.to_text()
    assert json.loads(report.to_json())["totals"]["convention_ops"] is None
    assert all(layer.convention_ops is None for layer in report.layers)


def test_activations_of_a_convention_have_their_own_column() -> None:
    exact, fvcore = (layerscope.analyze("resnet50", like=way) for way in ("exact", "fvcore"))
    column = ("name", "activations", "convention_activations")
    total = fvcore.to_text(columns=column).splitlines()[-1].split()
    assert total == ["total", f"{exact.totals.activations:,}", "11,114,984"]
    assert json.loads(fvcore.to_json())["totals"]["convention_activations"] == 11_114_984
    assert json.loads(exact.to_json())["totals"]["convention_activations"] is None


def test_memory_under_fvcore_is_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", "resnet50", "--like", "fvcore", "--depth", "1", "--no-stamp"]) == 0
    out = capsys.readouterr().out
    assert "0 B" in next(line for line in out.splitlines() if line.startswith("flatten"))
    assert "3.21 MB" in next(line for line in out.splitlines() if line.startswith("bn1"))
    assert " 150 MB " in out.splitlines()[-1]


def test_a_comparison_under_a_convention_has_its_figure_first() -> None:
    found = layerscope.compare("resnet18", "resnet34", like="fvcore")
    assert found.figures[0].title == "flops (fvcore)"
    assert found.figures[0].values[0] == 1_819_065_856
    assert found.figures[2].values[0] == 1_814_073_344


def test_a_budget_limits_the_conventions_figure() -> None:
    report = layerscope.analyze("resnet18", like="fvcore")
    verdict = judge(report, Budget("x", "resnet18", {"counted": 1_819_065_855}, like="fvcore"))
    assert verdict.checks[0].over == 1
    assert verdict.checks[0].most[0][1] > 0
    plain = layerscope.analyze("lenet5", like="cs231n")
    with pytest.raises(UsageError, match="cs231n counts no operations"):
        judge(plain, Budget("x", "lenet5", {"counted": 1}))
