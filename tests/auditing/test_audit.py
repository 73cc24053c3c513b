"""The result of an audit: its API, and its JSON, JUnit and GitHub forms."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from layerscope.api.auditing import audit
from layerscope.auditing.document import audit_text
from layerscope.auditing.findings import Audit, AuditedColumn, AuditedTable, Finding, joined
from layerscope.errors import FormatError, NoTable, UsageError
from layerscope.export.audit import sentence, write_github, write_junit
from tests.auditing.documents import CLEAN, LINE, POSITION, WRONG

HOSTILE = "a|b\x1b[31m<b>,:%\r\n\u202e`=1+1"


def hostile() -> Audit:
    """An audit whose texts have signs that some form interprets."""
    finding = Finding(
        1, 3, HOSTILE, HOSTILE, "figure", HOSTILE, HOSTILE, HOSTILE, (HOSTILE,), 7, HOSTILE
    )
    column = AuditedColumn(HOSTILE, HOSTILE, 1, 2)
    table = AuditedTable(3, HOSTILE, (column,), (HOSTILE,), 1, HOSTILE, HOSTILE)
    return Audit(HOSTILE, (table,), (finding,), (HOSTILE,))


def test_a_right_table() -> None:
    found = audit(text=CLEAN)
    assert found.ok
    assert found.headline == "text: no findings in 1 table"
    assert [(c.heading, c.explained, c.of) for c in found.tables[0].columns] == [
        ("params", 7, 7), ("MACs", 7, 7),
    ]  # fmt: skip
    assert found.tables[0].title == "A small network"


def test_a_wrong_figure() -> None:
    found = audit(text=WRONG)
    assert not found.ok
    (finding,) = found.findings
    assert (finding.line, finding.position, finding.row, finding.column, finding.kind) == (
        LINE, POSITION, "conv2", "params", "figure",
    )  # fmt: skip
    assert (finding.printed, finding.expected) == ("4,460", "4,640")
    assert WRONG.splitlines()[LINE - 1][POSITION - 1 :].startswith("4,460")


def test_a_document_is_a_path_or_a_text(tmp_path: Path) -> None:
    path = tmp_path / "wrong.md"
    path.write_text(WRONG)
    found = audit(path)
    assert found == audit(str(path))
    assert found.document == str(path)
    assert [f.printed for f in found.findings] == [f.printed for f in audit(text=WRONG).findings]
    with pytest.raises(UsageError, match="either a document or a text"):
        audit()
    with pytest.raises(UsageError, match="either a document or a text"):
        audit(path, text=WRONG)
    with pytest.raises(UsageError, match="give a text as text="):
        audit(WRONG)
    with pytest.raises(FormatError, match="No such file"):
        audit(tmp_path / "none.md")
    with pytest.raises(NoTable, match="no table has two headings that are recognised"):
        audit(text="Nothing here.\n")


def test_one_table_of_several() -> None:
    text = f"{CLEAN}\n\n# Another\n\n{WRONG}"
    assert [t.number for t in audit(text=text).tables] == [1, 2]
    second = audit(text=text, table=2)
    assert [t.number for t in second.tables] == [2]
    assert [f.table for f in second.findings] == [2]
    assert audit(text=text, table=1).ok
    with pytest.raises(UsageError, match="table 3, and the document has 2"):
        audit(text=text, table=3)
    with pytest.raises(UsageError):
        audit(text=text, table=0)


@pytest.mark.parametrize("sign", ["\x0c", "\x0b", "\x1c", "\x85", "\u2028"])
def test_lines_are_those_of_an_editor(sign: str) -> None:
    """A form feed or line separator within a line does not move the lines of findings."""
    assert [f.line for f in audit(text=f"a{sign}b" + WRONG[1:]).findings] == [LINE]


def test_json() -> None:
    document = json.loads(audit(text=WRONG).to_json())
    assert list(document)[:2] == ["kind", "schema"]
    assert (document["kind"], document["schema"], document["ok"]) == ("audit", 1, False)
    (table,) = document["tables"]
    assert {"line", "network", "columns"} <= table.keys()
    assert list(table["columns"][0]) == ["heading", "meaning", "explained", "of"]
    (finding,) = document["findings"]
    assert list(finding)[:9] == [
        "table", "line", "row", "column", "kind", "printed", "expected", "reason", "also",
    ]  # fmt: skip
    assert (finding["table"], finding["line"], finding["row"]) == (1, LINE, "conv2")


def test_junit() -> None:
    root = ElementTree.fromstring(write_junit(audit(text=WRONG)))
    (suite,) = root
    assert [suite.get(name) for name in ("tests", "failures", "skipped")] == ["3", "1", "0"]
    cases = list(suite)
    assert len(cases) == 3
    failures = [case.find("failure") for case in cases if len(case)]
    assert [f.get("type") for f in failures if f is not None] == ["figure"]


def test_a_column_without_a_convention_is_skipped_in_junit() -> None:
    column = AuditedColumn("Time", "no convention found", 0, 3)
    one = Audit("x", (AuditedTable(1, "", (column,), document="x"),), ())
    (suite,) = ElementTree.fromstring(write_junit(one))
    assert suite.get("skipped") == "1"
    assert suite[0].find("skipped") is not None


def test_github_annotations() -> None:
    (line,) = write_github(audit(text=WRONG)).splitlines()
    head, _, message = line.removeprefix("::error ").partition("::")
    given = dict(part.split("=", 1) for part in head.split(","))
    assert (given["file"], given["line"], given["col"]) == ("text", "8", "43")
    assert message.startswith("4,460, expected 4,640: ")
    assert write_github(audit(text=CLEAN)) == ""


def test_github_annotations_are_escaped() -> None:
    text = write_github(hostile())
    assert text.count("\n") == 1
    head, _, message = text.removeprefix("::error ").rstrip("\n").partition("::")
    given = dict(part.split("=", 1) for part in head.split(","))
    assert set(given) == {"file", "line", "col", "title"}
    assert "%3A" in given["file"]
    assert "%2C" in given["file"]
    assert "%25" in given["file"]
    assert "%25" in message
    assert text.rstrip("\n").isprintable()


def test_every_form_escapes() -> None:
    found = hostile()
    for text in (str(found), found.to_markdown(), found.to_latex(), found.to_html(), repr(found)):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert "<b>," not in found.to_html()
    assert json.loads(found.to_json())["findings"][0]["row"] == HOSTILE
    ElementTree.fromstring(write_junit(found))
    rows = list(csv.reader(io.StringIO(found.to_csv())))
    assert "\x1b" not in found.to_csv()
    assert rows[2][4].startswith("a|b")


def test_csv_has_conventions_and_findings() -> None:
    lines = [line for line in audit(text=WRONG).to_csv().splitlines() if not line.startswith("#")]
    rows = list(csv.DictReader(lines))
    assert [row["kind"] for row in rows] == ["convention", "convention", "figure"]
    assert (rows[2]["printed"], rows[2]["expected"], rows[2]["line"]) == ("4,460", "4,640", "8")
    assert (rows[0]["explained"], rows[0]["of"]) == ("6", "7")


@pytest.mark.parametrize("width", [40, 80])
def test_no_line_is_wider_than_asked(width: int) -> None:
    text = audit(text=WRONG).to_text(width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    assert "weights x positions" in " ".join(text.split())


def test_equally_suspect_cells_are_named() -> None:
    finding = Finding(1, 2, "r", "c", "figure", "1", "2", "why", ("a in line 3", "b in line 4"))
    assert sentence(finding) == ("1, expected 2: why; equally suspect: a in line 3 or b in line 4")


def test_documents_are_joined() -> None:
    both = joined((audit_text(CLEAN, "a.md"), audit_text(WRONG, "b.md")))
    assert [t.document for t in both.tables] == ["a.md", "b.md"]
    assert [f.document for f in both.findings] == ["b.md"]
    text = str(both)
    assert "a.md: table 1, line 3" in text
    assert "b.md: table 1, line 3" in text
    assert text.index("4,460") > text.index("b.md")
    assert both.headline == "2 documents: 1 finding in 2 tables"


def test_an_empty_cell_too_many_is_layout_only() -> None:
    """Behind it every figure stands one column too far to the right."""
    text = """
| ID | Type | Input CH | Input DIM | Output CH | Output DIM | params |
| --- | --- | --- | --- | --- | --- | --- |
| 1 | conv | 3 | 32x32 | 16 | 32x32 | 448 |
| 2 | relu | | 16 | 32x32 | 16 | 32x32 | 0 |
| 3 | conv | 16 | 32x32 | 32 | 32x32 | 4640 |
| 4 | relu | 32 | 32x32 | 32 | 32x32 | 0 |
"""
    found = audit_text(text, "ragged")
    assert [(f.line, f.row, f.kind) for f in found.findings] == [(5, "2", "layout")]
    assert [(c.explained, c.of) for c in found.tables[0].columns] == [(4, 4)]


WEIGHTS = """
INPUT: [32x32x3]   memory:  32*32*3=3K     weights: 0
CONV3-64: [32x32x64]   memory:  32*32*64=65K   weights: (3*3*3)*64 = 1,728
CONV3-64: [32x32x64]   memory:  32*32*64=65K   weights: (3*3*64)*64 = 36,864
POOL2: [16x16x64]   memory:  16*16*64=16K   weights: 0
FC: [1x1x100]   memory:  100   weights: 16*16*64*100 = 1,638,400

TOTAL params: {total} parameters
"""


@pytest.mark.parametrize(
    ("total", "right"), [("1677K", True), ("1,677,220", True), ("1777K", False)]
)
def test_a_total_of_parameters_below_weights(total: str, right: bool) -> None:
    """It may count the biases that the column of weights leaves out."""
    found = audit_text(WEIGHTS.format(total=total), "sheet").findings
    assert [(f.row, f.kind) for f in found] == ([] if right else [("TOTAL", "total")])
