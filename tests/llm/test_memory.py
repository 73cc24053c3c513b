"""Weights in formats, memory in use, and what fits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from layerscope.errors import UnknownName, UsageError
from layerscope.export.language_lines import format_notes
from layerscope.llm.account import Deployment, memory_use
from layerscope.llm.block_formats import FORMATS, block_format, matrix_bytes
from layerscope.llm.cache import CacheOptions, cache_bytes, layer_caches
from layerscope.llm.description import Experts
from layerscope.llm.families import describe
from layerscope.llm.fit import language_fit
from layerscope.llm.parameters import expected_experts, params_by_part, total_params
from layerscope.llm.runtimes import RUNTIMES
from layerscope.llm.weight_bytes import format_lines, weight_bytes

LLAMA2 = describe({"model_type": "llama"})
LLAMA3 = describe(
    {
        "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
        "vocab_size": 128256,
    }
)  # fmt: skip
GEMMA3 = describe({"model_type": "gemma3_text"})
V3 = describe({"model_type": "deepseek_v3"})


def test_a_plain_q4_0_file_has_the_bytes_that_llama_cpp_prints() -> None:
    # Llama 2 7B in Q4_0, its output in Q6_K and its norms in f32: 3.56 GiB.
    assert weight_bytes(LLAMA2, block_format("q4_0")) == 3_825_065_984
    assert weight_bytes(LLAMA2, block_format("f16")) == 2 * total_params(LLAMA2)


def test_formats_of_linear_layers_keep_the_rest_in_16_bits() -> None:
    vectors = sum(
        count for name, count in params_by_part(LLAMA2).items() if name in ("norm", "norms")
    )
    kept = 2 * 32000 * 4096 + vectors
    matrices = total_params(LLAMA2) - kept
    assert weight_bytes(LLAMA2, block_format("nf4")) == 2 * kept + matrices * 36 // 64


@pytest.mark.parametrize(
    "name, bits", [("q4_0", 4.5), ("q8_0", 8.5), ("q4_k", 4.5), ("q6_k", 6.5625), ("mxfp4", 4.25)]
)
def test_bits_include_scales(name: str, bits: float) -> None:
    assert float(FORMATS[name].bits) == bits


def test_rows_that_blocks_do_not_divide_use_another_type() -> None:
    assert matrix_bytes((10, 96), block_format("q4_k")) == 10 * 3 * 22  # q5_0
    assert matrix_bytes((10, 20), block_format("q6_k")) == 10 * 20 * 2  # f16


def test_a_mixed_file_has_no_nominal_size() -> None:
    with pytest.raises(UsageError, match="several types"):
        block_format("Q4_K_M")
    with pytest.raises(UnknownName):
        block_format("q9")
    assert block_format("float16").name == "f16"


@pytest.mark.parametrize(("name", "numbers"), [("int4", 2), ("int8", 1), ("fp8", 1)])
@pytest.mark.parametrize(("plain", "size"), [("bf16", 2), ("f32", 4)])
def test_names_of_bits_alone_are_those_of_the_matrices_of_layers(
    name: str, numbers: int, plain: str, size: int
) -> None:
    layer = 2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336
    others = 2 * 128_256 * 4096 + (2 * 32 + 1) * 4096
    assert weight_bytes(LLAMA3, block_format(name), plain) == 32 * layer // numbers + size * others
    options = CacheOptions(tokens=1)
    deployment = Deployment(model=LLAMA3, cache=options, weights=name, activations=plain)
    assert memory_use(deployment).weights == 32 * layer // numbers + size * others
    rule, scales = format_lines(block_format(name), plain)
    assert rule.endswith(f"stay in {plain}.")
    assert scales.endswith("scales of weights are not counted.")


@pytest.mark.parametrize("name", ["awq", "gptq", "nf4", "nvfp4", "q4_0", "mxfp4", "bf16", "f32"])
def test_formats_with_scales_say_nothing_of_them(name: str) -> None:
    assert not any("scale" in line for line in format_lines(block_format(name), "bf16"))


def test_a_checkpoint_in_a_format_of_its_own_is_named() -> None:
    stored = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    for config in (
        {"model_type": "llama", "quantization_config": stored},
        {"model_type": "llava", "text_config": {"quantization_config": stored}},
    ):
        deployment = Deployment(model=describe(config), cache=CacheOptions(tokens=1))
        (line,) = format_notes(deployment)
        assert line.startswith("The configuration is of a checkpoint in fp8,")
        assert not format_notes(replace(deployment, stored=1))


def test_the_workspace_of_llama_cpp_is_a_micro_batch_of_logits() -> None:
    # 512 rows of 128,256 logits and of 4,096 numbers, 4 bytes each.
    options = CacheOptions(tokens=8192)
    use = memory_use(Deployment(model=LLAMA3, cache=options, program="llama.cpp"))
    assert (use.activations + use.workspace) / 2**20 == 258.5


@pytest.mark.parametrize("program", ["", *RUNTIMES])
def test_the_largest_fits_and_one_more_does_not(program: str) -> None:
    options = CacheOptions(tokens=8192, keys="q8_0", values="q8_0")
    deployment = Deployment(model=LLAMA3, cache=options, weights="q4_0", program=program)
    found = language_fit(deployment, 24 * 10**9)
    room = found.usable_bytes
    assert room == (21_600_000_000 if program == "vllm" else 24 * 10**9)
    batch, tokens = found.largest_batch.number, found.longest_context.number
    assert memory_use(deployment.sized(batch, 8192)).total <= room
    assert memory_use(deployment.sized(batch + 1, 8192)).total > room
    assert memory_use(deployment.sized(1, tokens)).total <= room
    assert memory_use(deployment.sized(1, tokens + 1)).total > room
    assert found.contexts[0] == (1, tokens)
    assert all(a[1] >= b[1] for a, b in zip(found.contexts, found.contexts[1:], strict=False))


@pytest.mark.parametrize(("memory", "tokens", "sequences"), [
    (None, 2048, 256), (24 * 10**9, 2048, 256),
    (70 * 2**30 - 1, 2048, 256), (70 * 2**30, 8192, 1024),
])  # fmt: skip
def test_vllm_takes_what_its_profile_run_takes(
    memory: int | None, tokens: int, sequences: int
) -> None:
    """The peak is that of the largest batch that may be scheduled, whatever the prompt is."""
    for cached in (1, 8192):
        options = CacheOptions(tokens=cached)
        use = memory_use(
            Deployment(model=LLAMA3, cache=options, program="vllm", device_bytes=memory)
        )
        inside = tokens * (4096 + 2 * 14336) * 2  # hidden state, gate and value in bf16
        at_end = tokens * 4096 * 2 + sequences * 128_256 * 4  # hidden state, logits in fp32
        assert use.activations + use.workspace == max(inside, at_end)


def test_the_pool_of_vllm_against_a_log() -> None:
    """Llama 3 8B on H100: vLLM printed 14.96 GiB of weights and 53.29 GiB for the cache.

    It measured 1.79 GiB outside of PyTorch, which is not counted, and a peak of 1.26 GiB. The
    log is in pull request 10511 of vllm-project/vllm; its batch was one of 8,192 tokens.
    """
    deployment = Deployment(model=LLAMA3, cache=CacheOptions(tokens=8192), program="vllm")
    found = language_fit(deployment, round(79.22 * 2**30))
    use = found.largest_batch.use
    assert round(found.usable_bytes / 2**30, 1) == 71.3
    assert round(use.weights / 2**30, 2) == 14.96
    pool = (found.usable_bytes - use.total + use.cache) / 2**30
    assert 53.29 + 1.79 <= pool <= 53.29 + 1.79 + 1.26


def test_nothing_fits_beside_weights_that_do_not() -> None:
    found = language_fit(Deployment(model=LLAMA3, cache=CacheOptions(tokens=1)), 10**9)
    assert (found.largest_batch.number, found.longest_context.number, found.contexts) == (0, 0, ())


@given(
    tokens=st.integers(0, 10**6), more=st.integers(0, 10**5), sequences=st.integers(1, 64),
    program=st.sampled_from([*RUNTIMES]), kind=st.sampled_from(["f16", "q8_0", "fp8"]),
)  # fmt: skip
def test_no_runtime_allocates_less_than_is_needed(
    tokens: int, more: int, sequences: int, program: str, kind: str
) -> None:
    for model in (LLAMA3, GEMMA3, V3):
        options = CacheOptions(tokens=tokens, sequences=sequences, keys=kind, values=kind)
        size = cache_bytes(model, options, RUNTIMES[program])
        assert size >= cache_bytes(model, options)
        longer = CacheOptions(tokens=tokens + more, sequences=sequences, keys=kind, values=kind)
        if program != "vllm":  # whose blocks before a window are freed as whole blocks
            assert cache_bytes(model, longer, RUNTIMES[program]) >= size


def test_chunks_need_the_tokens_of_the_last_one() -> None:
    model = describe({"model_type": "llama4_text"})
    found = layer_caches(model, CacheOptions(tokens=8192 + 100))
    assert {each.kind: each.cells for each in found} == {"chunked": 100, "full": 8292}


def test_experts_that_a_batch_reads() -> None:
    experts = Experts(8, 2)
    assert expected_experts(experts, 1) == 2
    assert expected_experts(experts, 2) == 8 * (1 - (3 / 4) ** 2)
    assert expected_experts(experts, 100) < 8
