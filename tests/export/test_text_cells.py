"""Cells that are printed once for layers with equal figures are those of each layer by itself."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layerscope import analyze
from layerscope.export import text
from layerscope.report.columns import COLUMNS
from layerscope.report.numbers import PREFIXES, rounded, short_text

NETWORKS = ("lenet5", "resnet50", "googlenet", "vit_b_16", "mobilenet_v2", "llama-3-8b")


@pytest.mark.parametrize("like", ["exact", "fvcore", "netscope"])
@pytest.mark.parametrize("name", NETWORKS)
def test_equal_figures_are_printed_equally(
    name: str, like: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = analyze(name, like=like)
    printed = [report.to_text(columns=list(COLUMNS), fold=fold) for fold in (True, False)]
    monkeypatch.setattr(text, "OF_FIGURES", frozenset())
    assert printed == [report.to_text(columns=list(COLUMNS), fold=fold) for fold in (True, False)]


@given(st.integers(0, 10**26) | st.fractions(0, 10**9))
def test_short_numbers_are_rounded_as_fractions_are(value: int | Fraction) -> None:
    shown = short_text(value)
    if value < 1000 and value.denominator == 1:
        assert shown == str(value)
        return
    digits = shown.rstrip("".join(PREFIXES))
    unit = 1000 ** PREFIXES.index(shown[len(digits) :])
    decimals = len(digits.partition(".")[2])
    assert Fraction(digits) == Fraction(round(Fraction(value) / unit * 10**decimals), 10**decimals)
    assert len(digits.replace(".", "").lstrip("0")) <= 3 or unit == 1000 ** (len(PREFIXES) - 1)


@given(st.integers(0, 10**12), st.integers(1, 10**6))
def test_halves_are_rounded_to_even(part: int, whole: int) -> None:
    assert rounded(part, whole) == round(Fraction(part, whole))
