"""Language models from the metadata of GGUF files."""

from __future__ import annotations

from pathlib import Path

import pytest

from layerscope.api.networks import analyze
from layerscope.errors import FormatError, UnknownName
from layerscope.llm.account import read_language_model
from layerscope.llm.cache import CacheOptions, cache_bytes
from layerscope.llm.parameters import total_params
from layerscope.llm.runtimes import RUNTIMES
from tests.formats.stored_files import Metadata, Shapes, gguf

METADATA: Metadata = {
    "general.architecture": "llama", "llama.block_count": 2, "llama.embedding_length": 64,
    "llama.feed_forward_length": 96, "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
}  # fmt: skip


def _arrays(tied: bool) -> Shapes:
    arrays: dict[str, tuple[str, tuple[int, ...]]] = {"token_embd.weight": ("q8_0", (100, 64))}
    for i in range(2):
        for name, shape in (
            ("attn_q", (64, 64)), ("attn_k", (32, 64)), ("attn_v", (32, 64)),
            ("attn_output", (64, 64)), ("ffn_gate", (96, 64)), ("ffn_up", (96, 64)),
            ("ffn_down", (64, 96)),
        ):  # fmt: skip
            arrays[f"blk.{i}.{name}.weight"] = ("q4_0", shape)
        for name in ("attn_norm", "ffn_norm"):
            arrays[f"blk.{i}.{name}.weight"] = ("f32", (64,))
    arrays["output_norm.weight"] = ("f32", (64,))
    if not tied:
        arrays["output.weight"] = ("q8_0", (100, 64))
    return arrays


@pytest.mark.parametrize("tied", [True, False])
def test_the_described_parameters_are_those_of_the_file(tied: bool, tmp_path: Path) -> None:
    path = gguf(tmp_path / "net.gguf", _arrays(tied), METADATA)
    model = read_language_model(path)
    assert total_params(model) == analyze(path).total_params
    options = CacheOptions(tokens=300)
    assert cache_bytes(model, options, RUNTIMES["llama.cpp"]) == 2 * 512 * 2 * 32 * 2


def test_an_architecture_without_a_description_is_refused(tmp_path: Path) -> None:
    path = gguf(tmp_path / "net.gguf", _arrays(True), {**METADATA, "general.architecture": "clip"})
    with pytest.raises(UnknownName, match="architecture of GGUF 'clip'"):
        read_language_model(path)


def test_heads_that_differ_by_layer_are_refused(tmp_path: Path) -> None:
    metadata: Metadata = {**METADATA, "llama.attention.head_count_kv": ["2", "0"]}
    path = gguf(tmp_path / "net.gguf", _arrays(True), metadata)
    with pytest.raises(FormatError, match="heads differ by layer"):
        read_language_model(path)
