"""Every documented form of NET in every command, as far as it needs no PyTorch."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from layerscope.cli import COMMANDS as ALL_COMMANDS
from layerscope.cli import run
from layerscope.formats import FORMATS, is_file, recognise_file
from tests.formats.network_forms import COMMANDS, FORMS, MISTAKES, kept_run, text

PLAIN = [name for name, form in FORMS.items() if not form.torch]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("form", PLAIN)
def test_a_form_in_a_command(
    form: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given, called = FORMS[form], COMMANDS[command]
    code = run(called.line(given.make(tmp_path), tmp_path))
    said = capsys.readouterr()
    if given.arrays_only and called.runs:
        assert (code, said.out) == (2, "")
        assert "has no operations" in said.err
        assert said.err.count("\n") == 1
    else:
        assert code == 0, said.err
        assert said.out or command == "export onnx"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_kept_run_is_shown_and_drawn(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By what is in the file, whatever it is called."""
    kept = Path(kept_run(tmp_path))
    capsys.readouterr()
    for name in ("run.json", "kept.txt"):
        path = str(kept.rename(tmp_path / name))
        kept = Path(path)
        code = run(COMMANDS[command].line(path, tmp_path))
        said = capsys.readouterr()
        if command in ("show", "show --total"):
            assert code == 2
            assert "does not apply to a measured run" in said.err
            assert run(["show", path]) == 0
            assert "end to end" in capsys.readouterr().out
        elif command.startswith(("show", "plot", "compare", "report")):
            assert code == 0, said.err
        else:
            assert code == 2
            assert "a kept run of `layerscope measure`, which show, compare and plot" in said.err


@pytest.mark.parametrize("command", COMMANDS)
def test_a_report_is_read_by_show_compare_and_plot(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "account.json")
    assert run(["show", "lenet5", "-o", path]) == 0
    capsys.readouterr()
    code = run(COMMANDS[command].line(path, tmp_path))
    if command.startswith(("show", "plot", "compare", "report")):
        assert code == 0, capsys.readouterr().err
    else:
        assert code == 2
        assert "a report that layerscope wrote" in capsys.readouterr().err


def test_totals_alone_are_not_read_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "account.json")
    assert run(["show", "lenet5", "-o", path, "--total"]) == 0
    for command in COMMANDS.values():
        assert run(command.line(path, tmp_path)) in (2, 3)
        said = capsys.readouterr().err
        assert "a report that layerscope wrote" in said or "a report without its graph" in said


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line(
    mistake: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make, expected, words = MISTAKES[mistake]
    code = run(COMMANDS[command].line(make(tmp_path), tmp_path))
    said = capsys.readouterr()
    assert (code, said.out) == (expected, "")
    assert words in said.err
    assert said.err.count("\n") == 1


def test_a_missing_file_names_those_that_are_near(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text("resnet.onnx", "")(tmp_path)
    for wrong in (str(tmp_path / "resnt.onnx"), f"hf:{tmp_path}/resnt.onnx"):
        assert run(["show", wrong]) == 3
        assert f"did you mean {tmp_path}/resnet.onnx?" in capsys.readouterr().err


def test_all_commands_that_take_a_network_are_in_the_table() -> None:
    taken = {command.before[0] for command in COMMANDS.values()}
    # `audit` takes documents; its network is an option
    assert taken == set(ALL_COMMANDS) - {
        "machine", "zoo", "completion", "audit", "sweep", "results",
    }  # fmt: skip


def test_every_format_has_a_form(tmp_path: Path) -> None:
    found = set()
    for number, form in enumerate(FORMS.values()):
        folder = tmp_path / str(number)
        folder.mkdir()
        network = "" if form.torch else form.make(folder)
        if is_file(network):
            kind = recognise_file(network).format
            found |= {kind.name} if kind else set()
    assert found | {"pickle"} == {kind.name for kind in FORMATS}  # PyTorch writes pickles


def test_every_form_is_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", "--help"]) == 0
    shown = capsys.readouterr().out
    for form in (
        r"show vgg16\b", r"show \S+\.prototxt", r"show \S+\.caffemodel", r"show \S+\.mat\b",
        r"show \S+\.onnx", r"show \S+\.pt2", r"show \S+\.safetensors\b", r"\.index\.json",
        r"show \S+\.pt\b", r"show torchvision:\w+", r"show timm:\w+", r"show hf:\S+", r"\.py:\w+",
        r"show \w+(\.\w+)+:\w+", r"show run\.json", r"show \S+\.md\b", r"show \S+\.md#2",
    ):  # fmt: skip
        assert re.search(form, shown), form
