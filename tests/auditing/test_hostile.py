"""Documents that are large or broken: a clear word, in bounded time and memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import process_time

import pytest

from layerscope.api.auditing import audit
from layerscope.errors import LayerscopeError
from tests.bounded import run_limited

MOST_BYTES = 2 << 30
SECONDS = 60  # of processor time; a loaded machine is several times slower than an idle one
HEAD = "| layer | output | params |\n| --- | --- | ---: |\n| input | 3x8x8 | 0 |\n"


def rows(count: int) -> str:
    return HEAD + "".join(f"| conv{n} | 3x8x8 | 84 |\n" for n in range(count))


LARGE: dict[str, Callable[[], str]] = {
    "ten megabytes of prose": lambda: "The network has 3 layers, see below.\n" * 280_000,
    "a hundred thousand rows": lambda: rows(100_000),
    "wrong in every row": lambda: rows(3_000).replace("| 84 |", "| 85 |", 1_400),
    "rows of two kinds": lambda: HEAD + "| conv | 3x8x8 | 84 |\n| fc | 5 | 965 |\n" * 2_000,
    "one line": lambda: "CONV: [3x8x8] weights: 84 " * 400_000,
    "a million bars": lambda: HEAD + "|" * 1_000_000 + "\n",
    "a million bars in a heading": lambda: "| layer " * 125_000 + "\n" + "| --- " * 125_000 + "\n",
    "parentheses": lambda: HEAD + f"| conv | 3x8x8 | {'(' * 10_000}84{')' * 10_000} |\n",
    "open parentheses": lambda: HEAD + f"| conv | 3x8x8 | {'(' * 10_000} |\n",
    "digits": lambda: HEAD + f"| conv | 3x8x8 | {'9' * 100_000} |\n",
    "powers": lambda: HEAD + "| conv | 3x8x8 | 9^9^9^9^9 |\n| conv | 9^9^9 | 84 |\n",
    "sizes": lambda: HEAD + f"| conv | {'9' * 30}x{'9' * 30}x3 | 84 |\n" * 20,
    "columns": lambda: "Layer (type)   " + "Param #   " * 5_000 + "\n" + "conv 1   " * 5_000 + "\n",
    "tags": lambda: "<table><tr>" + "<td>1" * 300_000,
    "comments": lambda: "# layer  output  params\n" * 100_000,
    "totals": lambda: rows(3) + "Total params: 252\n" * 100_000,
}  # fmt: skip


AUDIT = """
import sys
from pathlib import Path
from layerscope.api.auditing import audit
from layerscope.errors import LayerscopeError
try:
    for table in audit(text=Path(sys.argv[1]).read_text(encoding="utf-8")).tables:
        print(*[note for note in table.notes if "only the first" in note])
except LayerscopeError as error:
    print("refused:", error)
"""


@pytest.mark.parametrize("name", LARGE)
def test_large_documents(name: str, tmp_path: Path) -> None:
    """Each is audited or refused within a minute and two gigabytes, in a process of its own."""
    path = tmp_path / "large.md"
    path.write_text(LARGE[name](), encoding="utf-8")
    code, output, errors = run_limited(AUDIT, str(path), size=MOST_BYTES, seconds=SECONDS)
    assert code == 0, errors
    assert len(output) < 300
    assert ("only the first" in output) == (name == "a hundred thousand rows")


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"| layer | params |\n| --- | --- |\n| \xff\xfe | 1 |\n", "3:3: byte 0xff is no UTF-8"),
        (b"\xff\xfe|\x00 ", ""),
        (b"\x00" * 1000, "no table"),
        (b"", "no table"),
        (b"\xed\xa0\x80", "byte 0xed"),
    ],
)
def test_broken_encodings(tmp_path: Path, data: bytes, word: str) -> None:
    path = tmp_path / "broken.md"
    path.write_bytes(data)
    with pytest.raises(LayerscopeError, match=word or None):
        audit(path)


def test_a_kernel_of_any_size_is_tried_with_few_paddings() -> None:
    """A document may print any number as a kernel, and the audit tries any in its place."""
    rows = [("conv1", 3, 1, 32), ("conv2", 987_654_321_987, 1, 32), ("conv3", 3, 2, 16)]
    lines = ["| layer | kernel | stride | output |", "| --- | --- | --- | --- |"]
    lines += [f"| {name} | {k} | {s} | {out}x{out}x8 |" for name, k, s, out in rows * 4]
    started = process_time()
    audit(text="\n".join(lines))
    assert process_time() - started < 20
