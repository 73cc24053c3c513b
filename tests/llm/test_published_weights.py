"""Sizes of GGUF files of one type that llama.cpp printed, from the types of their arrays."""

from __future__ import annotations

import re
from math import prod

import pytest

from layerscope.llm.block_formats import block_format
from layerscope.llm.description import LanguageModel, LatentAttention
from layerscope.llm.families import describe
from layerscope.llm.parameters import total_params
from layerscope.llm.weight_bytes import weight_bytes
from tests.llm.published_rows import Config, Row, needs_shared, rows, stored_config

UNITS = {"MiB": 2**20, "GiB": 2**30}
TYPES = ("F16", "Q4_0", "Q8_0", "Q4_1", "Q5_0", "Q5_1")
# Files of one type by name whose arrays have several: 4.016, 3.926 and 3.150 bits a weight.
MIXED = {"K203", "K228", "K222"}
LLAMAS = {  # parameters: hidden, layers, heads, heads of keys, feed-forward
    "6.74 B": (4096, 32, 32, 32, 11008), "13.02 B": (5120, 40, 40, 40, 13824),
    "13.016 B": (5120, 40, 40, 40, 13824), "32.53 B": (6656, 60, 52, 52, 17920),
    "65.29 B": (8192, 80, 64, 64, 22016), "68.98 B": (8192, 80, 64, 8, 28672),
}  # fmt: skip
PYTHIAS = {"pythia_2_8b": (2560, 32, 32, 50304), "pythia_1_4b": (2048, 24, 16, 50304)}
STORED = {
    "Qwen3 235B A22B": "Qwen--Qwen3-235B-A22B_config.json",
    "DeepSeek R1 BF16": "deepseek-ai--DeepSeek-R1_config.json",
    "DeepSeek R1 Bf16": "deepseek-ai--DeepSeek-R1_config.json",
    "Kimi K2 Instruct Bf16 Safetensors": "moonshotai--Kimi-K2-Instruct_config.json",
}


def kind_of(row: Row) -> str:
    """The type of a file, without what describes it."""
    return row["weight_type"].removeprefix("mostly ").split(" ")[0].upper()


def config_of(row: Row) -> Config | None:
    """The configuration of a row; None if the row does not determine one."""
    if row["arch"] == "llama" and row["params"] in LLAMAS:
        hidden, layers, heads, kv_heads, inner = LLAMAS[row["params"]]
        return {
            "model_type": "llama", "hidden_size": hidden, "num_hidden_layers": layers,
            "num_attention_heads": heads, "num_key_value_heads": kv_heads,
            "intermediate_size": inner, "vocab_size": 32000, "tie_word_embeddings": False,
        }  # fmt: skip
    if row["model"] in PYTHIAS:
        hidden, layers, heads, vocabulary = PYTHIAS[row["model"]]
        return {
            "model_type": "gpt_neox", "hidden_size": hidden, "num_hidden_layers": layers,
            "num_attention_heads": heads, "intermediate_size": 4 * hidden,
            "vocab_size": vocabulary, "tie_word_embeddings": False,
        }  # fmt: skip
    return stored_config(STORED[row["model"]]) if row["model"] in STORED else None


ROWS = [
    row for row in rows("kv_cache.csv")
    if row["kind"] == "weights" and row["checked"] == "yes" and kind_of(row) in TYPES
    and row["id"] not in MIXED and config_of(row) is not None
]  # fmt: skip


def split_copies(model: LanguageModel, row: Row) -> int:
    """Elements of the projection of latents that a file stores a second time, split in two.

    Files from before this was done have as many parameters as the model.
    """
    amount, unit = row["params"].split()
    stated = float(amount) * {"B": 1e9, "T": 1e12}[unit]
    step = 10.0 ** -len(amount.partition(".")[2]) * {"B": 1e9, "T": 1e12}[unit]
    copies = sum(
        prod(layer.parts["attention"]["kv_b_proj"])
        for layer in model.layers
        if isinstance(layer.mixer, LatentAttention)
    )
    fits = [n for n in (0, copies) if abs(total_params(model) + n - stated) <= step / 2]
    assert fits, (row["id"], total_params(model), copies)
    return fits[0]


def wide_elements(model: LanguageModel) -> int:
    """Elements of vectors and routers, which a file of F16 stores in F32."""
    groups = (model.outer, *(layer.parts for layer in model.layers))
    return sum(
        prod(shape)
        for parts in groups
        for part, weights in parts.items()
        for shape in weights.values()
        if part != "buffers" and (len(shape) == 1 or part == "router")
    )


@needs_shared
def test_there_are_rows_of_every_type() -> None:
    assert {kind_of(row) for row in ROWS} == {*TYPES}
    assert len(ROWS) >= 43


@needs_shared
@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_the_printed_size_is_that_of_the_types(row: Row) -> None:
    config = config_of(row)
    assert config is not None
    model, chosen = describe(config), block_format(kind_of(row).lower())
    copies = split_copies(model, row)
    size = weight_bytes(model, chosen) + copies * chosen.block_bytes // chosen.block
    if kind_of(row) == "F16":
        size += 2 * wide_elements(model)
    digits = len(re.sub(r"^\d+\.?", "", row["printed_size"]))
    assert f"{size / UNITS[row['unit']]:.{digits}f}" == row["printed_size"]
