"""Options of `show` for language models, on a GGUF file, which needs no PyTorch."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from layerscope.cli.show import command
from layerscope.errors import LayerscopeError
from tests.formats.stored_files import gguf
from tests.llm.test_gguf_config import METADATA, _arrays


@pytest.fixture
def path(tmp_path: Path) -> str:
    return gguf(tmp_path / "net.gguf", _arrays(True), METADATA)


def _shown(*words: str) -> str:
    result = CliRunner().invoke(command, [*words], catch_exceptions=False)
    assert result.exit_code == 0
    return " ".join(result.output.split())


def test_cache_memory_and_fit(path: str) -> None:
    text = _shown(path, "--total", "--runtime", "llama.cpp", "--decode", "300", "--fit", "1MB")
    assert "as llama.cpp allocates it: 131 kB (131,072 bytes) = 2 layers of full" in text
    assert "The mathematics needs 76.8 kB (76,800 bytes) of it." in text
    assert "in the types of the file" in text
    assert "Longest context by batch in 1.00 MB: batch 1:" in text


def test_formats_of_keys_and_values(path: str) -> None:
    text = _shown(path, "--total", "--cache-dtype", "q8_0,q4_0", "--decode", "256")
    assert "in q8_0/q4_0, as it is needed: 26.6 kB (26,624 bytes)" in text


@pytest.mark.parametrize(
    "words, message",
    [
        (["--runtime", "llamacpp"], "unknown runtime 'llamacpp'; did you mean llama.cpp"),
        (["--runtime", "vllm", "--as", "csv"], "--runtime cannot be combined with --as csv"),
        (["--weight-dtype", "q4_0"], "has the types of its weights"),
        (["--cache-dtype", "q4_k_m"], "a file of several types"),
        (["--cache-dtype", "f99"], "unknown format 'f99'"),
    ],
)
def test_wrong_options_are_refused(path: str, words: list[str], message: str) -> None:
    with pytest.raises(LayerscopeError, match=message):
        CliRunner().invoke(command, [path, *words], catch_exceptions=False)


def test_other_networks_have_no_cache() -> None:
    with pytest.raises(LayerscopeError, match="needs a language model, as hf:"):
        CliRunner().invoke(command, ["lenet5", "--cache-dtype", "fp8"], catch_exceptions=False)
