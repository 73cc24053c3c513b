"""Large documents: a network or a clear message, in bounded time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import process_time

import pytest

from layerscope import load
from layerscope.api.auditing import audit
from layerscope.errors import LayerscopeError

SECONDS = 60  # of processor time; a loaded machine is several times slower than an idle one
HEAD = "| layer | type | kernel | output | params |\n|---|---|---|---|---|\n"


def rows(count: int) -> str:
    return HEAD + "".join(f"| c{n} | conv | 3x3 | 8x8x3 | 84 |\n" for n in range(count))


# text for a count, the count that takes a second, that of full size, and the message at full size
LARGE: dict[str, tuple[Callable[[int], str], int, int, str]] = {
    "rows": (rows, 1_000, 100_000, "100,000 rows in the tables"),
    "tables": (lambda n: (rows(100) + "\nmore\n\n") * n, 10, 2_000, "rows in the tables"),
    "prose": (lambda n: "The network has 12 layers.\n" * n, 50_000, 1_000_000, "no network"),
    "lines with a bar": (lambda n: "a | b\n" * n, 50_000, 1_000_000, "no network"),
    "one line": (lambda n: "conv 3x3 " * n, 100_000, 1_111_111, "no network"),
    "bars": (lambda n: "|" * n + "\n", 100_000, 1_000_000, "no network"),
    "parentheses": (
        lambda n: f"{HEAD}| a | conv | 3x3 | 8x8x3 | {'(' * n}84{')' * n} |\n", 1_000, 10_000, "",
    ),
}  # fmt: skip


def seconds(path: Path, text: str) -> tuple[float, str]:
    """Processor time of reading and auditing a document, and the message of the reader."""
    path.write_text(text, encoding="utf-8")
    before, message = process_time(), ""
    try:
        load(str(path))
    except LayerscopeError as error:
        message = str(error)
    with suppress(LayerscopeError):
        audit(text=text)
    return process_time() - before, message


@pytest.mark.parametrize("name", LARGE)
def test_time_grows_with_the_document(name: str, tmp_path: Path) -> None:
    text, count, _, _ = LARGE[name]
    small, _ = seconds(tmp_path / "small.md", text(count))
    large, _ = seconds(tmp_path / "large.md", text(3 * count))
    assert large < 6 * small + 2


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_full_size(name: str, tmp_path: Path) -> None:
    text, _, count, expected = LARGE[name]
    taken, message = seconds(tmp_path / "large.md", text(count))
    assert taken < SECONDS
    assert expected in message
    assert bool(message) == bool(expected)


def test_many_contradictions_are_said_to_be_left_out() -> None:
    """Where cells contradict each other without end, the first are named, the rest is counted."""
    head = "| layer | output | params |\n|---|---|---|\n| input | 3x8x8 | 0 |\n"
    text = head + "| conv | 3x8x8 | 84 |\n| fc | 5 | 965 |\n" * 1_000
    notes = [note for table in audit(text=text).tables for note in table.notes]
    assert any(note.startswith("too much contradicts: ") for note in notes)


def test_tables_of_a_large_document_are_audited_one_by_one() -> None:
    text = (rows(100) + "\nmore\n\n") * 101
    with pytest.raises(LayerscopeError, match=r"10,100 rows .* 10,000; check one .* --table"):
        audit(text=text)
    assert len(audit(text=text, table=101).tables) == 1
