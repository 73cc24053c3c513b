"""GGUF files: exact bytes by type, and errors for files that are broken or hostile."""

from __future__ import annotations

import struct
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layerscope.api.networks import analyze
from layerscope.errors import FormatError
from layerscope.formats.gguf import gguf_file
from layerscope.formats.torch.checkpoints.stored_array import StoredArray, array_bytes
from layerscope.graph.block_dtypes import GGML_DTYPES
from tests.formats.stored_files import gguf

ARRAYS = {
    "token_embd.weight": ("q4_0", (64, 256)),
    "blk.0.attn_q.weight": ("q4_k", (32, 256)),
    "blk.0.ffn_down.weight": ("q6_k", (16, 512)),
    "blk.0.attn_norm.weight": ("f32", (256,)),
    "blk.0.ffn_exps.weight": ("mxfp4", (4, 8, 64)),
}
METADATA = {"general.architecture": "llama", "llama.block_count": 1, "tokens": ["a", "bc"]}


def test_parameters_and_bytes_are_those_of_the_types(tmp_path: Path) -> None:
    report = analyze(gguf(tmp_path / "net.gguf", ARRAYS, METADATA))
    assert report.total_params == 64 * 256 + 32 * 256 + 16 * 512 + 256 + 4 * 8 * 64
    assert report.totals.param_bytes == (
        64 * 8 * 18 + 32 * 144 + 16 * 2 * 210 + 256 * 4 + 4 * 8 * 2 * 17
    )


def test_metadata_without_lists(tmp_path: Path) -> None:
    found = gguf_file(gguf(tmp_path / "net.gguf", ARRAYS, METADATA))
    assert found.metadata == {**METADATA, "tokens": None}
    assert [array.shape for array in found.arrays] == [shape for _, shape in ARRAYS.values()]


@pytest.mark.parametrize("dtype, block, size", [row[:3] for row in GGML_DTYPES])
def test_every_type_has_the_bytes_of_its_blocks(
    dtype: str, block: int, size: int, tmp_path: Path
) -> None:
    path = gguf(tmp_path / "net.gguf", {"w.weight": (dtype, (3, 2 * block))})
    assert analyze(path).totals.param_bytes == 3 * 2 * size


def _edited(path: str, old: bytes, new: bytes) -> str:
    data = Path(path).read_bytes()
    assert data.count(old) == 1
    Path(path).write_bytes(data.replace(old, new))
    return path


@pytest.mark.parametrize(
    "old, new, message",
    [
        (b"GGUF\x03\0\0\0", b"GGUF\x01\0\0\0", "has version 1, expected version 2 or 3"),
        (b"GGUF\x03\0\0\0", b"GGUF\0\0\0\x03", "is big-endian"),
        (struct.pack("<IQ", 14, 1152), struct.pack("<IQ", 99, 1152), "type 99"),
        (struct.pack("<IQ", 14, 1152), struct.pack("<IQ", 14, 0), "belong to"),
        (struct.pack("<IQ", 14, 1152), struct.pack("<IQ", 14, 1 << 40), "is the file cut short"),
        (struct.pack("<QQ", 512, 16), struct.pack("<QQ", 511, 16), "rows of 511 in q6_k"),
        (struct.pack("<QQ", 512, 16), struct.pack("<QQ", 1 << 63, 16), r"a size above 2\^63"),
    ],
)
def test_broken_files_are_refused(old: bytes, new: bytes, message: str, tmp_path: Path) -> None:
    arrays = {"a.weight": ("q4_0", (8, 256)), "b.weight": ("q6_k", (16, 512))}
    path = _edited(gguf(tmp_path / "net.gguf", arrays), old, new)
    with pytest.raises(FormatError, match=message):
        gguf_file(path)


def _bytes(array: StoredArray) -> int:
    return array_bytes("", array.shape, array.dtype)


@settings(max_examples=300)
@given(cut=st.integers(0, 400), change=st.integers(0, 399), byte=st.integers(0, 255))
def test_any_bytes_are_read_or_refused(
    cut: int, change: int, byte: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("gguf") / "net.gguf"
    data = bytearray(Path(gguf(path, ARRAYS, METADATA)).read_bytes())
    data[change] = byte
    path.write_bytes(bytes(data[: len(data) - cut]))
    with suppress(FormatError):
        found = gguf_file(str(path))
        assert sum(_bytes(array) for array in found.arrays) <= len(data)


def test_a_part_of_a_split_model_says_so(tmp_path: Path) -> None:
    path = gguf(tmp_path / "net.gguf", ARRAYS, {"split.count": 3})
    assert "one of 3" in analyze(path).graph.notes[0]
