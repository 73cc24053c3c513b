"""What a prediction says of itself: its dtype, and operators that nothing is known of."""

from __future__ import annotations

import csv
import json
from io import StringIO
from math import log2
from pathlib import Path
from typing import Any

import pytest

import layerscope
from layerscope.api.timing import predict
from layerscope.cli import run as command
from layerscope.engines.accelerators import ACCELERATORS
from layerscope.errors import UsageError
from layerscope.graph import Graph, Node, Tensor
from layerscope.prediction import this_machine
from layerscope.prediction.calibration import Calibration
from layerscope.prediction.nearest import RowSample
from layerscope.prediction.other_machines import machines
from layerscope.prediction.row_features import RowWork
from layerscope.report.prediction import Prediction

FORMS = ("text", "markdown", "csv", "latex", "html", "json")


def written(found: Prediction, form: str, **view: Any) -> str:
    """The prediction in a form."""
    text: str = getattr(found, f"to_{form}")(**view)
    return text


def with_mystery(op: str = "mystery") -> Graph:
    """A linear layer, an op without a rule, and what reads it."""
    b = layerscope.Builder("net")
    known = b.linear(b.input("data", (2, 64)), 64, name="first")
    graph = b.build(known)
    return Graph(
        name="net",
        inputs=(Tensor("data", (2, 64)),),
        nodes=(
            *graph.nodes,
            Node("odd", op, (known,), ("y",)),
            Node("last", "relu", ("y",), ("z",)),
        ),
        outputs=("z",),
    )


@pytest.fixture
def calibrated(monkeypatch: pytest.MonkeyPatch) -> None:
    """A calibration that was never measured."""
    samples = tuple(
        RowSample(RowWork("linear", 2.0**n, 2.0**n, 0.0, (log2(n), 1.0, 1.0)), n * 1e-5, n)
        for n in range(1, 9)
    )
    made = Calibration("cpu", "onnxruntime", "1", 1, samples, 1.0, 1.0, "now", around_s=1e-5)
    monkeypatch.setattr(this_machine, "cached_calibration", lambda name, threads: made)


@pytest.mark.parametrize("on", [None, "a100", "rtx4090", "i7-12700h"])
@pytest.mark.usefixtures("calibrated")
def test_unknown_operators_have_no_time(on: str | None) -> None:
    found = predict(with_mystery(), on=on)
    times = {row.name: row.time_s for row in found.rows}
    assert times["odd"] is None
    assert times["first"] is not None
    assert found.is_lower_bound
    assert found.unknown["mystery"] == 1
    assert found.high_s is None
    assert found.total_s == pytest.approx(sum(row.time_s or 0.0 for row in found.rows))


@pytest.mark.parametrize("on", [None, "a100"])
@pytest.mark.usefixtures("calibrated")
def test_every_form_says_that_the_total_is_a_lower_bound(on: str | None) -> None:
    found = predict(with_mystery(), on=on)
    for form in ("text", "markdown"):
        lines = written(found, form).splitlines()
        [odd] = [line for line in lines if "odd" in line and "mystery" in line]
        assert "?" in odd
        assert not any(unit in odd for unit in (" us", " ms", " s "))
        [total] = [line for line in lines if "total" in line and "bound" not in line]
        assert "≥" in total
        assert any("mystery ×1" in line and "lower bound" in line for line in lines)
        assert "68 % interval" not in "\n".join(lines)
        assert "≥" in written(found, form, top=1, sort=True)
    rows = list(csv.reader(StringIO(written(found, "csv"))))
    cells = {row[0]: row for row in rows}
    assert cells["odd"][2:] == ["?", "?"]
    assert cells["total"][2] == f"≥{found.total_s!r}"
    document = json.loads(written(found, "json"))
    assert document["total_is"] == "≥"
    assert document["unknown"]["mystery"] == 1
    assert document["band"]["high_s"] is None
    assert {row["name"]: row["time_s"] for row in document["layers"]}["odd"] is None


def test_a_known_network_has_no_bound() -> None:
    found = predict("lenet5", on="a100")
    assert not found.is_lower_bound
    assert found.unknown == {}
    for form in FORMS:
        text = written(found, form)
        assert "≥" not in text
        assert "?" not in text
    assert json.loads(written(found, "json"))["total_is"] == "="
    assert f"total,,{found.total_s!r}," in written(found, "csv")


def test_nothing_but_unknown_operators() -> None:
    """No total to divide by."""
    graph = Graph("net", (Tensor("x", (1, 4)),), (Node("odd", "mystery", ("x",), ("y",)),), ("y",))
    found = predict(graph, on="i7-12700h")
    assert {row.time_s for row in found.rows if row.layers} == {None}
    for form in FORMS:
        assert "?" in written(found, form) or form == "json"


def test_what_never_runs_lacks_no_time() -> None:
    from msgspec.structs import replace

    graph = with_mystery()
    nodes = tuple(replace(node, times=0) if node.name == "odd" else node for node in graph.nodes)
    found = predict(replace(graph, nodes=nodes), on="a100")
    assert "mystery" not in found.unknown


@pytest.mark.parametrize("machine", machines())
def test_every_dtype_of_a_data_sheet_is_honoured(machine: str) -> None:
    """Fewer bits and higher peaks are never slower; the prediction says what it is of."""
    peaks = ACCELERATORS[machine.removesuffix("-compiled")].tflops
    found = {dtype: predict("resnet50", on=machine, batch=64, dtype=dtype) for dtype in peaks}
    assert {dtype: each.dtype for dtype, each in found.items()} == {d: d for d in peaks}
    assert all(dtype in each.engine for dtype, each in found.items())
    for one in peaks:
        for other in peaks:
            if peaks[one] < peaks[other] and bits(one) >= bits(other):
                assert found[one].total_s > found[other].total_s


def bits(dtype: str) -> int:
    return int(dtype.strip("abfintp"))


@pytest.mark.parametrize("machine", machines())
def test_other_dtypes_are_refused_with_those_there_are(
    machine: str, capsys: pytest.CaptureFixture[str]
) -> None:
    peaks = ACCELERATORS[machine.removesuffix("-compiled")].tflops
    for dtype in ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "int4", "nonsense"):
        if dtype in peaks:
            continue
        with pytest.raises(UsageError, match=f"known: {', '.join(peaks)}"):
            predict("lenet5", on=machine, dtype=dtype)
    assert command(["predict", "lenet5", "--on", machine, "--dtype", "int4"]) == 2
    assert f"known: {', '.join(peaks)}" in capsys.readouterr().err


@pytest.mark.usefixtures("calibrated")
def test_this_machine_has_the_dtypes_that_were_calibrated(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert predict("lenet5", dtype="fp32").dtype == "fp32"
    for on in ([], ["--on", "this"]):
        for dtype in ("fp16", "int8", "nonsense"):
            assert command(["predict", "lenet5", *on, "--dtype", dtype]) == 2
            assert "known: fp32" in capsys.readouterr().err
    half = layerscope.analyze("lenet5", dtype="fp16").graph  # as a file in half precision is
    with pytest.raises(UsageError, match="known: fp32"):
        predict(half)


def test_the_default_dtype_is_the_one_the_machine_was_fitted_in() -> None:
    assert predict("lenet5", on="rtx4090").dtype == "fp16"
    assert predict("lenet5", on="tpu-v4").dtype == "bf16"
    assert predict("lenet5", on="i7-12700h").dtype == "fp32"
    own = layerscope.analyze("lenet5", dtype="bf16").graph
    assert predict(own, on="a100").dtype == "bf16"
    with pytest.raises(UsageError, match="known: fp64, fp32, fp16"):
        predict(own, on="v100")


def test_the_command_writes_the_dtype(tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    args = ["predict", "resnet18", "--on", "a100", "--dtype", "fp32", "-o", str(file)]
    assert command(args) == 0
    assert json.loads(file.read_text(encoding="utf-8"))["dtype"] == "fp32"


@pytest.mark.parametrize("form", [form for form in FORMS if form != "json"])
def test_every_table_has_the_rows_and_lines_asked_for(form: str) -> None:
    found = predict("lenet5", on="a100")
    names = [row.name for row in found.rows]
    short = written(found, form, top=2)
    assert all(name in short for name in names[:2])
    assert names[-1] not in short
    assert names[-1] in written(found, form)
    assert "fitted on" in short
    assert "fitted on" not in written(found, form, stamp=False)
