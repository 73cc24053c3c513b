"""`show --attention needed`: the pairs of queries and keys that masks leave."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from layerscope.api.networks import analyze
from layerscope.cli import run
from layerscope.report.attention_pairs import masked
from layerscope.report.build import with_needed_pairs

WIDTH, LAYERS = 768, 12  # of gpt2


@pytest.mark.parametrize("tokens", [1, 2, 17])
def test_a_causal_mask_leaves_half_of_the_pairs(tokens: int) -> None:
    report = analyze("gpt2", tokens=tokens)
    needed = with_needed_pairs(report)
    skipped = tokens * (tokens - 1) // 2
    assert report.total_macs - needed.total_macs == LAYERS * 2 * WIDTH * skipped
    found = masked(report.graph, report.shapes)
    assert found.all_macs - found.needed_macs == LAYERS * 2 * WIDTH * skipped
    assert sum(layer.ops.mac for layer in needed.layers) == needed.total_macs
    assert needed.total_params == report.total_params
    assert with_needed_pairs(needed) is needed


def test_a_decoding_step_needs_all_keys() -> None:
    report = analyze("gpt2", decode=40)
    assert with_needed_pairs(report).total_macs == report.total_macs


def test_a_network_without_masks_is_counted_in_full() -> None:
    report = analyze("vit_b_16")
    assert with_needed_pairs(report).totals == report.totals


def test_the_saved_report_is_read_with_its_pairs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "gpt2.json"
    words = ["show", "gpt2", "--tokens", "9", "--attention", "needed"]
    assert run([*words, "-o", str(path)]) == 0
    assert json.loads(path.read_text())["options"]["attention"] == "needed"
    assert run([*words, "--total"]) == 0
    first = capsys.readouterr().out
    assert run(["show", str(path), "--total"]) == 0
    assert capsys.readouterr().out == first
    assert run([*words, "--depth", "1"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Counted are the pairs of queries and keys that masks and windows leave" in text
    assert "attention of needed pairs" in text
    assert "counted again" not in text


@pytest.mark.parametrize(
    "more", [["--like", "fvcore"], ["--as", "netscope"], ["--as", "json", "--conventions", "all"]]
)
def test_conventions_of_others_count_their_own_pairs(
    more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["show", "gpt2", "--attention", "needed", *more]) == 2
    assert "cannot be combined with" in capsys.readouterr().err
