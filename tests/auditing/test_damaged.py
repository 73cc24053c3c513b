"""Documents that are damaged: lines and cells lost, twice or in another order, and cut lines.

What is left is read and audited, or refused with an error of its own.
"""

from __future__ import annotations

import re
from random import Random

import pytest

from tests.auditing.test_mutations import WRITTEN, document
from tests.fuzz.targets import TARGETS

PLAIN = """| Layer | Kernel | Stride | Params | Output |
|---|---|---|---|---|
| input |  |  | 0 | 3x32x32 |
| conv1 | 3x3 | 1 | 1,792 | 64x32x32 |
| pool1 | 2x2 | 2 | 0 | 64x16x16 |
| conv2 | 3x3 | 1 | 73,856 | 128x16x16 |
| fc | - | - | 327,690 | 10 |
"""
DAMAGES = 12  # of each document


SHARES = """| Layer | Type | Output | Params |
|---|---|---|---|
| conv1 | Conv 3x3 | 64x32x32 | 2.4 % |
| conv2 | Conv 3x3 | 128x32x32 | 97.6 % |
| total | | | 75,648 |
"""


def with_zero(text: str, number: re.Match[str]) -> str:
    return f"{text[: number.start()]}0{text[number.end() :]}"


def damaged(text: str, random: Random) -> str:
    """The text with one to three losses."""
    lines = text.split("\n")
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(lines))
        line, kind = lines[at], random.randrange(8)
        if kind == 0:
            del lines[at : at + random.choice((1, 1, 2, 5))]
        elif kind == 1:
            lines.insert(random.randrange(len(lines)), line)
        elif kind == 2:
            lines[at] = line[: random.randrange(len(line) + 1)]
        elif kind == 3:  # a cell, with its bar
            cells = line.split("|")
            del cells[random.randrange(len(cells))]
            lines[at] = "|".join(cells)
        elif kind == 4:  # the cells at the end
            cells = line.split("|")
            lines[at] = "|".join(cells[: random.randrange(len(cells) + 1)])
        elif kind == 5:
            words = line.split(" ")
            del words[random.randrange(len(words))]
            lines[at] = " ".join(words)
        elif kind == 6:
            numbers = [*re.finditer(r"\d+", line)]
            if numbers:
                lines[at] = with_zero(line, random.choice(numbers))
        else:
            lines[at] = line.replace(random.choice("0123456789x,.()"), random.choice(" -?0x"))
        if not lines:
            break
    return "\n".join(lines)


def check(text: str) -> None:
    """Raise for an error that is no `LayerscopeError`."""
    for target in ("document", "audit"):
        TARGETS[target](text.encode())


@pytest.mark.parametrize("notation", WRITTEN)
def test_damaged_notations(notation: str) -> None:
    for name in ("lenet5", "squeezenet1_1"):
        random = Random(f"{name} {notation}")
        for _ in range(DAMAGES // 2):
            check(damaged(document(name, notation), random))


def test_damaged_tables() -> None:
    random = Random(7)
    for _ in range(40):
        check(damaged(PLAIN, random))


@pytest.mark.parametrize("notation", ["torchstat", "boda", "matconvnet.dag", "backbone"])
def test_zero_for_any_number(notation: str) -> None:
    text = document("lenet5", notation)
    for number in re.finditer(r"\d+", text):
        check(with_zero(text, number))


def test_zero_for_any_number_of_shares() -> None:
    for number in re.finditer(r"\d+", SHARES):
        check(with_zero(SHARES, number))


def test_a_row_that_ends_before_its_output() -> None:
    check("| Layer | Params | Output |\n|---|---|---|\n| conv | 100 | 3x4x4 |\n| conv2 | 1000 |\n")


def test_a_display_without_its_line_of_strides() -> None:
    text = document("vgg11", "matconvnet")
    check("\n".join(line for line in text.splitlines() if "stride" not in line))
