"""GGUF files of known architectures as networks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import layerscope
from layerscope.cli import run
from layerscope.errors import FormatError, UnknownName
from tests.formats.stored_files import Metadata, Shapes, gguf
from tests.llm.test_gguf_config import METADATA, _arrays

pytest.importorskip("torch")
pytest.importorskip("transformers")

LAYER = 2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 96


@pytest.mark.parametrize("prefix", ["", "hf:"])
def test_a_prompt_and_a_step_are_those_of_the_metadata(tmp_path: Path, prefix: str) -> None:
    path = prefix + gguf(tmp_path / "net.gguf", _arrays(False), METADATA)
    prompt = layerscope.analyze(path, tokens=9)
    assert prompt.total_params == 2 * (LAYER + 2 * 64) + 2 * 6400 + 64
    assert prompt.total_macs == 9 * (2 * LAYER + 6400) + 2 * 9 * 9 * 2 * 64
    step = layerscope.analyze(path, decode=20)
    assert step.total_macs == 2 * LAYER + 6400 + 2 * 21 * 2 * 64


def test_notes_have_the_types_and_the_parameters_of_the_file(tmp_path: Path) -> None:
    arrays: Shapes = {**_arrays(True), "rope_freqs.weight": ("f32", (8,))}
    path = gguf(tmp_path / "net.gguf", arrays, METADATA)
    notes = " ".join(layerscope.analyze(path, tokens=3).graph.notes)
    assert "68,168, and the network has 68,160" in notes
    assert "q4_0: 61,440 in 34,560 bytes; q8_0: 6,400 in 6,800 bytes; fp32: 328 in 1,312" in notes


def test_both_accounts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = gguf(tmp_path / "net.gguf", _arrays(False), METADATA)
    assert run(["show", path, "--tokens", "9", "--decode", "20", "--as", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["prefill"]["totals"]["params"] == found["decode"]["totals"]["params"] == 74_560


def test_an_architecture_that_is_not_described_is_refused(tmp_path: Path) -> None:
    metadata = {**METADATA, "general.architecture": "clip"}
    path = gguf(tmp_path / "net.gguf", _arrays(True), metadata)
    with pytest.raises(UnknownName, match="architecture of GGUF 'clip'"):
        layerscope.analyze(path, tokens=3)


def test_both_steps_are_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = gguf(tmp_path / "net.gguf", _arrays(False), METADATA)
    words = ["--tokens", "9", "--decode", "20", "--engine", "torch", "--runs", "2"]
    assert run(["measure", path, *words, "--as", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [step["phase"] for step in found["steps"]] == ["prefill", "decode"]
    assert found["params"] == 74_560


def test_a_network_with_more_than_the_arrays_is_refused(tmp_path: Path) -> None:
    arrays = {name: each for name, each in _arrays(True).items() if "blk.1.ffn_up" not in name}
    path = gguf(tmp_path / "net.gguf", arrays, METADATA)
    with pytest.raises(FormatError, match="62,016 parameters, and the network of its metadata"):
        layerscope.analyze(path, tokens=3)
    split = gguf(tmp_path / "net.gguf", arrays, {**METADATA, "split.count": 2})
    notes = layerscope.analyze(split, tokens=3).graph.notes
    assert any("one file of 2: 62,016; the network has 68,160" in note for note in notes)


@pytest.mark.parametrize("name", ["attention.head_count_kv", "feed_forward_length"])
def test_values_that_differ_by_layer_are_refused(tmp_path: Path, name: str) -> None:
    metadata: Metadata = {**METADATA, f"llama.{name}": ["2", "0"]}
    path = gguf(tmp_path / "net.gguf", _arrays(True), metadata)
    with pytest.raises(FormatError, match=f"{name} is a list"):
        layerscope.analyze(path, tokens=3)
