"""Descriptions of configurations: errors, spellings, and closed forms of some counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layerscope.errors import FormatError, LayerscopeError, UnknownName
from layerscope.llm.cache import CacheOptions, cache_bytes
from layerscope.llm.defaults import defaults
from layerscope.llm.description import HeadAttention
from layerscope.llm.families import FAMILIES, TEXT_PARTS, describe
from layerscope.llm.macs import macs
from layerscope.llm.parameters import (
    active_params,
    layer_params,
    params_by_part,
    total_params,
)
from layerscope.llm.work import Step, mixer_flops


def test_llama_in_closed_form() -> None:
    model = describe({"model_type": "llama"})
    layer = 4 * 4096**2 + 3 * 4096 * 11008 + 2 * 4096
    assert total_params(model) == 2 * 32000 * 4096 + 32 * layer + 4096
    assert layer_params(model.layers[0]) == layer
    assert sum(params_by_part(model).values()) == total_params(model)


def test_mixtral_reads_two_of_eight_experts() -> None:
    model = describe({"model_type": "mixtral"})
    expert = 3 * 4096 * 14336
    everything, without_input, without_both = (each.params for each in active_params(model))
    assert total_params(model) - everything == 32 * 6 * expert
    assert everything - without_input == without_input - without_both == 32000 * 4096


def test_a_tied_head_is_read_and_counted_once() -> None:
    model = describe({"model_type": "gemma2"})
    everything, without_input, without_both = (each.params for each in active_params(model))
    assert everything == without_input == total_params(model)
    assert everything - without_both == 256000 * 2304


def test_what_a_file_gives_precedes_the_default_of_another_spelling() -> None:
    given = {"model_type": "deepseek_v3", "n_routed_experts": 384}
    layer = describe(given).layers[-1]
    assert layer.experts is not None
    assert layer.experts.count == 384


def test_windows_alternate() -> None:
    mixers = [layer.mixer for layer in describe({"model_type": "gemma3_text"}).layers]
    windows = [each.window for each in mixers if isinstance(each, HeadAttention)]
    assert windows[:7] == [4096] * 5 + [0, 4096]


@pytest.mark.parametrize(
    "config, message",
    [
        ({"model_type": "llama", "hidden_size": "4096"}, "hidden_size 4096, expected a whole"),
        ({"model_type": "llama", "hidden_size": True}, "hidden_size True"),
        ({"model_type": "llama", "num_hidden_layers": 10**6}, "MODEL_LAYERS"),
        ({"model_type": "llama", "tie_word_embeddings": 1}, "expected true or false"),
        ({"model_type": "gemma2", "layer_types": ["full_attention"]}, "layer_types has 1"),
        ({"model_type": "llama", "num_attention_heads": 5000}, "head_dim 0"),
        ({"model_type": "gpt2", "n_head": 5000}, "less than one channel"),
        ({"model_type": "qwen3_vl"}, "no text_config"),
        ({"model_type": "nemotron_h"}, "no layers_block_type"),
    ],
)
def test_wrong_values_are_refused(config: dict[str, object], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        describe(config)


def test_an_unknown_model_type_suggests_others() -> None:
    with pytest.raises(UnknownName, match="did you mean llama"):
        describe({"model_type": "lama"})


def test_every_default_is_of_a_family() -> None:
    assert {*defaults()} <= {*FAMILIES}
    assert {*TEXT_PARTS.values()} <= {*FAMILIES}


VALUES = st.none() | st.booleans() | st.integers(-2, 600) | st.text(max_size=3)
NAMES = sorted({name for values in defaults().values() for name in values})


@given(
    kind=st.sampled_from(sorted(FAMILIES)),
    values=st.dictionaries(st.sampled_from([*NAMES, "layer_types"]), VALUES, max_size=6),
)
def test_any_values_are_described_or_refused(kind: str, values: dict[str, object]) -> None:
    try:
        model = describe({**values, "model_type": kind})
    except LayerscopeError:
        return
    assert total_params(model) >= 0


MIMO_7B = {
    "model_type": "mimo", "num_hidden_layers": 36, "hidden_size": 4096, "num_attention_heads": 32,
    "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 11008, "vocab_size": 151680,
    "attention_bias": True, "sliding_window": 32768, "max_window_layers": 32,
    "use_sliding_window": False, "num_nextn_predict_layers": 1, "tie_word_embeddings": False,
}  # fmt: skip


def test_mimo_has_no_windows_and_a_predictor_without_copies() -> None:
    model = describe(MIMO_7B)
    assert {layer.mixer.kind for layer in model.layers if layer.mixer} == {"full"}
    attention = 2 * 4096 * 4096 + 2 * 4096 * 1024 + 4096 + 2 * 1024
    layer = attention + 3 * 4096 * 11008 + 2 * 4096
    total = 36 * layer + 2 * 151680 * 4096 + 4096
    assert total_params(model) == total
    assert [layer_params(each) for each in model.predictors] == [layer + 2 * 4096**2 + 3 * 4096]
    [note] = model.notes
    assert "no published count of parameters checks it" in note
    assert model.predictors[0].parts["predictor"] == {  # of modeling_mimo.py
        "input_proj": (4096, 8192), "token_layernorm.weight": (4096,),
        "hidden_layernorm.weight": (4096,), "final_layernorm.weight": (4096,),
    }  # fmt: skip


def test_attention_to_selected_keys_scores_all_of_them_first() -> None:
    whole = {"model_type": "minimax_m3", "num_hidden_layers": 1}
    selecting = {
        "sparse_attention_freq": [1], "sparse_block_size": 4, "sparse_index_dim": 16,
        "sparse_num_index_heads": 2, "sparse_topk_blocks": 3,
    }  # fmt: skip
    chosen = {**whole, "sparse_attention_config": selecting}
    options = CacheOptions(tokens=100, sequences=2)
    more = cache_bytes(describe(chosen), options) - cache_bytes(describe(whole), options)
    assert more == 200 * 16 * 2
    plain, found = macs(describe(whole), 1, 99), macs(describe(chosen), 1, 99)
    assert plain is not None
    assert found is not None
    assert found.attention - plain.attention == 100 * 2 * 16
    mixer = describe(chosen).layers[0].mixer
    assert mixer is not None
    assert mixer_flops(mixer, Step(tokens=1, past=99)) == 2 * 64 * (128 + 128) * 12
