"""Every result of the Python API prints itself in every form, pickles and copies."""

from __future__ import annotations

import copy
import csv
import io
import json
import pickle
import tempfile
from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest

import layerscope
import layerscope.errors
from layerscope.api.auditing import audit
from layerscope.api.checking import check
from layerscope.api.generating import predict_generation, steps_of
from layerscope.llm.work import phase_of
from layerscope.report.budgets import Budget, BudgetResults
from layerscope.report.generation_runs import GenerationRuns, MeasuredStep
from layerscope.report.results import Result, TableResult
from layerscope.report.sweep_results import SweepResults
from tests.auditing.documents import WRONG
from tests.llm.test_work import LLAMA_8B
from tests.syntax import latex_rows


@cache
def measured() -> Result:
    return layerscope.measure("lenet5", runs=10)


def generation() -> Result:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.json"
        path.write_text(json.dumps(LLAMA_8B), encoding="utf-8")
        return predict_generation(f"hf:{path}", steps_of(64, 64), on="a100")


def generation_runs() -> Result:
    steps = [
        MeasuredStep(
            engine="torch", engine_version="2.13", phase=phase_of(step), tokens=step.tokens,
            past=step.past, batch=2, runs_s=(0.25, 0.125, 0.5), contention=1.0,
            cache_bytes=step.past or None, expected_cache_bytes=step.past or None,
        )
        for step in steps_of(64, 128)
    ]  # fmt: skip
    return GenerationRuns(
        network="llama", machine="a CPU", params=1_000_000, dtype="fp32", threads=2,
        steps=tuple(steps), version="0.1.0", measured="2026-01-01T00:00:00+00:00",
    )  # fmt: skip


RESULTS: dict[str, Callable[[], Result]] = {
    "Report": cache(lambda: layerscope.analyze("resnet18")),
    "Comparison": cache(lambda: layerscope.compare("vgg16", "vgg19")),
    "Comparison, predicted": cache(lambda: layerscope.compare("vgg16", "vgg19", on="a100")),
    "Explanation": cache(lambda: layerscope.explain("resnet18")),
    "Explanation of a figure": cache(lambda: layerscope.explain("resnet18", figure="1.82G")),
    "Measurement": measured,
    "Prediction": cache(lambda: layerscope.predict("resnet18", on="a100")),
    "Fit": cache(lambda: layerscope.fit("resnet18", 8 * 10**9)),
    "Audit": cache(lambda: audit(text=WRONG)),
    "GenerationTimes": cache(generation),
    "GenerationRuns": cache(generation_runs),
    "SweepResults": cache(
        lambda: SweepResults(
            "r.sqlite",
            ("name", "params"),
            (("vgg16", 138_357_544), ("bad", None)),
            (frozenset(), frozenset()),
            2,
        )
    ),
    "BudgetResults": cache(
        lambda: BudgetResults((check(Budget("resnet18", "resnet18", {"params": 10**6})),))
    ),
}
METHODS = ("to_text", "to_markdown", "to_csv", "to_latex", "to_html", "to_json", "to_pandas")


def test_all_results_are_listed() -> None:
    def below(cls: type[Result]) -> set[type[Result]]:
        subclasses: list[type[Result]] = cls.__subclasses__()
        return {cls, *(each for sub in subclasses for each in below(sub))}

    tested = {type(make()).__name__ for make in RESULTS.values()}  # imports them all
    names = {each.__name__ for each in below(Result)}
    others = {
        "Result",
        "TableResult",
        "PlottedResult",
        "Machine",
        "Summary",
    }  # a Summary is a Report
    assert names - others == tested


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_prints(name: str) -> None:
    found = RESULTS[name]()
    text = str(found)
    assert text == found.to_text()  # type: ignore[attr-defined]
    assert text.count("\n") > 2
    assert "Struct" not in text
    assert repr(found).startswith(f"<{type(found).__name__} ")
    assert len(repr(found)) < 160
    assert "\n" not in repr(found)


class Tags(HTMLParser):
    """Checks that tags are closed in the order in which they are opened."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)
        if tag not in ("br", "meta"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_small_in_a_notebook(name: str) -> None:
    html = RESULTS[name]()._repr_html_()  # type: ignore[attr-defined]
    tags = Tags()
    tags.feed(html)
    assert not tags.open
    assert "script" not in tags.seen
    assert "table" in tags.seen
    assert len(html) < 120_000


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", RESULTS)
def test_a_result_has_every_form(name: str, method: str) -> None:
    found = getattr(RESULTS[name](), method)()
    if method == "to_json":
        document = json.loads(found)
        assert list(document)[:2] == ["kind", "schema"]
        assert isinstance(document["schema"], int)
    elif method == "to_csv":
        lines = [line for line in found.splitlines() if not line.startswith("# ")]
        rows = list(csv.reader(io.StringIO("\n".join(lines))))
        assert len(rows) > 1
        assert {len(row) for row in rows} == {len(rows[0])}
        assert len(set(rows[0])) == len(rows[0])
    elif method == "to_latex":
        assert len(latex_rows(found)) > 1
    elif method == "to_pandas":
        assert len(found) > 0
        assert len(set(found.columns)) == len(found.columns)
    else:
        assert found.strip()


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_pickles_and_copies(name: str) -> None:
    found = RESULTS[name]()
    for again in (pickle.loads(pickle.dumps(found)), copy.copy(found), copy.deepcopy(found)):
        assert str(again) == str(found)


def test_frames_have_the_figures_of_the_csv() -> None:
    """Of results that are tables: the same columns and as many rows, without totals."""
    for name, make in RESULTS.items():
        found = make()
        if not isinstance(found, TableResult):
            continue
        frame = found.to_pandas()
        header = found.to_csv().splitlines()[0].split(",")
        assert list(frame.columns) == header, name


def test_a_comparison_is_three_lines() -> None:
    found = layerscope.compare("vgg16", "resnet50", "mobilenet_v2", on="a100")
    table = found.to_latex(columns=["name", "params", "macs", "time"], sort="time")
    rows = latex_rows(table)
    assert {row[0]: row[1] for row in rows[1:]} == {
        "vgg16": "138,357,544", "resnet50": "25,557,032", r"mobilenet\_v2": "3,504,872",
    }  # fmt: skip
    frame = found.to_pandas(columns=["macs", "time"], sort="time")
    assert sorted(frame["macs"]) == [300_774_272, 4_089_184_256, 15_470_264_320]
    assert frame["time"].is_monotonic_decreasing


def test_two_runs_are_compared_layer_by_layer() -> None:
    found = measured()
    both = layerscope.compare(found, found)
    assert "time per layer" in str(both)
    assert "×1.00" in str(both)
    document = json.loads(both.to_json())
    assert document["times"][0]["layers"] == document["times"][1]["layers"]
    assert document["pairs"][0]["counts"]["changed"] == 0


def test_the_time_of_a_network_may_be_limited() -> None:
    budget = Budget("resnet18", "resnet18", {"time": 1e-9})
    with pytest.raises(layerscope.LayerscopeError, match="needs --measure or --on"):
        check(budget)
    verdict = check(budget, on="a100")
    assert not verdict.ok
    assert "time" in str(BudgetResults((verdict,)))
    assert check(Budget("resnet18", "resnet18", {"time": 10.0}), on="a100").ok


def test_numbers_stay_numbers_in_a_frame_with_blank_cells() -> None:
    pandas = pytest.importorskip("pandas")
    from layerscope.export.grid import Cell, Grid, named
    from layerscope.export.render import to_frame

    head = [named("layer"), Cell("blank"), Cell("unknown"), Cell("whole"), Cell("empty")]
    rows = [
        [named("a"), Cell("", value=2), Cell("", value=2), Cell("", value=2), Cell("")],
        [named("b"), Cell("", value=""), Cell("?"), Cell("", value=3), Cell("")],
    ]
    frame = to_frame([Grid([head, *rows])])
    assert frame["blank"].dtype == "float64"
    assert pandas.isna(frame["blank"][1])
    assert list(frame["unknown"]) == [2, "?"]
    assert frame["whole"].dtype == "int64"
    assert list(frame["empty"]) == ["", ""]


WRONG_VIEWS: dict[str, dict[str, object]] = {
    "an unknown option": {"bogus": 1},
    "rows": {"top": 0},
    "rows below 0": {"top": -1},
    "rows as text": {"top": "a"},
    "columns as text": {"columns": "name"},
    "a sort that is no name": {"sort": 5},
}


@pytest.mark.parametrize("wrong", WRONG_VIEWS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", RESULTS)
def test_a_wrong_view_is_refused(name: str, method: str, wrong: str) -> None:
    """In every form of every result: no option is ignored."""
    found = RESULTS[name]()
    if method == "to_json" and name == "Report":
        return  # it takes no options, as its signature says
    with pytest.raises(layerscope.errors.UsageError):
        getattr(found, method)(**WRONG_VIEWS[wrong])


@pytest.mark.parametrize("name", ["Measurement", "Prediction"])
def test_the_longest_layer_is_first_in_every_form(name: str) -> None:
    found = RESULTS[name]()
    for method in ("to_csv", "to_pandas", "to_text"):
        assert str(getattr(found, method)(sort=True, top=1)) != str(getattr(found, method)())
    frame = found.to_pandas(sort=True, top=2)  # type: ignore[attr-defined]
    assert len(frame) == 2
    assert list(frame["time_s"]) == sorted(frame["time_s"], reverse=True)
