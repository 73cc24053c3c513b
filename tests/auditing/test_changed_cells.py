"""Single cells of our own tables that are changed: the cell is named, alone or with its equals."""

from __future__ import annotations

import pytest

from layerscope.auditing.document import audit_text
from layerscope.auditing.fix import fix
from tests.auditing.test_mutations import document, of_figures

# network, notation, line, the right text and the wrong one, column
CHANGES = [
    # the kernel and the parameters contradict each other; output sizes below are computed from it
    ("vgg11", "backbone", 15, "|   3   |", "|   2   |", "ksize"),
    ("vgg11", "backbone", 4, "|   3   |", "|   2   |", "ksize"),
    # a pool fits no more, because of the input: all other rows are squares
    ("vgg11", "backbone", 3, "224$", "226$", "size"),
    # the rows that follow from a wrong row have no input either
    ("resnet18", "backbone", 4, "$112", "$116", "size"),
    ("resnet18", "backbone", 5, "56$", "76$", "size"),
    # (224 + 2 x 2 - 7) / 2 + 1 = 111.5, and convolutions count whole windows
    ("resnet18", "backbone", 4, "|    3    |", "|    2    |", "padding"),
    ("squeezenet1_1", "backbone", 5, "|   2    |", "|   6    |", "stride"),
    # outputs behind a concatenation have the size of its inputs
    ("squeezenet1_1", "backbone", 22, "190K", "790K", "memory(B)"),
    # groups are inferred from the wrong number of channels
    ("lenet5", "backbone", 3, "1      |", "3      |", "**channel**"),
    # 28 x 30 = 840 is no attention with a third of 84 inputs
    ("lenet5", "cs231n.md", 10, "| 10", "| 30", "Number of Activations (Memory)"),
    # a kernel that is no square, beside operations that it contradicts
    ("alexnet", "darknet", 2, "11 x11", "31 x11", "size/strd"),
    # additions and concatenations print their output as their input
    ("resnet18", "netscope", 61, "| 512 | 7x7 | 512", "| 515 | 7x7 | 512", "Input CH"),
    ("squeezenet1_1", "netscope", 20, "| 128 | 55x55 | 128", "| 126 | 55x55 | 128", "Input CH"),
    # an earlier output but for one axis: the row above says nothing of the others
    ("resnet18", "netscope", 24, "| 64 |", "| 34 |", "Input CH"),
    ("squeezenet1_1", "netscope", 62, "13x13", "43x13", "Input DIM"),
    # a row further below takes this output
    ("squeezenet1_1", "cs231n", 4, "[55x55x16]", "[55x55x18]", "shape"),
    # strides and kernels whose window fits no row
    ("alexnet", "layersheet", 4, "| 4               | 4", "| 2               | 4",
     "Stride (Height)"),
    ("resnet18", "layersheet", 30, "| 3                   | 3", "| 6                   | 3",
     "Patch Size (Height)"),
    ("squeezenet1_1", "darknet.2018", 2, "224 x 224", "124 x 224", "input"),
    # activations and norms take one element, also where the field is the whole input
    ("lenet5", "matconvnet.csv", 4, '"1","1","1","1",', '"6","1","1","1",', "support"),
    ("lenet5", "matconvnet.csv", 8, '"0","0","0","0",', '"2","0","0","0",', "pad"),
    ("resnet18", "matconvnet.csv", 7, '"2","1","1","2"', '"2","4","1","2"', "stride"),
    # the output size is not printed: the memory contradicts the stride or the padding
    ("resnet18", "backbone", 13, "|   1    |", "|   3    |", "stride"),
    ("resnet18", "backbone", 30, "|    1    |", "|    6    |", "padding"),
    # 960 channels of three rows without a join explain the parameters with 34 filters
    ("squeezenet1_1", "backbone", 36, "|     64 ", "|     34 ", "**channel**"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "notation", "number", "right", "wrong", "column"), CHANGES)
def test_a_changed_cell(
    name: str, notation: str, number: int, right: str, wrong: str, column: str
) -> None:
    lines = document(name, notation).splitlines()
    assert right in lines[number - 1]
    lines[number - 1] = lines[number - 1].replace(right, wrong, 1)
    (finding,) = of_figures(audit_text("\n".join(lines), "changed").findings)
    named = (f"{finding.column} in line {finding.line}", *finding.also)
    assert f"{column} in line {number}" in named


def test_an_input_that_the_figures_of_its_row_show() -> None:
    """The row above has 192 channels, and the parameters show the 48 of an earlier row."""
    text = document("squeezenet1_1", "netscope")
    lines = text.splitlines()
    number = next(n for n, line in enumerate(lines) if line.startswith("| 46 |"))
    assert "| 48 |" in lines[number]
    lines[number] = lines[number].replace("| 48 |", "| 38 |", 1)
    (finding,) = audit_text("\n".join(lines), "changed").findings
    assert (finding.column, finding.printed, finding.expected) == ("Input CH", "38", "48")
    assert fix("\n".join(lines), "changed").text.splitlines() == text.splitlines()


def test_the_right_input_is_that_of_the_earlier_row() -> None:
    """The row above `layer2.0.conv1` has 128 channels, and its input has 64."""
    text = document("resnet18", "netscope").replace("| 64 | 56x56 | 128", "| 34 | 56x56 | 128", 1)
    (finding,) = of_figures(audit_text(text, "changed").findings)
    assert (finding.printed, finding.expected) == ("34", "64")


def test_a_kernel_that_a_wrong_cell_gives_makes_no_second_finding() -> None:
    """With 5 input channels the nearest kernel is 1, which gives no output of 28 x 28."""
    text = document("lenet5", "netscope")
    right, wrong = "| C1 | Convolution | 1 |", "| C1 | Convolution | 5 |"
    assert right in text
    found = audit_text(text.replace(right, wrong), "changed").findings
    assert [(finding.column, finding.expected) for finding in found] == [("Input CH", "1")]


FORMULAS = """
| layer | output | weights |
|---|---|---|
| input | 28x28x1 | 0 |
| conv3-8 | 26x26x8 | (3*3*1)*8 = 72 |
| conv3-16 | 24x24x16 | (3*3*8)*16 = 1,152 |
| conv3-32 | 22x22x32 | (3*3*16)*32 = 4,608 |
| conv3-64 | 20x20x64 | (3*3*32)*64 = 18,432 |
| total | | 24,264 |
"""


def test_the_total_shows_that_a_formula_is_wrong_and_not_its_result() -> None:
    assert audit_text(FORMULAS, "right").findings == ()
    wrong = FORMULAS.replace("(3*3*16)*32", "(3*7*16)*32")
    (finding,) = audit_text(wrong, "changed").findings
    assert (finding.column, finding.expected) == ("weights", "4,608")
    assert fix(wrong, "changed").text == FORMULAS
