"""Figures of language models: tokens, the cache, precisions, and the lines that tell them."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import msgspec
import pytest

from layerscope import Builder, Graph, Report, analyze, fit
from layerscope.cli import run
from layerscope.errors import UsageError
from layerscope.graph.edits import token_inputs, with_cache, with_tokens
from layerscope.report.language import language, lines
from layerscope.zoo import build


def reader(*, cached: bool = True) -> Graph:
    """Two heads of three features share one of keys; values of 8 words."""
    b = Builder("reader")
    ids = b.input("ids", (1, 4), "int64")
    x = b.embedding(ids, 8, 6)
    for _ in range(2):
        q, k, v = b.linear(x, 6), b.linear(x, 3), b.linear(x, 3)
        x = b.attention(q, k, v, heads=2, kv_heads=1, causal=True, cached=cached)
    return b.build(b.linear(x, 8, bias=False))


def prefill(graph: Graph, tokens: int, batch: int = 1) -> Report:
    return analyze(with_tokens(graph, tokens), batch=batch)


def decode(graph: Graph, length: int, batch: int = 1) -> Report:
    return analyze(with_cache(graph, length), batch=batch)


LINEAR = 2 * 6 * (6 + 3 + 3) + 6 * 8  # MACs of all matrices for one token
PARAMS = 8 * 6 + LINEAR + 2 * (6 + 3 + 3)


# -- edits


def test_tokens_are_set_in_every_input_of_them() -> None:
    b = Builder("pair")
    first, second = b.input("first", (2, 5), "int64"), b.input("second", (2, 9), "int64")
    b.input("scale", (2, 5))
    b.add(first, second)
    graph = b.build()
    assert [tensor.name for tensor in token_inputs(graph)] == ["first", "second"]
    bound = with_tokens(graph, 31)
    assert [tensor.shape for tensor in bound.inputs] == [(2, 31), (2, 31), (2, 5)]
    assert [tensor.shape for tensor in graph.inputs] == [(2, 5), (2, 9), (2, 5)]


def test_a_cache_is_put_into_every_attention_that_keeps_one() -> None:
    graph = reader()
    edited = with_cache(graph, 10)
    assert edited.inputs[0].shape == (1, 1)
    past = [node.attributes.past for node in edited.nodes if node.op == "attention"]
    assert past == [10, 10]
    assert len({id(node.attributes) for node in edited.nodes if node.op == "attention"}) == 1
    assert all(node.attributes.past == 0 for node in graph.nodes if node.op == "attention")


@pytest.mark.parametrize(
    ("edit", "name", "count", "message"),
    [
        (with_tokens, "vgg16", 4, "vgg16 takes no tokens: it has no input of int64, N x T"),
        (with_cache, "vgg16", 4, "vgg16 has no attention with a key-value cache"),
        (with_cache, "vit_b_16", 4, "vit_b_16 has no attention with a key-value cache"),
        (with_cache, "bert_base", 4, "bert_base has no attention with a key-value cache"),
        (with_cache, "t5-small", 4, "t5-small has no attention with a key-value cache"),
        (with_tokens, "gpt2", 0, "0 tokens, expected at least 1"),
        (with_cache, "gpt2", -1, "a cache of -1 tokens, expected at least 0"),
        (
            with_tokens,
            "gpt2",
            1025,
            "gpt2: 1025 tokens, expected at most 1024, the positions of ",
        ),
        (
            with_cache,
            "gpt2",
            1024,
            "gpt2: 1025 tokens, expected at most 1024, the positions of ",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(
    edit: Callable[[Graph, int], Graph], name: str, count: int, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        edit(build(name), count)


def test_the_last_places_of_a_table_can_be_taken() -> None:
    assert with_tokens(build("gpt2"), 1024).inputs[0].shape == (1, 1024)
    assert with_cache(build("gpt2"), 1023).inputs[0].shape == (1, 1)


# -- figures by hand


@pytest.mark.parametrize(("batch", "tokens"), [(1, 4), (3, 5)])
def test_a_prefill_by_hand(batch: int, tokens: int) -> None:
    report = prefill(reader(), tokens, batch)
    found = language(report)
    assert found is not None
    assert (found.tokens, found.past, found.cache_tokens) == (tokens, 0, tokens)
    attention = 2 * 2 * 2 * tokens * 3  # layers, products, heads, keys, features
    assert report.totals.macs == batch * tokens * (LINEAR + attention)
    assert found.macs_per_token == LINEAR + attention
    kept = 2 * 2 * 1 * 3 * tokens * batch  # keys and values, layers, heads, features
    assert found.cache_bytes == {
        "fp32": 4 * kept, "fp16": 2 * kept, "bf16": 2 * kept, "int8": kept, "int4": kept // 2,
    }  # fmt: skip
    assert found.weight_bytes == {
        "fp32": 4 * PARAMS, "fp16": 2 * PARAMS, "bf16": 2 * PARAMS, "int8": PARAMS,
        "int4": (PARAMS + 1) // 2,
    }  # fmt: skip
    assert found.intensity == report.totals.intensity


@pytest.mark.parametrize(("batch", "length"), [(1, 10), (2, 1)])
def test_a_decoding_step_by_hand(batch: int, length: int) -> None:
    """The new token attends to itself too, the cache holds the tokens before it."""
    report = decode(reader(), length, batch)
    found = language(report)
    assert found is not None
    assert (found.tokens, found.past, found.cache_tokens) == (1, length, length)
    assert found.macs_per_token == LINEAR + 2 * 2 * 2 * (length + 1) * 3
    assert report.totals.macs == batch * found.macs_per_token
    assert (found.cache_bytes or {})["int8"] == 2 * 2 * 3 * length * batch
    layer = report.by_name["attention1"]
    assert layer.output == (batch, 1, 6)
    assert layer.cost.read_bytes == 4 * batch * (6 + 3 + 3 + length * (3 + 3))


def test_steps_of_decoding_add_up_to_less_than_a_prefill() -> None:
    """A prefill counts its scores in full: masked places too."""
    tokens = 6
    steps = [decode(reader(), length).totals.macs for length in range(tokens)]
    whole = prefill(reader(), tokens).totals.macs
    masked = tokens * (tokens - 1) // 2 * 2 * 2 * 2 * 3
    assert sum(steps) == whole - masked


def test_decoding_after_nothing_is_reading_one_token() -> None:
    assert decode(reader(), 0).totals == prefill(reader(), 1).totals


def test_the_cache_of_llama_3_is_the_published_one() -> None:
    """0.0671089 G elements after 1024 tokens, in the README of ThanatosShinji/onnx-tool."""
    found = language(prefill(build("llama-3-8b"), 1024))
    assert found is not None
    assert found.cache_bytes is not None
    kept = found.cache_bytes["int8"]
    assert kept == 2 * 32 * 8 * 128 * 1024
    assert f"{kept / 1e9:.7f}" == "0.0671089"


def test_a_network_without_a_cache_has_no_size_of_one() -> None:
    found = language(analyze("bert_base"))
    assert found is not None
    assert (found.cache_bytes, found.cache_tokens) == (None, 0)
    assert found.macs_per_token == Fraction(11_174_215_680, 128)
    assert language(analyze("vit_b_16")) is None
    assert lines(analyze("vit_b_16")) == ()
    without = language(analyze(reader(cached=False)))
    assert without is not None
    assert without.cache_bytes is None


def test_figures_do_not_depend_on_the_convention() -> None:
    for name in ("gpt2", "llama-7b"):
        exact, other = language(analyze(name)), language(analyze(name, like="netscope"))
        assert exact is not None
        assert other is not None
        assert (exact.macs_per_token, exact.weight_bytes) == (
            other.macs_per_token,
            other.weight_bytes,
        )


# -- as people see them


def test_lines_of_a_prefill() -> None:
    assert lines(analyze("llama-7b")) == (
        "Prefill of 128 tokens: 6,640,631,808 MACs a token, 57.0 FLOPs a byte.",
        "Weights, all in one dtype without scales: 27.0 GB in fp32, 13.5 GB in fp16 or bf16, "
        "6.74 GB in int8, 3.37 GB in int4.",
        "Cache of keys and values, 128 tokens: 134 MB in fp32, 67.1 MB in fp16 or bf16, "
        "33.6 MB in int8, 16.8 MB in int4.",
    )


def test_lines_of_a_decoding_step_and_of_a_batch() -> None:
    work, _, cache = lines(decode(build("llama-7b"), 4096, 2))
    assert work.startswith("Decoding one token, which attends to 4,096 kept keys and its own: 7,6")
    assert cache.startswith("Cache of keys and values, 4,096 tokens in each of 2 sequences: 8.59 G")
    assert lines(prefill(reader(), 1))[0].startswith("Prefill of 1 token: ")
    assert lines(analyze("bert_base"))[0].startswith("Reading 128 tokens: 87,298,560 MACs a")


@pytest.mark.parametrize("name", ["gpt2", "llama-7b"])
def test_analyze_takes_tokens_or_a_cache(name: str) -> None:
    assert analyze(name, tokens=9).totals == prefill(build(name), 9).totals
    assert analyze(name, decode=9, batch=2).totals == decode(build(name), 9, 2).totals
    assert analyze(name, input=(1, 9), tokens=9).inputs[0].shape == (1, 9)
    with pytest.raises(UsageError, match="tokens cannot be combined with decode"):
        analyze(name, tokens=4, decode=4)


def test_the_command_line_takes_tokens_or_a_cache(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", "llama-3-8b", "--tokens", "512", "--depth", "1"]) == 0
    out = capsys.readouterr().out
    assert "input_ids 1x512" in out
    assert "Cache of keys and values, 512 tokens: " in out
    assert run(["show", "gpt2", "--decode", "100", "--total"]) == 0
    assert f"{decode(build('gpt2'), 100).totals.macs:,} MACs" in capsys.readouterr().out
    assert run(["show", "vgg16", "--tokens", "512"]) == 2
    assert "takes no tokens" in capsys.readouterr().err
    assert run(["show", "gpt2", "--tokens", "5", "--decode", "5", "--as", "csv"]) == 2
    assert "cannot be combined with" in capsys.readouterr().err
    assert run(["show", "gpt2", "--decode", "5", "--train", "adam"]) == 2
    assert "--train cannot be combined with --decode" in capsys.readouterr().err


def test_the_cache_is_stamped_and_takes_its_room() -> None:
    report = analyze("gpt2", decode=100, batch=3, dtype="fp16")
    assert " · mixed (inputs int64, arithmetic fp16) · cache of 100 · " in report.stamp
    per_sequence = 2 * 12 * 768 * 100 * 2  # keys and values, layers, features, tokens, bytes
    assert report.cache_bytes == 3 * per_sequence
    assert analyze("gpt2").cache_bytes == 0
    weights = analyze("gpt2", dtype="fp16").totals.param_bytes
    peak = analyze("gpt2", decode=100, dtype="fp16").totals.peak_activation_bytes
    room = weights + 40 * (per_sequence + peak)
    assert fit("gpt2", room, decode=100, dtype="fp16").batch == 40
    assert fit("gpt2", room - 1, decode=100, dtype="fp16").batch == 39


def test_json_has_the_figures_or_null() -> None:
    report = analyze("gpt2", decode=100)
    told = msgspec.json.decode(report.to_json())["language"]
    assert (told["tokens"], told["past"], told["cache_tokens"]) == (1, 100, 100)
    assert told["macs_per_token"] == report.totals.macs
    assert told["cache_bytes"]["fp16"] == 2 * 2 * 12 * 768 * 100
    assert msgspec.json.decode(analyze("vgg16").to_json())["language"] is None


def test_every_form_of_a_language_model_can_be_written() -> None:
    report = analyze("gpt2")
    for text in (report.to_markdown(), report.to_csv(), report.to_latex(), report.to_html()):
        assert "c_attn" in text.replace("\\_", "_")  # once where twelve alike are folded
