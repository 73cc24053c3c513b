"""Rows of published figures about language models, and the configuration that each describes."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

SHARED = Path(__file__).parents[2].parent / "shared" / "truth" / "llm"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared")
Row = dict[str, str]
Config = dict[str, object]


def rows(name: str) -> list[Row]:
    """All rows of a file; none where the folder is missing."""
    if not SHARED.is_dir():
        return []
    with open(SHARED / name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def stored_config(name: str) -> Config:
    """A configuration of the folder."""
    found: Config = json.loads((SHARED / "configs" / name).read_text(encoding="utf-8"))
    return found


def _number(row: Row, name: str) -> int:
    return int(row[name])


def _plain(row: Row, model_type: str) -> Config:
    """A configuration of Llama's form with the columns of a row."""
    config: Config = {
        "model_type": model_type,
        "hidden_size": _number(row, "hidden_size"),
        "num_hidden_layers": _number(row, "layers"),
        "num_attention_heads": _number(row, "heads"),
        "num_key_value_heads": _number(row, "kv_heads"),
        "intermediate_size": _number(row, "intermediate"),
        "vocab_size": _number(row, "vocab"),
        "tie_word_embeddings": row["tie"] == "True",
    }
    if row["head_dim"]:
        config["head_dim"] = _number(row, "head_dim")
    if row["experts"]:
        config["num_experts"] = _number(row, "experts")
        config["num_local_experts"] = config["n_routed_experts"] = _number(row, "experts")
        config["num_experts_per_tok"] = _number(row, "experts_per_tok")
    if row["moe_intermediate"]:
        config["moe_intermediate_size"] = _number(row, "moe_intermediate")
    return config


def _gpt2(row: Row) -> Config:
    return {
        "model_type": "gpt2",
        "n_embd": _number(row, "hidden_size"),
        "n_layer": _number(row, "layers"),
        "n_head": _number(row, "heads"),
        "vocab_size": _number(row, "vocab"),
        "n_positions": 1024,
    }


def _bloom(row: Row) -> Config:
    return {
        "model_type": "bloom",
        "hidden_size": _number(row, "hidden_size"),
        "n_layer": _number(row, "layers"),
        "n_head": _number(row, "heads"),
        "vocab_size": _number(row, "vocab"),
    }


def _opt(row: Row) -> Config:
    return {
        **_plain(row, "opt"),
        "ffn_dim": _number(row, "intermediate"),
        "max_position_embeddings": 2048,
    }


def _t5(row: Row) -> Config:
    gated = row["model"].startswith(("t5_1.1", "flan"))
    return {
        "model_type": "t5",
        "d_model": _number(row, "hidden_size"),
        "d_kv": _number(row, "head_dim"),
        "d_ff": _number(row, "intermediate"),
        "num_heads": _number(row, "heads"),
        "num_layers": int(row["layers"].split("+")[0]),
        "vocab_size": _number(row, "vocab"),
        "feed_forward_proj": "gated-gelu" if gated else "relu",
        "tie_word_embeddings": row["tie"] == "True",
    }


def _falcon(row: Row) -> Config:
    return {
        **_plain(row, "falcon"),
        "multi_query": False,
        "bias": True,
        "parallel_attn": False,
        "new_decoder_architecture": False,
        "tie_word_embeddings": True,
    }


def _deepseek2(row: Row) -> Config:
    is_lite = row["model"].lower().count("lite") > 0
    return {
        "model_type": "deepseek_v2",
        "hidden_size": 2048 if is_lite else 5120,
        "num_hidden_layers": 27 if is_lite else 60,
        "num_attention_heads": 16 if is_lite else 128,
        "intermediate_size": 10944 if is_lite else 12288,
        "moe_intermediate_size": 1408 if is_lite else 1536,
        "n_routed_experts": 64 if is_lite else 160,
        "n_shared_experts": 2,
        "num_experts_per_tok": 6,
        "q_lora_rank": None if is_lite else 1536,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "first_k_dense_replace": 1,
        "vocab_size": 102400,
        "tie_word_embeddings": False,
    }


def _glm4_moe(row: Row) -> Config:
    is_air = "Air" in row["model"]
    config = _plain(row, "glm4_moe")
    return {
        **config,
        "first_k_dense_replace": 1 if is_air else 3,
        "n_shared_experts": 1,
        "use_qk_norm": not is_air,
        "attention_bias": True,
    }


WRITTEN = {
    "bloom": _bloom,
    "deepseek_v2": _deepseek2,
    "falcon": _falcon,
    "glm4_moe": _glm4_moe,
    "gpt2": _gpt2,
    "opt": _opt,
    "t5": _t5,
}
# Sizes of Whisper that the rows do not state, as its paper gives them: width, layers, heads.
WHISPER = {
    "tiny": (384, 4, 6), "base": (512, 6, 8), "small": (768, 12, 12), "medium": (1024, 24, 16),
    "large": (1280, 32, 20),
}  # fmt: skip
# Further rows without columns, by the configuration that their sources publish.
NAMED: dict[str, str] = {
    "Qwen3.6-27B": "Qwen--Qwen3.5-27B_config.json",
    "Qwen3.6-35B-A3B": "Qwen--Qwen3.5-35B-A3B_config.json",
    "gemma-4-26B-A4B": "google--gemma-4-26B-A4B_config.json",
}


# Published configurations of rows that state none.
KNOWN: dict[str, Config] = {
    "GLM-4.5-Air": {
        "model_type": "glm4_moe", "hidden_size": 4096, "num_hidden_layers": 46,
        "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128,
        "intermediate_size": 10944, "moe_intermediate_size": 1408, "n_routed_experts": 128,
        "num_experts_per_tok": 8, "n_shared_experts": 1, "first_k_dense_replace": 1,
        "attention_bias": True, "use_qk_norm": False, "vocab_size": 151552,
        "tie_word_embeddings": False, "num_nextn_predict_layers": 1,
    },
    "dots.llm1.inst": {
        "model_type": "dots1", "hidden_size": 4096, "num_hidden_layers": 62,
        "num_attention_heads": 32, "num_key_value_heads": 32, "intermediate_size": 10944,
        "moe_intermediate_size": 1408, "n_routed_experts": 128, "num_experts_per_tok": 6,
        "n_shared_experts": 2, "first_k_dense_replace": 1, "vocab_size": 152064,
        "tie_word_embeddings": False,
    },
    "Hunyuan-A13B": {
        "model_type": "hunyuan_v1_moe", "hidden_size": 4096, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
        "intermediate_size": 3072, "num_experts": 64, "moe_topk": 8, "num_shared_expert": 1,
        "vocab_size": 128167, "tie_word_embeddings": True,
    },
    "Mistral-Small-3.1-24B": {
        "model_type": "mistral", "hidden_size": 5120, "num_hidden_layers": 40,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
        "intermediate_size": 32768, "vocab_size": 131072, "tie_word_embeddings": False,
    },
    "phi-4 14B (unphi, llama layout)": {
        "model_type": "phi3", "hidden_size": 5120, "num_hidden_layers": 40,
        "num_attention_heads": 40, "num_key_value_heads": 10, "intermediate_size": 17920,
        "vocab_size": 100352, "tie_word_embeddings": False,
    },
    "bart_large_en": {"model_type": "bart"},
    "smollm3_3b_en": {"model_type": "smollm3"},
    "qwen1.5_moe_2.7b_en": {"model_type": "qwen2_moe"},
    "gemma3_270m": {
        "model_type": "gemma3_text", "hidden_size": 640, "num_hidden_layers": 18,
        "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256,
        "intermediate_size": 2048, "vocab_size": 262144, "tie_word_embeddings": True,
    },
}  # fmt: skip


def _whisper(size: str) -> Config:
    width, layers, heads = WHISPER[size]
    sides: Config = {"model_type": "whisper", "d_model": width, "vocab_size": 51865}
    for side in ("encoder", "decoder"):
        sides[f"{side}_layers"] = layers
        sides[f"{side}_attention_heads"] = heads
        sides[f"{side}_ffn_dim"] = 4 * width
    return sides


def params_config(row: Row) -> Config | None:
    """The configuration of a row of params.csv; None if it does not determine one."""
    stored = row["config_source"].rpartition("model_configs/")[2]
    if stored.endswith("_config.json"):
        return stored_config(stored)
    if row["model"] in NAMED:
        return stored_config(NAMED[row["model"]])
    if row["arch"] == "whisper":
        size = row["model"].replace("whisper_", "").replace("whisper ", "").split("_")[0]
        return _whisper(size)
    if row["model"] in KNOWN and not row["hidden_size"]:
        return KNOWN[row["model"]]
    if not row["hidden_size"] and row["arch"] != "deepseek_v2":
        return None
    if row["arch"] in WRITTEN:
        return WRITTEN[row["arch"]](row)
    try:
        return _plain(row, row["arch"])
    except ValueError:  # per-layer sizes, which the row does not list
        return None
