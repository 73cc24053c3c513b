"""Tables of HTML, broken ones too, and <pre> blocks."""

from __future__ import annotations

from layerscope.documents import html, reader
from layerscope.documents.types import Table
from tests.documents.shown import check_positions, grid


def only(document: str) -> Table:
    (table,) = html.tables(document.split("\n"))
    return table


TABLE = """<p>text</p>
<table class="x">
  <caption>Layers of <b>LeNet</b></caption>
  <tr><th>Layer</th><th align='right'>Params</th></tr>
  <tr><td>conv1</td>
      <td> 1,728 </td></tr>
  <tr><td colspan=2>3 &times; 3<br>s&amp;p</td></tr>
</table>
"""


def test_cells_have_text_line_and_column() -> None:
    table = only(TABLE)
    assert grid(table) == [["Layer", "Params"], ["conv1", "1,728"], ["3 × 3<br>s&p", ""]]
    assert (table.form, table.line, table.last, table.title) == ("html", 4, 8, "Layers of LeNet")
    assert (table.rows[0].cells[1].line, table.rows[0].cells[1].column) == (6, 12)
    check_positions(table, TABLE)


def test_a_cell_over_rows_leaves_empty_cells_below() -> None:
    table = only(
        "<table><tr><th>Block<th>Layer<th>Params</tr><tr><td rowspan=2>b1<td>c1<td>3</tr>"
        "<tr><td>c2<td>4</tr><tr><td>b2<td>c3<td>5</tr></table>"
    )
    assert grid(table)[1:] == [["b1", "c1", "3"], ["", "c2", "4"], ["b2", "c3", "5"]]


def test_a_power_stays_a_power() -> None:
    table = only("<table><tr><th>Name<th>Params<tr><td>a<td>10<sup>6</sup></table>")
    assert grid(table)[1] == ["a", "10^6"]


def test_tags_that_are_not_closed() -> None:
    table = only("<table><tr><th>Layer<th>Params\n<tr><td>conv<td>9\n<tr><td>fc<td>10\n\nprose")
    assert grid(table) == [["Layer", "Params"], ["conv", "9"], ["fc", "10"]]
    assert table.last < 5


def test_a_table_inside_a_table() -> None:
    tables = list(html.tables([
        "<table><tr><td>left", "<table><tr><th>Layer<th>Params</tr><tr><td>a<td>1</tr></table>",
        "</td></tr></table>",
    ]))  # fmt: skip
    assert [grid(table) for table in tables] == [[["Layer", "Params"], ["a", "1"]]]


def test_comments_are_no_tables() -> None:
    row = "<table><tr><th>Layer<th>Params<tr><td>a<td>1</table>"
    assert list(html.tables([f"<!-- {row} -->"])) == []
    assert len(list(html.tables([f"<!-- {row}"]))) == 1


def test_spans_are_bounded() -> None:
    cells = "<td colspan=9999 rowspan=9999>x" * 50_000
    tables = list(html.tables([f"<table><tr><th>Layer<th>Params<tr>{cells}</table>"]))
    assert sum(len(row) for table in tables for row in table.rows) < 2 * html.SPANNED


PRE = (
    '<pre style="x">┏━━━━━━━┳━━━━━━━━━┓\n'
    '┃<span style="b"> Layer </span>┃<span> Param # </span>┃\n'
    "┡━━━━━━━╇━━━━━━━━━┩\n"
    "│ a &amp; b │ <span>1,728</span> │\n"
    "└───────┴─────────┘\n</pre>\nafter <b>x</b>"
)


def test_a_box_in_pre_has_the_lines_and_columns_of_the_document() -> None:
    (table,) = reader.read(PRE)
    assert grid(table) == [["Layer", "Param #"], ["a & b", "1,728"]]
    check_positions(table, PRE)
    assert table.rows[0].line == 4


def test_lines_outside_pre_keep_their_tags() -> None:
    assert sorted(html.preformatted(["<b>a</b>", "<pre>b", "<i>c</i>", "d</pre>", "e"])) == [
        1,
        2,
        3,
    ]


def test_a_page_in_one_line_keeps_its_table() -> None:
    page = "<pre>x</pre><table><tr><th>Layer<th>Params<tr><td>a<td>1</table>"
    (table,) = reader.read(page)
    assert grid(table)[1] == ["a", "1"]
    check_positions(table, page)
