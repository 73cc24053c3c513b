"""Windows of attention against the attention weights that the models really compute."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

import layerscope
from layerscope.graph.types import KeyWindow
from layerscope.report.attention_pairs import masked, pairs
from layerscope.report.attention_windows import windowed
from layerscope.report.build import with_needed_pairs
from tests.formats.torch.torch_nets import nn, on, torch
from tests.formats.torch.transformers_nets import ids, library, small

TOKENS = 23
ARCHITECTURES = [
    "cohere2", "doge", "exaone4", "gemma2", "gemma3_text", "gpt_neo", "gpt_oss", "llama4_text",
    "ministral", "mistral", "mixtral", "modernbert", "modernbert-decoder", "moshi", "olmo3", "phi3",
    "phimoe", "qwen2", "qwen3", "qwen3_moe", "smollm3", "starcoder2", "vaultgemma",
]  # fmt: skip


def allowed(window: KeyWindow, query: int, key: int) -> bool:
    if window.chunk:
        return key <= query and key // window.chunk == query // window.chunk
    return query - window.before <= key <= query + window.after


@pytest.mark.parametrize(
    "window", [KeyWindow(0), KeyWindow(4), KeyWindow(3, 2), KeyWindow(9, 9), KeyWindow(chunk=3)]
)
def test_pairs_are_those_of_the_mask(window: KeyWindow) -> None:
    for queries, keys in ((1, 1), (1, 8), (3, 7), (7, 7), (20, 20)):
        places = product(range(keys - queries, keys), range(keys))
        expected = sum(allowed(window, query, key) for query, key in places)
        assert pairs(queries, keys, window) == expected


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_windows_are_those_of_the_attention_weights(kind: str) -> None:
    """Weights that a softmax makes zero are masked: counted one by one, layer by layer."""
    torch.manual_seed(0)
    model = small(kind)
    tokens = torch.randint(3, 60, (1, TOKENS))
    with torch.no_grad():
        weights = model(tokens, output_attentions=True, use_cache=False).attentions
    counts = [int((each[0, 0] > 0).sum()) for each in weights]
    report = layerscope.analyze(model, input_data={"input_ids": tokens}, use_cache=False)
    found = list(report.graph.windows.values()) or [None] * len(counts)
    whole = (TOKENS**2, TOKENS * (TOKENS + 1) // 2)
    assert len(found) % len(counts) == 0  # a wrapper around each module may be listed as well
    noted = [pairs(TOKENS, TOKENS, window) for window in found if window is not None]
    real = [count for count in counts if count not in whole]
    repeats = len(noted) // len(real) if real else 1
    assert sorted(noted) == sorted(real * repeats)
    needed = masked(report.graph, report.shapes)
    assert needed.unknown == 0
    assert needed.needed_macs * TOKENS**2 * len(counts) == needed.all_macs * sum(counts)
    figures = windowed(report)
    assert (figures is None) == (not real)
    if figures is not None:
        per_layer, rest = divmod(figures.all_macs, len(counts))
        per_pair, rest_of_pairs = divmod(per_layer, TOKENS**2)
        assert (rest, rest_of_pairs) == (0, 0)
        inside = sum(TOKENS**2 if count in whole else count for count in counts)
        assert figures.inside_macs == per_pair * inside


@pytest.mark.filterwarnings("ignore")
def test_fused_and_single_operators_have_the_same_note() -> None:
    transformers = library()
    options: dict[str, Any] = {"num_hidden_layers": 6, "hidden_size": 64, "vocab_size": 100}
    notes = set()
    for how in ("eager", "sdpa"):
        config = transformers.Gemma3TextConfig(
            **options, sliding_window=1024, num_attention_heads=8, head_dim=256,
            attn_implementation=how,
        )  # fmt: skip
        model = on("meta", lambda: transformers.Gemma3ForCausalLM(config)).eval()  # noqa: B023
        report = layerscope.analyze(model, input_data={"input_ids": ids(1, 128)}, tokens=8192)
        notes.add(report.notes[-2:])
        figures = windowed(report)
        assert figures is not None
        pair = 2 * 8 * 256  # both products, heads, features
        window = 8192 * 1024
        assert figures.all_macs == 6 * pair * 8192**2 == 1_649_267_441_664
        assert figures.kept_macs == pair * (8192**2 + 5 * window) == 446_676_598_784
        assert figures.inside_macs == figures.kept_macs - 5 * pair * (1024 * 1023 // 2)
        needed = with_needed_pairs(report)
        left = pair * (8192 * 8193 // 2 + 5 * (1024 * 1025 // 2 + (8192 - 1024) * 1024))
        assert report.total_macs - needed.total_macs == figures.all_macs - left
        assert f"{left:,} MACs of attention, where all pairs take 1,649,267,4" in needed.notes[-1]
        assert "the keys of the windows, without masks, 446,676,598,784." in needed.notes[-1]
    [(note, other)] = notes
    assert other.endswith(f"masks and windows leave {left:,} (--attention needed).")
    assert note.startswith("5 of 6 attention layers see a window of 1,024 keys.")
    assert "1,649,267,441,664 MACs" in note
    assert "446,676,598,784" in note


@pytest.mark.filterwarnings("ignore")
def test_no_note_where_nothing_is_left_out() -> None:
    """Texts within the window, and decoding, whose cache holds no more than the window."""
    model = small("mistral")
    within = layerscope.analyze(model, input_data={"input_ids": torch.zeros(1, 1).long()})
    assert windowed(within) is None
    step = layerscope.analyze(model, input_data={"input_ids": torch.zeros(1, 4).long()}, decode=30)
    assert windowed(step) is None
    assert not any("window" in note for note in step.notes)


class Secretive:
    """A configuration that does not tell what differs from layer to layer."""

    model_type = "secretive"

    @property
    def sliding_window(self) -> int:
        raise LookupError("sliding_window is of each layer")


def test_windows_that_a_configuration_does_not_tell_are_noted() -> None:
    model = nn.Linear(4, 4)
    model.config = Secretive()
    report = layerscope.summary(model, (1, 4), verbose=0)
    assert report.total_macs == 16
    [note] = report.graph.notes
    assert note == (
        "attention is counted over all pairs, windows are not known "
        "(LookupError: sliding_window is of each layer)"
    )
