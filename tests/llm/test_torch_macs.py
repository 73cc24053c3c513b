"""Multiply-adds of small copies against closed forms, at several lengths."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from layerscope.api.networks import analyze
from layerscope.llm.description import DecoderLayer, Experts
from layerscope.llm.families import describe
from layerscope.llm.macs import macs
from tests.formats.torch.torch_nets import torch
from tests.llm.test_torch_families import _modules, _small

pytestmark = pytest.mark.filterwarnings("ignore")
KINDS = (
    "llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe", "gemma", "gemma2",
    "gemma3_text", "deepseek_v2", "deepseek_v3", "phi", "phi3", "gpt2", "gpt_oss", "falcon",
    "bloom", "olmo", "olmo2", "granite", "gpt_neox", "opt", "cohere2", "starcoder2",
    "llama4_text", "glm4_moe",
)  # fmt: skip
ALL_EXPERTS = {"llama4_text"}  # transformers multiplies every token by every expert
LENGTHS = ((1, None), (128, None), (4096, None), (None, 1024), (None, 8192))


def _all_experts(layer: DecoderLayer) -> DecoderLayer:
    if layer.experts is None:
        return layer
    count = layer.experts.count
    return replace(layer, experts=Experts(count, count))


@pytest.mark.parametrize("kind", KINDS)
def test_multiply_adds_are_those_of_closed_forms(kind: str, tmp_path: Path) -> None:
    used, transformers = _modules()
    assert used is torch
    config = _small(transformers, kind).to_dict()
    names = {"max_position_embeddings", "n_positions"} & {*config}
    config.update(dict.fromkeys(names, 8200), model_type=kind, num_hidden_layers=3, n_layer=3)
    if isinstance(config.get("layer_types"), list):
        config["layer_types"] = config["layer_types"][-3:]
    for name in ("no_rope_layers", "moe_layers"):
        config.pop(name, None)
    kind_of_model = transformers.AutoModelForCausalLM._model_mapping
    built = transformers.CONFIG_MAPPING[kind]
    config["architectures"] = [kind_of_model[built].__name__]
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    model = describe(config)
    if kind in ALL_EXPERTS:
        model = replace(model, layers=tuple(_all_experts(layer) for layer in model.layers))
    for tokens, decode in LENGTHS:
        report = analyze(f"hf:{path}", tokens=tokens, decode=decode)
        found = macs(model, tokens or 1, decode or 0)
        assert found is not None
        assert (tokens, decode, report.total_macs) == (tokens, decode, found.total)
