"""One wrong number of a Boda profile is one finding, and names what it should be."""

from __future__ import annotations

import re

import pytest

from layerscope.auditing.document import audit_text
from tests.auditing.test_mutations import document

SHAPE = re.compile(r" (input|filts|out) (\d+(?:\*\d+)+)=")


def shapes(name: str) -> list[tuple[int, str, str]]:
    """Lines, columns and shapes of a profile."""
    lines = document(name, "boda").splitlines()
    return [(n, m[1], m[2]) for n, line in enumerate(lines, 1) for m in SHAPE.finditer(line)]


@pytest.mark.parametrize("axis", [1, 2, 3])
@pytest.mark.parametrize(("line", "column", "shape"), shapes("lenet5")[:9])
def test_a_wrong_size_is_one_finding(line: int, column: str, shape: str, axis: int) -> None:
    sizes = shape.split("*")
    wrong = "*".join([*sizes[:axis], str(int(sizes[axis]) * 3 + 1), *sizes[axis + 1 :]])
    lines = document("lenet5", "boda").splitlines()
    lines[line - 1] = lines[line - 1].replace(f" {column} {shape}=", f" {column} {wrong}=", 1)
    (found,) = audit_text("\n".join(lines), "changed").findings
    here = (found.line, found.column) == (line, column)
    assert here or f"{column} in line {line}" in found.also
    if not found.also:
        assert (found.printed, found.expected) == (wrong, shape)


def test_two_wrong_numbers_are_two_findings() -> None:
    text = document("lenet5", "boda")
    wrong = text.replace("out 1*6*28*28", "out 1*6*28*23", 1)
    wrong = wrong.replace("filts 84*120*1*1", "filts 84*130*1*1", 1)
    found = audit_text(wrong, "changed").findings
    assert [(f.row, f.column, f.expected) for f in found] == [
        ("C1", "out", "1*6*28*28"), ("F6", "filts", "84*120*1*1"),
    ]  # fmt: skip
