"""Stamps between an engine's operators: where they run, what they note, and what if they cannot."""

from __future__ import annotations

import _thread
import shutil
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from layerscope import Builder
from layerscope.api.networks import analyze
from layerscope.engines import onnxruntime as engine
from layerscope.engines import onnxruntime_c_api as library
from layerscope.engines import onnxruntime_sessions as sessions
from layerscope.engines import onnxruntime_stamps as stamps
from layerscope.engines.onnxruntime_stamps import (
    DOMAIN,
    StampedSession,
    add_stamps,
    execution_order,
    in_order,
)
from layerscope.engines.workload import MeasureOptions, Workload, prepare_workload, random_inputs
from layerscope.errors import EngineError
from layerscope.report.measurement import Run

ONCE = MeasureOptions(threads=1, memory=False)


def written(name: str, folder: Path, options: MeasureOptions = ONCE) -> tuple[Workload, str, Any]:
    """A network as the engine writes it after its optimisations, and what it is fed."""
    workload = prepare_workload(analyze(name), str(folder))
    session = sessions.create_session(
        workload, options, str(folder), sessions.SessionSettings(keep="weights")
    )
    given = random_inputs(session.get_inputs(), workload.report)
    return workload, str(folder / sessions.OPTIMISED), given


def test_a_stamp_runs_right_after_its_operator() -> None:
    assert in_order()


@pytest.mark.parametrize("name", ["googlenet", "densenet121", "mobilenet_v2", "squeezenet1_1"])
@pytest.mark.parametrize("fusion", ["on", "off"])
def test_the_same_of_networks_that_fork(name: str, fusion: Any, tmp_path: Path) -> None:
    import onnx  # noqa: TID251

    options = MeasureOptions(threads=1, memory=False, fusion=fusion)
    _, path, given = written(name, tmp_path, options)
    model = onnx.load(path, load_external_data=False)
    expected = [f"{DOMAIN}/0"]
    for n, node in enumerate(model.graph.node):
        node.name = f"{n}"  # onnxruntime's own have none
        expected += [node.name, f"{DOMAIN}/{n + 1}"]
    onnx.save(add_stamps(model), tmp_path / "stamped.onnx")
    outputs = [each.name for each in model.graph.output]
    assert execution_order(str(tmp_path / "stamped.onnx"), given, outputs) == expected


def test_every_operator_has_a_time_within_the_run(tmp_path: Path) -> None:
    _, path, given = written("squeezenet1_1", tmp_path)
    timed = StampedSession(path, 1, {}, given)
    for _ in range(3):
        timed.run()
    program = sessions.optimised_graph(str(tmp_path))
    for times in timed.close():
        assert sorted(times) == list(range(len(program.nodes)))
        assert all(seconds > 0 for seconds in times.values())


def test_both_clocks_find_the_longest_operator(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One product many times as long as the others, by stamps and by the engine's profiler."""
    b = Builder("lopsided")
    x = b.input("data", (64, 64))
    for n in range(4):
        x = b.relu(b.linear(x, 64, name=f"small{n}"))
    x = b.linear(b.linear(x, 4096, name="wide"), 2048, name="long")
    workload = prepare_workload(analyze(b.build(b.linear(x, 16, name="last"))), str(tmp_path))
    shares = []
    for _ in range(2):
        run, _ = engine.measure(workload, ONCE)
        row = next(row for row in run.rows if "long" in row.layers)
        shares.append((row.median_s or 0.0) / sum(each.median_s or 0.0 for each in run.rows))
        monkeypatch.setattr(engine, "c_api", _missing)
    assert all(share > 0.5 for share in shares)
    assert shares[0] == pytest.approx(shares[1], abs=0.2)


def _missing() -> None:
    raise EngineError("the installed onnxruntime has no C library beside it")


def measured(folder: Path) -> Run:
    return engine.measure(prepare_workload(analyze("squeezenet1_1"), str(folder)), ONCE)[0]


def test_without_a_library_the_engines_profiler_tells(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert not any("profiler" in note for note in measured(tmp_path).notes)
    monkeypatch.setattr(engine, "c_api", _missing)
    run = measured(tmp_path)
    assert run.notes[0] == (
        "timed by onnxruntime's own profiler, which takes longer: "
        "the installed onnxruntime has no C library beside it"
    )
    assert (run.timing.attributed or 0.0) > 0.5


def test_an_engine_that_orders_otherwise_is_not_relied_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(stamps, "in_order", lambda: False)
    run = measured(tmp_path)
    assert "does not run a stamp right after its node" in run.notes[0]


def test_a_disk_that_is_full_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    assert "no disk space for a second copy of the weights" in measured(tmp_path).notes[0]


def test_a_library_that_is_missing_or_strange_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import onnxruntime

    monkeypatch.setattr(onnxruntime, "__file__", str(tmp_path / "onnxruntime" / "__init__.py"))
    find = library.c_api.__wrapped__
    with pytest.raises(EngineError, match="no C library beside it"):
        find()
    folder = tmp_path / "onnxruntime" / "capi"
    folder.mkdir(parents=True)
    (folder / "libonnxruntime.so.1").write_bytes(b"no library")
    with pytest.raises(EngineError, match="cannot be used"):
        find()


def test_what_the_library_says_is_raised(tmp_path: Path) -> None:
    (tmp_path / "bad.onnx").write_bytes(b"no model")
    with pytest.raises(EngineError, match="Protobuf"):
        library.Session(str(tmp_path / "bad.onnx"), 1, {}, stamps.stamps().domain)


def test_what_cannot_be_stamped_is_refused() -> None:
    from onnx import TensorProto  # noqa: TID251
    from onnx.helper import (  # noqa: TID251
        make_graph,
        make_model,
        make_node,
        make_tensor_value_info,
    )

    end = make_tensor_value_info("y", TensorProto.FLOAT, [1])
    node = make_node("Constant", [], ["y"], value_float=1.0)
    with pytest.raises(EngineError, match="without inputs"):
        add_stamps(make_model(make_graph([node], "constant", [], [end])))


def test_integers_and_shapes_are_stamped_too(tmp_path: Path) -> None:
    """Operators whose outputs are not floats; indices are fed as integers."""
    b = Builder("indices")
    x = b.embedding(b.input("tokens", (2, 7), dtype="int64"), 11, 16)
    report = analyze(b.build(b.linear(x, 4)))
    run, _ = engine.measure(prepare_workload(report, str(tmp_path)), ONCE)
    assert not any("profiler" in note for note in run.notes)
    assert all((row.time_s or 0) > 0 for row in run.rows if row.kind == "layer")


def test_ctrl_c_within_a_run_is_not_lost(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is raised when the engine returns, never inside of a stamp, where it would be dropped."""
    dropped: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", dropped.append)
    _, path, given = written("squeezenet1_1", tmp_path)
    timed = StampedSession(path, 1, {}, given)
    timed.run()
    marks = stamps.stamps().marks

    def interrupt() -> None:
        while len(marks) < 5:
            pass
        _thread.interrupt_main()

    for _ in range(5):
        marks.clear()
        other = threading.Thread(target=interrupt)
        other.start()
        with pytest.raises(KeyboardInterrupt):
            _often(timed)
        other.join()
    timed.close()
    assert not dropped


def _often(timed: StampedSession) -> None:
    for _ in range(500):
        timed.run()


def test_a_run_that_is_refused_keeps_the_one_before(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An engine may find fault with what the first run left in its outputs."""
    run, left = StampedSession.run, iter(range(100))

    def once(self: StampedSession) -> None:
        if next(left):
            self._runs.append(())
            raise EngineError("Invalid rank for output")
        run(self)

    monkeypatch.setattr(StampedSession, "run", once)
    found = measured(tmp_path)
    assert found.code == 3
    assert found.notes[0] == "fails in its last layer: Invalid rank for output"
    assert (found.timing.end_to_end_s or 0) > 0
