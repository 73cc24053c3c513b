"""Documents as files: forms, several networks, messages, limits, and files of other formats."""

from __future__ import annotations

import io
import sys
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from layerscope import analyze, load
from layerscope.cli import run
from layerscope.errors import FormatError, NoTable, UsageError
from layerscope.formats import recognise_file
from layerscope.formats.document import tables
from layerscope.limits import DOCUMENT_ROWS
from tests.formats.caffe.test_caffemodel import LENET
from tests.formats.network_forms import TABLE

Captured = pytest.CaptureFixture[str]
CELLS = (
    ("layer", "kernel", "output", "params"),
    ("input", "", "3x32x32", ""),
    ("conv1", "3x3", "16x32x32", "448"),
    ("pool1", "2x2", "16x16x16", "0"),
    ("fc", "", "10", "40,970"),
)
FORMS = {
    "notes.md": "\n".join(
        ["| " + " | ".join(CELLS[0]) + " |", "|---|---|---|---|"]
        + ["| " + " | ".join(row) + " |" for row in CELLS[1:]]
    ),
    "notes.csv": "\n".join(",".join(f'"{cell}"' for cell in row) for row in CELLS),
    "notes.tex": "\\begin{tabular}{llll}\n"
    + "\n".join(" & ".join(row) + " \\\\" for row in CELLS)
    + "\n\\end{tabular}\n",
    "notes.html": "<!DOCTYPE html><html><body><table>"
    + "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in CELLS)
    + "</table></body></html>",
    "run.log": "```\n"
    + "\n".join("".join(cell.ljust(14) for cell in row).rstrip() for row in CELLS)
    + "\n```\n",
}


def written(folder: Path, name: str, text: str, coding: str = "utf-8") -> str:
    (folder / name).write_bytes(text.encode(coding))
    return str(folder / name)


@pytest.mark.parametrize("name", FORMS)
def test_a_table_in_any_form(name: str, tmp_path: Path) -> None:
    report = analyze(written(tmp_path, name, FORMS[name]))
    assert [(layer.op, layer.params) for layer in report.layers] == [
        ("conv", 448), ("max_pool", 0), ("linear", 40_970),
    ]  # fmt: skip
    assert report.graph.nodes[0].source is not None
    assert str(report.graph.nodes[0].source).startswith(str(tmp_path / name) + ":")


@pytest.mark.parametrize("coding", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark(coding: str, tmp_path: Path) -> None:
    path = written(tmp_path, "notes.md", FORMS["notes.md"], coding)
    assert analyze(path).totals.params == 41_418


def test_lines_of_sources(tmp_path: Path) -> None:
    graph = load(written(tmp_path, "notes.md", "# Title\n\n" + FORMS["notes.md"]))
    assert [node.source.line for node in graph.nodes if node.source] == [6, 7, 8]


def test_networks_by_number(tmp_path: Path) -> None:
    other = FORMS["notes.md"].replace("10 | 40,970", "20 | 81,940")
    path = written(tmp_path, "notes.md", f"{FORMS['notes.md']}\n\nProse.\n\n{other}\n")
    assert load(path).nodes[-1].attributes.out_features == 10
    assert load(f"{path}#1").nodes[-1].attributes.out_features == 10
    second = load(f"{path}#2")
    assert second.nodes[-1].attributes.out_features == 20
    assert any("this is #2; #1 from line 1" in note for note in second.notes)
    with pytest.raises(UsageError, match="network #3, and the document has 2 networks"):
        load(f"{path}#3")


def test_a_number_is_for_documents(tmp_path: Path) -> None:
    path = written(tmp_path, "net.prototxt", LENET)
    with pytest.raises(UsageError, match="# gives the number of a network in a document"):
        load(f"{path}#1")
    hashed = written(tmp_path, "notes.md#2", FORMS["notes.md"])  # the name of a file
    assert analyze(hashed).totals.params == 41_418


def test_files_of_other_formats_come_first(tmp_path: Path) -> None:
    kind = recognise_file(written(tmp_path, "net.txt", LENET)).format
    assert kind is not None
    assert kind.name == "caffe"


@pytest.mark.parametrize("text", ["", "hello\n", "| a | b |\n|---|---|\n| 1 | 2 |\n",
                                  "<html><body>404</body></html>"])  # fmt: skip
def test_what_is_no_network(text: str, tmp_path: Path, capsys: Captured) -> None:
    path = written(tmp_path, "notes.html" if "<" in text else "notes.md", text)
    assert run(["show", path]) == 3
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    if text:
        with pytest.raises(NoTable):
            load(path)
        assert "looked for a table" in said
        assert "headings that are recognised" in said


def test_broken_bytes(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "notes.md").write_bytes(FORMS["notes.md"].encode() + b" " * 5000 + b"\xe9\n")
    assert run(["show", str(tmp_path / "notes.md")]) == 3
    assert "byte 0xe9 is no UTF-8" in capsys.readouterr().err


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    stream = io.TextIOWrapper(io.BytesIO(TABLE.encode()))
    monkeypatch.setattr(sys, "stdin", stream)
    assert run(["show", "-", "--total"]) == 0
    assert "8,806 params" in capsys.readouterr().out


def test_names_are_escaped(tmp_path: Path, capsys: Captured) -> None:
    text = FORMS["notes.md"].replace("conv1", "conv\x1b[31m1")
    assert run(["show", written(tmp_path, "notes.md", text)]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "conv\\x1b[31m1" in shown


def table_of(rows: int) -> str:
    lines = ["| layer | kernel | output | params |", "|---|---|---|---|", "| input | | 8x8x8 | |"]
    lines += [f"| conv{n} | 3x3 | 8x8x8 | {584} |" for n in range(rows)]
    return "\n".join(lines) + "\n"


def test_many_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = load(written(tmp_path, "notes.md", table_of(2_000)))
    assert len(graph.nodes) == 2_000
    assert DOCUMENT_ROWS.most == 10_000
    monkeypatch.setattr(tables, "DOCUMENT_ROWS", replace(DOCUMENT_ROWS, most=100))
    with pytest.raises(
        FormatError, match=r"notes.md: line 1: 101 rows .* limit DOCUMENT_ROWS is 100"
    ):
        load(written(tmp_path, "notes.md", table_of(100)))


def test_time_grows_with_the_rows(tmp_path: Path) -> None:
    """Not with their square: ten times the rows take less than thirty times as long."""

    def seconds(rows: int) -> float:
        path = written(tmp_path, "notes.md", table_of(rows))
        tries = []
        for _ in range(3):  # a shared machine is slow for a second at a time
            start = time.process_time()
            load(path)
            tries.append(time.process_time() - start)
        return min(tries)

    seconds(10)
    assert seconds(2_000) < 30 * max(seconds(200), 0.02)


def test_prose_is_read_in_time(tmp_path: Path) -> None:
    text = "All work and no play FWD x  FWD_AI input out\n" * 20_000
    start = time.process_time()
    with pytest.raises(NoTable):
        load(written(tmp_path, "notes.txt", text))
    assert time.process_time() - start < 60
