"""Tables with bars: Markdown, edges, boxes, dots, wrapped rows."""

from __future__ import annotations

from layerscope.documents import pipes
from layerscope.documents.types import Table
from tests.documents.shown import check_positions, grid


def only(document: str) -> Table:
    (table,) = pipes.tables(document.split("\n"))
    check_positions(table, document)
    return table


def test_a_markdown_table_keeps_the_cells_beyond_its_heading() -> None:
    table = only("text\n| Name | Params |\n| :--- | ---: |\n| conv | 9 | more |\n| fc |\n\ntext")
    assert grid(table) == [["Name", "Params"], ["conv", "9", "more"], ["fc"]]
    assert (table.form, table.line, table.last) == ("markdown", 2, 5)
    assert table.rows[0].cells[1].column == 10


def test_a_bar_at_the_end_of_a_row_is_an_empty_cell_where_the_heading_has_no_edges() -> None:
    table = only("Model | Params | MACs\n--- | --- | ---\na | 1 | 2\nb | 3 |\n | 4 | 5")
    assert grid(table)[1:] == [["a", "1", "2"], ["b", "3", ""], ["", "4", "5"]]


def test_edges_are_no_cells() -> None:
    table = only("| Model | Params |\n|-|-|\n| a | |\n| | 4 |")
    assert grid(table)[1:] == [["a", ""], ["", "4"]]


def test_an_escaped_bar_is_part_of_its_cell() -> None:
    assert grid(
        only(r"""| Name | Params |
| --- | --- |
| a\|b | 3 |""")
    )[1] == [r"a\|b", "3"]


def test_dots_stand_for_rows_and_do_not_end_a_table() -> None:
    table = only("| Name | Params |\n+------+--------+\n| a | 1 |\n...\n| ... | ... |\n| z | 2 |")
    assert grid(table)[1:] == [["a", "1"], ["z", "2"]]
    assert table.left_out == (4, 5)


def test_a_total_below_rules_is_a_row_of_its_own() -> None:
    lines = ["+---+---+", "| Name | Params |", "+---+---+", "| a | 1 |", "| b | 2 |", "| c | 3 |",
             "| d | 4 |", "+---+---+", "| total | 10 |", "+---+---+"]  # fmt: skip
    table = only("\n".join(lines))
    assert [row[0] for row in grid(table)[1:]] == ["a", "b", "c", "d", "total"]


BOX = """┏━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━┳━━━━━━━━━┓
┃ Layer (type) ┃ Output Shape ┃ Param # ┃
┡━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━╇━━━━━━━━━┩
│ input_layer  │ (None, 28,   │       0 │
│ (InputLayer) │ 28, 1)       │         │
├──────────────┼──────────────┼─────────┤
│ conv2d       │ (None, 14)   │     320 │
├──────────────┼──────────────┼─────────┤
│ dense        │ (None, 10)   │      50 │
└──────────────┴──────────────┴─────────┘"""


def test_lines_between_the_rules_of_a_box_are_one_row() -> None:
    table = only(BOX)
    assert table.form == "box"
    assert grid(table) == [
        ["Layer (type)", "Output Shape", "Param #"],
        ["input_layer (InputLayer)", "(None, 28, 28, 1)", "0"],
        ["conv2d", "(None, 14)", "320"],
        ["dense", "(None, 10)", "50"],
    ]


def test_a_heading_without_a_rule_or_rows_is_no_table() -> None:
    for document in (
        "| a | b |\n| 1 | 2 |",
        "| a | b |\n|---|---|",
        "|---|---|",
        "a || b",
        "```|\n|",
    ):
        assert list(pipes.tables(document.split("\n"))) == []
