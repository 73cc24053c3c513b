"""Values between commas, semicolons and tabs."""

from __future__ import annotations

import pytest

from layerscope.documents import csv, reader
from layerscope.documents.types import Table
from tests.documents.shown import check_positions, grid


def only(document: str) -> Table:
    (table,) = csv.tables(document.split("\n"))
    check_positions(table, document)
    return table


@pytest.mark.parametrize("sign", [",", ";", "\t"])
def test_a_whole_document(sign: str) -> None:
    rows = [["Layer", "Output Shape", "Params"], ["conv", "64x55x55", "9"], ["fc", "", "10"]]
    table = only("\n".join(map(sign.join, rows)) + "\n")
    assert grid(table) == rows
    assert (table.form, table.line, table.last) == ("csv", 1, 3)


def test_quoted_cells() -> None:
    table = only('layer,output,params\n"a ""b""","[1, 2]","1,728"\n"two\nlines",x,3\nz,y,4')
    assert grid(table)[1:] == [
        ['a "b"', "[1, 2]", "1,728"], ["two\nlines", "x", "3"], ["z", "y", "4"],
    ]  # fmt: skip
    assert [row.line for row in table.rows] == [2, 3, 5]
    assert (table.rows[1].cells[1].line, table.rows[1].cells[1].column) == (4, 8)


def test_ragged_rows_blank_lines_and_dots() -> None:
    table = only(
        "layer,output,params\na,1,2\nb,3\nc,4,5,6\n...\nd,7,8\n\ntotal,9,10\n\nprose, and so on"
    )
    assert [row[0] for row in grid(table)[1:]] == ["a", "b", "c", "d", "total"]
    assert table.left_out == (5,)


def test_a_fenced_block() -> None:
    (table,) = reader.read("# Costs\n\n```csv\nlayer,params\nconv,9\n```\ntext, more\n")
    assert grid(table) == [["layer", "params"], ["conv", "9"]]
    assert (table.title, table.line) == ("Costs", 4)


@pytest.mark.parametrize(
    "document",
    [
        "name, type and size\nwere written, and so, on, and, on\nfor, ever, and, ever\n",
        "layer,params",
        "a,b\n1,2",
        "one,layer,three,four\n1,2,3,4",
        "x\nlayer,params\nconv,9",
    ],
)
def test_prose_and_other_values_are_no_table(document: str) -> None:
    assert list(csv.tables(document.split("\n"))) == []


def test_a_quote_that_is_not_closed() -> None:
    assert [row[-1] for row in grid(only('layer,params\n"a,1\nb,2\nc,3'))[1:]] == ["1", "2", "3"]
