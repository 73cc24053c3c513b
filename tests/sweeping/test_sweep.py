"""A sweep: rows of every network, whatever happens to workers and to the sweep itself."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from layerscope import analyze, sweep
from layerscope.errors import UsageError
from layerscope.sweeping.isolation import PROCESSES, WorkerLimits
from layerscope.sweeping.run import SweepRequest, SweepSummary, sweep_into
from layerscope.sweeping.store import opened
from layerscope.sweeping.tasks import SweepOptions, Task

NETWORKS = ("lenet5", "alexnet", "vgg11", "squeezenet1_1")
TIMED = ("seconds",)
GENERATOR = """
import random
from layerscope import Builder

def candidates(count=60):
    chance = random.Random(1)
    for n in range(count):
        b = Builder(f"c{n}")
        x = b.input("data", (1, 3, 16, 16))
        for _ in range(chance.randint(1, 9)):
            x = b.relu(b.conv(x, chance.choice([8, 16, 32]), 3, padding=1))
        yield f"c{n}", b.build(b.linear(b.flatten(x), 10))

def breaks():
    yield from candidates(3)
    raise ValueError("no more layers")

def ends():
    yield from candidates(3)
    import os
    os._exit(5)

def strange():
    yield 12
    yield "lenet5"

listed = ["lenet5", ("mine", "alexnet")]
"""


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    yield
    assert not PROCESSES


def request(
    *sources: str, batches: tuple[int | None, ...] = (None,), jobs: int = 2
) -> SweepRequest:
    options = tuple(SweepOptions(batch=batch) for batch in batches)
    return SweepRequest(sources, options, WorkerLimits(seconds=60), jobs)


def rows(path: Path, *columns: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(
            f"SELECT {', '.join(columns)} FROM results ORDER BY key"
        ).fetchall()
    finally:
        connection.close()


def all_but_times(path: Path) -> list[tuple[object, ...]]:
    names = [name for name in columns_of(path) if name not in TIMED]
    return rows(path, *names)


def columns_of(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    try:
        return [row[1] for row in connection.execute("PRAGMA table_info(results)")]
    finally:
        connection.close()


def test_rows_have_the_figures_of_the_reports(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    found = sweep_into(str(path), request(*NETWORKS, batches=(1, 8)))
    assert (found.done, found.skipped, found.failures) == (2 * len(NETWORKS), 0, 0)
    stored = rows(path, "name", "options", "params", "macs", "flops", "activations", "peak",
                  "weights", "json", "status", "bounds")  # fmt: skip
    assert len(stored) == 2 * len(NETWORKS)
    for name, options, *figures, text, status, bounds in stored:
        report = analyze(str(name), batch=json.loads(str(options))["batch"])
        totals = report.totals
        assert figures == [
            totals.params, totals.macs, totals.flops, totals.activations,
            totals.peak_activation_bytes, totals.param_bytes,
        ]  # fmt: skip
        assert json.loads(str(text)) == json.loads(report.to_json())
        assert (status, bounds) == ("ok", "")


def test_nothing_is_repeated(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    sweep_into(str(path), request("lenet5", "alexnet"))
    before = rows(path, "key", "seconds")
    found = sweep_into(str(path), request("lenet5", "alexnet", "vgg11"))
    assert (found.done, found.skipped) == (1, 2)
    assert set(before) < set(rows(path, "key", "seconds"))
    again = SweepRequest(("lenet5",), (SweepOptions(),), WorkerLimits(), 1, again=True)
    assert sweep_into(str(path), again).done == 1


def test_a_changed_file_is_another_network(tmp_path: Path) -> None:
    path, file = tmp_path / "r.sqlite", tmp_path / "net.prototxt"
    text = (
        "input: 'x' input_dim: 1 input_dim: 3 input_dim: 8 input_dim: 8 "
        "layer { name: 'a' type: 'ReLU' bottom: 'x' top: 'y' }"
    )
    file.write_text(text)
    sweep_into(str(path), request(str(file)))
    file.write_text(text.replace("input_dim: 8", "input_dim: 9"))
    assert sweep_into(str(path), request(str(file))).done == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch": 0}, "batch 0, expected at least 1"),
        ({"tokens": -1}, "tokens -1, expected at least 1"),
        ({"dtype": "fp33"}, "unknown dtype 'fp33'"),
        ({"like": "fvcor"}, "unknown convention 'fvcor'"),
        ({"on": "nosuch"}, "unknown machine 'nosuch'"),
        ({"input": ("3x",)}, "--input 3x"),
        ({"on": "a100-pcie", "measure": True}, "--measure cannot be combined with --on"),
    ],
)
def test_options_that_fit_no_network_are_errors_before_the_sweep(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    path = tmp_path / "r.sqlite"
    with pytest.raises(UsageError) as error:
        sweep("lenet5", output=path, options=SweepOptions(**options))
    assert message in str(error.value)
    assert not path.exists()


def test_a_network_that_fails_is_a_row(tmp_path: Path) -> None:
    path, broken = tmp_path / "r.sqlite", tmp_path / "broken.onnx"
    broken.write_bytes(b"\x08\x07\x12\xff")
    listed = tmp_path / "networks.txt"
    listed.write_text(f"nosuch\n{broken}\nlenet5\n")
    found = sweep_into(str(path), request(str(listed)))
    assert (found.done, found.failures) == (3, 2)
    stored = {Path(str(name)).name: (status, error) for name, status, error in
              rows(path, "name", "status", "error")}  # fmt: skip
    assert stored["lenet5"] == ("ok", "")
    assert "unknown network 'nosuch'" in str(stored["nosuch"][1])
    assert "broken.onnx" in str(stored["broken.onnx"][1])


def test_a_generator_of_networks(tmp_path: Path) -> None:
    path, file = tmp_path / "r.sqlite", tmp_path / "search.py"
    file.write_text(GENERATOR)
    found = sweep_into(str(path), request(f"{file}:candidates"))
    assert (found.done, found.failures) == (60, 0)
    assert sweep_into(str(path), request(f"{file}:candidates")).skipped == 60
    assert {name for (name,) in rows(path, "name")} == {f"c{n}" for n in range(60)}
    assert all(macs for (macs,) in rows(path, "macs"))


@pytest.mark.parametrize(
    ("function", "done", "error"),
    [
        ("breaks", 4, "search.py:16: ValueError: no more layers"),
        ("ends", 4, "the network ended its process with exit code 5"),
        ("strange", 2, "a int, expected a Graph, a torch.nn.Module, or the name of a network"),
        ("nosuch", 1, "unknown attribute"),
    ],
)
def test_a_generator_that_fails(tmp_path: Path, function: str, done: int, error: str) -> None:
    path, file = tmp_path / "r.sqlite", tmp_path / "search.py"
    file.write_text(GENERATOR)
    found = sweep_into(str(path), request(f"{file}:{function}"))
    assert (found.done, found.failures) == (done, 1)
    (message,) = [row[0] for row in rows(path, "error") if row[0]]
    assert error in str(message)


def test_a_list_of_names_in_python(tmp_path: Path) -> None:
    path, file = tmp_path / "r.sqlite", tmp_path / "search.py"
    file.write_text(GENERATOR)
    sweep_into(str(path), request(f"{file}:listed"))
    assert {(name, source) for name, source in rows(path, "name", "source")} == {
        (f"{file}:listed[1]", "lenet5"), ("mine", "alexnet"),
    }  # fmt: skip


def test_workers_that_are_killed_are_replaced(tmp_path: Path) -> None:
    calm, path, file = tmp_path / "calm.sqlite", tmp_path / "r.sqlite", tmp_path / "search.py"
    file.write_text(GENERATOR)
    sweep_into(str(calm), request(f"{file}:candidates"))
    chance = random.Random(4)
    killed = 0

    def kill(so_far: SweepSummary, total: int | None, name: str) -> None:
        nonlocal killed
        if PROCESSES and chance.random() < 0.2 and killed < 6:
            os.kill(chance.choice(sorted(each.pid for each in PROCESSES)), signal.SIGKILL)
            killed += 1

    found = sweep_into(str(path), request(f"{file}:candidates"), kill)
    assert killed
    assert found.failures == 0
    assert all_but_times(path) == all_but_times(calm)


def test_a_sweep_that_is_killed_goes_on(tmp_path: Path) -> None:
    calm, path, file = tmp_path / "calm.sqlite", tmp_path / "r.sqlite", tmp_path / "search.py"
    file.write_text(GENERATOR)
    sweep_into(str(calm), request(f"{file}:candidates"))
    command = [sys.executable, "-m", "layerscope", "sweep", f"{file}:candidates", "-o", str(path)]
    chance = random.Random(2)
    for _ in range(3):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.3 + chance.random())
        process.kill()
        process.wait()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "60" in done.stdout or "were there already" in done.stdout
    assert all_but_times(path) == all_but_times(calm)
    assert sorted(each.name for each in tmp_path.glob("r.sqlite*")) == ["r.sqlite"]


def test_a_network_has_a_time_limit(tmp_path: Path) -> None:
    path, file = tmp_path / "r.sqlite", tmp_path / "search.py"
    file.write_text("def slow():\n    while True: pass\n    yield 'lenet5'\n")
    limits = WorkerLimits(seconds=2)
    found = sweep_into(str(path), SweepRequest((f"{file}:slow",), (SweepOptions(),), limits))
    assert found.failures == 1
    assert rows(path, "error") == [("no result within 2 s (--seconds)",)]


def test_two_sweeps_cannot_write_to_one_file(tmp_path: Path) -> None:
    path = str(tmp_path / "r.sqlite")
    with opened(path), pytest.raises(UsageError, match="another sweep is writing to it"):
        sweep_into(path, request("lenet5"))
    assert sweep_into(path, request("lenet5")).done == 1


def test_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    path.write_text("no database, but some text that is long enough to be read as a header " * 3)
    with pytest.raises(UsageError, match="not a database"):
        sweep_into(str(path), request("lenet5"))


@pytest.mark.parametrize(
    "options", [SweepOptions(), SweepOptions(batch=8, input=("3x8x8",), dtype="fp16", on="a100")]
)
def test_the_key_of_a_task_is_the_same_in_a_worker(options: SweepOptions) -> None:
    task = Task("vgg16", "vgg16", options, "vgg16")
    there = msgspec.json.decode(msgspec.json.encode(task), type=Task)
    assert (there.key, there.options.text) == (task.key, task.options.text)
    assert json.loads(task.options.text).get("like") is None


BAD = """
def loops():
    while True:
        pass

def allocates():
    kept = []
    while sum(map(len, kept)) < 50 << 30:
        kept.append(b"x" * (64 << 20))

def exits():
    import os
    os._exit(3)
"""


@pytest.mark.slow
def test_networks_that_hang_allocate_or_exit_are_rows(tmp_path: Path) -> None:
    path, file = tmp_path / "r.sqlite", tmp_path / "bad.py"
    file.write_text(BAD)
    sources = (f"{file}:loops", "lenet5", f"{file}:allocates", f"{file}:exits", "alexnet")
    limits = WorkerLimits(seconds=60, memory=2 << 30)
    found = sweep_into(str(path), SweepRequest(sources, (SweepOptions(),), limits, 2))
    assert (found.done, found.failures) == (5, 3)  # on a quiet machine: PyTorch loads in the limit
    stored = {str(name).rpartition(":")[2]: error for name, error in rows(path, "name", "error")}
    assert stored["loops"] == "no result within 60 s (--seconds)"
    assert "memory" in str(stored["allocates"]).lower()
    assert "exit code 3" in str(stored["exits"])
    assert (stored["lenet5"], stored["alexnet"]) == ("", "")


def test_the_search_of_the_documentation(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "sweep.md").read_text(encoding="utf-8")
    block = page[page.index("# my_search.py") :].partition("```")[0]
    path, file = tmp_path / "r.sqlite", tmp_path / "my_search.py"
    file.write_text(block.replace("count=10_000", "count=20"))
    found = sweep_into(str(path), request(f"{file}:candidates"))
    assert (found.done, found.failures) == (20, 0)


@pytest.mark.slow
def test_a_sweep_that_is_killed_twenty_times(tmp_path: Path) -> None:
    from tests.sweeping.whole import disturbed

    calm, path, file = tmp_path / "calm.sqlite", tmp_path / "r.sqlite", tmp_path / "search.py"
    file.write_text(GENERATOR.replace("count=60", "count=1500"))
    command = [sys.executable, "-m", "layerscope", "sweep", f"{file}:candidates", "-j", "2"]
    subprocess.run([*command, "-o", str(calm)], check=True, stdout=subprocess.DEVNULL)
    counts = {"main": 0, "worker": 0}
    assert disturbed([*command, "-o", str(path)], 20, counts, time.monotonic() + 3600)
    assert counts["main"]
    assert counts["worker"]
    assert all_but_times(path) == all_but_times(calm)
    assert len(rows(path, "key")) == 1500


@pytest.mark.slow
def test_memory_stays_flat_over_ten_thousand_candidates(tmp_path: Path) -> None:
    bench = Path(__file__).parents[2] / "bench" / "sweeps.py"
    done = subprocess.run([sys.executable, str(bench)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "10,000" in done.stdout
