"""The command line as a user meets it: forms, options, errors, exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import layerscope
from layerscope import Builder, Graph
from layerscope.cli import COMMANDS, run
from layerscope.export import FORMS
from layerscope.export.footer import COMMENTS
from layerscope.notations import NOTATIONS

Captured = pytest.CaptureFixture[str]


def command(*args: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "layerscope", *args]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def failing(capsys: Captured, code: int, *args: str) -> str:
    """The one line a failing command prints, on stderr, with nothing on stdout."""
    assert run(args) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("layerscope: ")
    assert err.count("\n") == 1, err
    return err


def mystery() -> Graph:
    b = Builder("mystery")
    x = b.conv(b.input("data", (1, 3, 8, 8)), 4, 3, name="conv1")
    x = b.add_node("warp::drive", (x,), name="odd")[0]
    return b.build(b.relu(x, name="after"))


@pytest.mark.parametrize("form", [*FORMS, *NOTATIONS])
def test_every_form_prints(form: str, capsys: Captured) -> None:
    assert run(["show", "lenet5", "--as", form]) == 0
    out, err = capsys.readouterr()
    assert out.strip()
    assert out.endswith("\n")
    assert not err


@pytest.mark.parametrize("form", [*FORMS, *NOTATIONS])
def test_every_form_has_stamp_and_coverage(form: str, capsys: Captured) -> None:
    run(["show", "lenet5", "--as", form, "--no-stamp"])
    bare = capsys.readouterr().out
    run(["show", "lenet5", "--as", form])
    full = capsys.readouterr().out
    stamped = f"layerscope {layerscope.__version__} · lenet5 · input data 1x1x32x32"
    assert stamped not in bare
    if form in ("json", "html"):  # a complete document goes on behind the stamp
        assert stamped in full
        assert "ops known: 12 of 12" in full or form == "json"
    else:
        assert full.startswith(bare)
        below = full[len(bare) :]
        comment = COMMENTS.get(form)
        if comment:
            assert all(line.startswith(comment) for line in below.splitlines())
        else:
            assert below.startswith("\n")
        assert stamped in below
        assert "ops known: 12 of 12" in below


def test_total_is_one_line(capsys: Captured) -> None:
    assert run(["show", "vgg16", "--total"]) == 0
    assert capsys.readouterr().out == (
        "vgg16: 138,357,544 params · 15,470,264,320 MACs · 30,972,257,256 FLOPs"
        " · peak activations 25.7 MB\n"
    )


def test_input_batch_and_dtype(capsys: Captured) -> None:
    def stamp(*args: str) -> str:
        assert run(["show", "vgg16", *args]) == 0
        return capsys.readouterr().out

    assert "input x 4x3x224x224 · batch 4" in stamp("--batch", "4").replace("data", "x")
    assert "2x3x256x256" in stamp("--input", "2x3x256x256")
    assert "1x3x256x256" in stamp("--input", "3x256x256")
    assert "8x3x256x256" in stamp("--input", "3x256x256", "--batch", "8")
    assert "fp16" in stamp("--dtype", "fp16")


def test_output_file_and_its_suffix(tmp_path: Path, capsys: Captured) -> None:
    for suffix, begins in {
        ".csv": "name,type",
        ".md": "| layer",
        ".tex": "\\begin",
        ".json": "{",
    }.items():
        target = tmp_path / f"account{suffix}"
        assert run(["show", "lenet5", "-o", str(target)]) == 0
        assert target.read_text().startswith(begins)
    assert capsys.readouterr().out == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "account.csv", "account.json", "account.md", "account.tex",
    ]  # fmt: skip


def test_unwritable_output(tmp_path: Path, capsys: Captured) -> None:
    missing = tmp_path / "no" / "account.csv"
    assert "No such file" in failing(capsys, 2, "show", "lenet5", "-o", str(missing))
    assert "it is a folder" in failing(capsys, 2, "show", "lenet5", "-o", str(tmp_path))
    kept = tmp_path / "kept.txt"
    kept.write_text("before")
    failing(
        capsys, 2, "show", "lenet5", "--as", "markdown", "--columns", "nothing", "-o", str(kept)
    )
    assert kept.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["kept.txt"]


def test_a_full_disk_is_told(capsys: Captured) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full on this machine")
    assert "No space left" in failing(capsys, 2, "show", "lenet5", "-o", "/dev/full")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "layerscope", "show", "lenet5"],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "layerscope: cannot write the output: No space left on device\n"


def test_a_closed_pipe_is_no_error() -> None:
    script = f"{sys.executable} -m layerscope show resnet152 | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1] == "0"
    assert done.stderr == ""


def test_unknown_names_offer_the_nearest(capsys: Captured) -> None:
    assert "vgg16" in failing(capsys, 2, "show", "vgg61")
    assert "layerscope zoo" in failing(capsys, 2, "show", "completely-else")
    assert "did you mean show" in failing(capsys, 2, "shwo", "vgg16")
    assert "did you mean netscope" in failing(capsys, 2, "show", "vgg16", "--as", "netscpe")
    assert "did you mean netscope" in failing(capsys, 2, "show", "vgg16", "--like", "netscop")
    assert "did you mean params" in failing(capsys, 2, "show", "vgg16", "--columns", "parms")
    assert "did you mean macs" in failing(capsys, 2, "show", "vgg16", "--sort", "mac")
    assert "did you mean fp16" in failing(capsys, 2, "show", "vgg16", "--dtype", "fp17")


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["vgg16", "--input", "3x8x8"], 3, "vgg16: features.23: kernel 2x2 does not fit input 1x1"),
        (["vgg16", "--input", "4x224"], 2, "2 sizes, expected 4 as in 1x3x224x224"),
        (["vgg16", "--input", "3x0x224"], 2, "at least 1"),
        (["vgg16", "--input", "3x-1x224"], 2, "at least 1"),
        (["vgg16", "--input", "3xax224"], 2, "expected sizes such as 3x224x224"),
        (["vgg16", "--input", "other=3x224x224"], 2, "unknown input 'other'"),
        (["vgg16", "--batch", "0"], 2, "batch 0, expected at least 1"),
        (["vgg16", "--batch", "x"], 2, "expected a whole number"),
        (["vgg16", "--top", "0", "--sort", "macs"], 2, "--top 0"),
        (["vgg16", "--depth", "-1"], 2, "--depth -1"),
        (["vgg16", "--columns", ""], 2, "--columns is empty"),
        (
            ["vgg16", "--as", "json", "--sort", "macs"],
            2,
            "--sort cannot be combined with --as json",
        ),
        (["vgg16", "--as", "boda", "--depth", "1"], 2, "--depth cannot be combined with --as boda"),
        (["vgg16", "--as", "csv", "--total"], 2, "--total cannot be combined with --as csv"),
        (["vgg16", "--all", "--total"], 2, "--all cannot be combined with --total"),
        (["vgg16", "--all", "--as", "boda"], 2, "--all cannot be combined with --as boda"),
        (
            ["vgg16", "--parts", "layers"],
            2,
            "--parts needs --as matconvnet.dag, matconvnet.dag.csv, matconvnet.dag.latex, "
            "matconvnet.dag.dot or boda",
        ),
        (["vgg16", "--as", "boda", "--parts", ","], 2, "--parts is empty"),
        (["vgg16", "--as", "matconvnet.dag", "--parts", "info"], 2, "unknown part 'info'"),
        (["vgg16", "--as", "matconvnet", "--parts", "layers"], 2, "--parts needs --as"),
        (
            ["vgg16", "--max-columns", "8"],
            2,
            "--max-columns needs --as matconvnet, matconvnet.csv, matconvnet.latex, "
            "matconvnet.dilation, matconvnet.dag, matconvnet.dag.csv or matconvnet.dag.latex",
        ),
        (["vgg16", "--as", "csv", "--max-columns", "8"], 2, "--max-columns needs --as matconvnet,"),
        (["vgg16", "--as", "matconvnet.dag.dot", "--max-columns", "8"], 2, "--max-columns needs"),
        (["vgg16", "--as", "matconvnet", "--max-columns", "0"], 2, "--max-columns 0, expected at"),
        (["vgg16", "--as", "matconvnet", "--max-columns", "-3"], 2, "--max-columns -3, expected"),
        (["vgg16", "--as", "matconvnet", "--max-columns", "x"], 2, "expected a whole number"),
        (["vgg16", "--as", "matconvnet", "--max-columns", "9" * 30], 2, "more than 2^63 - 1"),
        (["vgg16", "--nonsense"], 2, "No such option"),
        ([], 2, "Missing argument 'NET'"),
    ],
)
def test_wrong_arguments(args: list[str], code: int, says: str, capsys: Captured) -> None:
    assert says in failing(capsys, code, "show", *args)


def test_strict_fails_on_what_is_unknown(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("layerscope.zoo.build", lambda name: mystery())
    assert run(["show", "mystery", "--strict"]) == 1
    out, err = capsys.readouterr()
    assert err == "layerscope: --strict: ops known: 1 of 3; unknown: warp::drive ×1, relu ×1\n"
    assert "ops known: 1 of 3" in out
    row = next(line for line in out.splitlines() if line.startswith("odd"))
    assert row.split()[1:] == ["warp::drive"] + ["?"] * 8
    assert run(["show", "mystery", "--total"]) == 0
    assert "mystery: ≥112 params · ≥3,888 MACs" in capsys.readouterr().out
    assert run(["show", "vgg16", "--as", "csv", "--strict"]) == 1


def test_an_interrupt_is_130(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(name: str) -> Graph:
        raise KeyboardInterrupt

    monkeypatch.setattr("layerscope.zoo.build", stop)
    assert run(["show", "vgg16"]) == 130
    assert capsys.readouterr().err.lstrip("\n") == "layerscope: interrupted\n"


def test_debug_shows_a_traceback(capsys: Captured) -> None:
    assert run(["--debug", "show", "vgg61"]) == 2
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 132])
@pytest.mark.parametrize("name", ["vgg16", "googlenet", "resnet152"])
def test_the_table_fits_the_terminal(
    width: int, name: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert run(["show", name, "--no-stamp"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith("tot")
    assert max(map(len, lines)) <= max(width, 24)
    assert len({len(line) for line in lines if line.startswith("─")}) == 1


def test_colours_only_on_a_terminal() -> None:
    assert "\x1b" not in command("show", "lenet5").stdout
    pty = pytest.importorskip("pty", reason="no pseudo-terminals on this machine")
    chunks: list[bytes] = []

    def read(fd: int) -> bytes:
        data = os.read(fd, 65536)
        chunks.append(data)
        return b""

    master, slave = pty.openpty()
    env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS")} | {
        "TERM": "xterm"
    }
    subprocess.run(
        [sys.executable, "-m", "layerscope", "show", "lenet5", "--depth", "1"],
        stdout=slave, env=env, check=True,
    )  # fmt: skip
    read(master)
    assert b"\x1b[1m" in b"".join(chunks)


def test_every_command_has_help_with_examples(capsys: Captured) -> None:
    for name in COMMANDS:
        assert run([name, "--help"]) == 0
        assert "Examples:" in capsys.readouterr().out
    assert run(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in COMMANDS)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str, capsys: Captured) -> None:
    assert run(["completion", shell]) == 0
    assert "_LAYERSCOPE_COMPLETE" in capsys.readouterr().out


def test_completion_of_networks() -> None:
    env = {
        **os.environ,
        "_LAYERSCOPE_COMPLETE": "bash_complete",
        "COMP_WORDS": "layerscope show vgg1",
        "COMP_CWORD": "2",
    }
    done = subprocess.run(
        [Path(sys.executable).parent / "layerscope"],
        capture_output=True,
        text=True,
        env=env,
        check=False,
    )
    assert "plain,vgg16" in done.stdout.split()


def test_zoo_lists_every_network(capsys: Captured) -> None:
    from layerscope.zoo import NAMES

    assert run(["zoo"]) == 0
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.splitlines()[2:]] == list(NAMES)
    assert "138,357,544" in out
    assert run(["zoo", "resnet", "--as", "csv"]) == 0
    assert "resnet50,25557032,4089184256,1x3x224x224," in capsys.readouterr().out
    assert "unknown network 'zzz'" in failing(capsys, 2, "zoo", "zzz")


def test_names_cannot_drive_the_terminal(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    b = Builder("evil")
    graph = b.build(b.relu(b.input("data", (1, 3, 8, 8)), name="\x1b[31mred\n|<b>_"))
    monkeypatch.setattr("layerscope.zoo.build", lambda name: graph)
    for form in ("text", "markdown", "html", "latex", "csv"):
        assert run(["show", "evil", "--as", form, "--no-stamp"]) == 0
        out = capsys.readouterr().out
        if form != "csv":
            assert "\x1b" not in out, form
        assert form != "html" or "<b>" not in out
        assert form != "markdown" or "\\|\\<b\\>\\_" in out
