"""Spellings of headings: each gives its meaning, and none is listed twice."""

from __future__ import annotations

from collections import Counter
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layerscope.documents.headings import SPELLINGS, Heading, Meaning, meaning_of, plain


@pytest.mark.parametrize("meaning", SPELLINGS)
def test_each_spelling_gives_its_meaning(meaning: Meaning) -> None:
    for spelling in SPELLINGS[meaning]:
        for text in (spelling, spelling.title(), f"**{spelling}**", f" {spelling}: "):
            found = meaning_of(text)
            assert found is not None, text
            assert found.meaning == meaning, text


def test_no_spelling_is_listed_twice() -> None:
    counts = Counter(plain(text) for spellings in SPELLINGS.values() for text in spellings)
    assert [text for text, count in counts.items() if count > 1] == []


def test_every_meaning_has_spellings() -> None:
    assert set(get_args(Meaning)) - set(SPELLINGS) <= {"ops"}


@pytest.mark.parametrize(
    "text, expected",
    [
        ("MACs(G) (`pytorch`)", ("macs", 10**9, "")),
        ("GFLOPs", ("flops", 10**9, "")),
        ("BF", ("flops", 10**9, "")),
        ("Params (M)", ("params", 10**6, "")),
        ("Params/M", ("params", 10**6, "")),
        ("FLOPs(×10^9)", ("flops", 10**9, "")),
        ("FLOPs (Billion)", ("flops", 10**9, "")),
        ("参数量（M）", ("params", 10**6, "")),
        (r"Param \#", ("params", 1, "")),
        ("memory(MB)", ("memory", 1024**2, "byte")),
        ("memory(B)", ("memory", 1, "byte")),
        ("size (KB)", ("memory", 1024, "byte")),
        ("MemR+W(B)", ("traffic", 1, "byte")),
        ("duration[%]", ("share", 1, "%")),
        ("duration(ms)", ("time", 1, "ms")),
        ("Latency (s)", ("time", 1, "second")),
        ("Layer ( type )", ("name", 1, "")),
        ("K, P, S", ("kernel_padding_stride", 1, "")),
    ],
)
def test_units_of_a_heading(text: str, expected: tuple[str, int, str]) -> None:
    found = meaning_of(text)
    assert found is not None
    assert (found.meaning, found.scale, found.unit) == expected
    assert found.text == text


@pytest.mark.parametrize(
    "text",
    ["", "Vector", "Metric", "time%", "TAG", "params (apples)", "params" + "(k)" * 30, "x" * 999],
)
def test_other_words_have_no_meaning(text: str) -> None:
    assert meaning_of(text) is None


@given(st.text(max_size=200))
def test_any_text_is_a_heading_or_none(text: str) -> None:
    found = meaning_of(text)
    assert found is None or isinstance(found, Heading)
