"""The column `alive`: bytes alive while a layer runs, the most of several layers, never a sum."""

from __future__ import annotations

import csv
import json
from io import StringIO

import pytest

from layerscope import Builder, Graph, Report, analyze
from layerscope.cli import run
from layerscope.report.columns import COLUMNS, cell
from layerscope.report.groups import grouped
from layerscope.report.numbers import AtLeast
from layerscope.report.tree import TableRow, layer_rows, total_row, tree_rows

Captured = pytest.CaptureFixture[str]
ALIVE = COLUMNS["alive"]


def skips() -> Graph:
    """Equal blocks, while more and more tensors are kept for the end: folded rows in the tree."""
    b = Builder("skips")
    x = b.input("data", (1, 2, 8))  # 64 bytes
    kept = []
    for n in range(3):
        with b.scope(f"block{n}"):
            x = b.relu(b.conv(x, 2, 3, padding=1, name="conv"), name="relu")
        kept.append(x)
    return b.build(b.concat(*kept, name="all"))


def alive(row: TableRow, report: Report) -> int:
    value = cell(ALIVE, row, report)
    assert type(value) is int
    return value


def test_by_hand_and_in_folded_rows() -> None:
    report = analyze(skips())
    # conv: input and output; relu: input and output; plus 0, 1, 2 tensors that are kept
    assert report.alive_bytes == {
        "block0.conv": 128, "block0.relu": 128, "block1.conv": 128, "block1.relu": 192,
        "block2.conv": 192, "block2.relu": 256, "all": 384,
    }  # fmt: skip
    (folded, *_, last) = tree_rows(report, 1)
    assert folded.times == 3
    assert cell(ALIVE, folded, report) == 256  # of the third copy
    assert cell(ALIVE, last, report) == 384
    apart = [cell(ALIVE, row, report) for row in tree_rows(report, 1, fold=False)]
    assert apart == [128, 192, 256, 384]
    by_op = {row.name: cell(ALIVE, row, report) for row in grouped(report, "op")}
    assert by_op == {"conv": 192, "relu": 256, "concat": 384}


@pytest.mark.parametrize("name", ["lenet5", "resnet18", "googlenet", "unet", "squeezenet1_0"])
@pytest.mark.parametrize("in_place", [False, True])
def test_the_total_is_the_peak(name: str, in_place: bool) -> None:
    report = analyze(name, in_place=in_place)
    peak = report.totals.peak_activation_bytes
    assert cell(ALIVE, total_row(report), report) == peak
    rows = [cell(ALIVE, row, report) for row in layer_rows(report)]
    assert rows == list(report.memory.alive_bytes)
    for depth in (1, 2, 3):
        for fold in (False, True):
            tops = [row for row in tree_rows(report, depth, fold=fold) if row.depth == 0]
            assert max(alive(row, report) for row in tops) == peak
    for by in ("op", "module", "layer"):
        assert max(alive(row, report) for row in grouped(report, by)) == peak
    layers = json.loads(report.to_json())["layers"]
    assert [layer["alive_bytes"] for layer in layers] == rows


def beside() -> Graph:
    """An unknown tensor is kept while a known layer runs."""
    b = Builder("beside")
    x = b.conv(b.input("data", (1, 1, 8)), 1, 1, name="conv")
    (odd,) = b.add_node("mystery", (x,), name="odd")
    y = b.relu(x, name="during")
    (end,) = b.add_node("mystery", (odd, y), name="end")
    z = b.relu(y, name="after")
    return b.build(z, b.relu(end, name="last"))


def test_what_is_unknown_is_a_bound() -> None:
    report = analyze(beside())
    rows = {row.name: cell(ALIVE, row, report) for row in layer_rows(report)}
    assert rows["conv"] == 64
    assert not isinstance(rows["conv"], AtLeast)
    assert rows["odd"] == rows["end"] == rows["last"] == "?"
    assert [str(rows[name]) for name in ("during", "after")] == ["≥64", "≥64"]
    total = cell(ALIVE, total_row(report), report)
    assert str(total) == f"≥{report.memory.peak_bytes}"
    assert not report.memory.complete
    layers = json.loads(report.to_json())["layers"]
    assert {each["name"]: each["alive_bytes"] for each in layers} == {
        "conv": 64, "odd": None, "during": None, "end": None, "after": None, "last": None,
    }  # fmt: skip


@pytest.mark.parametrize("form", ["text", "markdown", "latex", "html", "csv"])
def test_bounds_are_marked_in_every_form(form: str) -> None:
    report: Report = analyze(beside())
    text = getattr(report, f"to_{form}")(columns=("name", "alive")).replace(r"$\geq$", "≥")
    lines = [line for line in text.splitlines() if "during" in line]
    assert len(lines) == 1
    assert "≥64" in lines[0]
    assert "≥" not in next(line for line in text.splitlines() if "conv" in line)


def test_on_the_command_line(capsys: Captured) -> None:
    assert run(["show", "lenet5", "--columns", "name,alive", "--sort", "alive", "--top", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in (lines[0], lines[2], lines[3], lines[5])] == [
        ["layer", "alive"],
        ["tanh1", "37.6", "kB"],
        ["S2", "23.5", "kB"],
        ["total", "37.6", "kB"],
    ]


def test_ratio_is_the_share_of_parameters(capsys: Captured) -> None:
    texts = []
    for name in ("ratio", "params%"):
        texts.append(analyze("lenet5").to_text(columns=("name", name)))
        texts.append(analyze("lenet5").to_csv(columns=("name", name), sort=name))
    assert texts[:2] == texts[2:]
    rows = list(csv.DictReader(StringIO(texts[1])))
    share = 120 * (5 * 5 * 16 + 1) / 61_706
    assert rows[0] == {"name": "C5", "params%": f"{share:.6g}"}
    assert run(["show", "vgg16", "--columns", "name,ratios"]) == 2
    assert "did you mean ratio" in capsys.readouterr().err
