"""Pairs of queries and keys that masks and windows leave, counted one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from layerscope.llm.description import HeadAttention
from layerscope.llm.families import describe
from layerscope.llm.macs import macs, visible_pairs

SMALL = st.integers(0, 40)


def _sees(attention: HeadAttention, query: int, key: int) -> bool:
    if key > query:
        return False
    if attention.window:
        return query - key < attention.window
    return not attention.chunk or query // attention.chunk == key // attention.chunk


@given(tokens=SMALL, past=SMALL, window=st.integers(0, 12), chunk=st.integers(0, 12))
def test_pairs_are_those_of_the_mask(tokens: int, past: int, window: int, chunk: int) -> None:
    attention = HeadAttention(
        heads=1, kv_heads=1, key_dim=1, value_dim=1, window=window, chunk=0 if window else chunk
    )
    counted = sum(
        _sees(attention, query, key)
        for query in range(past, past + tokens)
        for key in range(past + tokens)
    )
    assert visible_pairs(attention, tokens, past) == counted


def test_llama_in_closed_form() -> None:
    found = macs(describe({"model_type": "llama"}), 128)
    assert found is not None
    layer = 4 * 4096**2 + 3 * 4096 * 11008
    assert found.matrices == 128 * (32 * layer + 32000 * 4096)
    assert found.attention == 32 * 2 * 4096 * 128 * 128
    assert found.needed == 32 * 2 * 4096 * 128 * 129 // 2


def test_recurrent_layers_are_unknown() -> None:
    assert macs(describe({"model_type": "jamba"}), 1) is None
