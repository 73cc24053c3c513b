"""Measuring tiny networks: rows, sums, faults, files. Ratios only, no absolute time."""

from __future__ import annotations

import csv
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec
import pytest

import layerscope
from layerscope.analysis.costs import costs
from layerscope.analysis.shapes import infer
from layerscope.api.networks import analyze
from layerscope.api.timing import is_onnx, measure
from layerscope.cli import run as command
from layerscope.engines import onnxruntime as engine
from layerscope.engines.attribution import attribute_times
from layerscope.engines.clock import RunSample, contention, middle, spread
from layerscope.engines.measuring import difference
from layerscope.engines.workload import MeasureOptions, prepare_workload
from layerscope.errors import EngineError, MissingExtra, UsageError
from layerscope.export.run_json import read_json, write_json
from layerscope.graph.serialize import from_plain, to_plain
from layerscope.lower.onnx import lower
from layerscope.notations.boda import write as write_boda
from layerscope.report.measurement import Measurement, Run, total_s
from layerscope.report.timed import timed
from layerscope.zoo import NAMES, build
from tests.networks import waves


def residual() -> layerscope.Graph:
    """Convolutions with norms, a sum, pools and a linear layer."""
    b = layerscope.Builder("residual")
    x = b.input("data", (1, 3, 32, 32))
    x = b.relu(b.batch_norm(b.conv(x, 16, 3, padding=1, name="conv1"), name="bn1"), name="relu1")
    y = b.batch_norm(b.conv(x, 16, 3, padding=1, name="conv2"), name="bn2")
    x = b.relu(b.add(y, x, name="add"), name="relu2")
    x = b.max_pool(x, 2, name="pool1")
    x = b.flatten(b.global_pool(x, name="pool2"), name="flatten")
    return b.build(b.linear(x, 10, name="fc"))


@pytest.fixture(scope="module")
def measured() -> Measurement:
    return measure(residual(), threads=1, power=50.0)


def test_rows_add_up_to_the_run(measured: Measurement) -> None:
    run = measured.runs[0]
    assert total_s(run.rows) == pytest.approx(run.timing.end_to_end_s)
    timing = run.timing
    assert None not in (timing.layout_s, timing.unattributed_s, timing.min_s, timing.median_s)
    parts = timing.attributed_s + (timing.layout_s or 0) + (timing.unattributed_s or 0)
    assert parts == pytest.approx(timing.end_to_end_s)
    assert (timing.min_s or 0) <= (timing.median_s or 0)
    assert timing.end_to_end_s in timing.runs_s
    assert len(timing.runs_s) == len(timing.unprofiled_s) == 10
    assert timing.contention is not None
    assert timing.contention >= 1
    assert timing.overhead is not None
    assert all(len(row.runs_s) == 10 for row in run.rows)


def test_every_layer_is_in_one_row_or_removed(measured: Measurement) -> None:
    run = measured.runs[0]
    names = [name for row in run.rows if row.kind == "layer" for name in row.layers]
    names += run.removed
    assert sorted(names) == sorted(node.name for node in residual().nodes)
    rows = {row.name for row in run.rows}
    assert "conv1 + bn1 + relu1" in rows
    assert "conv2 + bn2 + add + relu2" in rows


def test_the_predicted_peak_is_the_engines(measured: Measurement) -> None:
    memory = measured.runs[0].memory
    assert memory.measured_peak_bytes == memory.predicted_peak_bytes
    assert memory.source_peak_bytes >= (memory.measured_peak_bytes or 0)


def test_energy_is_labelled_assumed(measured: Measurement) -> None:
    energy = measured.runs[0].energy
    assert energy is not None
    assert energy.source == "assumed by --power"
    whole = measured.runs[0].timing.end_to_end_s
    assert whole is not None
    assert energy.joules == pytest.approx(50.0 * whole)


def test_fusing_moves_fewer_bytes_than_its_layers(measured: Measurement) -> None:
    report = analyze(residual())
    rows = {each.main: each for each in timed(report, measured.runs[0], None)}
    apart = sum(report.by_name[n].moved_bytes for n in ("conv1", "bn1", "relu1"))
    assert 0 < rows["conv1"].moved_bytes < apart
    image, maps = report.inputs[0].bytes, report.by_name["conv1"].outputs[0].bytes
    stored = sum(report.by_name[n].param_bytes for n in ("conv1", "bn1"))
    assert rows["conv1"].moved_bytes == image + maps + stored
    cumulative = rows["conv1"].cumulative
    assert cumulative is not None
    assert cumulative <= 1


def test_the_document_reads_back(measured: Measurement) -> None:
    report = analyze(residual())
    text = write_json(measured, report)
    again = read_json(text.encode())
    assert from_plain(again.graph) == from_plain(measured.graph) == residual()
    assert msgspec.structs.replace(again, graph={}) == msgspec.structs.replace(measured, graph={})
    plain: Any = msgspec.json.decode(text)
    timing = plain["timing"]
    assert {"end_to_end_s", "attributed_s", "contention", "overhead"} <= set(timing)
    spent = sum(layer["time_s"] or 0 for layer in plain["layers"])
    assert spent == pytest.approx(timing["attributed_s"])
    fused = {layer["name"]: layer["fused_into"] for layer in plain["layers"]}
    assert fused["relu1"] == "conv1"
    assert fused["conv1"] is None


@pytest.mark.parametrize("name", [*NAMES[::9]])
def test_a_graph_survives_plain_values(name: str) -> None:
    graph = build(name)
    packed = msgspec.json.decode(msgspec.json.encode(to_plain(graph)))
    assert from_plain(packed) == graph


def test_boda_prints_its_whole_document(measured: Measurement) -> None:
    run = measured.runs[0]
    report = analyze(residual(), like="boda")
    lines = write_boda(report, run=run).splitlines()
    assert lines[0] == "TIMERS:  CNT     TOT_DUR      AVG_DUR    TAG  "
    tags = [line.split()[-1] for line in lines[1:7]]
    assert tags == ["load", "lower", "session_create", "set_inputs", "run", "get_outputs"]
    conv = next(line for line in lines if line.startswith("conv1 FWD"))
    assert "  ---  " in conv
    assert conv.endswith("F/s ")
    text = "\n".join(lines)
    for part in ("total _inxp time:  ", "-- INPUT: RUNTIME=", "-- INPUT: POWER=50W --", "J "):
        assert part in text
    start = lines.index("PROFILE:")
    assert lines[start + 1] == "time      time%     cum_time  cum_time% func_name "
    profile = lines[start + 2 :]
    assert len(profile) == len(run.rows)
    assert profile[-1].split()[3] == "100.0%"
    shares = [float(line.split()[1].rstrip("%")) for line in profile]
    assert shares == sorted(shares, reverse=True)
    only = write_boda(report, "profile", run=run)
    assert only.startswith("PROFILE:")


def test_boda_without_a_run_refuses_its_parts() -> None:
    with pytest.raises(UsageError, match="needs a measured run"):
        write_boda(analyze(residual(), like="boda"), "profile")


def test_fusion_off_gives_every_layer_its_row() -> None:
    found = measure(residual(), threads=1, fusion="both")
    on, off = found.runs
    assert (on.fusion, off.fusion) == ("on", "off")
    assert len(off.rows) > len(on.rows)
    assert {"conv1", "bn1", "relu1"} <= {row.name for row in off.rows}
    assert off.difference is not None
    assert off.difference < 1e-4


def test_one_dimension_works_too() -> None:
    run = measure(waves(), threads=1).runs[0]
    assert "conv1" in {layer for row in run.rows for layer in row.layers}


@pytest.mark.parametrize("parts", [None, "layers,profile"])
def test_the_command_keeps_and_shows_again(
    parts: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "run.json"
    assert command(["measure", "lenet5", "-t", "1", "-o", str(file), "--sort", "--top", "3"]) == 0
    out = capsys.readouterr().out
    assert "unattributed" in out
    assert "end to end" in out
    told = ["--parts", parts] if parts else []
    assert command(["show", str(file), "--as", "boda", *told]) == 0
    assert "PROFILE:" in capsys.readouterr().out
    for form in ("text", "markdown", "csv", "json"):
        assert command(["show", str(file), "--as", form]) == 0
        assert "conv" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("lenet5", "--engine", "tensorrt"), 2, "unknown engine"),
        (("lenet5", "--runs", "0"), 2, "expected 1 to 10,000"),
        (("lenet5", "--fusion", "maybe"), 2, "unknown fusion"),
        (("lenet5", "--power", "0"), 2, "watts"),
        (("lenet5", "--parts", "layers"), 2, "--parts needs --as boda"),
        (("lenet5", "--as", "xml"), 2, "unknown form"),
        (("lenet5", "--top", "0"), 2, "at least 1"),
        (("lenet6",), 2, "unknown network"),
    ],
)
def test_wrong_usage_is_one_line(
    args: tuple[str, ...], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["measure", *args]) == code
    err = capsys.readouterr().err
    assert words in err
    assert err.count("\n") == 1


def test_an_engine_that_is_missing_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(MissingExtra, match=r"layerscope\[openvino\]"):
        measure(residual(), engine="openvino")


def test_of_several_engines_those_there_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)
    monkeypatch.setitem(sys.modules, "torch", None)
    found = measure(residual(), engine="all", threads=1)
    assert [run.engine for run in found.runs] == ["onnxruntime"]
    assert [line.partition(":")[0] for line in found.failures] == ["openvino", "torch"]


def test_a_model_that_is_refused_is_told_in_one_line(tmp_path: Path) -> None:
    workload = prepare_workload(analyze(residual()), str(tmp_path))
    broken = msgspec.structs.replace(workload, model=b"no model")
    with pytest.raises(EngineError, match="residual: onnxruntime refuses it"):
        engine.measure(broken, MeasureOptions(threads=1))


class Failing:
    """Something with times that ends as it is told in its n-th run."""

    def __init__(self, timed: engine.TimedSession, error: BaseException, runs: int) -> None:
        self.timed, self.error, self.left = timed, error, runs

    def run(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise self.error
        self.timed.run()

    def close(self) -> list[dict[int, float]]:
        return self.timed.close()


def broken_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: BaseException, runs: int
) -> Run:
    made = engine._prepare

    def ready(*args: Any) -> engine.PreparedSession:
        found = made(*args)
        return msgspec.structs.replace(found, session=Failing(found.session, error, runs))

    monkeypatch.setattr(engine, "_prepare", ready)
    workload = prepare_workload(analyze(residual()), str(tmp_path))
    return engine.measure(workload, MeasureOptions(threads=1))[0]


def test_ctrl_c_keeps_what_there_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run = broken_run(monkeypatch, tmp_path, KeyboardInterrupt(), 3 + 4)
    assert not run.complete
    assert run.code == 130
    assert run.notes[0] == "interrupted after 4 of 10 runs"
    assert len(run.timing.runs_s) == 4
    assert total_s(run.rows) == pytest.approx(run.timing.end_to_end_s)


def test_ctrl_c_before_any_run_is_ctrl_c(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        broken_run(monkeypatch, tmp_path, KeyboardInterrupt(), 0)


def test_a_layer_that_fails_is_named(tmp_path: Path) -> None:
    """An index past its table fails in the middle of a run; the layers before it have times."""
    import onnx  # noqa: TID251

    b = layerscope.Builder("broken")
    x = b.relu(b.input("data", (1, 4, 8)), name="first")
    x = b.relu(b.reshape(x, (1, 32), name="shaped"), name="second")
    graph = b.build(x)
    shapes = infer(graph)
    model = lower(graph, shapes, costs(graph, shapes))
    gather = onnx.helper.make_node("Gather", ["second/in", "where"], ["second"], "second")
    relu = next(node for node in model.graph.node if node.name == "second")
    relu.name, relu.output[0] = "shaped/relu", "second/in"
    cast = onnx.helper.make_node("Cast", ["first"], ["where/all"], "shaped/cast", to=7)
    size = onnx.helper.make_node("ReduceMax", ["where/all"], ["where/max"], "shaped/max",
                                 keepdims=0)  # fmt: skip
    more = onnx.helper.make_node("Add", ["where/max", "huge"], ["where"], "shaped/add")
    model.graph.initializer.append(
        onnx.helper.make_tensor("huge", onnx.TensorProto.INT64, [], [1000])
    )
    model.graph.node.extend([cast, size, more, gather])
    workload = prepare_workload(analyze(graph), str(tmp_path))
    broken = msgspec.structs.replace(workload, model=model.SerializeToString())
    run, _ = engine.measure(broken, MeasureOptions(threads=1))
    assert not run.complete
    assert run.code == 3
    assert "fails in second" in run.notes[0]
    assert {"first"} <= {layer for row in run.rows for layer in row.layers if row.time_s}


def test_the_median_of_runs_is_one_of_them() -> None:
    samples = [RunSample(wall, wall, 0.0) for wall in (5.0, 1.0, 3.0, 2.0)]
    assert samples[middle(samples)].wall_s == 2.0
    assert spread([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx(2 / 3)


def test_contention_is_waiting_over_running() -> None:
    assert contention([RunSample(1.0, 2.0, 0.0)], 2) == 1
    assert contention([RunSample(1.0, 1.0, 1.0)], 2) == 2
    assert contention([RunSample(2.0, 1.0, None)], 1) == 2
    assert attribute_times.__doc__


def test_outputs_are_compared_by_their_size() -> None:
    import numpy as np  # noqa: TID251

    one = {"y": np.array([1.0, -4.0])}
    assert difference(one, {"y": np.array([1.0, -4.0])}) == 0
    assert difference(one, {"y": np.array([1.0, -3.0])}) == 0.25
    assert difference(one, {"z": np.array([1.0])}) is None


def agrees_with_onnxruntime(name: str) -> None:
    """Run the same network in another engine: the same outputs, every layer in a row."""
    found = measure(residual(), engine=f"onnxruntime,{name}", threads=1)
    assert len(found.runs) == 2, found.failures
    other = found.runs[1]
    assert other.difference is not None
    assert other.difference < 1e-4
    assert total_s(other.rows) == pytest.approx(other.timing.end_to_end_s)
    layers = {layer for row in other.rows for layer in row.layers}
    assert {"conv1", "conv2", "fc"} <= layers


def test_openvino_agrees() -> None:
    pytest.importorskip("openvino", reason="openvino is not installed")
    agrees_with_onnxruntime("openvino")


def unnamed(path: Path) -> None:
    """A file with an open batch, operators without names and one name twice."""
    import numpy as np  # noqa: TID251
    import onnx  # noqa: TID251

    h = onnx.helper
    weights = np.random.default_rng(0).normal(size=(8, 3, 3, 3)).astype(np.float32)
    nodes = [
        h.make_node("Conv", ["x", "w"], ["c1"], "", pads=[1, 1, 1, 1]),
        h.make_node("Relu", ["c1"], ["r1"], "same"),
        h.make_node("MaxPool", ["r1"], ["p1"], "", kernel_shape=[2, 2], strides=[2, 2]),
        h.make_node("Relu", ["p1"], ["y"], "same"),
    ]
    graph = h.make_graph(
        nodes,
        "unnamed",
        [h.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 3, 16, 16])],
        [h.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", 8, 8, 8])],
        [onnx.numpy_helper.from_array(weights, "w")],
    )
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), path)


def test_an_onnx_file_is_run_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "unnamed.onnx"
    unnamed(path)
    found = measure(str(path), threads=1, batch=2)
    run = found.runs[0]
    layers = [layer for row in run.rows if row.kind == "layer" for layer in row.layers]
    report = analyze(str(path), batch=2)
    assert sorted([*layers, *run.removed]) == sorted(layer.name for layer in report.layers)
    assert found.batch == 2
    assert total_s(run.rows) == pytest.approx(run.timing.end_to_end_s)


@pytest.mark.parametrize("runs", [1, 2, 5])
def test_few_runs_are_measured_with_a_note(
    runs: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.json"
    assert command(["measure", "lenet5", "-t", "1", "--runs", str(runs), "-o", str(path)]) == 0
    printed = capsys.readouterr().out
    found = read_json(path.read_bytes())
    assert len(found.runs[0].timing.runs_s) == runs
    for text in (printed, " ".join(found.runs[0].notes)):
        assert "unreliable below 10" in text
    assert ("of a single run" in printed) == (runs == 1)
    assert ("interquartile range" in printed) == (runs > 1)


def test_the_usual_number_of_runs_has_no_note() -> None:
    found = measure("lenet5", threads=1, runs=10)
    assert not any("unreliable" in note for note in found.runs[0].notes)


@pytest.mark.parametrize("name", ["net.bin", "net.model", "net"])
def test_an_onnx_file_is_measured_itself_whatever_its_suffix(name: str, tmp_path: Path) -> None:
    """Not a copy of it with other weights: the engine reads that file."""
    path = tmp_path / name
    assert command(["export", "lenet5", "--to", "onnx", "-o", str(tmp_path / "net.onnx")]) == 0
    path.write_bytes((tmp_path / "net.onnx").read_bytes())
    assert is_onnx(str(path))
    assert measure(str(path), threads=1, runs=1).runs[0].rows
    assert not is_onnx("lenet5")


def test_csv_has_no_zero_where_the_table_is_blank() -> None:
    found = measure("lenet5", threads=1, runs=1)
    rows = list(csv.DictReader(StringIO(found.to_csv(stamp=False))))
    counted = ("flops", "bytes", "gflops_s", "gb_s", "intensity")
    assert {row["kind"] for row in rows} >= {"layer", "unattributed"}
    for row in rows:
        if row["kind"] == "layer":
            assert all(row[name] != "" for name in counted[:4])
            assert (row["intensity"] == "") is (row["bytes"] == "0")
        else:
            assert [row[name] for name in counted] == [""] * 5
