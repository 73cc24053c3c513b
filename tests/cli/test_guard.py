"""Whatever is raised is one line and an exit code; nothing half written is left behind."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import click
import pytest

from layerscope import interrupts
from layerscope.cli import run
from layerscope.cli.guard import LONGEST, message_and_code
from layerscope.errors import (
    InputError,
    MissingExtra,
    NoTable,
    OverBudget,
    UsageError,
    WrongCells,
)
from tests.cli.signals import attempt

Captured = pytest.CaptureFixture[str]


class Own(BaseException):
    """What user code may raise past `except Exception`."""


RAISED: list[tuple[BaseException, int, str]] = [
    (RecursionError("maximum recursion depth exceeded"), 3, "nested too deeply"),
    (OverflowError("cannot fit"), 3, "a number is too large: cannot fit"),
    (MemoryError(), 3, "out of memory"),
    (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), 3, "not valid Unicode"),
    (EOFError("ended"), 3, "the data ends too early: ended"),
    (FileNotFoundError(errno.ENOENT, "No such file", "a.onnx"), 3, "a.onnx: No such file"),
    (FileNotFoundError(errno.ENOENT, "No such file"), 3, "the current folder"),
    (OSError(errno.ENOSPC, "No space left on device"), 2, "cannot write the output: No space"),
    (SystemExit(7), 3, "ended with sys.exit: 7"),
    (SystemExit(), 3, "ended with sys.exit"),
    (Own("own"), 3, "Own: own"),
    (KeyError("x"), 3, "KeyError: 'x'; "),
    (AssertionError(), 3, "AssertionError; "),
    (ZeroDivisionError("division by zero"), 3, "ZeroDivisionError"),
    (ModuleNotFoundError("No module", name="numpy.core"), 4, "pip install numpy"),
    (KeyboardInterrupt(), 130, "interrupted"),
    (click.Abort(), 130, "interrupted"),
    (UsageError("wrong"), 2, "wrong"),
    (InputError("broken"), 3, "broken"),
    (OverBudget("over"), 1, "over"),
    (WrongCells("wrong"), 1, "wrong"),
    (NoTable("none"), 3, "none"),
    (MissingExtra("a PNG", "plot"), 4, "pip install"),
    (click.UsageError("No such option"), 2, "No such option"),
    (ValueError("9" * 10_000), 3, " … "),
]


@pytest.mark.parametrize("debug", [[], ["--debug"]], ids=["", "debug"])
@pytest.mark.parametrize(("error", "code", "says"), RAISED, ids=lambda each: repr(each)[:30])
def test_whatever_is_raised_is_one_line(
    error: BaseException,
    code: int,
    says: str,
    debug: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
) -> None:
    def fails(*args: Any, **options: Any) -> None:
        raise error

    monkeypatch.setattr("layerscope.api.networks.analyze", fails)
    assert run(["show", "vgg16", *debug]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert ("Traceback" in err) == bool(debug)
    if not debug:
        assert err.count("\n") == 1
        assert len(err) < LONGEST + 100


def test_debug_by_the_environment(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setenv("LAYERSCOPE_DEBUG", "1")
    assert run(["show", "vgg61"]) == 2
    assert "Traceback" in capsys.readouterr().err
    monkeypatch.setenv("LAYERSCOPE_DEBUG", "0")
    assert run(["show", "vgg61"]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_every_command_takes_debug(capsys: Captured) -> None:
    from layerscope.cli import COMMANDS

    for name in COMMANDS:
        assert run([name, "--help"]) == 0
        assert "--debug" in capsys.readouterr().out


def raise_in_user_code(table: dict[str, int]) -> int:
    return table["x"]


def test_what_others_raise_names_their_line() -> None:
    with pytest.raises(KeyError) as raised:
        raise_in_user_code({})
    assert "test_guard.py:" in message_and_code(raised.value)[0]


def python(*args: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *args], capture_output=True, text=True, timeout=120, **options
    )


def test_a_full_disk_and_a_closed_output_are_one_line(tmp_path: Path) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "layerscope", "show", "lenet5"],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    for args in (["show", "lenet5", "-o", "/dev/full"], ["plot", "lenet5", "-o", "/dev/full"],
                 ["export", "lenet5", "--to", "onnx", "-o", "/dev/full"]):  # fmt: skip
        done = python("-m", "layerscope", *args, cwd=tmp_path)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert "No space left" in done.stderr
    closed = (
        "import os, sys; os.close(1); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    )
    done = python("-c", closed, "-m", "layerscope", "show", "lenet5")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["show", "nobody"], 2),
        (["show", "nobody.onnx", "--debug"], 3),
        (["check", "lenet5", "--max-params", "1"], 1),
    ],
)
def test_a_full_error_stream_leaves_the_exit_code(args: list[str], code: int) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "layerscope", *args]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=full, check=False)
    assert done.returncode == code


def test_python_without_assertions_counts_the_same() -> None:
    for args in (["show", "googlenet", "--total"], ["show", "llama-3-8b", "--as", "csv"]):
        plain, optimised = (python(*flags, "-m", "layerscope", *args) for flags in ([], ["-O"]))
        assert plain.stdout == optimised.stdout
        assert plain.returncode == optimised.returncode == 0


def test_an_output_of_ascii_is_no_error() -> None:
    done = python("-m", "layerscope", "show", "lenet5",
                  env={**os.environ, "PYTHONIOENCODING": "ascii"})  # fmt: skip
    assert done.returncode == 0
    assert "-----" in done.stdout
    assert "\\u" not in done.stdout


USER_CODE = {
    "sys.exit(5)": (3, "sys.exit(5) was called"),
    "raise EOFError": (3, "EOFError"),
    "raise BaseException('hey')": (3, "mine.py:2: BaseException: hey"),
    "1 / 0": (3, "ZeroDivisionError"),
    "f = lambda: f()\nf()": (3, "RecursionError"),
}


@pytest.mark.parametrize("source", USER_CODE)
def test_user_code_that_fails_is_one_line(
    source: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    from layerscope.formats.torch.model_names import python_code

    monkeypatch.setattr(
        python_code, "the_torch", lambda: None
    )  # the file fails before it is needed
    file = tmp_path / "mine.py"
    file.write_text(f"import sys\n{source}\n")
    code, says = USER_CODE[source]
    assert run(["show", f"{file}:make"]) == code
    err = capsys.readouterr().err
    assert says in err
    assert err.count("\n") == 1


# -- signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("command", ["measure", "machine", "folder"])
def test_a_signal_leaves_nothing_behind(command: str, number: signal.Signals) -> None:
    found = attempt(command, number, 0.9)
    assert not found.left
    assert found.code in (0, 128 + number, -number), found.said  # the last while Python starts
    assert "Traceback" not in found.said


def test_a_cut_off_calibration_is_not_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Captured
) -> None:
    from layerscope.engines import onnxruntime as engine
    from layerscope.prediction import calibration
    from layerscope.prediction.engine_rules import NO_RULES

    monkeypatch.setenv("LAYERSCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr(calibration, "roofs_now", lambda threads: None)
    monkeypatch.setattr(calibration, "engine_rules", lambda name: NO_RULES)
    whole = engine.measure

    def cut(*args: Any) -> Any:
        from msgspec.structs import replace

        done, outputs = whole(*args)
        return replace(done, code=130), outputs

    monkeypatch.setattr(engine, "measure", cut)
    assert run(["machine", "--calibrate"]) == 130
    assert not list(tmp_path.iterdir())


def send(number: int) -> None:
    """A signal to this very process, and time for it to arrive."""
    os.kill(os.getpid(), number)
    time.sleep(0.05)


def test_what_c_code_swallows_is_raised_again() -> None:
    with interrupts.handlers():
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()
        interrupts.check()
        assert interrupts.received() == 143


def test_an_interrupt_ends_with_its_command() -> None:
    with interrupts.handlers(), pytest.raises(KeyboardInterrupt):
        send(signal.SIGINT)
    interrupts.check()
    with interrupts.deferred():
        pass


def test_steps_that_belong_together_are_not_cut() -> None:
    done = []

    def steps() -> None:
        with interrupts.deferred():
            send(signal.SIGINT)
            done.append("all")

    with interrupts.handlers(), pytest.raises(KeyboardInterrupt):
        steps()
    assert done == ["all"]


def test_no_import_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = (
        "from tests.cli.test_guard import send; import signal\nsend(signal.SIGINT)\nwhole = True\n"
    )
    (tmp_path / "slow_library.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))

    def imports() -> None:
        import slow_library  # type: ignore[import-not-found]

        assert slow_library.whole
        time.sleep(5)

    with interrupts.handlers(), pytest.raises(KeyboardInterrupt):
        imports()
    assert sys.modules["slow_library"].whole


def test_a_callback_of_c_code_is_not_cut() -> None:
    ended = []

    def callback() -> None:
        send(signal.SIGINT)
        ended.append(True)

    def calls() -> None:
        callback()
        time.sleep(5)

    interrupts.defer_in(callback)
    with interrupts.handlers(), pytest.raises(KeyboardInterrupt):
        calls()
    assert ended


def test_ignored_signals_stay_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupts.handlers():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_files_and_folders_are_whole_or_not_there(tmp_path: Path) -> None:
    names = [str(tmp_path / name) for name in ("a", "b")]

    def fails() -> None:
        with interrupts.whole_files(*names) as (first, _):
            first.write(b"x")
            raise ValueError("half")

    with pytest.raises(ValueError, match="half"):
        fails()
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="null byte"):
        interrupts.write_files(
            {str(tmp_path / "f" / "a"): b"", str(tmp_path / "f\0" / "b"): b""}, str(tmp_path / "f")
        )
    assert not list(tmp_path.iterdir())
    with interrupts.scratch_folder() as folder:
        Path(folder, "x").write_text("x")
    assert not os.path.exists(folder)


def test_the_command_line_runs_in_a_thread(capsys: Captured) -> None:
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(run(["show", "lenet5", "--total"])))
    thread.start()
    thread.join()
    assert codes == [0]


def test_signals_wait_while_the_temporary_folder_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The standard library writes a file there and removes it; a signal between would leave it."""
    folder = tempfile.gettempdir()
    seen = []

    def choose() -> str:
        seen.append(interrupts._State.deferrals)
        return folder

    monkeypatch.setattr(tempfile, "gettempdir", choose)
    with interrupts.scratch_folder():
        assert seen == [1]
