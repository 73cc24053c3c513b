"""Tables of torchstat, and the trees of fvcore and ptflops: wrong cells are named."""

from __future__ import annotations

import re

import pytest

from layerscope import analyze
from layerscope.auditing.document import audit_text
from layerscope.auditing.torchstat_rules import explains
from layerscope.notations import NOTATIONS, write


def document(name: str, notation: str) -> str:
    return write(analyze(name, like=NOTATIONS[notation].like), notation)


# notation, text, wrong text, column, expected
WRONG = [
    ("torchstat", "2416.0", "2476.0", "params", "2,416"),
    ("torchstat", "122,304.0", "122,804.0", "Flops", "122,304"),
    ("torchstat", "235,200.0", "835,200.0", "MAdd", "235,200"),
    ("torchstat", "4720.0", "4730.0", "MemRead(B)", "4,720"),
    ("torchstat", "6  28  28", "6  28  29", "output shape", "6 28 28"),
    ("torchstat", "16   5   5  120   1   1", "16   5   6  120   1   1", "input shape", "16 5 5"),
    ("torchstat", "315632.0 + ?", "315638.0 + ?", "MemR+W(B)", "315,632"),
    ("fvcore", "2.416K", "2.516K", "#parameters or shape", "2,416"),
    ("ptflops", "3.915% Params", "3.515% Params", "% Params", None),
    ("ptflops", "2.42 k", "2.52 k", "Params", "2,416"),
    ("ptflops", "6, 16, kernel_size=(5, 5)", "6, 16, kernel_size=(5, 7)", "arguments", None),
]


@pytest.mark.parametrize(("notation", "text", "wrong", "column", "expected"), WRONG)
def test_the_wrong_cell_is_named(
    notation: str, text: str, wrong: str, column: str, expected: str | None
) -> None:
    right = document("lenet5", notation)
    assert text in right
    assert audit_text(right, "right").findings == ()
    (found,) = audit_text(right.replace(text, wrong, 1), "wrong").findings
    assert found.column == column
    assert found.also == ()
    assert found.line == 1 + right[: right.index(text)].count("\n")
    if expected is not None:
        assert found.expected == expected


@pytest.mark.parametrize("notation", ["torchstat", "fvcore", "ptflops"])
@pytest.mark.parametrize("name", ["unet", "regnet_y_400mf", "convnext_tiny", "vit_b_16"])
def test_what_we_write_of_other_networks_has_no_findings(name: str, notation: str) -> None:
    assert audit_text(document(name, notation), name).findings == ()


def test_columns_say_how_much_is_explained() -> None:
    (table,) = audit_text(document("lenet5", "ptflops"), "x").tables
    assert [(column.heading, column.explained == column.of > 0) for column in table.columns] == [
        ("Params", True), ("% Params", True), ("MACs", True), ("% MACs", True),
    ]  # fmt: skip


def test_a_row_follows_from_the_rules_of_one_kind() -> None:
    conv = {"params": 156, "flops": 122304, "madd": 235200, "read": 4720, "written": 18816}
    assert explains((1, 32, 32), (6, 28, 28), conv)
    for name in conv:
        assert not explains((1, 32, 32), (6, 28, 28), {**conv, name: conv[name] + 1}), name
        assert explains((1, 32, 32), (6, 28, 28), {**conv, name: None}), name


def test_a_table_of_other_rules_is_not_judged() -> None:
    text = document("vgg11", "torchstat")
    audit = audit_text(re.sub(r"\d\.0 ", "7.0 ", text), "x")
    assert audit.findings == ()
    assert "not checked" in audit.tables[0].notes[0]
    assert {column.explained for column in audit.tables[0].columns} == {0}


def test_large_tables_take_bounded_time() -> None:
    head, *rows = document("vgg11", "torchstat").splitlines()
    wrong = [row.replace("MAdd", "").replace(",", ",1", 1) for row in rows[:20]]
    text = "\n".join([head, *(rows[:25] * 20), *(wrong * 12)])
    audit = audit_text(text, "large")
    assert len(audit.findings) <= 200
    fvcore = "| module | #parameters or shape | #flops |\n|:--|:--|:--|\n| model | 9 | 9 |\n"
    wide = fvcore + "|  a | 7 | 7 |\n" * 1000
    assert len(audit_text(wide, "wide").findings) <= 2
    deep = fvcore + "".join(f"| {' ' * (1 + n % 40)}a | {n} | 1 |\n" for n in range(1000))
    assert len(audit_text(deep, "deep").findings) <= 200
