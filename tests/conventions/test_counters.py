"""Conventions of other counters on the zoo, against what the real ones print; and explain."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

import layerscope
from layerscope import Report, analyze, explain
from layerscope.cli import run
from layerscope.conventions import CONVENTIONS, COUNTERS, convention
from layerscope.conventions.counted_nodes import counted_nodes
from layerscope.errors import UsageError
from layerscope.report.figures import parse_figure
from tests.conventions.counter_figures import FIGURES

AUX = 3_326_696  # parameters of inception's auxiliary head, which the zoo's network is without


def like(report: Report, name: str) -> Any:
    return replace(report, convention=convention(name)).totals


@pytest.mark.parametrize("name", FIGURES)
def test_the_zoo_by_every_counter(name: str) -> None:
    figures = FIGURES[name]
    report = analyze(name)
    missing = AUX if name == "inception_v3" else 0
    for counter in COUNTERS:
        totals = like(report, counter)
        if counter in figures:
            assert totals.convention_ops == figures[counter], counter
        if f"{counter} FLOPs" in figures:
            assert totals.convention_kinds.flops == figures[f"{counter} FLOPs"], counter
        if f"{counter} activations" in figures:
            assert totals.convention_activations == figures[f"{counter} activations"], counter
        if counter == "thop":
            assert totals.params == figures["thop params"]
        else:
            assert totals.params == figures["params"] - missing, counter


@pytest.mark.parametrize("name", ["resnet50", "vit_b_16", "swin_t", "bert_base", "unet", "gpt2"])
def test_reasons_add_up_to_the_difference(name: str) -> None:
    found = explain(name)
    assert [said.name for said in found.opinions] == list(COUNTERS)
    for said in found.opinions:
        assert sum(part.count for part in said.parts) == said.macs - found.macs
        assert sum(part.count for part in said.param_parts) == said.params - found.params
        assert all(part.count for part in (*said.parts, *said.param_parts))


def test_reasons_of_a_known_network() -> None:
    found = {said.name: said for said in explain("vit_b_16").opinions}
    missed = found["fvcore"].parts[0]
    assert missed.what.startswith("attention modules missed, without gradients")
    assert missed.count == -6_292_703_232
    assert missed.share is not None
    assert round(float(missed.share), 2) == -0.36
    # in_proj of 12 layers and out_proj, then the class token and positions
    held = {part.what: part.count for part in found["thop"].param_parts}
    assert held["parameters of MultiheadAttention not counted"] == -28_348_416
    assert sum(held.values()) == -28_348_416 - 768 - 151_296
    flops = found["flop_counter"]
    assert (flops.value, flops.macs, flops.parts) == (2 * flops.macs, 17_563_828_224, ())


def test_timm_activations_of_attention_written_out() -> None:
    # 12 layers x 12 heads x 197 x 197 scores and 197 x 768 outputs on top of what fvcore sees of
    # projections, which fused attention hides from it: 197 x 768 x (3 + 1) in each of 12 layers
    seen = like(analyze("vit_b_16"), "fvcore").convention_activations
    written = like(analyze("vit_b_16"), "timm").convention_activations
    assert written - seen == 12 * (12 * 197 * 197 + 197 * 768 + 4 * 197 * 768)


@pytest.mark.parametrize(
    ("figure", "name", "what"),
    [
        ("4.11G", "fvcore", "flops"),
        ("4.09", "exact", "multiply-adds of convolutions and products"),
        ("4.09 GFLOPs", "exact", "multiply-adds of convolutions and products"),
        ("8.2 GFLOPs", "flop_counter", "FLOPs"),
        ("8.178", "exact", "FLOPs at two per multiply-add"),
        ("25.6M", "exact", "parameters"),
        ("23.5M params", "exact", "parameters without the head"),
        ("25,557,032", "exact", "parameters"),
        ("4.13", "thop", "MACs"),
    ],
)
def test_a_published_figure(figure: str, name: str, what: str) -> None:
    answer = explain("resnet50", figure=figure).answer
    assert answer is not None
    assert (name, what) in [(match.name, match.what) for match in answer.matches]
    assert answer.nearest == ()


def test_a_figure_of_another_input() -> None:
    answer = explain("resnet50", figure="5.37G").answer
    assert answer is not None
    assert {match.input for match in answer.matches} == {"256x256"}


def test_a_figure_nobody_gives() -> None:
    answer = explain("vgg16", figure="1.234567G").answer
    assert answer is not None
    assert answer.matches == ()
    assert len(answer.nearest) == 3
    assert "given by no counter" in str(explain("vgg16", figure="1.234567G"))


def test_the_precision_of_a_figure() -> None:
    assert parse_figure("4.1").gives(4_149_999_999)
    assert not parse_figure("4.1").gives(4_151_000_000)
    assert parse_figure("4.10G").gives(4_104_000_000)
    assert not parse_figure("4.10G").gives(4_106_000_000)
    assert not parse_figure("4.1M").gives(4_100_000_000)
    assert parse_figure("61 M").gives(61_100_840)


@pytest.mark.parametrize("text", ["", "G", "four", "4.11X", "-3", "4.11 GB/s"])
def test_what_is_no_figure(text: str) -> None:
    with pytest.raises(UsageError, match="expected a number such as"):
        parse_figure(text)


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "resnet18", "--like", "thop", "--no-stamp"]) == 0
    text = capsys.readouterr().out
    assert "1,814,073,344" in text
    assert "norms counted: +9,934,848 (+0.5 %)" in text
    assert run(["explain", "resnet18", "--as", "markdown", "--like", "fvcore"]) == 0
    text = capsys.readouterr().out
    assert (
        "| fvcore | 11,689,512 | 1,819,065,856 | flops | 1,819,065,856 | +0.3 % | norms counted"
        in text
    )
    assert "not captured from PyTorch" in text


def test_the_command_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "resnet18", "--as", "json", "--figure", "1.81G"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["macs"] == 1_814_073_344
    assert [each["name"] for each in told["counters"]] == list(COUNTERS)
    for each in told["counters"]:
        assert sum(part["count"] for part in each["reasons"]) == each["macs"] - told["macs"]
    assert told["figure"]["matches"][0]["value"] == 1_814_073_344
    assert told["stamp"].startswith("layerscope")


def test_wrong_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "resnet18", "--like", "exact"]) == 2
    assert "unknown counter" in capsys.readouterr().err
    assert run(["explain", "resnet18", "--as", "junit"]) == 2
    assert "unknown form" in capsys.readouterr().err


def test_an_explanation_prints_itself() -> None:
    found = explain("lenet5", counters=("thop",))
    assert str(found) == found.to_text()
    assert found.to_markdown().startswith("| counter")
    assert json.loads(found.to_json())["network"] == "lenet5"
    assert layerscope.Explanation is type(found)


def test_every_counter_is_a_convention() -> None:
    assert set(COUNTERS) < set(CONVENTIONS)
    for name in COUNTERS:
        assert convention(name).name == name
        assert len(convention(name).says) <= 100


def test_conventions_of_one_network_share_what_they_read() -> None:
    report = analyze("resnet18")
    first, again = (
        list(counted_nodes(report.graph, report.shapes, report.costs)) for _ in range(2)
    )
    assert all(one is other for one, other in zip(first, again, strict=True))
    copied = list(counted_nodes(report.graph, report.shapes, dict(report.costs)))
    assert copied == first
    assert copied[0] is not first[0]
