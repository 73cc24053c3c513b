"""A figure is written the way its column writes figures."""

from __future__ import annotations

from fractions import Fraction

import pytest

from layerscope.auditing.written import rewritten, style_of, texts


def first(text: str, expected: str, scale: int = 1, others: tuple[str, ...] = ()) -> str:
    return next(iter(rewritten(text, expected, scale, others)), "")


@pytest.mark.parametrize(
    ("text", "expected", "written"),
    [
        ("4,460", "4,640", "4,640"),
        ("4460", "4,640", "4640"),
        ("1568K", "1,605,632", "1606K"),
        ("2.2M", "2,359,296", "2.4M"),
        ("2,2M", "2,359,296", "2,4M"),
        ("1.20 k", "1,792", "1.79 k"),
        ("**4,460**", "4,640", "**4,640**"),
        ("`4460` ", "4,640", "`4640` "),
        ("4_460", "4,640", "4_640"),
        (r"4{,}460", "4,640", r"4{,}640"),
        ("12.0%", "12.34%", "12.3%"),
        ("3.0MB", "3,211,264", "3.2MB"),
        ("100 MFLOPs", "120,000,000", "120 MFLOPs"),
        ("3x3", "5", "5x5"),
        ("(None, 28, 28, 64)", "14x14x64", "(None, 14, 14, 64)"),
        ("[28x28x64]", "14x14x64", "[14x14x64]"),
        ("[-1, 64, 28, 28]", "64x14x14", "[-1, 64, 14, 14]"),
    ],
)
def test_a_cell_keeps_its_style(text: str, expected: str, written: str) -> None:
    assert first(text, expected) == written


@pytest.mark.parametrize(
    ("text", "expected", "written"),
    [
        (r"56\*56\*128=401408", "28*28*256=200,704", r"28\*28\*256=200704"),
        ("(3*3*63)*64 = 36,864", "36,864", "(3*3*64)*64 = 36,864"),
        ("(3*3*64)*64 = 36,846", "36,864", "(3*3*64)*64 = 36,864"),
        ("(3*3*63)*64", "36,864", "(3*3*64)*64"),
        ("112*112*128==1568K", "1,605,632", "112*112*128==1606K"),
    ],
)
def test_a_formula_stays_a_formula(text: str, expected: str, written: str) -> None:
    assert first(text, expected) == written


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("24M * 4 bytes ~= 93MB / image", "15,237,608"),  # more than one figure
        ("7,0,1", "3"),  # kernel, padding and stride
        ("2*3*5 = 30", "60"),  # any of the factors may be wrong
        ("none", "12"),
        ("4,460", "conv"),
    ],
)
def test_what_is_not_certain_is_not_written(text: str, expected: str) -> None:
    assert first(text, expected) == ""


def test_the_heading_scales_a_figure() -> None:
    assert first("4.1", "23,600,000", 1_000_000) == "23.6"


def test_a_missing_figure_is_written_as_its_neighbours() -> None:
    assert texts(Fraction(4096000), 1, None, ["36,864", "4*4=16"])[0] == "4,096,000"
    assert texts(Fraction(2359296), 1, None, ["1.2M", "590K"])[0] == "2.4M"


def test_other_ways_follow() -> None:
    ways = list(rewritten("1568K", "1,605,632", 1, ["800K", "3.2M"]))
    assert ways[:2] == ["1606K", "1605K"]
    assert "1568K" in ways
    assert "1.6M" in ways
    assert ways[-1] == "1605632"


def test_a_style_that_would_print_zero_is_not_used() -> None:
    assert "0M" not in texts(Fraction(150), 1, style_of("3M"), [])
