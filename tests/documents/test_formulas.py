"""Formulas of cells against Python's own evaluation, and the limits."""

from __future__ import annotations

import re
from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layerscope.documents.formulas import DEPTH, EXPONENT, LENGTH, FormulaError, has_sign, value

NUMBERS = st.integers(0, 999).map(str)
EXPRESSIONS = st.recursive(
    NUMBERS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/"]), inner).map(" ".join),
        inner.map("({})".format),
        inner.map("-({})".format),
        st.tuples(inner, st.integers(0, 3)).map(lambda pair: f"({pair[0]})**{pair[1]}"),
    ),
    max_leaves=5,
)


def evaluated(expression: str) -> Fraction | None:
    """What Python gives for an expression of exact numbers; None for a division by zero."""
    source = re.sub(r"(?<!\*)(?<!\*\*)\b\d+", lambda m: f"Fraction({m[0]})", expression)
    try:
        return Fraction(eval(source, {"Fraction": Fraction}))
    except ZeroDivisionError:
        return None


@given(EXPRESSIONS)
def test_an_expression_has_the_value_that_python_gives(expression: str) -> None:
    expected = evaluated(expression)
    if expected is None:
        with pytest.raises(FormulaError, match=r"division by zero|too large"):
            value(expression)
        return
    assert value(expression) == expected


@pytest.mark.parametrize(
    "text, expected",
    [
        ("(3*3*64)*64", 36_864),
        ("224x224x3", 150_528),
        ("7×7×512·4096", 102_760_448),
        ("1,024*2", 2_048),
        ("floor((224-7)/2)+1", 109),
        ("ceil(7/2)", 4),
        ("⌊7/2⌋", 3),
        (r"(5\times5\times16+1)\times120", 48_120),
        (r"\lfloor 7 / 2 \rfloor", 3),
        (r"\left(1+1\right)\times6", 12),
        ("2^3^2", 512),
        ("-2^2", -4),
        ("2*-3", -6),
        ("3²", 9),
        ("10/4", Fraction(5, 2)),
        ("[3*3]*2", 18),
        ("{3}*{2}", 6),
        (".5*4", 2),
    ],
)  # fmt: skip
def test_the_value_of_a_formula(text: str, expected: Fraction | int) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    "text, says",
    [
        ("", "empty"),
        ("3*", "ends with a sign"),
        ("*3", "without a number"),
        ("(3", "not closed"),
        ("3)", "not opened"),
        ("()", "empty parenthesis"),
        ("3 3", "two values"),
        ("(5 5 + 1) 6", "two values"),
        ("1/0", "division by zero"),
        ("1/(3-3)", "division by zero"),
        ("2^65", "power"),
        ("2^-1", "power"),
        ("2^(1/2)", "power"),
        ("99999999^64", "too large"),
        ("__import__('os')", "no part of a formula"),
        ("a*b", "no part of a formula"),
        ("1;2", "no part of a formula"),
        ("(" * 10_000 + "1" + ")" * 10_000, "characters"),
        ("(" * 500 + "1" + ")" * 500, "nested deeper"),
        ("9" * (LENGTH + 1), "characters"),
        ("9" * 200 + "*" + "9" * 200, "too large"),
    ],
)
def test_what_is_no_formula_is_refused(text: str, says: str) -> None:
    with pytest.raises(FormulaError, match=says):
        value(text)


def test_the_deepest_formula_is_evaluated() -> None:
    assert value("(" * DEPTH + "7" + ")" * DEPTH) == 7
    assert value(f"2^{EXPONENT}") == 2**EXPONENT


@given(st.text(max_size=60))
def test_any_text_is_a_value_or_refused(text: str) -> None:
    with suppress(FormulaError):
        assert isinstance(value(text), Fraction)


@pytest.mark.parametrize("text", ["3*3", "3 x 3", "(3)*(4)", r"3\times3", "2 ** 3", "7-1"])
def test_a_sign_between_numbers_is_found(text: str) -> None:
    assert has_sign(text)


@pytest.mark.parametrize("text", ["", "3", "x3", "a*b", "-1", "conv1_1"])
def test_a_text_without_a_sign_is_no_formula(text: str) -> None:
    assert not has_sign(text)
