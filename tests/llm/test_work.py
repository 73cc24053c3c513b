"""Work of steps of language models: pairs and experts by brute force, operations in closed form."""

from __future__ import annotations

import random
from itertools import product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layerscope.errors import UsageError
from layerscope.graph.types import Shape
from layerscope.llm.description import Experts
from layerscope.llm.families import describe
from layerscope.llm.work import Step, layer_works, pairs, touched_share

LLAMA_8B = {
    "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 128256,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
    "tie_word_embeddings": False,
}  # fmt: skip
MIXTRAL = LLAMA_8B | {
    "model_type": "mixtral", "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2,
}  # fmt: skip


def half(_part: str, _name: str, shape: Shape) -> float:
    return 2 * prod(shape)


def seen_by(position: int, window: int, chunk: int) -> int:
    """Tokens that the token at a position sees, itself included."""
    first = position - position % chunk if chunk else 0
    return min(position - first + 1, window or position + 1)


@pytest.mark.parametrize(("window", "chunk"), [(0, 0), (1, 0), (4, 0), (100, 0), (0, 3), (0, 7)])
def test_pairs_are_those_of_a_loop(window: int, chunk: int) -> None:
    for tokens, past in product((1, 2, 5, 9), (0, 1, 3, 4, 8, 20)):
        loop = sum(seen_by(past + n, window, chunk) for n in range(tokens))
        assert pairs(Step(tokens=tokens, past=past), window, chunk) == loop


def test_share_of_experts_is_that_of_random_choices() -> None:
    draw, experts, rounds = random.Random(1), Experts(16, 3), 4000
    for tokens in (1, 2, 5, 20):
        found = sum(
            len({one for _ in range(tokens) for one in draw.sample(range(16), 3)})
            for _ in range(rounds)
        )
        assert touched_share(experts, tokens) == pytest.approx(found / rounds / 16, rel=0.01)
    assert touched_share(experts, 1) == pytest.approx(3 / 16)


@given(
    st.integers(1, 64).flatmap(lambda count: st.tuples(st.just(count), st.integers(1, count))),
    st.integers(1, 100),
    st.floats(0, 3),
)
def test_skewed_choices_touch_fewer_experts(
    sizes: tuple[int, int], tokens: int, skew: float
) -> None:
    experts = Experts(*sizes)
    share, even = touched_share(experts, tokens, skew), touched_share(experts, tokens)
    least = experts.per_token / experts.count
    assert least - 1e-9 <= share <= even + 1e-9
    assert touched_share(experts, 1, skew) == pytest.approx(least)
    assert touched_share(experts, tokens + 1, skew) >= share - 1e-9


def test_a_skew_by_hand() -> None:
    """Ranks 1 and 2 in proportion 2 to 1, one expert each: 2/3 and 1/3; after two tokens 13/18."""
    assert touched_share(Experts(2, 1), 2, 1.0) == pytest.approx((8 / 9 + 5 / 9) / 2)


def test_operations_of_a_prefill_and_a_decode_step() -> None:
    model = describe(LLAMA_8B)
    matrices = 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336)
    head = 4096 * 128256
    for step in (Step(tokens=100, batch=3), Step(tokens=1, past=1000, batch=3)):
        works = layer_works(model, step, half, "f16")
        assert [work.name for work in works[:2]] == ["embedding", "layers.0"]
        flops = 2 * matrices * step.all_tokens + 2 * head * step.batch
        assert sum(work.flops for work in works) == flops
        seen = sum(step.past + n + 1 for n in range(step.tokens))
        attention = 32 * 4 * 4096 * seen * step.batch
        assert sum(work.attention_flops for work in works) == attention
        cache = 32 * 2 * 1024 * 2 * step.past * step.batch
        assert sum(work.cache_bytes for work in works) == cache
        rows = step.all_tokens * 4096
        read = sum(work.weight_bytes for work in works)
        assert read == 2 * (matrices + head + 32 * 2 * 4096 + rows)


def test_a_decode_step_reads_the_experts_that_its_tokens_are_sent_to() -> None:
    model = describe(MIXTRAL)
    expert = 2 * 3 * 4096 * 14336
    one, many = (
        layer_works(model, Step(tokens=1, batch=batch), half, "f16")[1] for batch in (1, 1000)
    )
    assert many.weight_bytes - one.weight_bytes == pytest.approx(6 * expert)
    assert many.least_weight_bytes == one.least_weight_bytes == pytest.approx(one.weight_bytes)
    assert one.expert_flops == 2 * expert


@pytest.mark.parametrize(
    "values", [{"tokens": 0}, {"tokens": 1, "past": -1}, {"tokens": 1, "batch": 0}]
)
def test_impossible_steps_are_refused(values: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="expected at least"):
        Step(**values)
