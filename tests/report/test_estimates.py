"""Estimates are marked with `~` in every form: rows, sums, totals, shares, sentences, JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import layerscope
from layerscope import Builder, Graph, Report
from layerscope.api.checking import check
from layerscope.escaping import markdown
from layerscope.export.footer import facts
from layerscope.export.text import total_line
from layerscope.notations import NOTATIONS, notation
from layerscope.notations import write as write_notation
from layerscope.ops import SPECS
from layerscope.report.budgets import Budget, BudgetResults
from layerscope.report.columns import COLUMNS
from layerscope.report.tree import layer_rows

SIZES = {"activations", "convention_activations", "memory", "alive", "read", "write"}
ARRAYS = {"params", "buffers", "weights"}


def decomposed() -> Graph:
    """A linear layer, and in a scope a determinant, whose operations are an estimate."""
    b = Builder("decomposed")
    x = b.linear(b.input("x", (4, 4)), 4, name="fc")
    with b.scope("part"):
        b.add_node("det", (x,), name="det")
        b.relu(x, name="relu")
    return b.build()


def counted_twice() -> Graph:
    """Two convolutions, the second with declared shapes: all its figures are estimates."""
    b = Builder("declared")
    x = b.conv(b.input("x", (1, 3, 8, 8)), 4, 3, padding=1, name="conv1")
    with b.scope("part"):
        x = b.conv(x, 5, 3, padding=1, name="conv2")
    graph = b.build(x)
    nodes = [replace(n, estimate=True, note="from a declared shape") if n.name.endswith("conv2")
             else n for n in graph.nodes]  # fmt: skip
    return replace(graph, nodes=tuple(nodes))


def printed(report: Report, form: str, **view: Any) -> list[str]:
    text: str = getattr(report, f"to_{form}")(**view)
    text = text.replace(r"\textasciitilde{}", "~").replace(r"$\leq$", "≤")
    return text.replace(r"$\geq$", "≥").splitlines()


def line_of(lines: list[str], name: str) -> str:
    (line,) = [line for line in lines if name in line]
    return line


FORMS = ["text", "markdown", "latex", "html", "csv"]
FIGURES = [n for n, c in COLUMNS.items() if c.kind in ("count", "bytes", "ratio")]


@pytest.mark.parametrize("column", FIGURES)
@pytest.mark.parametrize("form", FORMS)
def test_figures_of_estimated_sizes_are_marked_in_rows_and_sums(form: str, column: str) -> None:
    report = layerscope.analyze(counted_twice())
    lines = printed(report, form, columns=("name", column), fold=False)
    zero = column in ("buffers", "mul", "comp", "div", "exp")
    marked = not zero and column not in ARRAYS
    names = ["conv2"] if form == "csv" else ["conv2", "total"]
    assert all(("~" in line_of(lines, name)) == marked for name in names)
    assert ("~" in line_of(lines, "conv1")) == (column == "alive")
    grouped = printed(report, form, columns=("name", column), depth=1)
    assert ("~" in line_of(grouped, "part")) == marked


@pytest.mark.parametrize("column", FIGURES)
def test_operations_that_are_estimates_leave_sizes_exact(column: str) -> None:
    report = layerscope.analyze(decomposed())
    line = line_of(printed(report, "text", columns=("name", column)), "det")
    estimated = {"macs", "flops", "convention_ops", "add", "mul", "div", "intensity",
                 "backward_macs", "backward_flops"}  # fmt: skip
    value = COLUMNS[column].value
    row = layer_rows(report)[1]
    assert ("~" in line) == (column in estimated and bool(value(row, report))), line
    assert not SIZES & set(report.estimates)


def test_exact_reports_have_no_sign() -> None:
    report = layerscope.analyze("lenet5")
    assert report.estimates == ()
    document = json.loads(report.to_json())
    assert "estimates" not in document["totals"]
    for form in FORMS:
        assert not any("~" in line for line in printed(report, form))


@pytest.mark.parametrize("form", ["text", "markdown", "latex", "html", "csv"])
def test_shares_of_an_estimate_are_estimates(form: str) -> None:
    report = layerscope.analyze(counted_twice())
    lines = printed(report, form, columns=("name", "macs%", "params%"), fold=False)
    assert line_of(lines, "conv1").count("~") == 1
    if form != "csv":
        assert "~" not in line_of(lines, "total")


def test_totals_are_marked_in_every_form() -> None:
    report = layerscope.analyze(counted_twice())
    macs = report.totals.macs
    assert {"macs", "flops", "activations", "peak_activation_bytes"} <= set(report.estimates)
    assert not ARRAYS & set(report.estimates)
    assert f"~{macs:,} MACs" in total_line(report)
    assert f"~{macs:,} MACs" in repr(report)
    document = json.loads(report.to_json())
    assert document["totals"]["estimates"] == list(report.estimates)
    assert set(report.estimates) <= document["totals"].keys()
    assert [layer["status"] for layer in document["layers"]] == ["exact", "estimate"]
    assert "estimates (~): 1" in str(report.coverage)
    sentences = " ".join(report.findings())
    assert f"of ~{macs:,}." in sentences
    assert "with ~" in sentences


def test_a_frame_keeps_the_sign() -> None:
    pytest.importorskip("pandas")
    frame = layerscope.analyze(counted_twice()).to_pandas(columns=("name", "macs", "params"))
    assert list(frame["macs"]) == [6912, "~11520"]
    assert list(frame["params"]) == [112, 185]


def test_comparisons_are_marked() -> None:
    exact = replace(counted_twice(), nodes=tuple(
        replace(node, estimate=False, note="") for node in counted_twice().nodes
    ))  # fmt: skip
    found = layerscope.compare(exact, counted_twice())
    macs = next(figure for figure in found.figures if figure.name == "macs")
    assert [macs.sign(n) for n in range(2)] == ["", "~"]
    assert "~×1.00" in found.to_text()
    assert "estimates (~): 1" in found.to_text()
    document = json.loads(found.to_json())
    assert document["estimates"][0] == []
    assert "macs" in document["estimates"][1]
    assert "estimates" not in json.loads(layerscope.compare(exact, exact).to_json())
    rows = found.to_csv().splitlines()
    assert "~18432" in rows[2]


def test_budgets_are_marked() -> None:
    report = layerscope.analyze(counted_twice())
    limits = {"macs": 10_000, "params": 10_000}
    results = BudgetResults((check(Budget("declared", counted_twice(), limits)),))
    text = str(results)
    assert f"~{report.totals.macs:,}" in text
    assert "over by ~8,432" in text
    checks = json.loads(results.to_json())["budgets"][0]["checks"]
    assert [check.get("estimate", False) for check in checks] == [True, False]


def test_explanations_are_marked() -> None:
    found = layerscope.explain(counted_twice(), counters=("thop",))
    assert f"~{found.macs:,}" in found.to_text()
    assert json.loads(found.to_json())["estimates"] == ["macs"]


def test_a_counter_that_misses_the_estimate_is_exact() -> None:
    found = layerscope.explain(decomposed(), counters=("fvcore", "netscope"))
    assert [said.sign for said in found.opinions] == ["", ""]
    assert found.report.sign("flops") == "~"
    declared = layerscope.explain(counted_twice(), counters=("fvcore",))
    assert [said.sign for said in declared.opinions] == ["~"]


def boxes() -> Graph:
    """A convolution, and boxes of which data decides how many are kept."""
    b = Builder("boxes")
    x = b.conv(b.input("x", (1, 3, 8, 8)), 4, 3, padding=1, name="conv1")
    b.add_node("non_zero", (x,), name="found")
    return b.build()


@pytest.mark.parametrize(
    "form", [name for name in NOTATIONS if name not in ("module", "boda", "fvcore", "ptflops")]
)
def test_notations_mark_sizes_that_data_decides(form: str) -> None:
    report = layerscope.analyze(boxes(), like=notation(form).like)
    text = signs(write_notation(report, form))
    plain = signs(write_notation(layerscope.analyze("lenet5", like=notation(form).like), form))
    if form == "backbone":  # prints ~ before every total
        assert (text.count("~"), plain.count("~")) == (3, 2)
        return
    assert "~" not in plain
    words = ("total", "data memory", "found")
    lines = [line for line in text.splitlines() if any(word in line.lower() for word in words)]
    assert any("~" in line for line in lines), text


def signs(text: str) -> str:
    """A text without the tildes that CS231n prints in every total."""
    return text.replace("~*2", "").replace("~=", "").replace(r"\textasciitilde{}", "~")


def test_the_footer_counts_them() -> None:
    report = layerscope.analyze(boxes())
    assert any("estimates (~): 1" in line for line in facts(report))
    assert "~" in markdown("~1")


def test_ops_that_the_documentation_calls_estimates_are() -> None:
    """A rule that is documented as a bound or an estimate must say so in figures, too."""
    pages = Path(__file__).parents[2] / "docs" / "counting.md"
    found = 0
    for line in pages.read_text(encoding="utf-8").splitlines():
        row = re.match(r"\| (`[^|]*) \| (.*) \|", line)
        if row and re.search("an upper bound|a lower bound|an estimate", row[2]):
            ops = [op for op in re.findall(r"`([a-z0-9_]+)`", row[1]) if op in SPECS]
            assert all(SPECS[op].estimate for op in ops), line
            found += len(ops)
    assert found > 10


@pytest.mark.parametrize("op", [op for op, spec in SPECS.items() if spec.data_sized])
def test_sizes_that_data_decides_are_estimates(op: str) -> None:
    assert SPECS[op].estimate
