"""The configuration of a language model, in the names of transformers, from a GGUF file."""

from __future__ import annotations

from collections.abc import Mapping

from layerscope.errors import FormatError, UnknownName
from layerscope.formats.gguf import GgufFile

# Architectures of llama.cpp by the model_type of transformers.
ARCHITECTURES = {
    "arcee": "arcee", "bitnet": "bitnet", "cohere2": "cohere2", "command-r": "cohere",
    "deepseek2": "deepseek_v3", "dots1": "dots1", "gemma": "gemma", "gemma2": "gemma2",
    "gemma3": "gemma3_text", "glm4": "glm4", "gpt-oss": "gpt_oss", "granite": "granite",
    "granitemoe": "granitemoe", "hunyuan-moe": "hunyuan_v1_moe", "llama": "llama",
    "minimax-m2": "minimax_m2", "olmo2": "olmo2", "olmoe": "olmoe", "phi3": "phi3",
    "qwen2": "qwen2", "qwen2moe": "qwen2_moe", "qwen3": "qwen3", "qwen3moe": "qwen3_moe",
    "seed_oss": "seed_oss", "smollm3": "smollm3", "stablelm": "stablelm",
    "starcoder2": "starcoder2",
}  # fmt: skip
# Keys of the metadata, after the architecture, by the names of transformers.
KEYS = {
    "context_length": ("max_position_embeddings",),
    "block_count": ("num_hidden_layers",),
    "embedding_length": ("hidden_size",),
    "feed_forward_length": ("intermediate_size",),
    "expert_feed_forward_length": ("moe_intermediate_size",),
    "expert_shared_feed_forward_length": ("shared_expert_intermediate_size",),
    "attention.head_count": ("num_attention_heads",),
    "attention.head_count_kv": ("num_key_value_heads",),
    "attention.key_length": ("head_dim",),
    "attention.sliding_window": ("sliding_window",),
    "attention.kv_lora_rank": ("kv_lora_rank",),
    "attention.q_lora_rank": ("q_lora_rank",),
    "rope.dimension_count": ("qk_rope_head_dim",),
    "leading_dense_block_count": ("first_k_dense_replace",),
    "expert_count": ("num_experts", "num_local_experts", "n_routed_experts"),
    "expert_used_count": ("num_experts_per_tok", "moe_topk"),
    "expert_shared_count": ("n_shared_experts",),
    "vocab_size": ("vocab_size",),
}


def gguf_config(found: GgufFile, path: str) -> dict[str, object]:
    """Values of a configuration, in the names of transformers."""
    for key, value in found.metadata.items():
        name = key.partition(".")[2]
        if value is None and name in KEYS:  # lists are skipped
            what = "heads" if "head" in name else "values"
            raise FormatError(f"{path}: {key} is a list: {what} differ by layer")
    architecture = str(found.metadata.get("general.architecture", ""))
    if architecture not in ARCHITECTURES:
        raise UnknownName("architecture of GGUF", architecture, ARCHITECTURES)
    prefix = f"{architecture}."
    shapes = {array.name: array.shape for array in found.arrays}
    kind = ARCHITECTURES[architecture]
    config: dict[str, object] = {"model_type": kind}
    for key, names in KEYS.items():
        value = found.metadata.get(prefix + key)
        if value is not None:
            config.update(dict.fromkeys(names, value))
    embedding = shapes.get("token_embd.weight")
    if embedding is not None:
        config["vocab_size"] = embedding[0]
    config["tie_word_embeddings"] = "output.weight" not in shapes
    config["attention_bias"] = "blk.0.attn_q.bias" in shapes
    if kind == "llama" and "num_experts" in config:
        config["model_type"] = "mixtral"
    if kind == "deepseek_v3":
        config.update(_latent(found.metadata, prefix, config))
    return config


def _latent(
    metadata: Mapping[str, object], prefix: str, config: Mapping[str, object]
) -> dict[str, object]:
    """Head sizes of latent attention: those of one expanded head."""
    names = [f"{prefix}attention.{each}_length" for each in ("key", "value")]
    key, value = (metadata.get(f"{name}_mla", metadata.get(name)) for name in names)
    rope = config.get("qk_rope_head_dim")
    if not isinstance(key, int) or not isinstance(rope, int):
        return {}
    found: dict[str, object] = {"qk_nope_head_dim": key - rope, "v_head_dim": value}
    if "q_lora_rank" not in config:
        found["q_lora_rank"] = None
    return found
