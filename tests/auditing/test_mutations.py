"""Tables that we write have no findings; one changed digit is found, and nothing else is.

    python -m tests.auditing.test_mutations 1000 [NOTATION ...]

prints how many of 1,000 changes of each notation are named, and how many have no witness, and exits
with 1 if a notation has fewer than NAMED per cent. Whether a change has a witness is decided by
`witness.py`, and not by the audit.
"""

from __future__ import annotations

import random
import re
import sys
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import pytest
from msgspec import Struct

from layerscope import analyze
from layerscope.auditing.document import audit_text, sheets_of
from layerscope.auditing.findings import Finding
from layerscope.documents.types import Cell
from layerscope.notations import NOTATIONS, write
from layerscope.sheets.sheet import Sheet
from tests.auditing.witness import Table, contradicts
from tests.auditing.witness_boda import FIGURES as BODA
from tests.auditing.witness_boda import boda_contradicts
from tests.auditing.witness_dag import dag_contradicts
from tests.auditing.witness_dag import figures as dag_figures
from tests.auditing.witness_stat import ops_of, stat_contradicts
from tests.auditing.witness_trees import RELATIONS, tree_contradicts

CHAINS = ("lenet5", "vgg11", "alexnet")
BRANCHED = ("resnet18", "squeezenet1_1")
# one network of each class that is read otherwise: several heads, names with `/`, groups, splits
OTHERS = (
    "mobilenet_v2", "densenet121", "mtcnn-onet", "alexnet_v2-slim", "mobilenet_v1_025-slim",
    "patch32",
)  # fmt: skip
WRITTEN = (
    "matconvnet", "matconvnet.csv", "matconvnet.latex", "matconvnet.dilation", "netscope",
    "netscope.folded", "backbone", "cs231n", "cs231n.md", "layersheet", "torchsummary", "keras",
    "keras.box", "darknet", "darknet.2018", "darknet.2019", "torchinfo", "torchstat", "fvcore",
    "ptflops", "boda", "matconvnet.dag", "matconvnet.dag.csv", "matconvnet.dag.latex",
)  # fmt: skip
LAST = ("keras", "darknet", "cs231n")  # notations whose shapes have the channels last
NAMES = ("index", "name", "type", "connected", "trainable")  # no figures
NAMED = 99  # per cent of the changes with a witness, at least, in a thousand
SAMPLE = 20  # of which one may be missed
# figures in the lines of ptflops, which is no table: headings and patterns
PTFLOPS = (
    ("Params", r"([\d.]+)(?: [kMGBT])?, [\d.]+% Params"), ("% Params", r"([\d.]+)% Params"),
    ("MACs", r"([\d.]+) [KMGT]?Mac,"), ("% MACs", r"([\d.]+)% MACs"),
    ("arguments", r"(?:in_features|out_features)=(\d+)|MACs, (\d+), \d+, k"),
    ("arguments", r"kernel_size=\((\d+)"),
)  # fmt: skip

PATTERNS = {"ptflops": PTFLOPS, "boda": BODA}
# notations that are not changed here, and why
UNCHANGED = {
    "module": "no figure of it follows from another",
    "matconvnet.dag.dot": "a drawing, which is no table",
}  # fmt: skip


class Change(Struct, frozen=True):
    """A figure of a document that is changed in one digit."""

    text: str  # of the document
    table: int
    heading: str
    row: int
    label: str
    cell: Cell
    printed: str


@lru_cache(maxsize=64)
def document(name: str, notation: str) -> str:
    return write(analyze(name, like=NOTATIONS[notation].like), notation)


@lru_cache(maxsize=64)
def network_ops(name: str) -> dict[str, str]:
    return ops_of(analyze(name))


def of_figures(findings: tuple[Finding, ...]) -> list[Finding]:
    """Findings about cells; a heading that promises bytes is one of the source's."""
    return [finding for finding in findings if finding.kind != "heading"]


@pytest.mark.parametrize("notation", WRITTEN)
@pytest.mark.parametrize("name", [*CHAINS, *BRANCHED, *OTHERS])
def test_what_we_write_has_no_findings(name: str, notation: str) -> None:
    assert of_figures(audit_text(document(name, notation), name).findings) == []


def figures_of(text: str, notation: str) -> list[tuple[int, int, str, Cell, str]]:
    """Cells with figures: number of the table, row and its label, the cell and its heading."""
    if notation in PATTERNS:
        lines = enumerate(text.splitlines(), 1)
        found = [
            (number, heading, match)
            for number, line in lines
            for heading, pattern in PATTERNS[notation]
            for match in re.finditer(pattern, line)
        ]
        groups = [
            (number, heading, match, match.lastindex or 0) for number, heading, match in found
        ]
        return [
            (0, 0, "", Cell(match[group], number, match.start(group) + 1), heading)
            for number, heading, match, group in groups
        ]
    if notation.startswith("matconvnet.dag"):
        given = dag_figures(text)
        return [
            (0, 0, name, cell, title) for name, title, cell in given if re.search(r"\d", cell.text)
        ]
    return [
        (number, row.at, row.label, cell, heading.text)
        for number, sheet in enumerate(sheets_of(text))
        for row in sheet.rows
        for cell, heading in zip(row.cells, sheet.headings, strict=False)
        if heading and heading.meaning not in NAMES and re.search(r"\d", cell.text)
    ]


def changes(text: str, notation: str, count: int, chance: random.Random) -> list[Change]:
    """Some figures of a document, each with one digit changed."""
    lines = text.splitlines()
    cells = figures_of(text, notation)
    found: list[Change] = []
    while len(found) < count:
        number, row, label, cell, heading = chance.choice(cells)
        digits = [match.start() for match in re.finditer(r"(?<!-)\d", cell.text)]
        if not digits:
            continue
        at = chance.choice(digits)
        other = chance.choice([d for d in "123456789" if d != cell.text[at]])
        printed = cell.text[:at] + other + cell.text[at + 1 :]
        line = lines[cell.line - 1]
        start = line.find(cell.text, max(cell.column - 1, 0))
        if start < 0:
            continue
        changed = line[:start] + printed + line[start + len(cell.text) :]
        new = "\n".join([*lines[: cell.line - 1], changed, *lines[cell.line :]])
        found.append(Change(new, number, heading, row, label, cell, printed))
    return found


@lru_cache(maxsize=64)
def right_table(name: str, notation: str, number: int) -> tuple[Sheet, Table]:
    sheet = sheets_of(document(name, notation))[number]
    return sheet, Table.of(sheet, notation.startswith(LAST), name in CHAINS)


def has_witness(change: Change, name: str, notation: str) -> bool:
    """Whether another cell of the document contradicts the changed one."""
    if notation in RELATIONS:
        return tree_contradicts(document(name, notation), change.text, notation)
    if notation == "torchstat":
        text = document(name, notation)
        return stat_contradicts(text, change.text, network_ops(name), name in CHAINS)
    if notation.startswith("matconvnet.dag"):
        return dag_contradicts(document(name, notation), change.text)
    if notation == "boda":
        return boda_contradicts(document(name, notation), change.text)
    _, right = right_table(name, notation, change.table)
    last = notation.startswith(LAST)
    sheets = sheets_of(change.text)
    if len(sheets) <= change.table:
        return False
    return contradicts(right, sheets[change.table], change.row, last)


def verdict(change: Change) -> str:
    """What the audit says of a change: the cell alone, the cell and others, others, or nothing."""
    found = of_figures(audit_text(change.text, "changed").findings)
    here = f"{change.heading} in line {change.cell.line}"
    hits = [
        each for each in found
        if (each.line == change.cell.line and each.column == change.heading and
            change.label in ("", each.row)) or any(here in name for name in each.also)
    ]  # fmt: skip
    if not found:
        return "nothing"
    return ("the cell" if len(found) == 1 else "the cell and others") if hits else "others"


def judged(notation: str, count: int, chance: random.Random) -> tuple[Counter[str], list[str]]:
    """Verdicts of some changes, and what was not found."""
    found: Counter[str] = Counter()
    missed = []
    names = (*CHAINS, *BRANCHED)
    for name in names:
        for change in changes(document(name, notation), notation, count // len(names), chance):
            said = verdict(change) if has_witness(change, name, notation) else "no witness"
            found[said] += 1
            if said not in ("the cell", "no witness"):
                cells = f"{change.cell.text!r} -> {change.printed!r}"
                where = f"line {change.cell.line} {change.label} {change.heading}"
                missed.append(f"{said}: {name} {where}: {cells}")
    return found, missed


@pytest.mark.parametrize("notation", WRITTEN)
def test_a_changed_digit_is_found(notation: str) -> None:
    found, missed = judged(notation, SAMPLE, random.Random(3))
    assert found.total() - found["no witness"] > SAMPLE // 10
    assert len(missed) <= 1, missed


def test_every_notation_is_changed_or_has_a_reason() -> None:
    assert sorted((*WRITTEN, *UNCHANGED)) == sorted(NOTATIONS)


def named_share(verdicts: Counter[str]) -> float:
    """How many per cent of the changes with a witness are named, and nothing else is."""
    return 100 * verdicts["the cell"] / max(verdicts.total() - verdicts["no witness"], 1)


def test_too_few_named_changes_are_told_apart() -> None:
    assert named_share(Counter({"the cell": 99, "others": 1, "no witness": 7})) >= NAMED
    assert named_share(Counter({"the cell": 98, "nothing": 2, "no witness": 7})) < NAMED
    assert named_share(Counter({"no witness": 7})) < NAMED  # nothing was tried


def main(count: int, notations: Sequence[str]) -> int:
    """Print the verdicts of each notation; 1 if one has too few changes that are named."""
    below = []
    for each in notations:
        verdicts, others = judged(each, count, random.Random(7))
        witnessed = verdicts.total() - verdicts["no witness"]
        share = named_share(verdicts)
        print(f"{each}: {share:.1f} % of {witnessed}, {dict(verdicts)}", flush=True)
        for line in others[:40]:
            print(f"    {line}")
        if share < NAMED:
            below.append(each)
    if below:
        print(f"below {NAMED} %: {', '.join(below)}")
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:] or WRITTEN))
