"""Networks of configurations: images beside text, dtypes of parts, classes that are named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import layerscope
from layerscope.cli import run
from layerscope.errors import FormatError, UnknownName
from layerscope.llm.families import describe
from layerscope.llm.parameters import total_params

pytest.importorskip("torch")
pytest.importorskip("transformers")

TEXT: dict[str, Any] = {
    "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 100,
}  # fmt: skip
VISION: dict[str, Any] = {
    "depth": 1, "hidden_size": 32, "intermediate_size": 64, "num_heads": 2, "out_hidden_size": 64,
    "num_position_embeddings": 16, "deepstack_visual_indexes": [0],
}  # fmt: skip
QWEN: dict[str, Any] = {
    "model_type": "qwen3_vl",
    "architectures": ["Qwen3VLForConditionalGeneration"],
    "text_config": {**TEXT, "model_type": "qwen3_vl_text", "dtype": "bfloat16"},
    "vision_config": VISION,
}
LATENT: dict[str, Any] = {
    "model_type": "kimi_k2", "architectures": ["DeepseekV3ForCausalLM"], "hidden_size": 64,
    "intermediate_size": 128, "moe_intermediate_size": 32, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 4, "n_routed_experts": 8, "n_group": 1,
    "topk_group": 1, "num_experts_per_tok": 2, "n_shared_experts": 1, "first_k_dense_replace": 1,
    "q_lora_rank": 24, "kv_lora_rank": 16, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8,
    "v_head_dim": 16, "vocab_size": 100,
}  # fmt: skip
AUTO_MAP = {"AutoModelForCausalLM": "modeling_deepseek.DeepseekV3ForCausalLM"}


def _written(folder: Path, config: dict[str, Any]) -> str:
    path = folder / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    return f"hf:{path}"


@pytest.mark.parametrize(
    ("prompt", "past", "tokens"), [(None, None, 128), (20, None, 20), (None, 20, 1)]
)
def test_images_that_are_optional_are_left_out(
    tmp_path: Path, prompt: int | None, past: int | None, tokens: int
) -> None:
    report = layerscope.analyze(_written(tmp_path, QWEN), tokens=prompt, decode=past)
    assert any("images are optional" in note for note in report.graph.notes)
    attention = 2 * (64 * 64 + 2 * 64 * 32 + 64 * 64)  # queries, keys and values, output
    products = attention + 2 * 3 * 64 * 128 + 64 * 100
    linear = sum(layer.ops.mac for layer in report.layers if layer.op == "linear")
    assert linear == tokens * products


def test_parts_have_the_dtype_of_the_whole(tmp_path: Path) -> None:
    """A dtype of the text part alone left the head in another one, and their product failed."""
    report = layerscope.analyze(_written(tmp_path, QWEN), tokens=4)
    assert set(report.macs_by_dtype) == {"fp32"}


def test_images_that_are_needed_are_read(tmp_path: Path) -> None:
    tower = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1,
             "num_attention_heads": 2}  # fmt: skip
    clip = {
        "model_type": "clip",
        "architectures": ["CLIPModel"],
        "text_config": {**tower, "vocab_size": 100},
        "vision_config": {**tower, "image_size": 32, "patch_size": 16},
    }
    report = layerscope.analyze(_written(tmp_path, clip), tokens=7)
    assert {tensor.name for tensor in report.graph.inputs} == {"pixel_values", "input_ids"}
    assert not any("optional" in note for note in report.graph.notes)


@pytest.mark.parametrize("more", [{}, {"auto_map": AUTO_MAP}])
def test_a_class_of_transformers_under_another_type(tmp_path: Path, more: dict[str, Any]) -> None:
    """Kimi K2 has a model_type of its own and names the class of DeepSeek-V3."""
    found = layerscope.analyze(_written(tmp_path, {**LATENT, **more}), tokens=5)
    own = layerscope.analyze(_written(tmp_path, {**LATENT, "model_type": "deepseek_v3"}), tokens=5)
    assert found.total_params == own.total_params > 0
    assert found.total_macs == own.total_macs > 0
    assert any("no model_type kimi_k2" in note for note in found.graph.notes)


RENAMED: dict[str, tuple[dict[str, Any], str, str]] = {
    "mimo": ({**TEXT, "attention_bias": True, "head_dim": 16}, "qwen2", "attention_bias"),
    "minimax_m3": (
        {**TEXT, "num_local_experts": 4, "attention_output_gate": False, "n_shared_experts": 1,
         "head_dim": 16, "rotary_dim": 8},
        "minimax_m3_vl_text", "attention_output_gate",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", RENAMED)
def test_a_type_that_transformers_has_under_another_name(tmp_path: Path, kind: str) -> None:
    values, other, fixed = RENAMED[kind]
    code = {"architectures": ["OwnForCausalLM"], "auto_map": {"AutoModel": "own.Own"}}
    found = layerscope.analyze(_written(tmp_path, {**values, **code, "model_type": kind}), tokens=5)
    named = {"mimo": "Qwen2ForCausalLM", "minimax_m3": "MiniMaxM3VLForCausalLM"}[kind]
    same = {**values, "model_type": other, "architectures": [named]}
    own = layerscope.analyze(_written(tmp_path, same), tokens=5)
    assert found.total_params == own.total_params > 0
    assert found.total_macs == own.total_macs > 0
    assert any(f"no model_type {kind}: counted is {named}" in note for note in found.graph.notes)
    changed = {**values, "model_type": kind, fixed: not values[fixed]}
    with pytest.raises(FormatError, match=f"{fixed} {not values[fixed]}, but {named}"):
        layerscope.analyze(_written(tmp_path, changed), tokens=5)


def test_remote_code_may_be_another_model_of_that_name(tmp_path: Path) -> None:
    config = {**LATENT, "model_type": "mine"}
    notes = layerscope.analyze(_written(tmp_path, config), tokens=5).graph.notes
    assert any("no model_type mine" in note for note in notes)
    with pytest.raises(FormatError, match="mine needs remote code"):
        layerscope.analyze(_written(tmp_path, {**config, "auto_map": AUTO_MAP}), tokens=5)


def test_a_class_that_is_no_model_stays_unknown(tmp_path: Path) -> None:
    for named in ("AutoConfig", "NoSuchModel", "os.path", ""):
        config = {**LATENT, "architectures": [named]}
        with pytest.raises(UnknownName, match="kimi_k2"):
            layerscope.analyze(_written(tmp_path, config), tokens=5)
        with pytest.raises(FormatError, match="remote code"):
            layerscope.analyze(_written(tmp_path, {**config, "auto_map": AUTO_MAP}), tokens=5)


def test_sizes_outside_of_the_parts_are_not_ignored(tmp_path: Path) -> None:
    """transformers keeps the sizes of its defaults for a text part that is not stated."""
    flat = {**TEXT, "model_type": "qwen3_vl", "architectures": QWEN["architectures"]}
    with pytest.raises(FormatError, match="hidden_size 64 is not read: Qwen3VLConfig"):
        layerscope.analyze(_written(tmp_path, flat), tokens=4)


def test_both_steps_are_predicted_for_the_machine_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They were those of this machine for a model whose caches are not described."""
    monkeypatch.setattr("layerscope.cli.predict.is_language_model", lambda _: False)
    words = ["predict", _written(tmp_path, QWEN), "--on", "h100", "--tokens", "8", "--decode", "9"]
    assert run(words) == 0
    assert capsys.readouterr().out.count("layerscope 0.1.0 · NVIDIA H100 SXM") == 2


MIMO: dict[str, Any] = {
    **TEXT, "model_type": "mimo_v2_flash", "architectures": ["MiMoV2FlashForCausalLM"],
    "num_hidden_layers": 3, "v_head_dim": 8, "moe_intermediate_size": 32, "n_routed_experts": 8,
    "num_experts_per_tok": 2, "sliding_window": 4, "swa_num_key_value_heads": 4,
    "hybrid_layer_pattern": [1, 0, 1], "moe_layer_freq": [1, 0, 0],
}  # fmt: skip


def test_lists_of_layers_that_the_class_does_not_read(tmp_path: Path) -> None:
    """transformers takes the published pattern for granted, whatever these lists say."""
    found = layerscope.analyze(_written(tmp_path, MIMO), tokens=9)
    own = {**MIMO, "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
           "mlp_layer_types": ["sparse", "dense", "dense"]}  # fmt: skip
    del own["hybrid_layer_pattern"], own["moe_layer_freq"]
    same = layerscope.analyze(_written(tmp_path, own), tokens=9)
    assert found.total_params == same.total_params == total_params(describe(MIMO))
    assert found.total_macs == same.total_macs
    assert found.graph.windows == same.graph.windows
    seen = [window is not None for window in found.graph.windows.values()]
    assert seen == [True, False, True]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hybrid_layer_pattern", [1, 0]), ("hybrid_layer_pattern", [1, 0, 2]),
        ("moe_layer_freq", "all"), ("swa_num_key_value_heads", 2), ("swa_head_dim", 8),
        ("add_full_attention_sink_bias", True), ("n_shared_experts", 1),
    ],
)  # fmt: skip
def test_what_the_class_cannot_follow_is_refused(tmp_path: Path, name: str, value: object) -> None:
    with pytest.raises(FormatError, match=name):
        layerscope.analyze(_written(tmp_path, {**MIMO, name: value}), tokens=9)


@pytest.mark.parametrize("kind", ["t5", "bart", "whisper"])
def test_the_cache_of_a_decoder_has_the_keys_of_the_encoder(
    tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    named = {"t5": "T5", "bart": "Bart", "whisper": "Whisper"}[kind]
    config = {"model_type": kind, "architectures": [f"{named}ForConditionalGeneration"]}
    path = _written(tmp_path, config)
    words = ["show", path, "--decode", "40", "--runtime", "transformers", "--as", "json"]
    assert run(words) == 0
    found = json.loads(capsys.readouterr().out)
    counted = found["deployment"]["cache"]
    assert counted["bytes"] == found["language"]["cache_bytes"]["fp16"]
    assert all(layer["cross_bytes"] > 0 for layer in counted["layers"])


@pytest.mark.parametrize(("kind", "is_described"), [("llama", True), ("xglm", False)])
def test_fit_says_where_caches_are_not_described(
    tmp_path: Path, kind: str, is_described: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {**TEXT, "model_type": kind, "num_layers": 1, "d_model": 64, "attention_heads": 4}
    words = ["show", _written(tmp_path, config), "--tokens", "9", "--fit", "1GB", "--total"]
    assert run(words) == 0
    found = capsys.readouterr().out
    assert ("A context of" in found) == ("batch  longest context" in found) == is_described
    assert ("caches of this model_type are not described" in found) != is_described
