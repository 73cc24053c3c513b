"""A changed digit is corrected to what it was, or stays: no other text is ever written.

    python -m tests.auditing.test_fix_mutations 200 [NOTATION ...]

prints how many of 200 changed figures of each notation are restored and how many are left, and
exits with 1 if a document becomes another one than it was before the change.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Sequence

import pytest

from layerscope.auditing.fix import Fixes, fix
from tests.auditing.test_mutations import (
    BRANCHED,
    CHAINS,
    WRITTEN,
    Change,
    changes,
    document,
)

SAMPLE = 5
SEED = 11


def outcome(right: str, change: Change, fixes: Fixes) -> str:
    """What became of a changed document; every line is the right one or as it was found."""
    lines = fixes.text.splitlines()
    if lines == right.splitlines():
        return "restored"
    if fixes.text == change.text:
        return "left" if fixes.left else "no finding"
    return "wrong"


def judged(
    notation: str, count: int, chance: random.Random, names: Sequence[str] = (*CHAINS, *BRANCHED)
) -> tuple[Counter[str], list[str]]:
    """Outcomes of some changes, and the wrong ones."""
    found: Counter[str] = Counter()
    wrong = []
    for name in names:
        right = document(name, notation)
        for change in changes(right, notation, max(count // len(names), 1), chance):
            fixes = fix(change.text, "changed")
            said = outcome(right, change, fixes)
            found[said] += 1
            if said == "wrong":
                cell = f"{change.cell.text!r} -> {change.printed!r}"
                written = [
                    f"{c.finding.line} {c.finding.column} {c.printed!r} -> {c.written!r}"
                    for c in fixes.changes
                ]
                where = f"{name} line {change.cell.line} {change.label} {change.heading}"
                wrong.append(f"{where}: {cell}: {'; '.join(written)}")
    return found, wrong


@pytest.mark.parametrize("notation", WRITTEN)
def test_a_changed_digit_is_restored_or_left(notation: str) -> None:
    found, wrong = judged(notation, SAMPLE, random.Random(SEED))
    assert found.total() == SAMPLE
    assert not wrong


def main(count: int, notations: Sequence[str]) -> int:
    """Print the outcomes of each notation; 1 if a document became another one."""
    failed = False
    for each in notations:
        outcomes, wrong = judged(each, count, random.Random(SEED))
        print(f"{each}: {dict(outcomes)}", flush=True)
        for line in wrong:
            print(f"    {line}", flush=True)
        failed = failed or bool(wrong)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:] or WRITTEN))
