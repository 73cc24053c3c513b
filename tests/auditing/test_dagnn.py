"""The audit of a DagNN's tables: every kind of figure in it."""

from __future__ import annotations

import pytest

from layerscope.auditing.document import audit_text
from tests.auditing.test_mutations import document

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
