"""Reports as networks, options of notations, pickled budgets, and rates of predictions."""

from __future__ import annotations

import copy
import json
import pickle
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

import layerscope
from layerscope import Builder, analyze, fit, predict
from layerscope.api.checking import check
from layerscope.cli import run
from layerscope.errors import ShapeError, UnknownName, UsageError
from layerscope.notations import NOTATIONS
from layerscope.report.budgets import FIGURES, Budget, BudgetResults
from tests.formats.onnx.onnx_files import array, conv, model, node, zeros

Captured = pytest.CaptureFixture[str]

# Reports


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("train", [None, "adam"])
def test_fit_of_a_report_is_that_of_its_graph(in_place: bool, train: str | None) -> None:
    report = analyze("lenet5", dtype="fp16", in_place=in_place, batch=7, like="thop")
    found = fit(report, 10**8, train=train)
    assert found == fit("lenet5", 10**8, train=train, dtype="fp16", in_place=in_place)
    assert found.batch > 100


@pytest.mark.parametrize("dtype", [None, "fp32", "int8"])
@pytest.mark.parametrize("own", ["fp32", "bf16"])
def test_prediction_of_a_report_is_that_of_its_network(own: str, dtype: str | None) -> None:
    report = analyze("lenet5", dtype=own, like="thop")
    asked = dtype or (own if own != "fp32" else None)
    assert predict(report, on="a100", dtype=dtype) == predict("lenet5", on="a100", dtype=asked)


def test_a_report_takes_no_options_of_analyze() -> None:
    report = analyze("lenet5")
    with pytest.raises(UsageError, match="batch has no effect: a Report is predicted as it is"):
        predict(report, on="a100", batch=2)
    with pytest.raises(UsageError, match="batch has no effect: a Report is measured as it is"):
        layerscope.measure(report, batch=2)
    with pytest.raises(UsageError, match="analyzed already; analyze its graph"):
        analyze(report)


def test_a_report_is_measured() -> None:
    found = layerscope.measure(analyze("lenet5", batch=2), runs=1, threads=1)
    assert (found.network, found.batch) == ("lenet5", 2)
    assert found.runs[0].rows


# The largest batch of a network whose batch is fixed


def fixed(folder: Path) -> str:
    """An ONNX file with a batch of one in a constant."""
    path = folder / "fixed.onnx"
    nodes = [conv(into="c"), node("y = Reshape c s")]
    made = model(nodes, stored=[zeros("w1", 4, 3, 3, 3), array("s", [1, 256])])
    path.write_bytes(made.SerializeToString())
    return str(path)


def test_fit_says_that_the_batch_is_fixed(tmp_path: Path, capsys: Captured) -> None:
    path = fixed(tmp_path)
    says = "the batch of fixed is fixed at 1, and --fit tries others: give a network of any batch"
    for network in (path, analyze(path), analyze(path).graph):
        with pytest.raises(ShapeError, match=says):
            fit(network, 10**9)
    assert run(["show", path, "--fit", "1GB", "--total"]) == 3
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert says in err


def test_another_shape_error_has_no_such_hint() -> None:
    with pytest.raises(ShapeError) as raised:
        fit("vgg16", 10**9, input=(3, 8, 8))
    assert "fixed" not in str(raised.value)


# Notations


@pytest.mark.parametrize("name", NOTATIONS)
def test_options_of_a_notation_are_checked(name: str) -> None:
    report = analyze("lenet5")
    accepted = NOTATIONS[name].options
    with pytest.raises(UnknownName, match=f"option of the notation {name} 'foo'") as raised:
        report.to_notation(name, foo=1)
    assert all(option in str(raised.value) for option in accepted or ("takes none",))


def test_a_misspelt_option_of_a_notation() -> None:
    with pytest.raises(UnknownName, match="did you mean parts"):
        analyze("lenet5").to_notation("boda", part="info")


# Budgets


def results(**limits: Any) -> BudgetResults:
    return BudgetResults((check(Budget("lenet5", "lenet5", limits)),))


@pytest.mark.parametrize("name", [name for name in FIGURES if name not in ("counted", "time")])
def test_budget_results_are_equal_after_a_copy(name: str) -> None:
    found = results(**{name: 1})
    assert found.verdicts[0].checks[0].most
    for other in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found), copy.copy(found)):
        assert other == found
        assert other.to_text() == found.to_text()
    assert found != results(**{name: 2})


def test_a_misspelt_limit_is_refused() -> None:
    with pytest.raises(UnknownName, match="unknown limit 'parms'; did you mean params"):
        results(parms=5)
    with pytest.raises(UnknownName, match="choose from params, macs"):
        results(zzz=5)


@pytest.mark.parametrize("over", [True, False])
def test_junit_says_where_a_time_is_from(over: bool, capsys: Captured) -> None:
    limit = "1ns" if over else "9s"
    args = ["check", "lenet5", "--max-time", limit, "--on", "a100", "--max-params", "1G"]
    assert run([*args, "--as", "junit"]) == int(over)
    suite = ElementTree.fromstring(capsys.readouterr().out.encode())[0]
    [found] = suite.findall("properties/property")
    assert found.get("name") == "time source"
    run([*args, "--json"])
    source = json.loads(capsys.readouterr().out)["budgets"][0]["time_source"]
    assert found.get("value") == source
    assert "A100" in source
    assert suite[0].tag == "properties"  # before the test cases, as the schema of JUnit has it
    assert len(suite.findall("testcase")) == 2


def test_junit_of_a_measured_time(capsys: Captured) -> None:
    assert run(["check", "lenet5", "--max-time", "90s", "--measure", "--as", "junit"]) == 0
    suite = ElementTree.fromstring(capsys.readouterr().out.encode())[0]
    [found] = suite.findall("properties/property")
    assert str(found.get("value")).startswith("onnxruntime ")


def test_junit_without_a_time_has_no_source(capsys: Captured) -> None:
    assert run(["check", "lenet5", "--max-params", "1G", "--as", "junit"]) == 0
    assert "properties" not in capsys.readouterr().out


# Rates


def sequence() -> layerscope.Graph:
    b = Builder("sound")
    return b.build(b.linear(b.input("data", (2, 30, 8)), 4, name="fc"))


@pytest.mark.parametrize(
    ("network", "options", "items", "item"),
    [
        ("lenet5", {"batch": 3}, 3, "images"),
        ("gpt2", {"tokens": 16, "batch": 2}, 32, "tokens"),
        ("gpt2", {"decode": 16, "batch": 2}, 2, "tokens"),
        ("bert_base", {"tokens": 8}, 8, "tokens"),
        (sequence(), {}, 2, "inputs"),
    ],
)
def test_a_rate_is_of_what_the_network_reads(
    network: Any, options: dict[str, int], items: int, item: str
) -> None:
    found = predict(network, on="a100", **options)
    assert found.items_per_s == items / found.total_s
    text = found.to_text()
    assert f" {item}/s." in text
    assert text.count("/s.") == 1
    document = json.loads(found.to_json())
    assert (document["item"], document["items_per_s"]) == (item, found.items_per_s)
    images = found.items_per_s if item == "images" else None
    assert document["images_per_s"] == found.images_per_s == images


def test_an_unknown_operator_makes_the_rate_an_upper_bound() -> None:
    b = Builder("odd")
    x = b.embedding(b.input("ids", (1, 5), "int64"), 10, 8, name="table")
    found = predict(b.build(b.add_node("warp::drive", (x,), name="odd")[0]), on="a100")
    assert "≤ " in found.to_text()
    assert "tokens/s." in found.to_text()
