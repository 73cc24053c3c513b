"""The audit of a DagNN's tables: every kind of figure in it."""

from __future__ import annotations

import pytest

from layerscope.auditing.document import audit_text
from tests.auditing.test_mutations import Change, document, figures_of, verdict

STYLES = ("matconvnet.dag", "matconvnet.dag.csv", "matconvnet.dag.latex")
# the beginning of a line, the right text and a wrong one, and the row and title that are named
WRONG = [
    ("dims", "28x28x6x1", "28x25x6x1", "C1", "dims"),
    ("dims", "5x5x6x16", "5x5x8x16", "C3f", "dims"),
    ("mem", "9KB", "7KB", "C3f", "mem"),
    ("mem", "188KB", "168KB", "C5f", "mem"),
    ("fanin", "0", "3", "data", "fanin"),
    ("size", "14", "15", "C3", "size"),
    ("offset", "7.5", "7.9", "C3", "offset"),
    ("vars", "62KB", "92KB", "vars", "vars"),
    ("total", "303KB", "503KB", "total", "total"),
]


@pytest.mark.parametrize("notation", STYLES)
@pytest.mark.parametrize("change", WRONG)
def test_wrong_figures(notation: str, change: tuple[str, str, str, str, str]) -> None:
    title, right, wrong, row, column = change
    lines = document("lenet5", notation).splitlines()
    at = next(
        n for n, line in enumerate(lines)
        if line.strip(' "').startswith(title) and right in line
    )  # fmt: skip
    lines[at] = lines[at].replace(right, wrong, 1)
    found = audit_text("\n".join(lines), "changed").findings
    assert [(f.line, f.row, f.column) for f in found] == [(at + 1, row, column)]


def test_a_print_beside_another_table_is_table_1() -> None:
    text = document("lenet5", "matconvnet.dag") + "\n\n" + document("lenet5", "layersheet")
    found = audit_text(text, "two")
    assert found.tables[0].title == "DagNN"
    assert len(found.tables) == 2
    assert not found.findings


# network, variable or parameter, title, the right text and a wrong one, and why it is hard
PAIRS = [
    ("lenet5", "S4", "pad", "0", "1", "a pool prints no kernel: another one gives its output"),
    ("vgg11", "features.20", "pad", "0", "2", "the same, and its field then"),
    (
        "alexnet",
        "features.11",
        "stride",
        "16",
        "14",
        "the kernel of the pool below follows from it",
    ),
    ("vgg11", "classifier.0", "pad", "0", "3", "its filters have a rounded size"),
    ("vgg11", "classifier.0f", "mem", "392MB", "992MB", "of a rounded size"),
    ("vgg11", "classifier.0f", "dims", "1x1x2.509e+04x4096", "1x1x2.509e+24x4096", "rounded"),
    ("vgg11", "flatten", "dims", "1x1x2.509e+04x1", "1x1x6.509e+04x1", "rounded, of a variable"),
    ("alexnet", "classifier.6f", "dims", "1x1x4096x1000", "1x1x4096x1070", "two cells contradict"),
    ("alexnet", "params", "params", "233MB", "231MB", "the column adds up to both, the total not"),
]


@pytest.mark.parametrize("change", PAIRS)
def test_one_finding_names_the_cell_or_its_pair(change: tuple[str, ...]) -> None:
    network, label, title, right, wrong, _ = change
    text = document(network, "matconvnet.dag")
    cell = next(
        cell for _, _, name, cell, heading in figures_of(text, "matconvnet.dag")
        if (name, heading, cell.text) == (label, title, right)
    )  # fmt: skip
    lines = text.splitlines()
    line, at = lines[cell.line - 1], cell.column - 1
    assert line[at:].startswith(right)
    lines[cell.line - 1] = line[:at] + wrong + line[at + len(right) :]
    new = "\n".join(lines)
    assert verdict(Change(new, 0, title, 0, label, cell, wrong)) == "the cell"


def test_the_memory_of_a_rounded_size_is_compared_once() -> None:
    """128 positions of 50,257 words are printed as 128x1x5.026e+04x1."""
    text = document("gpt2", "matconvnet.dag")
    assert "5.026e+04" in text
    assert audit_text(text, "gpt2").findings == ()


def test_a_total_far_off_is_blamed_alone() -> None:
    """No other sum of parameters or variables that the columns allow would give it."""
    text = document("alexnet", "matconvnet.dag").replace("238MB", "538MB")
    (found,) = audit_text(text, "changed").findings
    assert (found.row, found.also) == ("total", ())
