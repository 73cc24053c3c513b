"""Files that layerscope wrote itself and reads again, damaged in every way: runs and caches."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from layerscope.cli import run
from layerscope.engines import cache
from layerscope.engines import machine as machines
from layerscope.report.measurement import Level, Machine, Peak, Rate

Captured = pytest.CaptureFixture[str]
MACHINE = Machine(
    "cpu",
    2,
    (Peak("fp32", 2, Rate(1e11, 9e10, 5), "x"),),
    (Level("DRAM", 2, 0, Rate(1e9, 9e8, 5)),),
)


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A kept run, with limits of a machine in it."""
    path = tmp_path_factory.mktemp("run") / "run.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("layerscope.engines.measuring.cached_machine", lambda: MACHINE)
        patch.setattr("layerscope.engines.measuring.above", lambda *args: [])
        assert run(["measure", "lenet5", "--power", "5", "-o", str(path)]) == 0
    found: dict[str, Any] = json.loads(path.read_text())
    return found


SHOWN = (["show"], ["show", "--as", "csv"], ["show", "--as", "boda"], ["plot"],
         ["plot", "--of", "time"], ["plot", "--of", "memory"])  # fmt: skip


def tried(path: Path, capsys: Captured, commands: Any = SHOWN) -> set[int]:
    """Exit codes of all that reads a run; what goes wrong is one line that blames the file."""
    codes = set()
    for command in commands:
        code = run([command[0], str(path), *command[1:]])
        err = capsys.readouterr().err
        assert code in (0, 2, 3), err
        assert "bug in layerscope" not in err, err
        assert err.count("\n") == (code != 0), err
        codes.add(code)
    return codes


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda data: data[: len(data) // 2], "expected JSON"),
        (lambda data: data.replace(b'"lenet5"', b'"\xff\xfe"', 1), "utf-8"),
        (lambda data: data.replace(b'"schema": 1', b'"schema": 2'), "pip install --upgrade"),
        (lambda data: data.replace(b'"schema": 1', b'"schema": "new"'), "schema"),
        (lambda data: data.replace(b'"threads": ', b'"thread": '), "missing required field"),
        (lambda data: data.replace(b'"threads": ', b'"threads": ' + b"9" * 400), "run.json: "),
        (lambda data: data.replace(b'"threads": ', b'"threads": ' + b"9" * 5000), "run.json: "),
        (lambda data: data.replace(b'"end_to_end_s": ', b'"end_to_end_s": 0, "x": '), "than 0"),
        (lambda data: data.replace(b'"end_to_end_s": ', b'"end_to_end_s": 1e999, "x": '), "run"),
        (lambda data: data.replace(b'"Conv"', b'"Linear"'), "run.json: "),
        (lambda data: data.replace(b'"Conv"', b'"os"'), "run.json: "),
        (lambda data: data.replace(b'"runs": [', b'"runs": [], "old": [', 1), "run"),
        (lambda data: b'{"kind": 1, "runs": [], "graph": ' + b"[" * 100_000, "nested"),
        (lambda data: b'{"kind": "x", "runs": [], "graph": {}}', "missing required field"),
    ],
)  # fmt: skip
def test_damaged_runs_are_one_line(
    damage: Callable[[bytes], bytes],
    says: str,
    document: dict[str, Any],
    tmp_path: Path,
    capsys: Captured,
) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(damage(json.dumps(document).encode()))
    assert run(["show", str(path)]) == 3
    assert says in capsys.readouterr().err
    tried(path, capsys)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every dict and list with each of its keys."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from places(value[key])


def test_no_single_change_of_a_run_is_a_fault_of_ours(
    document: dict[str, Any], tmp_path: Path, capsys: Captured
) -> None:
    source = random.Random(18)
    path = tmp_path / "run.json"
    new: tuple[Any, ...] = (
        None,
        "",
        "x",
        -1,
        0,
        0.5,
        2**62,
        -1e300,
        [],
        {},
        [None],
        True,
        "\x1b[31m\u202e",
    )
    count = len(list(places(document)))
    seen: set[int] = set()
    for _ in range(250):
        copy = json.loads(json.dumps(document))
        holder, key = list(places(copy))[source.randrange(count)]
        if source.random() < 0.2:
            del holder[key]
        else:
            holder[key] = source.choice(new)
        path.write_text(json.dumps(copy))
        seen |= tried(path, capsys, [source.choice(SHOWN)])
    assert seen >= {0, 3}


def test_a_run_of_an_older_schema_is_read(
    document: dict[str, Any], tmp_path: Path, capsys: Captured
) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps({key: each for key, each in document.items() if key != "schema"}))
    assert tried(path, capsys) == {0}


def test_json_is_bounded_by_name(
    document: dict[str, Any], tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("layerscope.formats.documents.JSON_BYTES", 100)
    path = tmp_path / "run.json"
    path.write_text(json.dumps(document))
    assert run(["show", str(path)]) == 3
    assert "JSON_BYTES = 100" in capsys.readouterr().err


# -- caches


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cached limits of this machine, whose measurement takes no time."""
    monkeypatch.setenv("LAYERSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(machines, "_measured", lambda *args: MACHINE)
    return Path(cache.path_of("machine", machines.identity()))


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\xff\xfe", b"{", b"[" * 100_000, b"null", b"{}", b'{"cpu": "\xff"}',
        b'{"cpu":"c","cores":1,"peaks":[],"levels":[]}',
        b'{"cpu":"c","cores":' + b"9" * 400 + b',"peaks":[],"levels":[]}',
        b'{"cpu":"c","cores":1,"peaks":[{"dtype":"fp32","threads":1,"flops":{"best":0,"median":0,'
        b'"runs":1},"by":"x"}],"levels":[]}',
    ],
)  # fmt: skip
def test_a_damaged_cache_is_rebuilt_with_a_remark(
    data: bytes, kept: Path, capsys: Captured
) -> None:
    kept.parent.mkdir()
    kept.write_bytes(data)
    assert run(["machine"]) == 0
    out, err = capsys.readouterr()
    assert "products in fp32" in out
    assert err.count("\n") == 1
    assert f"{kept}: ignored" in err
    assert run(["machine"]) == 0
    assert capsys.readouterr().err == ""
    assert os.listdir(kept.parent) == [kept.name]


def test_a_cache_that_cannot_be_written_is_said(
    kept: Path, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for name, value in (("LAYERSCOPE_CACHE", str(file)), ("LAYERSCOPE_CACHE", "/proc/nowhere")):
        monkeypatch.setenv(name, value)
        assert run(["machine"]) == 0
        assert "not kept for the next time" in capsys.readouterr().err
    monkeypatch.delenv("LAYERSCOPE_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(file))  # no folder
    assert run(["machine"]) == 0
    assert "not kept for the next time" in capsys.readouterr().err
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # nobody knows it
    monkeypatch.chdir(tmp_path)
    assert run(["machine"]) == 0
    assert not (tmp_path / "~").exists()


def test_a_pipe_in_place_of_a_cache_is_ignored(kept: Path) -> None:
    kept.parent.mkdir()
    os.mkfifo(kept)
    assert run(["machine"]) == 0


def test_two_writers_at_once_leave_a_whole_file(kept: Path) -> None:
    program = (
        "from layerscope.engines import cache\n"
        "from tests.engines.test_kept_files import MACHINE\n"
        "for n in range(300):\n"
        "    assert cache.keep('machine', 'x', MACHINE)\n"
        "    assert cache.load('machine', 'x', type(MACHINE)) == MACHINE, cache.take_remarks()\n"
    )
    environment = {**os.environ, "LAYERSCOPE_CACHE": str(kept.parent)}
    running = [subprocess.Popen([sys.executable, "-c", program], env=environment) for _ in "abc"]
    assert [each.wait() for each in running] == [0, 0, 0]
    assert len(os.listdir(kept.parent)) == 1
