"""`show NET --times FILE`: every form from times in a file, nothing run, what is wrong refused."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from layerscope import Builder, analyze
from layerscope.cli import run
from layerscope.export.run_json import read_file, write_json
from layerscope.graph.serialize import to_plain
from layerscope.report.measurement import (
    LayerTime,
    Level,
    Machine,
    Measurement,
    MemoryUse,
    Peak,
    Rate,
    Run,
    Timing,
)

Captured = pytest.CaptureFixture[str]
TIMES = {"C1": 4e-4, "S2": 1e-4, "conv1__inxp": 2e-4, "elsewhere": 3e-4}
MACHINE = Machine(
    "some cpu",
    2,
    (Peak("fp32", 2, Rate(1e11, 9e10, 5), "x"),),
    (Level("DRAM", 2, 0, Rate(1e9, 9e8, 5)),),
)
FORMS = ("text", "markdown", "csv", "json", "boda")


@pytest.fixture(autouse=True)
def no_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAYERSCOPE_CACHE", str(tmp_path / "cache"))

    def refuse(*args: Any, **options: Any) -> None:
        raise AssertionError("an engine was asked to run")

    monkeypatch.setattr("layerscope.engines.measuring.measure", refuse)
    monkeypatch.setattr("layerscope.engines.engine", refuse)


@pytest.fixture
def times(tmp_path: Path) -> str:
    path = tmp_path / "times.csv"
    path.write_text("layer,seconds\n" + "".join(f"{n},{t}\n" for n, t in TIMES.items()))
    return str(path)


def shown(capsys: Captured, *args: str) -> str:
    assert run(["show", "lenet5", *args]) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def failing(capsys: Captured, code: int, *args: str) -> str:
    assert run(["show", "lenet5", *args]) == code
    found = capsys.readouterr()
    assert found.err.count("\n") == 1
    assert not found.out
    return found.err


@pytest.mark.parametrize("form", FORMS)
def test_every_form_says_how_many_matched(form: str, times: str, capsys: Captured) -> None:
    layers = len(analyze("lenet5").layers)
    words = (
        f"times.csv: 2 of 4 rows match a layer; {layers - 2} of {layers} layers have no time (?)"
    )
    text = shown(capsys, "--times", times, "--as", form)
    assert words in text.replace("\\", "")
    assert "threads, runs and contention unknown" in text or form == "json"
    for name in ("conv1__inxp", "elsewhere"):
        assert name in text.replace("\\", "")
    if form != "json":
        assert words not in shown(capsys, "--times", times, "--as", form, "--no-stamp")


def test_rows_without_a_time_are_unknown(times: str, capsys: Captured) -> None:
    table = shown(capsys, "--times", times, "--runtime", "1e-3", "--no-stamp").splitlines()[2:]
    rows = {line.split()[0]: line.split()[1:] for line in table}
    assert rows["C1"][:4] == ["conv", "400", "us", "40.0"]
    assert rows["tanh1"][:4] == ["tanh", "?", "?", "?"]
    assert rows["S2"][:6] == ["avg_pool", "100", "us", "10.0", "≥", "50.0"]
    assert rows["conv1__inxp"][:4] == ["layout", "200", "us", "20.0"]
    assert rows["elsewhere"][:4] == ["unattributed", "300", "us", "30.0"]
    plain = shown(capsys, "--times", times)
    assert "End to end unknown: --runtime S gives it. The rows add up to 1.00 ms." in plain
    (total,) = [line for line in plain.splitlines() if line.startswith("end to end")]
    assert total.split()[3:7] == ["?", "?", "?", "?"]
    whole = shown(capsys, "--times", times, "--runtime", "1e-3")
    assert "End to end 1.00 ms; the rows add up to 1.00 ms." in whole
    assert "source layers 50.0%, layout changes 20.0%, unattributed 30.0%." in whole


def test_csv_and_json_have_the_same_unknowns(times: str, capsys: Captured) -> None:
    text = shown(capsys, "--times", times, "--as", "csv", "--no-stamp")
    rows = {row["layer"]: row for row in csv.DictReader(io.StringIO(text))}
    assert rows["C1"]["time_s"] == "0.0004"
    unknown = ("time_s", "min_s", "median_s", "share", "cumulative", "gflops_s", "gb_s", "roof")
    assert {rows["tanh1"][key] for key in unknown} == {"?"}
    assert {rows["C1"][key] for key in ("share", "min_s", "fusion")} == {"?"}
    document = json.loads(shown(capsys, "--times", times, "--as", "json"))
    layers = {layer["name"]: layer for layer in document["layers"]}
    assert layers["C1"]["time_s"] == 4e-4
    assert layers["tanh1"]["time_s"] is layers["tanh1"]["fused_into"] is None
    assert layers["tanh1"]["gflops_s"] is layers["C1"]["share"] is None
    (found,) = document["runs"]
    assert found["threads"] is found["fusion"] is found["timing"]["end_to_end_s"] is None
    assert document["measured"] == ""


def test_the_json_is_a_run_that_show_and_plot_take(
    times: str, tmp_path: Path, capsys: Captured
) -> None:
    kept = str(tmp_path / "kept.json")
    shown(capsys, "--times", times, "-o", kept)
    for form in FORMS:
        assert run(["show", kept, "--as", form]) == 0
        first = capsys.readouterr().out
        assert shown(capsys, "--times", times, "--as", form) == first
    for what in ("time", "roofline"):
        assert run(["plot", kept, "--of", what]) == 0
        assert "times from" in capsys.readouterr().out


def test_roofs_are_of_this_machine_and_said_to_be(
    times: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("layerscope.engines.machine.cached_machine", lambda: MACHINE)
    text = shown(capsys, "--times", times, "--runtime", "1e-3")
    assert "roofs are for all threads; roofs are those of this machine; the times may be" in text
    assert "roofs of some cpu" in text
    (conv,) = [line for line in text.splitlines() if line.startswith("C1 ")]
    assert conv.split()[-2] in ("compute", "DRAM")
    assert conv.endswith("%")


# -- kept runs


def measured(network: str = "lenet5") -> Measurement:
    """A run of conv1 with its activation, and of the rest."""
    report = analyze(network)
    first, *others = [layer.name for layer in report.layers]
    rows = (
        LayerTime(f"{first} + {others[0]}", "layer", (first, others[0]), 0.5, 0.5, 0.5),
        LayerTime("others", "layer", tuple(others[1:]), 0.25, 0.25, 0.25),
        LayerTime("unattributed", "unattributed", (), 0.25, 0.25, 0.25),
    )
    timing = Timing(1.0, 0.75, 0.0, 0.25, 1.0, 1.0, 0.0, 1.0, 1.25, None, None, None, (1.0, 1.0))
    one = Run("onnxruntime", "1.2", 2, "on", timing, rows, MemoryUse(None, None, 0))
    graph = to_plain(report.graph)
    return Measurement(network, graph, 1, "fp32", (one,), MACHINE, "1", "2026-01-01")


def kept(tmp_path: Path, found: Measurement, name: str = "run.json") -> str:
    path = tmp_path / name
    path.write_text(write_json(found, analyze(found.network)))
    return str(path)


def test_a_kept_run_keeps_what_it_says(tmp_path: Path, capsys: Captured) -> None:
    path = kept(tmp_path, measured())
    text = shown(capsys, "--times", path, "--power", "10")
    assert f"{path}: 2 of 2 rows match a layer; every layer has a time" in text
    assert "onnxruntime 1.2, 2 threads, 2 runs, contention 1.25 · roofs of some cpu" in text
    assert text.rstrip().endswith("2026-01-01")
    assert "Energy 10 J per run at 10 W, assumed by --power." in text
    boda = shown(capsys, "--times", path, "--as", "boda")
    assert " · lenet5 · batch 1 · fp32 · onnxruntime 1.2, 2 threads" in boda.splitlines()[-1]
    assert run(["show", path, "--as", "boda", "--power", "10"]) == 0
    again = capsys.readouterr().out
    assert "-- INPUT: POWER=10W --" in again
    assert "2 threads, 2 runs, contention 1.25" in again.splitlines()[-1]
    assert run(["show", path, "--as", "boda", "--no-stamp"]) == 0
    assert "contention" not in capsys.readouterr().out


def test_a_kept_run_of_another_network(tmp_path: Path, capsys: Captured) -> None:
    found = measured()
    graph = json.loads(json.dumps(found.graph).replace("C1", "first"))
    rows = tuple(
        msgspec.structs.replace(row, layers=tuple(n.replace("C1", "first") for n in row.layers))
        for row in found.runs[0].rows
    )
    one = msgspec.structs.replace(found.runs[0], rows=rows)
    path = tmp_path / "run.json"
    renamed = msgspec.structs.replace(found, graph=graph, runs=(one,))
    path.write_bytes(msgspec.json.encode(renamed))
    assert read_file(str(path)) == renamed
    text = shown(capsys, "--times", str(path))
    assert "run.json: 1 of 2 rows match a layer; 2 of " in text
    rows_shown = {line.split("  ")[0]: line for line in text.splitlines()}
    assert " ? " in rows_shown["C1"]
    assert "unattributed" in rows_shown["C1 + tanh1"]
    assert "Attributed to source layers 25.0%, layout changes 0.0%, unattributed 75.0%." in text


def test_a_kept_run_of_other_inputs_is_refused(tmp_path: Path, capsys: Captured) -> None:
    path = kept(tmp_path, measured())
    err = failing(capsys, 3, "--times", path, "--batch", "4")
    assert "run.json: measured with inputs 1x1x" in err
    assert "the network has 4x1x" in err
    err = failing(capsys, 2, "--times", path, "--runtime", "1")
    assert "is a measured run, which has a time of its own" in err


def test_files_are_compared(tmp_path: Path, times: str, capsys: Captured) -> None:
    path = kept(tmp_path, measured())
    text = shown(capsys, "--times", path, "--times", times)
    head = next(n for n, line in enumerate(text.splitlines()) if "  times from " in line)
    first = text.splitlines()[head + 2]
    assert first.split("  ")[0] == "C1 + tanh1"
    assert "≥ 400 us" in first
    assert "500 ms" in first
    assert "*" not in first  # tanh1 may take any time
    (end,) = [line for line in text.splitlines()[head:] if line.startswith("end to end")]
    assert end.split()[3:] == ["1.00", "s", "?"]
    assert "*" not in end
    other = tmp_path / "slow.json"
    other.write_text(json.dumps({"C1": 9.0, "tanh1": 9.0}))
    text = shown(capsys, "--times", path, "--times", str(other), "--as", "markdown")
    assert "| C1 + tanh1 | 500 ms\\* | 18.0 s |" in text
    assert failing(capsys, 2, "--times", path, "--times", times, "--runtime", "1")


# -- wrong arguments


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["--runtime", "1"], 2, "--runtime needs --times or --as boda"),
        (["--power", "1"], 2, "--power needs --times or --as boda"),
        (["--runtime", "0", "--as", "boda"], 2, "--runtime 0.0: expected 1e-12 to 1e+09 seconds"),
        (["--runtime", "-1", "--as", "boda"], 2, "expected 1e-12"),
        (["--runtime", "nan", "--as", "boda"], 2, "expected a number"),
        (["--power", "1e-300", "--as", "boda"], 2, "expected 1e-06 to 1e+09 watts"),
        (["--power", "0", "--as", "boda"], 2, "expected 1e-06"),
        (["--times", "T", "--as", "netscope"], 2, "json, latex, html, boda"),
        (["--times", "T", "--like", "exact"], 2, "--like cannot be combined with --times"),
        (["--times", "T", "--depth", "1"], 2, "--depth cannot be combined with --times"),
        (["--times", "T", "--by", "op"], 2, "--by cannot be combined with --times"),
        (["--times", "T", "--columns", "name"], 2, "--columns cannot be combined with --times"),
        (["--times", "T", "--all"], 2, "--all cannot be combined with --times"),
        (["--times", "T", "--total"], 2, "--total cannot be combined with --times"),
        (["--times", "T", "--train", "sgd"], 2, "--train cannot be combined with --times"),
        (["--times", "T", "--fit", "8GB"], 2, "--fit cannot be combined with --times"),
        (["--times", "T", "--sort", "macs"], 2, "rows of a run are sorted by time"),
        (["--times", "T", "--top", "0"], 2, "--top 0, expected at least 1"),
        (["--times", "T", "--parts", "layers"], 2, "matconvnet.dag.dot or boda"),
        (["--times", "T", "--as", "boda", "--parts", "timers"], 2, "needs a measured run"),
        (["--times", "T.none"], 3, "No such file"),
    ],
)  # fmt: skip
def test_wrong_arguments(
    args: list[str], code: int, says: str, times: str, capsys: Captured
) -> None:
    given = [arg.replace("T", times) if arg[0] == "T" else arg for arg in args]
    assert says in failing(capsys, code, *given)


def test_a_run_takes_no_other_times(tmp_path: Path, times: str, capsys: Captured) -> None:
    path = kept(tmp_path, measured())
    for option, value in (("--times", times), ("--runtime", "1")):
        assert run(["show", path, option, value]) == 2
        assert f"{option} does not apply to a measured run" in capsys.readouterr().err
    assert run(["show", path, "--power", "-1"]) == 2
    assert "expected 1e-06" in capsys.readouterr().err


def test_names_of_a_file_are_escaped(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "times.json"
    path.write_text(json.dumps({"\x1b[31m\u202e": 1.0, "=cmd()": 1.0, "<b>": 1.0, "\ud800": 1.0}))
    for form in FORMS:
        text = shown(capsys, "--times", str(path), "--runtime", "9", "--as", form)
        assert text.isascii() or not any(sign in text for sign in "\x1b\u202e\ud800")
        if form == "csv":
            assert ",'=cmd()," in text


def test_strict_and_rows_still_apply(times: str, capsys: Captured) -> None:
    text = shown(capsys, "--times", times, "--sort", "time", "--top", "2", "--no-stamp")
    assert text.splitlines()[-2].split()[1:3] == ["more", "rows"]
    assert shown(capsys, "--times", times, "--strict")


@pytest.mark.parametrize("form", ["text", "markdown", "csv", "json", "latex", "html"])
@pytest.mark.parametrize("machine", [None, MACHINE])
def test_rates_of_unknown_layers_are_unknown(
    machine: Machine | None,
    form: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
) -> None:
    monkeypatch.setattr("layerscope.engines.machine.cached_machine", lambda: machine)
    b = Builder("odd")
    x = b.conv(b.input("data", (1, 3, 8, 8)), 4, 3, name="conv")
    graph = b.build(b.add_node("warp::drive", (x,), name="warp")[0])
    report, file = tmp_path / "report.json", tmp_path / "seconds.csv"
    report.write_text(analyze(graph).to_json())
    file.write_text("layer,seconds\nconv,0.001\nwarp,0.002\n")
    args = ["show", str(report), "--times", str(file), "--runtime", "0.004", "--as", form]
    assert run(args) == 0
    text = capsys.readouterr().out.replace(r"$\geq$", "≥")
    if form == "csv":
        _, row = list(csv.DictReader(io.StringIO(text)))[:2]
        names = ("flops", "bytes", "gflops_s", "gb_s", "intensity", "roof", "roof_share")
        assert {row[name] for name in names} == {"?"}
    elif form == "json":
        row = json.loads(text)["layers"][1]
        names = ("flops", "bytes", "gflops_s", "gb_s", "intensity", "roof", "roof_share")
        assert {row[name] for name in names} == {None}
    else:
        lines = text.replace("<tr>", "\n<tr>").splitlines()
        [warp] = [line for line in lines if "warp::drive" in line and "2.00 ms" in line]
        assert warp.count("?") == 5
        [whole] = [line for line in lines if "end to end" in line and "4.00 ms" in line]
        assert (whole.count("≥"), whole.count("?")) == (2, 1)
    assert "no matrix products" not in text


@pytest.mark.parametrize("machine", [None, MACHINE])
def test_an_unknown_roof_is_unknown_in_every_form(
    machine: Machine | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Captured
) -> None:
    """A layer without a machine or a time has an unknown roof; what does no work has none."""
    monkeypatch.setattr("layerscope.engines.machine.cached_machine", lambda: machine)
    file = tmp_path / "seconds.csv"
    file.write_text("layer,seconds\nC1,4e-4\nflatten,1e-6\nelsewhere,3e-4\n")
    text = shown(capsys, "--times", str(file), "--as", "csv", "--no-stamp")
    roofs = {row["layer"]: row["roof"] for row in csv.DictReader(io.StringIO(text))}
    assert (roofs["flatten"], roofs["elsewhere"]) == ("", "")
    assert roofs["tanh1"] == "?"
    assert (roofs["C1"] == "?") is (machine is None)
    marked = shown(capsys, "--times", str(file), "--as", "markdown", "--no-stamp")
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in marked.splitlines()]
    in_markdown = {row[0]: row[-2] for row in cells if row and row[0] in roofs}
    assert in_markdown == roofs
    document = json.loads(shown(capsys, "--times", str(file), "--as", "json"))
    nulls = {layer["name"] for layer in document["layers"] if layer["roof"] is None}
    assert nulls >= {name for name, roof in roofs.items() if roof == "?"}
