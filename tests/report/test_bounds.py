"""Lower bounds, unknowns, coverage, notes and the stamp are in every form that a report has."""

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
from layerscope.cli import export as export_command
from layerscope.cli import show_forms
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


ZEROS = {"buffers", "mul", "comp", "div", "exp"}
FIGURES = [name for name, column in COLUMNS.items() if column.kind in ("count", "bytes")]


@pytest.mark.parametrize("column", FIGURES)
@pytest.mark.parametrize("form", ["text", "markdown", "latex", "html", "csv"])
def test_a_sum_without_an_unknown_part_is_a_lower_bound(form: str, column: str) -> None:
    report = layerscope.analyze(odd())
    rows = printed(report, form, columns=("name", column), depth=1)
    sums = [line for line in rows.splitlines() if "stem" in line or ("total" in line)]
    assert len(sums) == (1 if form == "csv" else 2)
    for line in sums:  # at least 0 says nothing
        nothing = column in ZEROS or (column == "add" and "stem" in line)
        assert ("?" if nothing else "≥") in line
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
        "ptflops": "warp::drive(",
    }  # fmt: skip
    word = last.get(form, "parameter memory" if form.startswith("matconvnet") else "otal")
    lines = [line for line in text.splitlines() if word.lower() in line.lower()]
    assert lines
    assert all("?" in line for line in lines)


def shown(report: Report, form: str, *, total: bool = False) -> str:
    """What the command prints in a form."""
    from layerscope.export.fit_lines import MemoryResults

    options = show_forms.TableOptions(
        columns=None, depth=None, sort=None, top=None, by=None, parts=None, no_stamp=False,
        total=total, everything=False, max_columns=None, conventions=None,
    )  # fmt: skip
    return show_forms.render(report, form, options, MemoryResults(), to_file=True)


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
    elif target == "svg":
        words = " ".join(
            re.findall(r"<text[^>]*>([^<]*)</text>", export_command._text(report, target))
        )
        assert all(plain(line) in plain(words) for line in written(report, target))
    elif target.startswith(("scalesim", "model")):  # without comments: on stderr
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
    assert shown(report, "text", total=True).startswith("model.safetensors: 12 params · ? MACs")


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


@pytest.mark.parametrize("form", ["text", "markdown", "latex", "html", "csv"])
def test_a_share_of_a_lower_bound_is_an_upper_bound(form: str) -> None:
    report = layerscope.analyze(odd())
    columns = ("name", "params%", "macs%", "activations%")
    lines = printed(report, form, columns=columns).replace(r"$\leq$", "≤").splitlines()
    (fc,) = [line for line in lines if "fc" in line]
    assert fc.count("≤") == 3
    grouped = printed(report, form, columns=columns, depth=1).splitlines()
    (stem,) = [line for line in grouped if "stem" in line]
    assert stem.count("?") == 3  # a part and a total that are both lower bounds
    known = layerscope.analyze(odd(stored=True))
    line = next(
        x for x in printed(known, form, columns=("name", "params%")).splitlines() if "fc" in x
    )
    assert "≤" not in line.replace(r"$\leq$", "≤")


def test_an_exact_share_has_no_sign() -> None:
    assert "≤" not in layerscope.analyze("lenet5").to_text()


def test_sentences_have_upper_bounds_of_shares() -> None:
    report = layerscope.analyze(odd())
    activations, params, macs, peak = report.findings()
    for sentence in (activations, params, macs):
        assert "≤" in sentence
        assert " known" in sentence
    assert "at least" in peak
    assert "≤" in peak
    assert not any("≤" in sentence for sentence in layerscope.analyze("lenet5").findings())


def test_reasons_have_upper_bounds_of_shares() -> None:
    found = layerscope.explain(odd(), counters=("torchinfo",))
    assert "(+≤" in found.to_text()
    (said,) = json.loads(found.to_json())["counters"]
    assert all(reason["upper_bound"] for reason in said["reasons"])
    exact = layerscope.explain("lenet5", counters=("torchinfo",))
    assert "≤" not in exact.to_text()
    (said,) = json.loads(exact.to_json())["counters"]
    assert not any("upper_bound" in reason for reason in said["reasons"])


def test_a_budget_says_what_is_at_least_used() -> None:
    results = BudgetResults((check(Budget("odd", odd(), {"macs": 1_000, "params": 10_000})),))
    text = str(results)
    assert "over by ≥7,192" in text
    assert "by ≥7,192 (≥719%)" in text.replace(".2%", "%")
    assert "most in stem.conv ≤84.4%" in text
    (params,) = [line for line in text.splitlines() if " params " in line]
    assert "≥13.9%" in params


def nothing_known() -> Graph:
    """A scope of two unknown layers, and after it a ReLU of unknown size."""
    b = Builder("nothing")
    with b.scope("part", "Part"):
        (x,) = b.add_node("warp::drive", (b.input("data", (1, 8)),), name="a")
        (x,) = b.add_node("warp::drive", (x,), name="b")
    return b.build(b.relu(x, name="relu"))


@pytest.mark.parametrize("form", ["text", "markdown", "latex", "html", "csv"])
@pytest.mark.parametrize(
    "column", ["params", "buffers", "weights", "macs", "flops", "add", "params%", "macs%"]
)
def test_what_is_unknown_is_a_question_mark_in_rows_groups_and_totals(
    form: str, column: str
) -> None:
    report = layerscope.analyze(nothing_known())
    for view in ({}, {"depth": 1}, {"by": "op"}, {"fold": False}):
        lines = printed(report, form, columns=("name", column), **view).splitlines()
        words = ("part", "warp") if column.endswith("%") else ("part", "warp", "total")
        unknown = [line for line in lines if any(word in line for word in words)]
        assert unknown
        assert all("?" in line and "≥" not in line for line in unknown), lines
        if column in ARRAYS:  # a ReLU has no arrays, whatever its size
            relu = next(line for line in lines if "relu" in line)
            assert "0" in relu
            assert "?" not in relu


def test_unknown_parameters_have_one_rule_in_every_form() -> None:
    report = layerscope.analyze(nothing_known())
    params = [layer["params"] for layer in json.loads(report.to_json())["layers"]]
    assert params == [None, None, 0]
    assert "? params · ? MACs" in shown(report, "text", total=True)
    assert "? params, ? MACs" in repr(report)
    found = layerscope.compare(nothing_known(), layerscope.analyze("lenet5"))
    sides = json.loads(found.to_json(everything=True))["pairs"][0]["layers"]
    first = {side["first"]["name"]: side["first"]["params"] for side in sides if side["first"]}
    assert first == {"part.a": None, "part.b": None, "relu": 0}
    text = found.to_text()
    (part,) = [line for line in text.splitlines() if "part (2 layers)" in line]
    assert part.split()[-2:] == ["?", "?"]


@pytest.mark.parametrize("form", NOTATIONS)
def test_notations_never_print_zero_for_unknown_parameters(form: str) -> None:
    report = layerscope.analyze(nothing_known(), like=notation(form).like)
    text = write_notation(report, form)
    if form in ("module", "matconvnet.dag.dot"):
        return
    words = {"boda": "filt_bytes", "matconvnet.dag": " params|", "cs231n": "TOTAL params"}
    words |= {"matconvnet.dag.csv": '"params"', "matconvnet.dag.latex": " params&"}
    words |= {"fvcore": "model", "ptflops": "warp::drive("}
    default = "parameter memory" if form.startswith("matconvnet") else "total"
    word = words.get(form, default).lower()
    lines = [line for line in text.splitlines() if word in line.lower()]
    lines = [line for line in lines if "size (mb)" not in line.lower()]
    assert lines, text
    assert all("?" in line and "0 + ?" not in line and "0B+?" not in line for line in lines), text
    if form == "torchsummary":
        rows = [line.split() for line in text.splitlines() if "-" in line and "warp" in line]
        assert [row[-1] for row in rows] == ["?", "?"]


def test_stated_parameters_of_unknown_layers_are_in_every_form() -> None:
    report = layerscope.analyze(odd(stored=True))
    (warp,) = [x for x in json.loads(report.to_json())["layers"] if x["type"] == "warp::drive"]
    assert warp["params"] == 0
    for form in ("backbone", "cs231n.md", "layersheet", "torchsummary", "matconvnet"):
        text = write_notation(layerscope.analyze(odd(stored=True), like=notation(form).like), form)
        word = "parameter memory" if form == "matconvnet" else "total"
        if form == "torchsummary":
            word = "total params"
        (line,) = [line for line in text.splitlines() if word in line.lower()]
        cells = line.split("|")
        params = cells[{"backbone": -3, "cs231n.md": -2, "layersheet": -3}.get(form, -1)]
        assert "?" not in params


def test_the_peak_is_complete_only_if_it_is_no_bound() -> None:
    """An unknown op may have an output of known size: its own memory is unknown all the same."""
    for graph in (odd(), odd(stored=True), nothing_known()):
        document = json.loads(layerscope.analyze(graph).to_json())
        assert "peak_activation_bytes" in document["totals"]["lower_bounds"]
        assert document["memory"]["complete"] is False
    document = json.loads(layerscope.analyze("lenet5").to_json())
    assert document["memory"]["complete"] is True


def test_a_frame_of_groups_keeps_the_sign() -> None:
    frame = layerscope.analyze(odd()).to_pandas(depth=1, columns=("name", "macs"))
    assert list(frame["macs"]) == ["≥6912", 0, 1280]


def test_backward_sums_are_named_as_bounds() -> None:
    totals = json.loads(layerscope.analyze(odd()).to_json())["totals"]
    assert "backward_ops" in totals["lower_bounds"]
