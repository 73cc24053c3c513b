"""Parameters that no layer uses: in every total, and in a row of their own so that rows add up."""

from __future__ import annotations

import csv
import json
from io import StringIO
from typing import Any

import pytest
from msgspec.structs import replace

import layerscope
from layerscope import Builder, Graph, Report
from layerscope.api.checking import check
from layerscope.conventions import CONVENTIONS, convention
from layerscope.export.report_file import read_file
from layerscope.graph.types import Param
from layerscope.report.budgets import Budget
from layerscope.report.columns import COLUMNS
from layerscope.report.findings import findings
from layerscope.report.tree import UNUSED

USED, SPARE, FROZEN = 8 * 4 + 4, 1_000, 24


def spare() -> Graph:
    """A linear layer, and three parameters that it does not use, one of them frozen."""
    b = Builder("spare")
    graph = b.build(b.linear(b.input("x", (2, 8)), 4, name="fc"))
    unused = (
        Param("aux.weight", (90, 11), "weight", storage="aux.weight"),
        Param("aux.bias", (10,), "bias", storage="aux.bias"),
        Param("aux.fixed", (24,), "weight", storage="aux.fixed"),
    )
    return replace(graph, unused=unused, frozen=frozenset({"aux.fixed"}))


def without_unused() -> Graph:
    return replace(spare(), unused=(), frozen=frozenset())


def report(like: str = "exact") -> Report:
    return layerscope.analyze(spare(), like=like)


TOTAL = USED + SPARE + FROZEN
BY_COUNTED = {"all": SPARE + FROZEN, "trainable": SPARE, "used": 0}
VIEWS: tuple[dict[str, Any], ...] = (
    {}, {"depth": 1}, {"depth": 0}, {"by": "op"}, {"by": "module"}, {"by": "layer"},
    {"sort": "params"}, {"sort": "name"}, {"fold": False, "all": True},
)  # fmt: skip


@pytest.mark.parametrize("like", CONVENTIONS)
def test_the_total_has_what_the_convention_counts(like: str) -> None:
    found = report(like)
    unused = BY_COUNTED[convention(like).counted_params]
    assert found.unused_params == unused
    assert found.totals.params == sum(layer.params for layer in found.layers) + unused
    assert found.trainable_params == sum(layer.params for layer in found.layers) + SPARE


@pytest.mark.parametrize("view", VIEWS, ids=str)
@pytest.mark.parametrize("form", ["text", "markdown", "latex", "html", "csv"])
def test_every_table_has_a_row_of_them(form: str, view: dict[str, Any]) -> None:
    found = report()
    text = getattr(found, f"to_{form}")(columns=("name", "params", "weights"), **view)
    lines = [line for line in text.splitlines() if UNUSED in line]
    assert len(lines) == 1
    assert "1,024" in lines[0] or (form == "csv" and ",1024,4096" in lines[0])
    if form != "csv":
        (total,) = [line for line in text.splitlines() if "total" in line]
        assert f"{TOTAL:,}" in total
        assert "4.24 kB" in total
    assert UNUSED not in getattr(layerscope.analyze(without_unused()), f"to_{form}")(**view)


def test_rows_of_csv_and_frames_add_up() -> None:
    found = report()
    rows = list(csv.DictReader(StringIO(found.to_csv())))
    assert sum(int(row["params"]) for row in rows) == found.totals.params == TOTAL
    pytest.importorskip("pandas")
    assert sum(found.to_pandas()["params"]) == TOTAL


@pytest.mark.parametrize("like", CONVENTIONS)
def test_rows_add_up_under_every_convention(like: str) -> None:
    found = report(like)
    rows = list(csv.DictReader(StringIO(found.to_csv(columns=("name", "params", "weights")))))
    assert sum(int(row["params"] or 0) for row in rows) == found.totals.params
    assert sum(int(row["weights"]) for row in rows) == found.totals.param_bytes == 4 * TOTAL


@pytest.mark.parametrize("column", list(COLUMNS))
def test_every_column_has_a_value_or_a_blank(column: str) -> None:
    for form in ("text", "markdown", "csv"):
        assert getattr(report(), f"to_{form}")(columns=("name", column))


def test_json_names_them_and_reads_them_back(tmp_path: Any) -> None:
    document = json.loads(report().to_json())
    assert document["totals"]["params"] == TOTAL
    assert document["totals"]["unused_params"] == SPARE + FROZEN
    assert document["stored"] == {"parameters": {"fp32": TOTAL}}
    plain = json.loads(layerscope.analyze(without_unused()).to_json())
    assert "unused_params" not in plain["totals"]
    path = tmp_path / "spare.json"
    path.write_text(report().to_json())
    assert read_file(str(path)).totals.params == TOTAL


def test_comparisons_count_and_name_them() -> None:
    found = layerscope.compare(layerscope.analyze(without_unused()), report())
    params = next(figure for figure in found.figures if figure.name == "params")
    assert params.values == (USED, TOTAL)
    weights = next(figure for figure in found.figures if figure.name == "param_bytes")
    assert weights.values == (4 * USED, 4 * TOTAL)
    for form in ("text", "markdown", "html"):
        assert "unused parameters of spare: 1,024" in getattr(found, f"to_{form}")()


@pytest.mark.parametrize(("figure", "limit"), [("params", 500), ("weights", 2_000)])
def test_budgets_limit_them(figure: str, limit: int) -> None:
    verdict = check(Budget("spare", spare(), {figure: limit}))
    assert not verdict.ok
    assert verdict.checks[0].most[0][0] == UNUSED
    assert check(Budget("plain", without_unused(), {figure: limit})).ok


def test_findings_name_them() -> None:
    text = " ".join(findings(report()))
    assert f"Most parameters are in {UNUSED}: 96.6% of {TOTAL:,}." in text


def test_memory_has_their_weights_but_no_gradients() -> None:
    with_them, plain = report(), layerscope.analyze(without_unused())
    ours, theirs = with_them.training("adam"), plain.training("adam")
    assert ours.weights_bytes - theirs.weights_bytes == 4 * (SPARE + FROZEN)
    assert (ours.gradient_bytes, ours.state_bytes) == (theirs.gradient_bytes, theirs.state_bytes)
    room = 4 * USED + 500
    assert layerscope.fit(without_unused(), room).batch > 0
    assert layerscope.fit(spare(), room).batch == 0


def test_a_dtype_applies_to_them() -> None:
    assert layerscope.analyze(spare(), dtype="fp16").totals.param_bytes == 2 * TOTAL


def test_explain_counts_them_once() -> None:
    found = layerscope.explain(spare(), counters=("thop", "fvcore"))
    assert found.params == TOTAL
    thop, fvcore = found.opinions
    assert (thop.params, fvcore.params) == (USED, TOTAL)
    (part,) = thop.param_parts
    assert part.what == "parameters that this forward does not use not counted"
    assert part.count == -(SPARE + FROZEN)
    assert not fvcore.param_parts
