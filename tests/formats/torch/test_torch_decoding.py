"""Prefill and decoding of transformers models against PyTorch's own counter on the same cache."""

from __future__ import annotations

import inspect
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import pytest

import layerscope
from layerscope.cli import run
from layerscope.errors import UsageError
from layerscope.report.language import lines
from tests.formats.torch.torch_nets import Tied, nn, torch
from tests.formats.torch.transformers_nets import cut, ids, library

pytestmark = pytest.mark.filterwarnings("ignore")
DECODERS = [
    "apertus", "arcee", "bitnet", "bloom", "codegen", "cohere", "cohere2", "ctrl", "cwm",
    "deepseek_v3", "diffllama", "ernie4_5", "exaone4", "falcon", "falcon_h1", "falcon_mamba",
    "gemma", "gemma2", "gemma3_text", "glm", "glm4", "gpt2", "gpt_bigcode", "gpt_neo", "gpt_neox",
    "gpt_oss", "gptj", "granite", "helium", "llama", "mamba", "mamba2", "mistral", "mixtral", "mpt",
    "olmo2", "olmo3", "opt", "persimmon", "phi", "phi3", "qwen2", "qwen2_moe", "qwen3",
    "qwen3_next", "rwkv", "smollm3", "stablelm", "starcoder2", "xglm",
]  # fmt: skip
BOTH = ["t5", "fsmt", "mt5", "longt5", "umt5", "encoder-decoder"]
ENCODERS = ["bert", "roberta", "electra", "distilbert", "modernbert"]
CACHES = ("past_key_values", "cache_params", "state")


def counted(model: Any, **given: Any) -> tuple[int, Any]:
    """Multiply-adds of PyTorch's counter on the meta device, and what the forward returns."""
    attention = import_module("torch.nn.attention")
    counter = import_module("torch.utils.flop_counter").FlopCounterMode(display=False)
    with torch.no_grad(), attention.sdpa_kernel(attention.SDPBackend.MATH), counter:
        result = model(**given)
    flops = counter.get_total_flops()
    assert flops % 2 == 0
    return flops // 2, result


def decoded(model: Any, batch: int, length: int) -> int:
    """Multiply-adds of one step, by PyTorch's counter, after the cache of a prefill."""
    if "decoder_input_ids" not in inspect.signature(model.forward).parameters:
        _, filled = counted(model, input_ids=ids(batch, length), use_cache=True)
        name = next(name for name in CACHES if getattr(filled, name, None) is not None)
        cache = {name: getattr(filled, name)}
        return counted(model, input_ids=ids(batch, 1), use_cache=True, **cache)[0]
    prompt = {"input_ids": ids(batch, 128), "decoder_input_ids": ids(batch, length)}
    _, filled = counted(model, **prompt, use_cache=True)
    encoded = library().modeling_outputs.BaseModelOutput(filled.encoder_last_hidden_state)
    step = {"encoder_outputs": encoded, "past_key_values": filled.past_key_values}
    return counted(model, decoder_input_ids=ids(batch, 1), **step, use_cache=True)[0]


def by_experts(report: Any) -> int:
    """Multiply-adds of products that deal rows out to experts, which PyTorch's counter skips."""
    rows = [layer for layer in report.layers if layer.op == "custom"]
    assert all("expert" in layer.name or "mlp" in layer.name for layer in rows)
    return sum(layer.ops.mac for layer in rows)


def arguments(model: Any, batch: int = 1) -> dict[str, Any]:
    given = {"input_ids": ids(batch, 128)}
    if "decoder_input_ids" in inspect.signature(model.forward).parameters:
        given["decoder_input_ids"] = ids(batch, 16)
    return given


@pytest.mark.parametrize("kind", [*DECODERS, *BOTH])
def test_a_decoding_step(kind: str) -> None:
    model = cut(kind)
    for batch, length in ((1, 37), (2, 300)):
        report = layerscope.analyze(model, input_data=arguments(model, batch), decode=length)
        assert report.total_macs - by_experts(report) == decoded(model, batch, length)
        assert not report.coverage.unknown
        assert report.past == length
        assert report.batch == batch
        assert report.cache_bytes > 0
        assert f" · cache of {length} · " in report.stamp
        assert "past_key_values" not in report.stamp


@pytest.mark.parametrize("kind", ["llama", "gpt2", "bert", "gemma3_text", "t5", "mamba", "mixtral"])
@pytest.mark.parametrize("tokens", [1, 7, 128, 300])
def test_a_prefill_of_any_length(kind: str, tokens: int, tmp_path: Path) -> None:
    model = cut(kind)
    path = tmp_path / "config.json"
    text = {**model.config.to_dict(), "architectures": [type(model).__name__], "dtype": None}
    path.write_text(json.dumps(text), encoding="utf-8")
    given = {name: ids(2, tokens) for name in arguments(model)}
    expected, _ = counted(model, **given)
    report = layerscope.analyze(f"hf:{path}", tokens=tokens, batch=2)
    assert report.total_macs - by_experts(report) == expected
    assert [tensor.shape for tensor in report.inputs] == [(2, tokens)] * len(given)
    live = layerscope.analyze(model, input_data=arguments(model, 2), tokens=tokens)
    assert live.total_macs == report.total_macs


@pytest.mark.parametrize("kind, name", [("llama", "llama-7b"), ("gpt2", "gpt2")])
def test_the_zoo_says_the_same(kind: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    heads = {"llama": "LlamaForCausalLM", "gpt2": "GPT2LMHeadModel"}
    path.write_text(json.dumps({"model_type": kind, "architectures": [heads[kind]]}))
    for options in ({"decode": 0}, {"decode": 5}, {"decode": 1000, "batch": 3}, {"tokens": 9}):
        ours = layerscope.analyze(name, **options)  # type: ignore[arg-type]
        theirs = layerscope.analyze(f"hf:{path}", **options)  # type: ignore[arg-type]
        assert theirs.total_macs == ours.total_macs
        assert theirs.total_params == ours.total_params
        assert theirs.cache_bytes == ours.cache_bytes
        assert theirs.past == ours.past
    for report in (theirs, ours):
        assert report.inputs[0].shape == (1, 9)


def test_the_cache_is_told_as_that_of_the_zoo(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}))
    options = ["--decode", "100", "--batch", "2", "--dtype", "fp16"]
    told: dict[str, list[str]] = {}
    for network in ("gpt2", f"hf:{path}"):
        assert run(["show", network, *options, "--depth", "1"]) == 0
        out = capsys.readouterr().out
        told[network] = [line for line in out.splitlines() if line.startswith("Cache of keys")]
    assert told["gpt2"] == told[f"hf:{path}"] != []
    found = msgspec.json.decode(layerscope.analyze(f"hf:{path}", decode=100).to_json())
    zoo = msgspec.json.decode(layerscope.analyze("gpt2", decode=100).to_json())
    for key in ("tokens", "past", "cache_tokens", "cache_bytes", "macs_per_token"):
        assert found["language"][key] == zoo["language"][key]


@pytest.mark.parametrize(
    "kind, work, cache",
    [
        ("llama", "which attends to 9 kept keys and its own", "Cache of keys and values, 9 tokens"),
        ("gemma3_text", "which attends to at most 9 kept keys", "Cache of keys and values, 9 tok"),
        ("mamba", "Decoding one token after 9 tokens", "States, which do not grow, 9 tokens"),
        ("falcon_h1", "attends to 9 kept keys and its own", "Cache of keys, values and states, 9"),
    ],
)
def test_what_a_cache_is_called(kind: str, work: str, cache: str) -> None:
    report = layerscope.analyze(cut(kind), input_data={"input_ids": ids(1, 4)}, decode=9)
    found = lines(report)
    assert work in found[0]
    assert found[-1].startswith(cache)


def test_the_batch_that_fits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Memory grows by the same bytes with every sequence: weights, cache, activations."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "gpt2", "n_layer": 2, "n_embd": 96}))

    def needed(batch: int) -> int:
        report = layerscope.analyze(f"hf:{path}", decode=50, batch=batch)
        totals = report.totals
        return totals.param_bytes + totals.peak_activation_bytes + report.cache_bytes

    assert layerscope.fit(f"hf:{path}", needed(5), decode=50).batch == 5
    assert layerscope.fit(f"hf:{path}", needed(5) - 1, decode=50).batch == 4
    # On the command line it is the memory of a deployment: keys and values, a row and its logits.
    weights = layerscope.analyze(f"hf:{path}", decode=50).total_params * 4
    room = weights + 7 * 4 * (2 * 50 * 2 * 96 + 96 + 50257)
    words = ["show", f"hf:{path}", "--decode", "50", "--dtype", "fp32", "--total", "--fit"]
    for bytes_given, batch in ((room, 7), (room - 1, 6)):
        assert run([*words, str(bytes_given)]) == 0
        assert f"Batch {batch} is the largest" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ENCODERS)
def test_an_encoder_does_not_decode(kind: str) -> None:
    model = cut(kind)
    with pytest.raises(UsageError, match=r"it is an encoder|takes no cache"):
        layerscope.analyze(model, input_data=arguments(model), decode=5)


def test_true_reasons_why_a_model_does_not_decode() -> None:
    with pytest.raises(UsageError, match="Tied has none that is supported: it is no model of tr"):
        layerscope.analyze(Tied(), input_data=ids(1, 4), decode=5)
    with pytest.raises(UsageError, match=r"takes no cache \(none of past_key_values, "):
        layerscope.analyze(cut("openai-gpt"), input_data={"input_ids": ids(1, 4)}, decode=5)
    model = cut("gpt2")
    with pytest.raises(UsageError, match="1025 tokens, expected at most 1024, the positions of "):
        layerscope.analyze(model, input_data={"input_ids": ids(1, 4)}, decode=1024)
    with pytest.raises(UsageError, match="a cache of -1 tokens"):
        layerscope.analyze(model, input_data={"input_ids": ids(1, 4)}, decode=-1)
    with pytest.raises(UsageError, match="Linear takes no tokens"):
        layerscope.analyze(nn.Linear(3, 4), input_size=(1, 3), tokens=5)
    graph = layerscope.analyze(model, input_data={"input_ids": ids(1, 4)}).graph
    with pytest.raises(UsageError, match="a captured graph has a fixed sequence length"):
        layerscope.analyze(graph, tokens=5)


def test_the_model_is_left_as_it_was() -> None:
    model = cut("gemma3_text")
    before = {name: (id(value), value._version) for name, value in model.state_dict().items()}
    attributes = [sorted(vars(module)) for module in model.modules()]
    layerscope.analyze(model, input_data={"input_ids": ids(1, 4)}, decode=5)
    assert [sorted(vars(module)) for module in model.modules()] == attributes
    assert before.keys() == model.state_dict().keys()
