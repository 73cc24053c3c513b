"""The findings in the five source documents and in published tables: every one, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from layerscope.auditing.document import audit_text
from layerscope.auditing.findings import Finding
from layerscope.documents.reader import load

Listed = tuple[int, str, str, str, str, str]  # line, row, column, kind, printed, expected

ACTIVATIONS, PARAMETERS = "Number of Activations (Memory)", "Parameters (Compute)"
SEEDS: dict[str, list[Listed]] = {
    # fc11 has 5 filters, and its 20B of data are 5 numbers
    "000": [(37, "fc11", "data depth", "figure", "7", "5")],
    # every figure is right; the rows with another number of cells are below
    "001": [],
    "002": [
        (13, "name", "memory(B)", "heading", "memory(B)", "elements"),
        *(
            (line, name, "params", "format", "2,3M", "2.3M")
            for line, name in (
                (27, "`conv4_2`"), (28, "`conv4_3`"), (30, "`conv5_1`"), (31, "`conv5_2`"),
                (32, "`conv5_3`"),
            )
        ),
    ],
    "003": [
        # 3x3 patches with parameters are convolutions
        (82, "17", "Type", "name", r"Pool5\_1", "conv"),
        (83, "18", "Type", "name", r"Pool5\_2", "conv"),
        (84, "19", "Type", "name", r"Pool5\_3", "conv"),
        (85, "20", "Type", "name", r"Pool5\_4", "conv"),
        (100, "POOL2", PARAMETERS, "missing", "", "0"),
        (101, "CONV3-128", ACTIVATIONS, "unit", r"112\*112\*128=1568K", "1,605,632"),
        (102, "CONV3-128", ACTIVATIONS, "unit", r"112\*112\*128==1568K", "1,605,632"),
        (102, "CONV3-128", ACTIVATIONS, "format", r"112\*112\*128==1568K", r"112\*112\*128=1568K"),
        # the shape of the pool before it
        (108, "POOL2", ACTIVATIONS, "figure", r"56\*56\*128=401408", "28*28*256=200,704"),
        (113, "POOL2", ACTIVATIONS, "figure", r"28\*28\*256=200,704", "14*14*512=100,352"),
        (121, "FC", PARAMETERS, "missing", "", "4,096,000"),
    ],
    "004": [],
}  # fmt: skip
RAGGED = {"001": [5, 6, 16, 23, 44, 60, 61], "18": [7, 8, 10, 11, 13, 14, 31, 32, 38, 39, 42]}
TABLES: dict[str, list[Listed]] = {
    # 15,237,608 elements; 24M are named nowhere else
    "01": [(33, "TOTAL", "memory", "total",
            "24M * 4 bytes ~= 93MB / image (only forward! ~*2 for bwd)", "15,237,608")],
    # rows have the field of their input, which starts at 1; (53 - 3) / 2 + 1 = 26;
    # (27 - 3) / 2 + 1 = 13; a window of 7 on 7 elements has one position
    "04": [
        (8, "Conv", "RF", "figure", "3", "1"),
        (11, "MaxPool", "Output", "figure", "27", "26"),
        (12, "MaxPool", "Output", "figure", "14", "13"),
        (14, "Avg.Pool", "Output", "figure", "00", "1"),
    ],
    # (55 - 3) / 3 + 1 = 18: the 27 that all rows below have needs a stride of 2
    "27": [(15, "2", "description", "figure", "3 * 3 fliters at stride 3", "")],
    # the tool repeats the last row
    "36": [(16, "total", "MemRead(B)", "total", "2240.0", "12,572,392"),
           (16, "total", "MemWrite(B)", "total", "40.0", "2,835,120")],
    # 124,441,330 parameters of four bytes are 474.706 MiB
    "47": [(5, "Number of parameters", "", "unit", "474.706 MiB", ""),
           (7, "Number of trainable parameters", "", "unit", "474.706 MiB", "")],
}  # fmt: skip
CLEAN = (
    "05", "07", "08", "09", "11", "12", "13", "15", "16", "17", "18", "23", "28", "31", "37", "40",
    "41", "44", "45",
)  # fmt: skip


def listed(finding: Finding) -> Listed:
    return (finding.line, finding.row, finding.column, finding.kind, finding.printed,
            finding.expected)  # fmt: skip


def findings(path: Path) -> tuple[list[Listed], list[int]]:
    """The findings of a document, and apart from them the lines of ragged rows."""
    found = audit_text(load(path), path.name).findings
    ragged = [finding.line for finding in found if finding.kind == "layout"]
    return [listed(each) for each in found if each.kind != "layout"], ragged


@pytest.mark.parametrize("number", SEEDS)
def test_source_documents(shared: Path, number: str) -> None:
    (path,) = (shared / "seeds").glob(f"{number}_*")
    assert findings(path) == (SEEDS[number], RAGGED.get(number, []))


@pytest.mark.parametrize("number", sorted((*TABLES, *CLEAN)))
def test_published_tables(shared: Path, number: str) -> None:
    found = findings(shared / "truth" / "tables" / f"{number}.txt")
    assert found == (TABLES.get(number, []), RAGGED.get(number, []))
