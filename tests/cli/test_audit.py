"""layerscope audit: exit codes, forms, several documents, standard input, --fix."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

import pytest

from layerscope.cli import run
from layerscope.cli.audit import FORMS
from tests.auditing.documents import CLEAN, WRONG

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Documents with and without findings, and one without a table."""
    (tmp_path / "clean.md").write_text(CLEAN)
    (tmp_path / "wrong.md").write_text(WRONG)
    (tmp_path / "prose.md").write_text("No table here.\n")
    (tmp_path / "lstm.md").write_text(
        "| layer | type | params |\n|---|---|---|\n| a | LSTM | 12 |\n"
    )
    (tmp_path / "latin.md").write_bytes(CLEAN.encode() + b"\xe9\n")
    return tmp_path


def standard_input(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["clean.md"], 0, ""),
        (["wrong.md"], 1, "wrong.md: 1 finding in 1 table"),
        (["clean.md", "wrong.md"], 1, "2 documents: 1 finding in 2 tables"),
        (["prose.md"], 3, "prose.md: no table of layers"),
        (["clean.md", "prose.md"], 0, ""),
        (["prose.md", "prose.md"], 3, "no table of layers"),
        (["latin.md"], 3, "is no UTF-8"),
        (["none.md"], 3, "none.md: No such file"),
        (["."], 3, "directory"),
        ([], 2, "Missing argument"),
        (["clean.md", "--table", "2"], 2, "table 2, and the document has 1"),
        (["clean.md", "--table", "0"], 2, "table"),
        (["clean.md", "--table", "x"], 2, "table"),
        (["clean.md", "--like", "netscope"], 2, "--like needs --against"),
        (["clean.md", "--against", "nobody"], 2, "unknown network 'nobody'"),
        (["clean.md", "--against", "lenet5", "--like", "no"], 2, "unknown convention 'no'"),
        (["clean.md", "--as", "yaml"], 2, "unknown form 'yaml'"),
        (["clean.md", "--fix", "--as", "json"], 2, "--fix prints text"),
        (["clean.md", "wrong.md", "--fix", "-o", "x.md"], 2, "--fix with -o takes one DOC"),
        (["wrong.md", "--fix", "-o", "wrong.md"], 2, "never writes"),
        (["wrong.md", "--fix", "-o", "./wrong.md"], 2, "never writes"),
        (["none.md", "--fix"], 3, "none.md: No such file"),
        (["prose.md", "--fix"], 3, "no table of layers"),
        (["lstm.md", "--fix", "--against", "alexnet"], 3, "no row is a layer of alexnet"),
        (["wrong.md", "--fix", "-o", "-"], 2, "--fix writes a file"),
    ],
)  # fmt: skip
def test_exit_codes(
    args: list[str], code: int, message: str, folder: Path, capsys: Captured,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(folder)
    assert run(["audit", *args]) == code
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == (code != 0)
    assert (folder / "wrong.md").read_text() == WRONG


@pytest.mark.parametrize("form", FORMS)
def test_every_form_has_the_finding(form: str, folder: Path, capsys: Captured) -> None:
    assert run(["audit", str(folder / "wrong.md"), "--as", form]) == 1
    text = capsys.readouterr().out
    assert "4,460" in text
    assert "4,640" in text


def test_standard_input(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    standard_input(WRONG, monkeypatch)
    assert run(["audit", "-", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["document"] == "standard input"
    assert document["findings"][0]["document"] == "standard input"
    standard_input(WRONG, monkeypatch)
    assert run(["audit", "-", "-"]) == 2
    assert "standard input is given twice" in capsys.readouterr().err
    standard_input(WRONG, monkeypatch)
    assert run(["audit", "-", "--fix"]) == 2
    assert "--fix of standard input needs -o" in capsys.readouterr().err


def test_a_note_names_documents_without_a_table(folder: Path, capsys: Captured) -> None:
    assert run(["audit", str(folder / "clean.md"), str(folder / "prose.md")]) == 0
    assert "prose.md: no table of layers" in capsys.readouterr().out


def test_a_wide_table_is_audited_against_a_network(folder: Path, capsys: Captured) -> None:
    table = str(folder / "alexnet.txt")
    assert run(["show", "alexnet", "--as", "netscope", "-o", table]) == 0
    assert run(["audit", table, "--against", "alexnet"]) == 0
    assert "rows are layers of alexnet" in capsys.readouterr().out
    assert run(["audit", table, "--against", "vgg16"]) == 1


# --fix


def test_fix_writes_a_copy(folder: Path, capsys: Captured) -> None:
    assert run(["audit", str(folder / "wrong.md"), "--fix"]) == 0
    assert (folder / "wrong.fixed.md").read_text() == CLEAN
    assert (folder / "wrong.md").read_text() == WRONG
    text = capsys.readouterr().out
    assert "1 cell changed" in text
    assert "4,460" in text
    assert "4,640" in text


def test_fix_writes_the_file_that_is_named(folder: Path) -> None:
    target = folder / "corrected.txt"
    assert run(["audit", str(folder / "wrong.md"), "--fix", "-o", str(target)]) == 0
    assert target.read_text() == CLEAN
    assert not (folder / "wrong.fixed.md").exists()


def test_fix_writes_nothing_for_a_right_document(folder: Path, capsys: Captured) -> None:
    before = sorted(folder.iterdir())
    assert run(["audit", str(folder / "clean.md"), "--fix"]) == 0
    assert "nothing was changed" in capsys.readouterr().out
    assert sorted(folder.iterdir()) == before


def test_fix_says_what_it_could_not_change(folder: Path, capsys: Captured) -> None:
    ragged = WRONG.replace("| fc | fc | | | | 10 |", "| fc | fc | | | 10 |")
    (folder / "ragged.md").write_text(ragged)
    assert run(["audit", str(folder / "ragged.md"), "--fix"]) == 1
    captured = capsys.readouterr()
    assert "Not changed: the text does not show which cell" in " ".join(captured.out.split())
    assert "not changed" in captured.err


def test_fix_of_several_documents(folder: Path) -> None:
    (folder / "again.csv.md").write_text(WRONG)
    assert run(["audit", str(folder / "wrong.md"), str(folder / "again.csv.md"), "--fix"]) == 0
    assert (folder / "wrong.fixed.md").read_text() == CLEAN
    assert (folder / "again.csv.fixed.md").read_text() == CLEAN


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_fix_never_writes_the_original_through_a_link(
    link: object, folder: Path, capsys: Captured
) -> None:
    assert callable(link)
    link(folder / "wrong.md", folder / "wrong.fixed.md")
    assert run(["audit", str(folder / "wrong.md"), "--fix"]) == 2
    assert "never writes" in capsys.readouterr().err
    assert (folder / "wrong.md").read_text() == WRONG


def test_fix_keeps_bytes_that_a_terminal_would_interpret(folder: Path) -> None:
    (folder / "odd.md").write_text("\x1b[31m\u202e\n" + WRONG, encoding="utf-8")
    assert run(["audit", str(folder / "odd.md"), "--fix"]) == 0
    assert (folder / "odd.fixed.md").read_text(encoding="utf-8") == "\x1b[31m\u202e\n" + CLEAN
