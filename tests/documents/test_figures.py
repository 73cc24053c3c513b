"""Printed figures: their spellings, and the numbers that they stand for."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layerscope.documents.figures import Rule, plain, read

MILLION = 10**6


@pytest.mark.parametrize(
    "text, expected, unit",
    [
        ("3.2M", 3_200_000, ""),
        ("1,728", 1_728, ""),
        ("2,3M", 2_300_000, ""),
        ("150K", 150_000, ""),
        ("1e+07", 10**7, ""),
        ("1.38 × 10^8", 138_000_000, ""),
        ("1.38×10⁸", 138_000_000, ""),
        ("10<sup>6</sup>", MILLION, ""),
        ("~138M", 138_000_000, ""),
        ("138M parameters", 138_000_000, "param"),
        ("3.2 million", 3_200_000, ""),
        ("9.84 %", Fraction("9.84"), "%"),
        ("714.22 M", 714_220_000, ""),
        ("1.17 KBytes", 1_170, "byte"),
        ("49,412 B", 49_412, "byte"),
        ("2 KiB", 2_048, "byte"),
        ("190.58MMAdd", 190_580_000, "mac"),
        ("0.043 BF", 43_000_000, "flop"),
        ("465us", Fraction(465, MILLION), "second"),
        ("1.2万", 12_000, ""),
        ("1.234.567", 1_234_567, ""),
        ("2\u00a0359\u00a0296", 2_359_296, ""),
        ("17.61 (wrong)", Fraction("17.61"), ""),
        ("**4,096**", 4_096, ""),
        ("`36K`", 36_000, ""),
        ("$1516^*$", 1_516, ""),
        ("1516<sup>*</sup>", 1_516, ""),
        ("07", 7, ""),
        ("-1", -1, ""),
        ("3&times;3", 9, ""),
    ],
)
def test_the_value_of_a_figure(text: str, expected: Fraction | int, unit: str) -> None:
    found = read(text)
    assert found is not None
    assert (found.value(), found.unit) == (expected, unit)


@pytest.mark.parametrize(
    "text, formula, printed",
    [
        ("224*224*3=150K", 150_528, 150_000),
        (r"224\*224\*3=150K", 150_528, 150_000),
        (r"112\*112\*128==1568K", 1_605_632, 1_568_000),
        ("(3*3*3)*64 = 1,728", 1_728, 1_728),
        ("3+(7-1)* 1 = 9", 9, 9),
        (r"$(1+1)\times6$ $^*$", 12, 12),
        (r"$(5\times5\times16+1)\times120$", 48_120, 48_120),
    ],
)
def test_the_formula_before_a_figure(text: str, formula: int, printed: int) -> None:
    found = read(text)
    assert found is not None
    assert found.formula == formula
    assert found.value() == printed


@pytest.mark.parametrize(
    "text",
    ["", "-", "--", "None", "n/a", "conv1", "3 neurons", "12 apples", "1.2.3", "[64, 3]", "9" * 50,
     "1e999", "a" * 5_000, "(3*3", "1\x002"],
)  # fmt: skip
def test_other_text_is_no_figure(text: str) -> None:
    assert read(text) is None


def test_marks_of_a_figure() -> None:
    about, comma = read("~15M"), read("2,3M")
    assert about is not None
    assert about.about
    assert comma is not None
    assert (comma.decimal_comma, comma.decimals, comma.prefix) == (True, 1, "M")


@given(
    st.integers(0, 10**12),
    st.integers(0, 4),
    st.sampled_from([("", 0), ("K", 1), ("M", 2), ("G", 3)]),
    st.sampled_from([1000, 1024]),
    st.sampled_from(["round", "cut"]),
)
def test_a_number_is_printed_as_a_figure_that_stands_for_it(
    number: int, decimals: int, prefix: tuple[str, int], base: int, rule: Rule
) -> None:
    steps = Fraction(number * 10**decimals, base ** prefix[1])
    whole = round(steps) if rule == "round" else floor(steps)
    digits = f"{whole // 10**decimals:,}"
    if decimals:
        digits += f".{whole % 10**decimals:0{decimals}d}"
    found = read(f"{digits}{prefix[0]}")
    assert found is not None
    assert found.stands_for(number, base, rule)
    step = found.step_of(base) / 10**decimals
    assert not found.stands_for(number + 2 * step, base, rule)


@given(st.text(max_size=80))
def test_any_text_is_a_figure_or_none(text: str) -> None:
    found = read(text)
    assert found is None or found.text == plain(text)
