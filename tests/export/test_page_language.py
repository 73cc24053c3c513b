"""Cache by layer and the fit table on the report page: texts of the figures that `show` has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layerscope.export.language_lines import LanguageResults
from layerscope.export.page_language import page_use, ranges
from layerscope.llm.account import Deployment, memory_use
from layerscope.llm.cache import CacheOptions
from layerscope.llm.families import describe
from layerscope.llm.fit import language_fit
from layerscope.report.numbers import bytes_text
from tests.llm.test_work import LLAMA_8B

GEMMA = {
    "model_type": "gemma3_text", "hidden_size": 64, "intermediate_size": 96,
    "num_hidden_layers": 12, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
    "vocab_size": 128, "sliding_window": 512, "sliding_window_pattern": 6,
}  # fmt: skip


def deployment(config: dict[str, object], program: str) -> Deployment:
    return Deployment(model=describe(config), cache=CacheOptions(tokens=8192), program=program)


@pytest.mark.parametrize("program", ["", "llama.cpp", "vllm"])
@pytest.mark.parametrize("config", [LLAMA_8B, GEMMA])
def test_layers_and_kinds(config: dict[str, object], program: str) -> None:
    used = deployment(config, program)
    found = page_use(LanguageResults(used))
    layers = used.layers()
    assert [each.bytes for each in found.layers] == [each.total for each in layers]
    assert found.most == bytes_text(max(each.total for each in layers))
    assert len(found.kinds) == len(set(layers))
    listed = sorted(n for kind in found.kinds for n in numbers(kind.layers))
    assert listed == list(range(len(layers)))
    assert found.fits == ""
    assert found.contexts == []


def numbers(text: str) -> list[int]:
    found: list[int] = []
    for part in text.split(", "):
        first, _, last = part.partition("–")
        found += range(int(first), int(last or first) + 1)
    return found


@given(st.sets(st.integers(0, 60), min_size=1))
def test_ranges_are_read_back(given: set[int]) -> None:
    assert numbers(ranges(sorted(given))) == sorted(given)


def test_contexts_have_their_uses() -> None:
    used = deployment(LLAMA_8B, "llama.cpp")
    fit = language_fit(used, 24 * 10**9)
    found = page_use(LanguageResults(used, fit))
    assert "is the largest in 24.0 GB" in found.fits
    assert len(found.contexts) == len(fit.contexts) > 1
    for row, (batch, tokens) in zip(found.contexts, fit.contexts, strict=True):
        use = memory_use(used.sized(batch, tokens))
        assert (row.batch, row.tokens) == (f"{batch:,}", f"{tokens:,}")
        assert row.uses[:2] == [bytes_text(use.weights), bytes_text(use.cache)]
        assert row.total == bytes_text(use.total)
        assert use.total <= 24 * 10**9


def test_nothing_fits() -> None:
    used = deployment(LLAMA_8B, "")
    found = page_use(LanguageResults(used, language_fit(used, 10**9)))
    assert found.fits.startswith("Nothing fits in 1.00 GB")
    assert found.contexts == []
