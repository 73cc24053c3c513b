"""Budgets: quantities, limits from options and files, verdicts in every form, the fixture."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import layerscope
from layerscope import Builder, Graph
from layerscope.api.checking import check
from layerscope.cli import run
from layerscope.cli.check import LIMITS
from layerscope.errors import InputError, UnknownName, UsageError
from layerscope.export.budget_results import write_junit
from layerscope.report.budget_file import find, read
from layerscope.report.budgets import FIGURES, Budget, BudgetResults, judge
from layerscope.report.quantities import SUFFIXES, quantity

Captured = pytest.CaptureFixture[str]

FILE = """
[tool.layerscope.budgets.resnet18]
max-params = "12M"
max-peak = "8MB"

[tool.layerscope.budgets.vgg-batch]
network = "vgg16"
batch = 8
input = "3x64x64"
dtype = "fp16"
like = "exact"
max-macs = 1_000_000
"""


def mystery() -> Graph:
    b = Builder("mystery")
    x = b.conv(b.input("data", (1, 3, 8, 8)), 4, 3, name="conv1")
    return b.build(b.add_node("warp::drive", (x,), name="odd")[0])


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with budgets, and a folder in it that commands run in."""
    (tmp_path / "pyproject.toml").write_text(FILE)
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    return tmp_path


def failing(capsys: Captured, code: int, *args: str) -> str:
    assert run(args) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1, err
    return err


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        (5, "count", 5), ("0", "count", 0), ("5000000", "count", 5_000_000), ("5k", "count", 5000),
        ("5 M", "count", 5_000_000), ("1.5G", "count", 1_500_000_000), ("2T", "count", 2 * 10**12),
        ("12,000,000", "count", 12_000_000), ("12_000", "count", 12_000), ("0.25k", "count", 250),
        ("7", "bytes", 7), ("7B", "bytes", 7), ("2kB", "bytes", 2000), ("2MB", "bytes", 2_000_000),
        ("1.5GB", "bytes", 1_500_000_000), ("2KiB", "bytes", 2048), ("0.5MiB", "bytes", 524_288),
        ("1GiB", "bytes", 2**30), ("1TiB", "bytes", 2**40), ("1TB", "bytes", 10**12),
    ],
)  # fmt: skip
def test_quantities(text: Any, unit: Any, value: int) -> None:
    assert quantity(text, unit, "--max") == value


@pytest.mark.parametrize(
    ("text", "unit", "says"),
    [
        ("5m", "count", "expected a count such as"), ("5MB", "count", "expected a count"),
        ("5K", "count", "expected a count"), ("M", "count", "expected a count"),
        ("", "count", "expected a count"), ("-5", "count", "expected a count"),
        ("1e6", "count", "expected a count"), ("٣", "count", "expected a count"),
        ("5M", "bytes", "expected bytes such as"), ("5KB", "bytes", "expected bytes"),
        ("1.5", "count", "no whole number, but 1.5"), ("0.1KiB", "bytes", "no whole number"),
        (True, "count", "expected a count"), (1.5, "count", "expected a count"),
        (-1, "count", "no less than 0"), (None, "bytes", "expected bytes"),
    ],
)  # fmt: skip
def test_what_is_no_quantity(text: Any, unit: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        quantity(text, unit, "--max")


@given(st.integers(0, 10**6), st.sampled_from(list(SUFFIXES["count"])))
def test_counts_are_exact(number: int, suffix: str) -> None:
    factor = SUFFIXES["count"][suffix]
    assert quantity(f"{number}{suffix}", "count", "") == number * factor
    assert quantity(f"{number:,}", "count", "") == number


def test_every_figure_has_an_option() -> None:
    assert list(LIMITS) == list(FIGURES)


def test_a_limit_is_the_most_that_is_allowed() -> None:
    report = layerscope.analyze("resnet18")
    totals = report.totals
    exact = {
        "params": totals.params, "macs": totals.macs, "flops": totals.flops,
        "activations": totals.activations, "peak": totals.peak_activation_bytes,
        "weights": totals.param_bytes,
    }  # fmt: skip
    assert judge(report, Budget("r", "resnet18", exact)).ok
    for name, value in exact.items():
        verdict = judge(report, Budget("r", "resnet18", {**exact, name: value - 1}))
        assert not verdict.ok
        over = [check for check in verdict.checks if check.over]
        assert [(check.figure.name, check.over) for check in over] == [(name, 1)]
        assert over[0].most


def test_within_and_over(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    args = ["check", "resnet18", "--max-params", "12M", "--max-peak", "8MB", "--no-stamp"]
    assert run(args) == 0
    assert (
        capsys.readouterr().out
        == """\
network   figure             found        limit   used
──────────────────────────────────────────────────────────
resnet18  params        11,689,512   12,000,000  97.4%  ok
resnet18  peak memory  6,422,528 B  8,000,000 B  80.3%  ok
"""
    )
    assert run(["check", "resnet18", "lenet5", "--max-params", "11M", "--no-stamp"]) == 1
    out, err = capsys.readouterr()
    assert (
        out
        == """\
network   figure       found       limit    used
────────────────────────────────────────────────────────────────
resnet18  params  11,689,512  11,000,000  106.3%  over by 689,512
lenet5    params      61,706  11,000,000    0.6%  ok

resnet18: params 11,689,512, over the limit of 11,000,000 by 689,512 (6.3%); most in \
layer4.0.conv2 20.2%, layer4.1.conv1 20.2%, layer4.1.conv2 20.2%
""".replace("────\nresnet18  params  11", "─────\nresnet18  params  11")
    )
    assert err == "layerscope: 1 of 2 budgets not met\n"


def test_far_over_is_told_in_times(capsys: Captured) -> None:
    assert run(["check", "vgg16", "--max-params", "1M", "--max-macs", "0"]) == 1
    out = capsys.readouterr().out
    assert "×138" in out
    assert "MACs 15,470,264,320, over the limit of 0 by 15,470,264,320; most in" in out


def test_the_file_is_found_upwards(project: Path, capsys: Captured) -> None:
    assert find(Path.cwd()) == project / "pyproject.toml"
    assert run(["check", "--as", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [budget["name"] for budget in found["budgets"]] == ["resnet18", "vgg-batch"]
    assert [budget["ok"] for budget in found["budgets"]] == [True, False]
    check = found["budgets"][1]["checks"][0]
    assert check["found"] == layerscope.analyze("vgg16", batch=8, input=(3, 64, 64)).totals.macs
    assert check["over"] == check["found"] - check["limit"] == check["found"] - 1_000_000
    assert "8x3x64x64 · batch 8 · fp16" in found["budgets"][1]["stamp"]


def test_one_of_the_file(project: Path, capsys: Captured) -> None:
    assert run(["check", "resnet18"]) == 0
    assert "vgg" not in capsys.readouterr().out
    assert "did you mean resnet18" in failing(capsys, 2, "check", "resnet81")
    says = failing(capsys, 2, "check", "other-name")
    assert "has resnet18, vgg-batch" in says


def test_a_named_file(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "models.toml"
    file.write_text(FILE)
    assert run(["check", "resnet18", "--config", str(file)]) == 0
    capsys.readouterr()
    missing = str(tmp_path / "none.toml")
    assert "cannot read" in failing(capsys, 3, "check", "--config", missing)


def test_a_nearer_file_without_budgets_is_passed_over(project: Path) -> None:
    (project / "inner" / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert find(project / "inner") == project / "pyproject.toml"


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ('[tool.layerscope.budgets.a]\nmax-parms = "1M"', UnknownName, "did you mean max-params"),
        ('[tool.layerscope.budgets.a]\nbacth = 1\nmax-macs=1', UnknownName, "did you mean batch"),
        ("[tool.layerscope.budgets.a]\nbatch = 1", UsageError, "no limit, expected at least one"),
        ('[tool.layerscope.budgets.a]\nmax-macs = "x"', UsageError, "a: max-macs x: expected"),
        ("[tool.layerscope.budgets.a]\nmax-macs = 1.5", UsageError, "max-macs 1.5: expected"),
        ('[tool.layerscope.budgets.a]\nmax-macs=1\nbatch="8"', UsageError, "a whole number"),
        ("[tool.layerscope.budgets.a]\nmax-macs=1\nbatch=true", UsageError, "a whole number"),
        ("[tool.layerscope.budgets]\na = 1", UsageError, "expected a table of limits"),
        ("[tool.layerscope]\nbudgets = 1", UsageError, "budgets is no table"),
        ("[tool.layerscope]", UsageError, "no \\[tool.layerscope.budgets\\]"),
        ("[tool.layerscope", InputError, "pyproject.toml: "),
    ],
)  # fmt: skip
def test_wrong_files(tmp_path: Path, text: str, error: type[Exception], says: str) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text(text)
    with pytest.raises(error, match=says):
        read(file)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["vgg16"], "no limits: give one"),
        ([], "no limits: give one"),
        (["--max-params", "5M"], "need a NET"),
        (["vgg16", "--max-params", "5x"], "--max-params 5x: expected a count"),
        (["vgg16", "--max-peak", "5M"], "--max-peak 5M: expected bytes"),
        (["vgg16", "--max-parms", "5M"], "No such option"),
        (["vgg61", "--max-params", "5M"], "did you mean vgg"),
        (["vgg16", "--max-params", "5M", "--config", "x"], "cannot be combined with"),
        (["--batch", "8"], "--batch needs limits"),
        (["vgg16", "--input", "3x8x8"], "--input needs limits"),
        (["vgg16", "--max-params", "1", "--as", "junt"], "did you mean junit"),
    ],
)
def test_wrong_arguments(
    args: list[str], says: str, capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert says in failing(capsys, 2, "check", *args)


def test_what_is_unknown_fails(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("layerscope.zoo.build", lambda name: mystery())
    assert run(["check", "mystery", "--max-params", "5M"]) == 1
    out, err = capsys.readouterr()
    assert "≥112" in out
    assert "mystery: ops known: 1 of 2; unknown: warp::drive ×1; --allow-unknown" in out
    assert err == "layerscope: 1 of 1 budget not met\n"
    assert run(["check", "mystery", "--max-params", "5M", "--allow-unknown"]) == 0
    assert run(["check", "mystery", "--max-params", "5", "--allow-unknown"]) == 1


def test_junit_is_xml_that_ci_reads(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    b = Builder('a<b>&"c"\x1b')
    graph = b.build(b.conv(b.input("data", (1, 3, 8, 8)), 4, 3, name='evil<&">\x00'))
    monkeypatch.setattr("layerscope.zoo.build", lambda name: graph)
    name = 'a<b>&"c"\x1b'
    assert run(["check", name, "--max-params", "1", "--max-macs", "1G", "--as", "junit"]) == 1
    root = ElementTree.fromstring(capsys.readouterr().out)
    assert (root.tag, root.get("tests"), root.get("failures")) == ("testsuites", "2", "1")
    (suite,) = root
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "0")
    cases = {case.get("name"): case for case in suite}
    assert set(cases) == {"max-params", "max-macs"}
    (failure,) = cases["max-params"]
    assert failure.tag == "failure"
    assert "over the limit of 1 by 111" in (failure.text or "")
    assert 'evil<&">\\x00 100.0%' in (failure.text or "")
    assert len(cases["max-macs"]) == 0


def test_unknown_ops_are_a_case_of_their_own(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("layerscope.zoo.build", lambda name: mystery())
    assert run(["check", "mystery", "--max-params", "5M", "--as", "junit"]) == 1
    suite = ElementTree.fromstring(capsys.readouterr().out)[0]
    assert [(case.get("name"), len(case)) for case in suite] == [
        ("max-params", 0), ("all figures known", 1),
    ]  # fmt: skip


def test_markdown_and_a_file(tmp_path: Path, capsys: Captured) -> None:
    target = tmp_path / "budget.md"
    args = ["check", "lenet5", "--max-params", "1k", "--as", "markdown", "-o", str(target)]
    assert run(args) == 1
    text = target.read_text()
    assert text.startswith("| network | figure | found | limit | used |  |\n")
    assert "\n- lenet5: params 61,706, over the limit of 1,000 by 60,706" in text


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_the_text_fits_the_terminal(
    width: int, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert run(["check", "vgg16", "resnet18", "--max-params", "12M", "--max-peak", "1MiB"]) == 1
    assert max(map(len, capsys.readouterr().out.splitlines())) <= width


def test_the_fixture_passes_and_gives_the_report(layerscope_budget: Any) -> None:
    report = layerscope_budget("resnet18", max_params="12M", max_peak=8_000_000, batch=1)
    assert report.totals.params == 11_689_512
    layerscope_budget(mystery(), max_params="1k", allow_unknown=True)


def test_the_fixture_limits_the_time(layerscope_budget: Any) -> None:
    layerscope_budget("lenet5", max_time="1s", on="a100")
    layerscope_budget("lenet5", max_time="100s", measure=True)
    with pytest.raises(pytest.fail.Exception, match="time"):
        layerscope_budget("lenet5", max_time="1ns", on="a100")
    for options in (
        {"max_time": "1s"},
        {"max_params": "1M", "on": "a100"},
        {"max_params": "1M", "measure": True},
        {"max_time": "1s", "measure": True, "on": "a100"},
    ):
        with pytest.raises(UsageError):
            layerscope_budget("lenet5", **options)


def test_the_fixture_fails_with_the_same_text(layerscope_budget: Any) -> None:
    with pytest.raises(pytest.fail.Exception) as raised:
        layerscope_budget("resnet18", max_params="11M", input="3x64x64", dtype="fp16")
    assert str(raised.value) == (
        "resnet18: params 11,689,512, over the limit of 11,000,000 by 689,512 (6.3%); most in "
        "layer4.0.conv2 20.2%, layer4.1.conv1 20.2%, layer4.1.conv2 20.2%"
    )
    with pytest.raises(pytest.fail.Exception, match="unknown: warp::drive"):
        layerscope_budget(mystery(), max_params="1k")
    with pytest.raises(UnknownName, match="did you mean max-params"):
        layerscope_budget("resnet18", max_parms="11M")
    with pytest.raises(UnknownName, match="did you mean batch"):
        layerscope_budget("resnet18", max_params="12M", bacth=1)


def test_the_plugin_in_a_project(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(FILE)
    (tmp_path / "test_size.py").write_text(
        "import sys\n"
        "def test_nothing_is_loaded_before(request):\n"
        "    assert not any(m.startswith(('layerscope.', 'msgspec')) and m not in\n"
        "        ('layerscope.version', 'layerscope.pytest_plugin') for m in sys.modules)\n"
        "def test_kept(layerscope_budget): layerscope_budget('resnet18')\n"
        "def test_not_kept(layerscope_budget): layerscope_budget('vgg-batch')\n"
        "def test_none(layerscope_budget): layerscope_budget('alexnet')\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:hypothesispytest", "-p", "no:cacheprovider"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "2 failed, 2 passed" in done.stdout, done.stdout
    assert "vgg-batch: MACs" in done.stdout
    assert "no limits for alexnet" in done.stdout


def test_the_page_of_budgets_is_true(tmp_path: Path, capsys: Captured) -> None:
    import re

    import yaml

    page = (Path(__file__).parents[2] / "docs" / "budgets.md").read_text(encoding="utf-8")
    blocks: dict[str, list[str]] = {}
    for kind, text in re.findall(r"```(\w+)\n(.*?)```", page, re.DOTALL):
        blocks.setdefault(kind, []).append(text)
    file = tmp_path / "budgets.toml"
    file.write_text(blocks["toml"][0])
    assert run(["check", "--config", str(file)]) == 0
    steps = yaml.safe_load(blocks["yaml"][0])["jobs"]["budgets"]["steps"]
    commands = [step["run"] for step in steps if "layerscope check" in step.get("run", "")]
    assert len(commands) == 2
    assert run(["check", "resnet18", "--max-params", "11M"]) == 1
    assert blocks["text"][0] in capsys.readouterr().out
    assert all(f"`--max-{name}`" in page for name in FIGURES)


def test_a_predicted_time_is_of_the_dtype_that_was_asked_for() -> None:
    times = {}
    for dtype in ("fp32", "fp16", "int8"):
        expected = layerscope.predict("lenet5", on="a100", dtype=dtype, batch=4096)
        budget = Budget("lenet5", "lenet5", {"time": 1.0}, batch=4096, dtype=dtype)
        found = check(budget, on="a100").time
        compared = layerscope.compare("lenet5", "lenet5", on="a100", dtype=dtype, batch=4096)
        assert found is not None
        assert found.total_s == expected.total_s
        assert [time and time.total_s for time in compared.times] == [expected.total_s] * 2
        assert f", {dtype}, compiled, " in found.source
        times[dtype] = found.total_s
    assert times["fp32"] > times["fp16"] > times["int8"]


@pytest.mark.parametrize("allowed", [True, False])
def test_an_undecided_time_fails_in_every_form(allowed: bool) -> None:
    budget = Budget("odd", mystery(), {"time": 1.0, "params": 1e6}, allow_unknown=allowed)
    found = BudgetResults((check(budget, on="a100"),))
    assert not found.ok
    reason = "not known to be within the limit of 1.00 s"
    assert reason in found.to_text()
    suite = ElementTree.fromstring(write_junit(found))[0]
    failed = [case.get("name") for case in suite if case.find("failure") is not None]
    assert failed == ["max-time", *([] if allowed else ["all figures known"])]
    checks = json.loads(found.to_json())["budgets"][0]["checks"]
    assert [check["ok"] for check in checks] == [False, True]


@pytest.mark.parametrize("form", ["text", "markdown", "csv", "latex", "html", "json"])
def test_every_form_says_where_a_time_is_from(form: str, capsys: Captured) -> None:
    assert run(["check", "lenet5", "--max-time", "1s", "--on", "a100", "--as", form]) == 0
    out = capsys.readouterr().out
    assert "predicted for NVIDIA A100 SXM 80 GB, fp16, compiled, error" in out
    assert "BudgetResults" not in out


@pytest.mark.parametrize("option", [["--measure"], ["--on", "a100"]])
def test_a_time_without_a_limit_is_refused(
    option: list[str], project: Path, capsys: Captured
) -> None:
    message = f"{option[0]} needs a limit of the time"
    assert message in failing(capsys, 2, "check", "lenet5", "--max-params", "1M", *option)
    assert message in failing(capsys, 2, "check", *option)
