"""Corrected documents: only wrong cells change, and what was changed is no finding any more."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

import layerscope
from layerscope.auditing.document import audit_text
from layerscope.auditing.findings import Finding
from layerscope.auditing.fix import OTHERS, UNCERTAIN, Fixes, encoded, fix
from layerscope.notations import NOTATIONS
from tests.auditing.documents import CLEAN, LINE, WRONG

ENDS = re.compile(r"\r\n|\r|\n")
# notation, network: tables in which the audit finds nothing
GENERATED = [
    ("netscope", "lenet5"), ("netscope", "alexnet"), ("cs231n", "lenet5"), ("cs231n.md", "vgg16"),
    ("layersheet", "vgg16"), ("matconvnet", "alexnet"),
]  # fmt: skip


def keys(findings: object) -> set[tuple[int, int, str, str]]:
    assert isinstance(findings, (list, tuple))
    return {(f.table, f.line, f.row, f.column) for f in findings if isinstance(f, Finding)}


def check(text: str, fixes: Fixes) -> None:
    """Only cells of changes differ, and an audit finds none of them again."""
    changed = {change.finding.line for change in fixes.changes}
    before, after = ENDS.split(text), ENDS.split(fixes.text)
    assert len(before) == len(after)
    assert {n for n, (a, b) in enumerate(zip(before, after, strict=True), 1) if a != b} == changed
    for change in fixes.changes:
        assert change.written != change.printed
        assert change.written in after[change.finding.line - 1]
    again = audit_text(fixes.text, "again").findings
    assert not keys(again) & keys([change.finding for change in fixes.changes])
    assert keys(again) == keys([finding for finding, _ in fixes.left])
    assert all(why for _, why in fixes.left)


def test_a_wrong_figure_becomes_the_right_one() -> None:
    fixes = fix(WRONG, "wrong.md")
    assert fixes.text == CLEAN
    assert not fixes.left
    (change,) = fixes.changes
    assert (change.finding.line, change.printed, change.written) == (LINE, "4,460", "4,640")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_stay(end: str) -> None:
    assert fix(WRONG.replace("\n", end), "wrong.md").text == CLEAN.replace("\n", end)


def test_nothing_changes_in_a_right_document() -> None:
    fixes = fix(CLEAN, "clean.md")
    assert (fixes.text, fixes.changes, fixes.left) == (CLEAN, (), ())


def test_a_total_that_followed_is_changed_with_its_cells() -> None:
    """4,460 in the cell, and a total of the printed cells."""
    wrong = WRONG.replace("64,554", f"{64_554 - 180:,}")
    fixes = fix(wrong, "wrong.md")
    assert fixes.text == CLEAN
    assert {change.finding.kind for change in fixes.changes} == {"figure", "total"}
    check(wrong, fixes)


def test_a_total_waits_for_the_cells_above_it() -> None:
    """A right total is not changed while a cell above it is wrong and cannot be corrected."""
    report = layerscope.analyze("vgg16")
    right = report.to_notation("cs231n.md")
    wrong = right.replace("=102,764,544", "=102,764,504")
    assert wrong != right
    fixes = fix(wrong, "wrong")
    check(wrong, fixes)
    assert not any(change.finding.kind == "total" for change in fixes.changes)


def test_a_figure_is_corrected_by_the_others_of_its_row() -> None:
    """The multiply-adds show the kernel, which the notation does not print."""
    right = layerscope.analyze("lenet5", like="netscope").to_notation("netscope")
    wrong = right.replace("param\t156", "param\t116")
    assert wrong != right
    fixes = fix(wrong, "wrong")
    check(wrong, fixes)
    assert fixes.text == right


def test_an_empty_cell_is_filled() -> None:
    wrong = CLEAN.replace(" 4,640 ", " ")
    fixes = fix(wrong, "wrong.md")
    check(wrong, fixes)
    assert fixes.text == CLEAN


def test_an_aligned_table_stays_aligned() -> None:
    rows = [line.strip("|").split("|") for line in CLEAN.splitlines()[2:]]
    cells = [[cell.strip() for cell in row] for row in rows]
    widths = [max(map(len, column)) + 1 for column in zip(*cells, strict=True)]
    table = [
        "|" + "|".join(f" {cell.ljust(w)}" for cell, w in zip(row, widths, strict=True)) + "|\n"
        for row in cells
    ]
    table[1] = "|" + "|".join("-" * (w + 1) for w in widths) + "|\n"
    right = "# A small network\n\n" + "".join(table)
    for wrong in (right.replace("448 ", "44  "), right.replace("448 ", "4480")):
        assert wrong != right
        assert fix(wrong, "wrong.md").text == right


def test_csv_is_quoted_where_a_figure_has_commas() -> None:
    lines = [line.strip("|").split("|") for line in CLEAN.splitlines()[2:] if "---" not in line]
    cells = [[cell.strip() for cell in line] for line in lines]
    text = "\n".join(",".join(f'"{c}"' if "," in c else c for c in row) for row in cells) + "\n"
    assert not audit_text(text, "clean.csv").findings
    for wrong in (text.replace('"4,640"', "999"), text.replace('"4,640"', '"4,460"')):
        fixes = fix(wrong, "wrong.csv")
        check(wrong, fixes)
        assert fixes.text in (text, text.replace('"4,640"', "4640"))


def test_equally_suspect_cells_are_not_changed() -> None:
    """Two cells that contradict each other, and nothing that says which is wrong."""
    text = CLEAN.replace("18,496", "18,469").replace("| 8x8x64 |", "| 8x8x65 |")
    fixes = fix(text, "wrong.md")
    check(text, fixes)
    assert all(not change.finding.also for change in fixes.changes)


# network, notation, the right text and a wrong one, and why it stays as it is
LEFT = [
    # the formula gives another result, and only a rounded total stands below
    ("lenet5", "cs231n", "(5*5*16)*120", "(5*6*16)*120", OTHERS),
    # a branch takes 48 or 192 channels
    ("squeezenet1_1", "matconvnet.csv", '"16","n/a","16","n/a"', '"16","n/a","17","n/a"', OTHERS),
    # no other pool shows how Darknet's operations of pools are counted
    ("resnet18", "darknet", "0.002 BF", "0.008 BF", OTHERS),
    # a figure by which the kernel was inferred
    ("squeezenet1_1", "backbone", "9.2K", "9.9K", OTHERS),
]


@pytest.mark.parametrize(("network", "notation", "right", "wrong", "why"), LEFT)
def test_what_several_values_explain_stays(
    network: str, notation: str, right: str, wrong: str, why: str
) -> None:
    report = layerscope.analyze(network, like=NOTATIONS[notation].like)
    text = report.to_notation(notation)
    assert right in text
    fixes = fix(text.replace(right, wrong, 1), "wrong")
    assert fixes.text == text.replace(right, wrong, 1)
    assert why in [reason for _, reason in fixes.left]


# network, notation, the right text and a wrong one
RESTORED = [
    # three figures with a prefix: the total and the column beside them show that K is 1,024
    ("lenet5", "matconvnet", "188KB", "688KB"),
    ("lenet5", "matconvnet", "|18KB|", "|19KB|"),
    # 193,600 in a column of two digits
    ("alexnet", "backbone", "190K", "490K"),
    ("vgg11", "torchstat", "15.23GMAdd", "15.73GMAdd"),
    ("vgg11", "torchstat", "Total params: 132,863,336", "Total params: 132,863,386"),
    ("lenet5", "torchstat", "839,250.0 + ?", "889,250.0 + ?"),
    ("lenet5", "torchstat", "308.23KB", "358.23KB"),
]


@pytest.mark.parametrize(("network", "notation", "right", "wrong"), RESTORED)
def test_what_only_one_text_explains_is_restored(
    network: str, notation: str, right: str, wrong: str
) -> None:
    report = layerscope.analyze(network, like=NOTATIONS[notation].like)
    text = report.to_notation(notation)
    assert right in text
    assert fix(text.replace(right, wrong, 1), "wrong").text == text


def mutated(text: str, seed: int) -> str | None:
    """The text with one digit of a figure in a row of layers changed."""
    drawn = random.Random(seed)
    numbers = list(re.finditer(r"(?<![\w.,])\d{2,3}(?:,\d{3})+(?![\w.,])", text))
    numbers = numbers or list(re.finditer(r"(?<![\w.,])\d{3,}(?![\w.,])", text))
    match = drawn.choice(numbers)
    at = drawn.choice([n for n in range(match.start() + 1, match.end()) if text[n].isdigit()])
    digit = drawn.choice([d for d in "0123456789" if d != text[at]])
    return text[:at] + digit + text[at + 1 :]


@pytest.mark.parametrize(("notation", "network"), GENERATED)
def test_generated_tables(notation: str, network: str) -> None:
    """Whatever digit is changed, what is corrected is no finding, and most become the original."""
    report = layerscope.analyze(network, like=NOTATIONS[notation].like)
    right = report.to_notation(notation)
    assert not audit_text(right, "right").findings
    restored = corrected = 0
    for seed in range(16):
        wrong = mutated(right, seed)
        assert wrong is not None
        fixes = fix(wrong, "wrong")
        check(wrong, fixes)
        corrected += bool(fixes.changes)
        restored += fixes.text == right
    assert restored == corrected
    assert restored >= 6


@pytest.mark.parametrize("seed", ["000", "001", "002", "003"])
def test_source_documents(seed: str, shared: Path) -> None:
    (path,) = (shared / "seeds").glob(f"{seed}_*")
    text = path.read_text(encoding="utf-8")
    fixes = fix(text, seed)
    check(text, fixes)
    wrong = audit_text(text, seed).findings
    certain = [f for f in wrong if f.expected and f.kind not in ("layout", "heading")]
    open_ = [f for f, why in fixes.left if why == UNCERTAIN]
    assert keys([change.finding for change in fixes.changes]) == keys(certain) - keys(open_)
    # 1,605,632 among figures of two digits: 1606K, 1600K or 1.6M
    assert {f.line for f in open_} == ({101, 102} if seed == "003" else set())


def test_tables_of_others(shared: Path) -> None:
    """No document is changed outside of its wrong cells."""
    paths = sorted((shared / "truth" / "tables").glob("*.txt"))
    assert len(paths) == 25
    read = 0
    for path in paths:
        text = path.read_text(encoding="utf-8")
        try:
            fixes = fix(text, path.name)
        except layerscope.LayerscopeError:
            continue
        check(text, fixes)
        read += 1
    assert read > 10


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"])
def test_the_encoding_stays(mark: bytes, tmp_path: Path) -> None:
    from layerscope.documents.reader import load

    coding = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}.get(mark, "utf-8")
    path = tmp_path / "wrong.md"
    path.write_bytes(mark + WRONG.encode(coding))
    fixes = fix(load(path), "wrong.md")
    assert encoded(path.read_bytes(), fixes.text) == mark + CLEAN.encode(coding)
