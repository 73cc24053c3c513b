"""Whole documents: order, titles, encodings, limits, and any text."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layerscope.documents import reader
from layerscope.errors import FormatError
from layerscope.limits import DOCUMENT_BYTES, Limit
from tests.documents.shown import grid

DOCUMENT = """# First

| Layer | Params |
| --- | --- |
| conv | 1 |

| Metric | Value |
| --- | --- |
| loss | 2 |

Second, as lines:

```
A: [3x3] weights: 1
B: [3x3] weights: 2
```

> | Layer | Params |
> | --- | --- |
> | quoted | 3 |

## Third
<table><tr><th>Layer<th>Params</tr>
<tr><td>html<td>4</tr></table>

\\begin{tabular}{ll}
Layer & Params \\\\
latex & 5
\\end{tabular}

layer,params
csv,6

Layer (type)    Output Shape    Param #
=======================================
text            [1, 2]          7
"""


def test_tables_of_all_forms_in_the_order_of_the_document() -> None:
    tables = reader.read(DOCUMENT)
    assert [table.form for table in tables] == [
        "markdown", "lines", "markdown", "html", "latex", "csv", "text",
    ]  # fmt: skip
    assert [grid(table)[-1][-1] for table in tables] == ["1", "2", "3", "4", "5", "6", "7"]
    assert [table.title for table in tables][:4] == [
        "First", "Second, as lines:", "Second, as lines:", "Third",
    ]  # fmt: skip


def test_line_breaks_of_every_system() -> None:
    for sign in ("\n", "\r\n", "\r"):
        (table,) = reader.read(f"x{sign}{sign}| Layer | Params |{sign}|--|--|{sign}| a | 1 |{sign}")
        assert (table.line, grid(table)[1]) == (3, ["a", "1"])


def test_a_display_with_its_headings_in_the_first_column_is_dropped() -> None:
    assert reader.read("|layer|0|1|\n|--|--|--|\n|stride|1|2|\n|pad|0|0|\n|rf size|3|5|") == ()
    assert reader.read("| Vector | Matrix |\n|--|--|\n| 1 | 2 |") == ()


def test_a_file_is_read_as_utf_8_with_or_without_a_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    for data in ("é".encode(), b"\xef\xbb\xbf" + "é".encode(), "é".encode("utf-16")):
        path.write_bytes(data)
        assert reader.load(path) == "é"
    path.write_bytes(b"a\x00b")
    assert reader.load(path) == "a\x00b"


def test_another_encoding_is_refused_with_its_position(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(b"abc\nx\xe9y")
    with pytest.raises(FormatError, match=r"a\.md:2:2: byte 0xe9 is no UTF-8.*iconv"):
        reader.load(path)


def test_a_document_beyond_the_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(b"x" * 101)
    small = Limit("DOCUMENT_BYTES", 100, DOCUMENT_BYTES.unit, DOCUMENT_BYTES.why)
    monkeypatch.setattr(reader, "DOCUMENT_BYTES", small)
    with pytest.raises(FormatError, match="101 bytes of a document, the limit DOCUMENT_BYTES"):
        reader.load(path)
    path.write_bytes(b"x" * 100)
    assert len(reader.load(path)) == 100


PIECES = st.sampled_from([
    "|", "-", "--", "│", "┃", "\n", "\n\n", " ", "  ", "\t", "...", "```", "<table>", "<tr>",
    "<td>", "<th colspan=3 rowspan=2>", "</table>", "<pre>", "</pre>", "<!--", "-->", "&amp;",
    "\\begin{tabular}{ll}", "\\end{tabular}", "&", "\\\\", "\\multicolumn{2}{c}{", "{", "}", "%",
    ",", ";", '"', "layer", "Params", "Output Shape", "Layer (type)", "Param #", "[3x3]",
    "A: [3x3]", "memory:", "1,728", "0", "======", "--- ---", "\\", "Total params: 3", "\x00",
    "(", ")", ">", "TOTAL memory: 3", "conv",
])  # fmt: skip


@settings(max_examples=300)
@given(st.one_of(st.text(), st.lists(PIECES, max_size=60).map("".join)))
def test_any_text_gives_tables_without_an_exception(document: str) -> None:
    lines = reader.BREAK.split(document)
    last = 0
    for table in reader.read(document):
        assert 1 <= table.line <= table.last <= len(lines)
        assert table.line >= last
        last = table.line
        assert table.rows
        for row in (table.heading, *table.rows):
            for cell in row.cells:
                assert 1 <= cell.line <= len(lines)
                assert cell.column >= 1


ROWS = 20_000
LONG = {
    "markdown": ("| Layer | Params |\n|--|--|\n", "| conv | 1,728 |\n", ""),
    "csv": ("layer,params\n", "conv,1728\n", ""),
    "html": ("<table><tr><th>Layer<th>Params</tr>\n", "<tr><td>conv<td>9</tr>\n", "</table>"),
    "latex": ("\\begin{tabular}{ll}Layer & Params \\\\\n", "conv & 9 \\\\\n", "\\end{tabular}"),
    "text": ("Layer    Output     Params\n======\n", "conv     3x3             9\n", ""),
    "lines": ("", "CONV: [3x3] weights: 9\n", ""),
}


@pytest.mark.parametrize("form", LONG)
def test_a_long_table_is_read_whole(form: str) -> None:
    top, row, bottom = LONG[form]
    (table,) = reader.read(top + row * ROWS + bottom)
    assert (table.form, len(table.rows)) == (form, ROWS)


HOSTILE = {
    "comments": "<table><!--",
    "tables": "<table><tr><td>",
    "spans": "<td colspan=99 rowspan=99>x",
    "environments": "\\begin{tabular}{l}",
    "captions": "\\caption{",
    "braces": "{\\begin{tabular}{ll}",
    "quotes": '"a,b,c\n',
    "quotes in a line": '"""a,',
    "headings": "Layer (type)    Output Shape    Param #\n",
    "headings of csv": "layer,output,params\n\n",
    "continued": "Layer  Params  \\\n",
    "bars": "|a",
    "rules": "|-",
    "dots": "...\n",
    "spaced dots": ". ",
    "dashes": "- ",
    "quotations": ">",
    "tags": "<",
    "entities": "<pre>&",
    "escapes": "\\",
    "spaces": " ",
    "breaks": "\n",
    "nulls": "\x00",
    "wrapped": "(   [\n",
    "lists": "1. [3x3]",
    "prose": "The name of the layer  and its size  here.\n",
}
STARTS = ("", "layer,output,params\n", "<table><tr><th>Layer<th>Params</tr>",
          "Layer (type)    Output Shape    Param #\n======\nconv   3   4\n",
          "| Layer | Params |\n|--|--|\n")  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_the_time_grows_with_the_size_and_not_its_square(name: str) -> None:
    piece = HOSTILE[name]
    for start in STARTS:
        seconds = []
        for size in (20_000, 160_000):
            document = start + piece * (size // len(piece))
            tries = []
            for _ in range(3):  # the least: other work on the machine disturbs single ones
                begin = time.process_time()
                reader.read(document)
                tries.append(time.process_time() - begin)
            seconds.append(min(tries))
        # eight times the size; a square would take 64 times
        assert seconds[1] < 0.3 + 24 * seconds[0], (start, seconds)
