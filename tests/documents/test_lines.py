"""Layers as lines with labels, and numbered lists."""

from __future__ import annotations

from layerscope.documents import lines
from layerscope.documents.types import Table
from tests.documents.shown import check_positions, grid


def only(document: str) -> Table:
    (table,) = lines.tables(document.split("\n"))
    check_positions(table, document, heading=False)  # some labels are in no line
    return table


CS231N = """```
INPUT: [224x224x3]        memory:  224*224*3=150K   weights: 0
CONV3-64: [224x224x64]  memory:  224*224*64=3.2M   weights: (3*3*3)*64 = 1,728
FC: [1x1x1000]  memory:  1000 weights: 4096*1000 = 4,096,000

TOTAL memory: 24M * 4 bytes ~= 93MB / image (only forward! ~*2 for bwd)
TOTAL params: 138M parameters
```
text"""


def test_labels_are_headings_and_totals_are_rows() -> None:
    table = only(CS231N)
    assert grid(table) == [
        ["name", "shape", "memory", "weights", "params"],
        ["INPUT", "[224x224x3]", "224*224*3=150K", "0", ""],
        ["CONV3-64", "[224x224x64]", "224*224*64=3.2M", "(3*3*3)*64 = 1,728", ""],
        ["FC", "[1x1x1000]", "1000", "4096*1000 = 4,096,000", ""],
        ["TOTAL", "", "24M * 4 bytes ~= 93MB / image (only forward! ~*2 for bwd)", "", ""],
        ["TOTAL", "", "", "", "138M parameters"],
    ]
    assert (table.form, table.line, table.last) == ("lines", 2, 7)


def test_a_numbered_list() -> None:
    table = only(
        "0. [227 * 227 * 3]INPUT\n1. [55 * 55 * 96]CONV1:96 11 * 11 filters at stride 4,pad 0\n"
        "11. [4096]FC1:4096 neurons\n\ntext"
    )
    assert grid(table) == [
        ["index", "name", "shape", "description"],
        ["0", "INPUT", "[227 * 227 * 3]", ""],
        ["1", "CONV1", "[55 * 55 * 96]", "96 11 * 11 filters at stride 4,pad 0"],
        ["11", "FC1", "[4096]", "4096 neurons"],
    ]


def test_other_lines_are_no_layers() -> None:
    for document in (
        "one: [3x3]\nprose",
        "1. AlexNet\n2. VGG\n",
        "see [1] the paper\nand [link](http://x) there: more",
        "a: b\nc: d",
        "x" * 2_000 + ": [3x3]\n" + "x" * 2_000 + ": [3x3]",
    ):
        assert list(lines.tables(document.split("\n"))) == []
