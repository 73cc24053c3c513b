"""Lower bounds, unknowns, coverage, notes and the stamp are in every form that a report has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import layerscope
from layerscope import Builder, Graph, Report
from layerscope.api import check
from layerscope.cli import export as export_command
from layerscope.cli import show as show_command
from layerscope.escaping import markdown
from layerscope.export import FORMS, TARGETS
from layerscope.export.footer import COMMENTS, MARKDOWN, facts, footer
from layerscope.notations import NOTATIONS, notation
from layerscope.notations import write as write_notation
from layerscope.report.budgets import Budget, BudgetResults
from layerscope.report.columns import COLUMNS

NOTE = "weights of <b> & of _c_ are missing"
CHOSEN = {"name", "type", "scope", "window", "input", "output", "status", "note"}
ARRAYS = {"params", "buffers", "weights"}


def odd(*, stored: bool = False) -> Graph:
    """A scope with a known and an unknown layer, and a known layer after it.

    The unknown layer has no stated arrays, so that its parameters may be missing; with `stored` it
    is stated to have none.
    """
    b = Builder("odd")
    x = b.input("data", (1, 3, 8, 8))
    with b.scope("stem", "Stem"):
        x = b.conv(x, 4, 3, padding=1, bias=False, name="conv")
        b.add_node("warp::drive", (x,), name="warp")
    b.linear(b.flatten(x, name="flat"), 5, name="fc")
    graph = replace(b.build(), notes=(NOTE,))
    if stored:
        nodes = [replace(n, params=()) if n.op == "warp::drive" else n for n in graph.nodes]
        graph = replace(graph, nodes=tuple(nodes))
    return graph


def printed(report: Report, form: str, **view: Any) -> str:
    text: str = getattr(report, f"to_{form}")(**view)
    return text.replace(r"$\geq$", "≥")


FIGURES = [name for name, column in COLUMNS.items() if column.kind in ("count", "bytes")]


@pytest.mark.parametrize("column", FIGURES)
@pytest.mark.parametrize("form", ["text", "markdown", "latex", "html", "csv"])
def test_a_sum_without_an_unknown_part_is_a_lower_bound(form: str, column: str) -> None:
    report = layerscope.analyze(odd())
    rows = printed(report, form, columns=("name", column), depth=1)
    sums = [line for line in rows.splitlines() if "stem" in line or ("total" in line)]
    assert len(sums) == (1 if form == "csv" else 2)
    assert all("≥" in line for line in sums)
    exact = [line for line in rows.splitlines() if "fc" in line]
    assert exact
    # the unknown tensor is an output of the network: alive to the end
    assert all(("≥" in line) == (column == "alive") for line in exact)


@pytest.mark.parametrize("column", sorted(ARRAYS))
def test_parameters_that_are_known_are_no_bound(column: str) -> None:
    report = layerscope.analyze(odd(stored=True))
    for form in ("text", "markdown", "latex", "html", "csv"):
        assert "≥" not in printed(report, form, columns=("name", column), depth=1)
    assert not ARRAYS & set(report.lower_bounds)
    assert {"macs", "flops", "activations"} <= set(report.lower_bounds)


def test_ratios_of_bounds_are_unknown() -> None:
    report = layerscope.analyze(odd())
    line = report.to_text(columns=("name", "intensity")).splitlines()[-1]
    assert line.split() == ["total", "?"]
    assert json.loads(report.to_json())["totals"]["intensity"] is None


def test_json_names_the_totals_that_are_bounds() -> None:
    for stored in (False, True):
        report = layerscope.analyze(odd(stored=stored))
        totals = json.loads(report.to_json())["totals"]
        assert totals["complete"] is False
        assert totals["lower_bounds"] == list(report.lower_bounds)
        assert set(totals["lower_bounds"]) <= totals.keys()
        assert ("params" in totals["lower_bounds"]) is not stored
    assert json.loads(layerscope.analyze("lenet5").to_json())["totals"]["lower_bounds"] == []


@pytest.mark.parametrize("form", NOTATIONS)
def test_notations_mark_their_totals(form: str) -> None:
    like = notation(form).like
    text = write_notation(layerscope.analyze(odd(), like=like), form)
    if form == "module":  # prints no figures
        assert "warp::drive()" in text
        return
    if form == "matconvnet.dag.dot":  # prints no sums
        assert "{{stem.warp} | {n/a | NaN }}" in text
        return
    last = {
        "cs231n": "TOTAL params", "boda": "AI=", "matconvnet.dag": " total|",
        "matconvnet.dag.csv": '"total"', "matconvnet.dag.latex": " total&", "fvcore": "| model",
    }  # fmt: skip
    word = last.get(form, "parameter memory" if form.startswith("matconvnet") else "otal")
    lines = [line for line in text.splitlines() if word.lower() in line.lower()]
    assert lines
    assert all("?" in line for line in lines)


def shown(report: Report, form: str, *, total: bool = False) -> str:
    """What the command prints in a form."""
    from layerscope.export.fit_lines import MemoryResults

    options = show_command.TableOptions(
        columns=None, depth=None, sort=None, top=None, by=None, parts=None, no_stamp=False,
        total=total, everything=False, max_columns=None,
    )  # fmt: skip
    return show_command._render(report, form, options, MemoryResults(), to_file=True)


def plain(text: str) -> str:
    from html import unescape

    return unescape(text)


def written(report: layerscope.Report, form: str) -> list[str]:
    """What must stand under a table; tags are escaped in Markdown."""
    if form not in MARKDOWN:
        return facts(report)
    assert "<b>" in NOTE
    return [markdown(line, keep="_") for line in facts(report)]


@pytest.mark.parametrize("form", [*FORMS, *NOTATIONS])
def test_show_prints_stamp_coverage_and_notes_in_every_form(form: str) -> None:
    like = notation(form).like if form in NOTATIONS else "exact"
    report = layerscope.analyze(odd(), like=like)
    text = plain(shown(report, form))
    if form == "json":
        document = json.loads(text)
        assert document["stamp"]["text"] == report.stamp
        assert document["notes"] == [NOTE]
        assert document["coverage"]["unknown"] == {"warp::drive": 1}
    else:
        assert all(line in text for line in written(report, form))
    if form in COMMENTS:
        below = footer(report, form).splitlines()
        assert text.splitlines()[-len(below) :] == below
        assert all(line.startswith(COMMENTS[form]) for line in below)


@pytest.mark.parametrize("target", [*TARGETS, *(form for form in FORMS if form != "text")])
def test_export_tells_what_is_unknown(target: str) -> None:
    report = layerscope.analyze(odd())
    text = plain(export_command._text(report, target))
    if target == "json":
        assert json.loads(text)["notes"] == [NOTE]
    elif target.startswith("scalesim"):  # its csv has no comments: on stderr
        assert set(facts(report)[1:]) <= set(export_command._warnings(report, target))
    else:
        assert all(line in text for line in written(report, target))


def test_totals_alone_have_all_of_it_in_json() -> None:
    report = layerscope.analyze(odd())
    document = json.loads(shown(report, "json", total=True))
    assert document["network"] == "odd"
    assert document["stamp"]["text"] == report.stamp
    assert document["coverage"]["unknown"] == {"warp::drive": 1}
    assert document["notes"] == [NOTE]
    assert document["params"] == report.totals.params
    line = shown(report, "text", total=True)
    assert line.startswith("odd: ≥1,393 params · ≥8,192 MACs · ≥")


def test_a_notebook_shows_coverage_and_notes() -> None:
    text = plain(layerscope.analyze(odd())._repr_html_())
    assert NOTE in text
    assert "unknown: warp::drive ×1" in text
    assert "<b>" not in layerscope.analyze(odd())._repr_html_()


def test_a_frame_keeps_them() -> None:
    frame = layerscope.analyze(odd()).to_pandas(depth=1)
    assert frame.attrs["notes"] == [NOTE]
    assert "warp::drive" in frame.attrs["coverage"]
    assert list(frame["status"]) == ["lower bound", "exact", "exact"]


def test_a_comparison_has_no_ratio_of_bounds() -> None:
    found = layerscope.compare(odd(stored=True), odd(stored=True))
    document = json.loads(found.to_json())
    assert document["totals"]["params"]["ratios"] == [1.0, 1.0]
    assert document["totals"]["macs"]["ratios"] == [None, None]
    assert document["lower_bounds"][0] == list(found.reports[0].lower_bounds)
    rows = found.to_pandas(columns=["params", "macs"]).to_dict("records")
    assert [row["params"] for row in rows] == [1393, 1393]
    assert [str(row["params_ratio"]) for row in rows] == ["nan", "1.0"]
    assert [row["macs_ratio"] for row in rows] == ["", "?"]
    assert all(str(row["macs"]).startswith("≥") for row in rows)


def test_a_budget_says_which_figures_are_bounds() -> None:
    from layerscope.report.budgets import Budget, BudgetResults, judge

    report = layerscope.analyze(odd(stored=True))
    verdict = judge(report, Budget("odd", "odd", {"params": 2000, "macs": 10**6}))
    results = BudgetResults((verdict,))
    checks = json.loads(results.to_json())["budgets"][0]["checks"]
    assert {check["figure"]: check["lower_bound"] for check in checks} == {
        "params": False,
        "macs": True,
    }
    lines = str(results).splitlines()
    assert ["≥" in line for line in lines[2:4]] == [False, True]


def test_a_state_dict_is_exact(tmp_path: Path) -> None:
    """Its layers have no known operations, and all their parameters."""
    header = json.dumps({"w": {"dtype": "F32", "shape": [3, 4], "data_offsets": [0, 48]}})
    path = tmp_path / "model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header.encode() + bytes(48))
    report = layerscope.analyze(str(path))
    assert "params" not in report.lower_bounds
    assert "≥" not in report.to_text(columns=("name", "params"))
    assert shown(report, "text", total=True).startswith("model.safetensors: 12 params · ≥0 MACs")


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("form", ["text", "markdown", "latex", "html", "csv"])
@pytest.mark.parametrize("figure", [None, "8.19k", "1.39k params"])
def test_figures_of_other_counters_are_lower_bounds(
    figure: str | None, form: str, stored: bool
) -> None:
    found = layerscope.explain(odd(stored=stored), figure=figure)
    text = getattr(found, f"to_{form}")().replace(r"$\geq$", "≥").replace(",", "")
    params, macs = found.params, found.macs
    bound = f"≥{params}" in text
    if figure is None or "params" in figure:
        assert str(params) in text
        assert bound is not stored
    if figure is None or "params" not in figure:
        assert text.count(str(macs)) == text.count(f"≥{macs}") > 0
    assert ("lower_bounds" in found.to_json()) is True
    assert f"≥{macs:,}" in found.headline


def test_figures_of_other_counters_of_a_known_network_are_no_bounds() -> None:
    found = layerscope.explain("lenet5")
    assert "≥" not in found.to_text()
    assert "lower_bounds" not in found.to_json()


def results_of_odd() -> dict[str, Any]:
    """Every result that is computed from a graph, of a graph with an unknown layer."""
    graph = odd()
    budget = Budget("odd", graph, {"macs": 10**9})
    return {
        "Comparison": layerscope.compare(graph, "lenet5"),
        "Comparison, predicted": layerscope.compare(graph, "lenet5", on="a100"),
        "Explanation": layerscope.explain(graph, counters=["fvcore"]),
        "Prediction": layerscope.predict(graph, on="a100"),
        "Fit": layerscope.fit(graph, 10**6),
        "BudgetResults": BudgetResults((check(budget),)),
    }


@pytest.mark.parametrize(
    "method", ["to_text", "to_markdown", "to_csv", "to_latex", "to_html", "to_pandas"]
)
@pytest.mark.parametrize("name", results_of_odd())
def test_results_mark_their_bounds(name: str, method: str) -> None:
    found = results_of_odd()[name]
    printed = getattr(found, method)()
    text = printed.to_string() if method == "to_pandas" else printed
    if name == "Prediction" and method == "to_pandas":  # a row per layer, and no total
        assert "?" in text
        return
    assert (r"$\geq$" if method == "to_latex" else "≥") in text


def test_differences_from_a_bound_are_unknown() -> None:
    found = layerscope.explain(odd(), counters=["fvcore"])
    frame = found.to_pandas()
    assert frame["macs"][0].startswith("≥")
    assert frame["difference"][1] == "?"
    assert "≥" in repr(found)
    assert "macs" in json.loads(found.to_json())["lower_bounds"]
    known = layerscope.explain("lenet5", counters=["fvcore"])
    assert "≥" not in str(known)
    assert "lower_bounds" not in json.loads(known.to_json())


def test_the_peak_of_a_prediction_is_marked() -> None:
    assert "memory ≥" in str(layerscope.predict(odd(), on="a100"))
    assert "memory ≥" not in str(layerscope.predict("lenet5", on="a100"))
