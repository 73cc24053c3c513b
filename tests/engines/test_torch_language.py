"""Steps of small language models through transformers: times, caches, batches, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from layerscope.api import generating_here
from layerscope.api.generating import steps_of
from layerscope.api.generating_here import bytes_by_use, measure_generation
from layerscope.cli import run
from layerscope.engines import free_memory
from layerscope.engines.measuring import MeasureRequest
from layerscope.errors import LayerscopeError
from layerscope.llm.account import read_language_model

pytest.importorskip("torch")
pytest.importorskip("transformers")
LLAMA = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64,
    "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 128, "max_position_embeddings": 256,
    "tie_word_embeddings": False,
}  # fmt: skip
CONFIGS: dict[str, dict[str, Any]] = {
    "llama": LLAMA,
    "no architectures": {k: v for k, v in LLAMA.items() if k != "architectures"},
    "sliding": {
        **LLAMA, "model_type": "mistral", "architectures": ["MistralForCausalLM"],
        "sliding_window": 8,
    },
    "experts": {
        **LLAMA, "model_type": "mixtral", "architectures": ["MixtralForCausalLM"],
        "num_local_experts": 4, "num_experts_per_tok": 2,
    },
    "mamba": {
        "model_type": "mamba", "architectures": ["MambaForCausalLM"], "hidden_size": 32,
        "num_hidden_layers": 2, "vocab_size": 128, "state_size": 4,
    },
}  # fmt: skip
TORCH = MeasureRequest("torch", 1, 2)


def config(folder: Path, values: dict[str, Any]) -> str:
    path = folder / "config.json"
    path.write_text(json.dumps(values), encoding="utf-8")
    return f"hf:{path}"


@pytest.mark.parametrize("name", CONFIGS)
def test_prompt_and_token(tmp_path: Path, name: str) -> None:
    network = config(tmp_path, CONFIGS[name])
    found = measure_generation(network, steps_of(16, 24, [2]), TORCH)
    prefill, decode = found.steps
    assert (prefill.phase, prefill.tokens, prefill.past, prefill.batch) == ("prefill", 16, 0, 2)
    assert (decode.phase, decode.tokens, decode.past, decode.batch) == ("decode", 1, 24, 2)
    assert len(prefill.runs_s) == len(decode.runs_s) == 2
    assert min(*prefill.runs_s, *decode.runs_s) > 0
    assert decode.cache_bytes == decode.expected_cache_bytes > 0  # type: ignore[operator]


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_the_dtype_is_that_of_the_cache(tmp_path: Path, dtype: str) -> None:
    found = measure_generation(config(tmp_path, LLAMA), steps_of(None, 10), TORCH, dtype)
    size = 4 if dtype == "fp32" else 2
    assert found.steps[0].cache_bytes == 2 * 10 * 2 * 2 * 16 * size  # layers, tokens, k and v


def test_every_engine_of_the_list(tmp_path: Path) -> None:
    request = MeasureRequest("torch,onnxruntime", 1, 2)
    found = measure_generation(config(tmp_path, LLAMA), steps_of(16, 24), request)
    assert [(each.engine, each.phase) for each in found.steps] == [
        ("torch", "prefill"), ("torch", "decode"),
        ("onnxruntime", "prefill"), ("onnxruntime", "decode"),
    ]  # fmt: skip
    assert len(found.notes) == 2


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    network = config(tmp_path, LLAMA)
    asked = ["measure", network, "--tokens", "8", "--decode", "8", "--engine", "torch"]
    asked += ["--runs", "2", "--threads", "1"]
    path = tmp_path / "steps.json"
    assert run([*asked, "-o", str(path)]) == 0
    out = capsys.readouterr().out
    assert "prefill" in out
    assert "as counted" in out
    assert max(map(len, out.splitlines()[:4])) <= 80
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["kind"] == "generation_run"
    for form in ("markdown", "csv", "latex", "html", "json"):
        assert run([*asked, "--as", form]) == 0
        assert "decode" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "word"),
    [
        (("--as", "boda"), "table of layers"),
        (("--power", "40"), "--power does not apply"),
        (("--sort",), "--sort does not apply"),
        (("--dtype", "int8"), "fp32, bf16, fp16"),
        (("--runs", "0"), "--runs 0"),
        (("--engine", "tensorflow"), "unknown engine"),
    ],
)
def test_wrong_options(
    tmp_path: Path, more: tuple[str, ...], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    network = config(tmp_path, LLAMA)
    asked = ["measure", network, "--tokens", "8", "--decode", "8"]
    engine = () if "--engine" in more else ("--engine", "torch")
    assert run([*asked, *engine, *more]) in (2, 3)
    err = capsys.readouterr().err
    assert word in err
    assert err.count("\n") == 1


def test_more_tokens_than_learned_positions_are_refused(tmp_path: Path) -> None:
    gpt = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 32, "n_layer": 1,
           "n_head": 2, "n_positions": 64, "vocab_size": 64}  # fmt: skip
    network = config(tmp_path, gpt)
    measure_generation(network, steps_of(None, 62), TORCH)
    with pytest.raises(LayerscopeError, match="65 tokens, expected at most 64, the positions"):
        measure_generation(network, steps_of(None, 63), TORCH)


def test_a_model_that_does_not_fit_is_refused_before_it_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = config(tmp_path, {**LLAMA, "hidden_size": 8192, "num_hidden_layers": 80})
    monkeypatch.setattr(free_memory, "free_bytes", lambda: 10**9)
    monkeypatch.setattr(generating_here, "_on_engine", None)  # is never called
    with pytest.raises(LayerscopeError, match=r"weights .* available"):
        measure_generation(network, steps_of(16, 24), TORCH)


def test_an_encoder_is_refused(tmp_path: Path) -> None:
    network = config(
        tmp_path, {"model_type": "t5", "architectures": ["T5ForConditionalGeneration"]}
    )
    with pytest.raises(LayerscopeError, match="encoder"):
        measure_generation(network, steps_of(16, 24), TORCH)


def test_bytes_grow_with_what_is_asked(tmp_path: Path) -> None:
    model = read_language_model(config(tmp_path, LLAMA))
    task = TORCH.tasks()[0]
    one, two = (bytes_by_use(model, step, task, "fp32") for step in steps_of(16, 24))
    more = bytes_by_use(model, steps_of(None, 240, [3])[0], task, "fp32")
    assert one["weights"] == two["weights"] == more["weights"]
    assert more["cache"] > two["cache"]
    assert one["activations"] > two["activations"]
    lowered = bytes_by_use(model, steps_of(16)[0], ("onnxruntime", task[1]), "fp32")
    assert lowered["weights"] > one["weights"]
