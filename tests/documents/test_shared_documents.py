"""The tables of 25 documents of others and of the five source documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from layerscope.documents import figures, reader
from layerscope.documents.headings import meaning_of
from layerscope.documents.types import Table
from tests.documents.shown import check_positions, grid, texts

NETSCOPE = "ID|Name|Type|Input CH|Input DIM|Output CH|Output DIM|OPS|Mem"
SUMMARY = "Layer (type)|Output Shape|Param #"
# document -> form, line of the heading, rows, headings
TABLES: dict[str, list[tuple[str, int, int, str]]] = {
    "01": [("lines", 10, 24, "name|shape|memory|weights|params")],
    "04": [("markdown", 6, 8, "Layer|K,P,S|Input|Output|RF|Jump")],
    "05": [
        ("text", 11, 2, "Layer|Kernel Shape|Output Shape|Params|Mult-Adds"),
        ("text", 46, 54, "Layer|Kernel Shape|Output Shape"),
    ],
    "07": [("text", 11, 38, SUMMARY)],
    "08": [("markdown", 12, 9, "Name|Class|Input shape|Output shape|MACs|Params")],
    "09": [("markdown", 1, 22, "Name|Input shape|Output shape|MACs|Params|Description")],
    "11": [],  # Darknet's log
    "12": [],
    "13": [],
    "15": [("markdown", 9, 39, SUMMARY)],
    "16": [
        ("markdown", 2, 104,
         "CNN|resolution|end-point|FLOPs (Billion)|RF|effective stride|effective padding"),
    ],
    "17": [("markdown", 3, 25, NETSCOPE)],
    "18": [("markdown", 3, 41, NETSCOPE)],
    "23": [("text", 44, 21, SUMMARY), ("text", 113, 21, SUMMARY)],
    "26": [],  # prose
    "27": [("lines", 13, 14, "index|name|shape|description")],
    "28": [
        ("markdown", 7, 7,
         "Network Layer|Input Size|Core Size|Output Size|Trainable Parameter Quantity"),
    ],
    "31": [
        ("markdown", 5, 7, "Network Layer|Input Size|Core Size|Output Size|Number of Parameters"),
    ],
    "36": [
        ("text", 10, 6, "|module name|input shape|output shape|params|memory(MB)|MAdd|Flops"
         "|MemRead(B)|MemWrite(B)|duration[%]|MemR+W(B)"),
    ],
    "37": [
        ("text", 13, 18,
         "m_id|layer (type,original)|oshape|param/size|macc|connected to||c_size|c_macc|c_type"),
        ("text", 109, 1,
         "c_id|name (*_layer)|id|layer_type|macc|rom|tensors|shape (array id)"),
    ],
    "40": [("box", 9, 8, SUMMARY + "|Connected to"), ("box", 75, 6, SUMMARY)],
    "41": [("box", 7, 5, SUMMARY)],
    "44": [],  # Boda's lines
    "45": [
        ("markdown", 8, 20,
         "Model|Input Resolution|Params(M)|MACs(G) (`pytorch`)|MACs(G) (`aten`)"),
    ],
    "47": [("markdown", 25, 34, "Name|Shape|Squeezed shape|Number of parameters|Form")],
}  # fmt: skip
SEEDS: dict[str, list[tuple[str, int, int, str]]] = {
    "000": [],  # MatConvNet's display, transposed
    "001": [("markdown", 3, 12, NETSCOPE), ("markdown", 21, 15, NETSCOPE),
            ("markdown", 42, 20, NETSCOPE)],
    "002": [
        ("markdown", 13, 24, "name|ksize|stride|padding|**channel**|size|params|memory(B)"),
        ("lines", 41, 24, "name|shape|memory|weights|params"),
    ],
    "003": [
        ("markdown", 63, 26,
         "Layer ID|Type|Patch Size (Height)|Patch Size (Width)|Stride (Height)|Stride (Width)"
         "|Output Size (Height)|Output Size (Width)|Output Size (Channel)|Memory|Params|Ratio"),
        ("markdown", 95, 26, "Layer|Number of Activations (Memory)|Parameters (Compute)"),
    ],
    "004": [],  # Boda's lines
}  # fmt: skip


def outline(table: Table) -> tuple[str, int, int, str]:
    return table.form, table.line, len(table.rows), "|".join(texts(table.heading))


def tables_of(path: Path) -> tuple[Table, ...]:
    return reader.read(reader.load(path))


@pytest.mark.parametrize("number", TABLES)
def test_the_tables_of_a_document(shared: Path, number: str) -> None:
    path = shared / "truth" / "tables" / f"{number}.txt"
    tables = tables_of(path)
    assert list(map(outline, tables)) == TABLES[number]
    for table in tables:
        check_positions(table, path.read_text(encoding="utf-8"), heading=table.form != "lines")


def test_every_document_of_the_index_is_listed(shared: Path) -> None:
    index = (shared / "truth" / "tables" / "index.tsv").read_text(encoding="utf-8")
    assert {line.split("\t")[0] for line in index.splitlines()[1:]} == set(TABLES)


@pytest.mark.parametrize("number", SEEDS)
def test_the_tables_of_a_source_document(shared: Path, number: str) -> None:
    (path,) = (shared / "seeds").glob(f"{number}_*")
    tables = tables_of(path)
    assert list(map(outline, tables)) == SEEDS[number]
    for table in tables:
        check_positions(table, path.read_text(encoding="utf-8"), heading=table.form != "lines")


def column(table: Table, heading: str) -> list[str]:
    """The cells of a column, without the last row."""
    at = texts(table.heading).index(heading)
    return [row[at] for row in grid(table)[1:-1]]


def total(cells: list[str]) -> int:
    read = [figures.read(cell) for cell in cells]
    return sum(int(figure.value()) for figure in read if figure is not None)


def test_columns_add_up_to_the_totals_that_the_documents_print(shared: Path) -> None:
    folder = shared / "truth" / "tables"
    (vgg,) = tables_of(folder / "07.txt")
    assert total([row[2] for row in grid(vgg)[1:]]) == 138_357_544
    (stat,) = tables_of(folder / "36.txt")
    assert total(column(stat, "params")) == 2_815_340
    assert total(column(stat, "MAdd")) == 190_578_940
    assert total(column(stat, "MemRead(B)")) == 12_572_392  # the document prints 2240
    decoder = tables_of(folder / "40.txt")[1]
    assert total([row[2] for row in grid(decoder)[1:]]) == 65_089
    cube = tables_of(folder / "37.txt")[0]
    assert total([row[4] for row in grid(cube)[1:]]) == 835_864


def test_rows_left_out_are_marked(shared: Path) -> None:
    (table,) = tables_of(shared / "truth" / "tables" / "08.txt")
    assert table.left_out == (18,)


def test_most_headings_of_the_documents_are_recognised(shared: Path) -> None:
    unread = {
        cell.text
        for number in TABLES
        for table in tables_of(shared / "truth" / "tables" / f"{number}.txt")
        for cell in table.heading.cells
        if cell.text and meaning_of(cell.text) is None
    }
    assert unread == {
        "Form", "c_size", "c_macc", "c_type", "c_id", "rom", "tensors", "shape (array id)",
    }  # fmt: skip
