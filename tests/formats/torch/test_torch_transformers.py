"""Models of transformers, from their configs alone: parameters and MACs by closed form.

Every form is written out from the config: convolutions by output positions, linear layers by rows,
attention by scores and context over all pairs (a causal mask takes none away), experts by tokens
times experts per token. Norms, softmax, rotations and activations multiply no matrices and count
nothing; an embedding is a lookup. Texts are T tokens long, what is decoded DECODED.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import layerscope
from layerscope.formats.torch.model_names.torchvision_timm import torchvision_models
from tests.formats.torch.torch_nets import on, torch
from tests.formats.torch.transformers_nets import small

transformers: Any = pytest.importorskip("transformers", reason="transformers is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")
if find_spec("torchvision") is not None:
    torchvision_models(torch)  # which transformers imports, with operators of its own or without

T, DECODED, V = 20, 12, 100
WORDS = {"vocab_size": V, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
LIKE_LLAMA = {
    **WORDS, "hidden_size": 64, "intermediate_size": 112, "num_attention_heads": 8,
    "num_key_value_heads": 2, "max_position_embeddings": 64,
}  # fmt: skip


def pairs(queries: int, keys: int, width: int, values: int | None = None) -> int:
    """Scores and context of attention, of all heads together."""
    return queries * keys * (width + (width if values is None else values))


def encoder_layer(tokens: int, width: int, inner: int) -> int:
    """Projections to queries, keys, values and back, attention, and two layers of a perceptron."""
    return tokens * (4 * width * width + 2 * width * inner) + pairs(tokens, tokens, width)


def decoder_layer(tokens: int, seen: int, width: int, inner: int) -> int:
    """That of an encoder, and attention to what it saw: keys and values of that, by its length."""
    across = (2 * tokens + 2 * seen) * width * width + pairs(tokens, seen, width)
    return encoder_layer(tokens, width, inner) + across


def grouped(c: Any, head: int) -> Any:
    """Attention whose keys and values have fewer heads than the queries."""
    queries, keys = c.num_attention_heads * head, c.num_key_value_heads * head
    return T * c.hidden_size * (2 * queries + 2 * keys) + pairs(T, T, queries)


def gated(width: int, inner: int) -> int:
    """Of one token: gate, up and down."""
    return 3 * width * inner


def bert(c: Any, batch: int) -> Any:
    h = c.hidden_size
    head = T * (h * h + h * V)
    return batch * (c.num_hidden_layers * encoder_layer(T, h, c.intermediate_size) + head)


def gpt2(c: Any, batch: int) -> Any:
    return batch * (c.n_layer * encoder_layer(T, c.n_embd, 4 * c.n_embd) + T * c.n_embd * V)


def llama(c: Any, batch: int) -> Any:
    layer = grouped(c, c.head_dim) + T * gated(c.hidden_size, c.intermediate_size)
    return batch * (c.num_hidden_layers * layer + T * c.hidden_size * V)


def mixtral(c: Any, batch: int) -> Any:
    h = c.hidden_size
    experts = h * c.num_local_experts + c.num_experts_per_tok * gated(h, c.intermediate_size)
    layer = grouped(c, h // c.num_attention_heads) + T * experts
    return batch * (c.num_hidden_layers * layer + T * h * V)


def deepseek(c: Any, batch: int) -> Any:
    """Queries, keys and values through low ranks; keys share one rotated part among the heads."""
    h, heads = c.hidden_size, c.num_attention_heads
    size = c.qk_nope_head_dim + c.qk_rope_head_dim
    queries = h * c.q_lora_rank + c.q_lora_rank * heads * size
    latent = h * (c.kv_lora_rank + c.qk_rope_head_dim)
    unfolded = c.kv_lora_rank * heads * (c.qk_nope_head_dim + c.v_head_dim)
    back = heads * c.v_head_dim * h
    attention = T * (queries + latent + unfolded + back)
    attention += pairs(T, T, heads * size, heads * c.v_head_dim)
    dense = gated(h, c.intermediate_size)
    chosen = c.num_experts_per_tok + c.n_shared_experts
    experts = h * c.n_routed_experts + chosen * gated(h, c.moe_intermediate_size)
    first, layers = c.first_k_dense_replace, c.num_hidden_layers
    perceptrons = T * (first * dense + (layers - first) * experts)
    return batch * (layers * attention + perceptrons + T * h * V)


def qwen2_moe(c: Any, batch: int) -> Any:
    """The shared expert sees every token, and is weighed by a gate of one number."""
    h, layers, dense = c.hidden_size, c.num_hidden_layers, len(c.mlp_only_layers)
    shared = gated(h, c.shared_expert_intermediate_size) + h
    experts = h * c.num_experts + c.num_experts_per_tok * gated(h, c.moe_intermediate_size)
    perceptrons = dense * gated(h, c.intermediate_size) + (layers - dense) * (experts + shared)
    attention = grouped(c, h // c.num_attention_heads)
    return batch * (layers * attention + T * perceptrons + T * h * V)


def qwen3_moe(c: Any, batch: int) -> Any:
    h = c.hidden_size
    experts = h * c.num_experts + c.num_experts_per_tok * gated(h, c.moe_intermediate_size)
    layer = grouped(c, c.head_dim) + T * experts
    return batch * (c.num_hidden_layers * layer + T * h * V)


def whisper(c: Any, batch: int) -> Any:
    """Two convolutions of 3 over sound, the second of stride 2, then encoder and decoder."""
    d, seen = c.d_model, c.max_source_positions
    stem = 2 * seen * d * c.num_mel_bins * 3 + seen * d * d * 3
    encoder = c.encoder_layers * encoder_layer(seen, d, c.encoder_ffn_dim)
    decoder = c.decoder_layers * decoder_layer(DECODED, seen, d, c.decoder_ffn_dim)
    return batch * (stem + encoder + decoder + DECODED * d * V)


def t5(c: Any, batch: int) -> Any:
    """Heads wider together than the model, and gated perceptrons."""
    d, wide = c.d_model, c.num_heads * c.d_kv
    perceptron = gated(d, c.d_ff)
    encoder = T * (4 * d * wide + perceptron) + pairs(T, T, wide)
    decoder = DECODED * (6 * d * wide + perceptron) + T * 2 * d * wide
    decoder += pairs(DECODED, DECODED, wide) + pairs(DECODED, T, wide)
    layers = c.num_layers * encoder + c.num_decoder_layers * decoder
    return batch * (layers + DECODED * d * V)


def patches(c: Any) -> tuple[int, int]:
    """Tokens of an image, the class's among them, and the convolution that makes them."""
    count = (c.image_size // c.patch_size) ** 2
    return count + 1, count * c.hidden_size * c.num_channels * c.patch_size**2


def vit(c: Any, batch: int) -> Any:
    tokens, stem = patches(c)
    layers = c.num_hidden_layers * encoder_layer(tokens, c.hidden_size, c.intermediate_size)
    return batch * (stem + layers + c.hidden_size * c.num_labels)


def clip(c: Any, batch: int) -> Any:
    """Both towers, a projection of each, and every image with every text of the batch."""
    see, read = c.vision_config, c.text_config
    tokens, stem = patches(see)
    seen = see.num_hidden_layers * encoder_layer(tokens, see.hidden_size, see.intermediate_size)
    words = read.num_hidden_layers * encoder_layer(T, read.hidden_size, read.intermediate_size)
    projections = (see.hidden_size + read.hidden_size) * c.projection_dim
    return batch * (stem + seen + words + projections) + batch * batch * c.projection_dim


def resnet(c: Any, side: int) -> tuple[int, int]:
    """Bottlenecks, whose 3x3 takes the stride; and the side of the last map."""
    side //= 2
    macs, side, before = side**2 * c.embedding_size * 3 * 49, side // 2, c.embedding_size
    for stage, (width, depth) in enumerate(zip(c.hidden_sizes, c.depths, strict=True)):
        inner = width // 4
        for block in range(depth):
            smaller = side // 2 if stage and not block else side
            if not block:
                macs += smaller**2 * before * width
            macs += side**2 * before * inner + smaller**2 * (inner * inner * 9 + inner * width)
            side, before = smaller, width
    return macs, side


def detr(c: Any, batch: int) -> Any:
    """A ResNet, a projection, encoder and decoder, a class and a box of each query."""
    d, queries = c.d_model, c.num_queries
    backbone, side = resnet(c.backbone_config, 128)
    seen = side * side
    projection = seen * c.backbone_config.hidden_sizes[-1] * d
    encoder = c.encoder_layers * encoder_layer(seen, d, c.encoder_ffn_dim)
    decoder = c.decoder_layers * decoder_layer(queries, seen, d, c.decoder_ffn_dim)
    heads = queries * (d * (c.num_labels + 1) + 2 * d * d + 4 * d)
    return batch * (backbone + projection + encoder + decoder + heads)


def mamba(c: Any, batch: int) -> Any:
    """Counted: four projections, the convolution, and the product of states with C.

    The state's own step (discretising A and B, A·state + B·x, D·x and the gate) is elementwise in
    the modelling code, so operations but no MACs.
    """
    h, wide, size, rank = c.hidden_size, c.intermediate_size, c.state_size, c.time_step_rank
    layer = T * (h * 2 * wide + wide * (rank + 2 * size) + rank * wide + wide * h)
    layer += T * wide * size
    layer += (T + c.conv_kernel - 1) * wide * c.conv_kernel
    return batch * (c.num_hidden_layers * layer + T * h * V)


TOKENS = {"input_ids": (T,)}
CASES: dict[str, tuple[Callable[[Any, int], Any], str, dict[str, Any], dict[str, Any]]] = {
    "bert": (bert, "BertForMaskedLM", TOKENS, {
        **WORDS, "hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 96, "max_position_embeddings": 64,
    }),
    "gpt2": (gpt2, "GPT2LMHeadModel", TOKENS, {
        **WORDS, "n_positions": 64, "n_embd": 48, "n_layer": 2, "n_head": 4,
    }),
    "llama": (llama, "LlamaForCausalLM", TOKENS, {**LIKE_LLAMA, "num_hidden_layers": 2}),
    "mixtral": (mixtral, "MixtralForCausalLM", TOKENS, {
        **LIKE_LLAMA, "num_hidden_layers": 2, "num_local_experts": 6, "num_experts_per_tok": 2,
    }),
    "deepseek_v3": (deepseek, "DeepseekV3ForCausalLM", TOKENS, {
        **LIKE_LLAMA, "num_attention_heads": 4, "num_key_value_heads": 4, "num_hidden_layers": 3,
        "first_k_dense_replace": 1, "moe_intermediate_size": 40, "n_shared_experts": 2,
        "n_routed_experts": 8, "num_experts_per_tok": 3, "n_group": 4, "topk_group": 2,
        "q_lora_rank": 24, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16,
        "v_head_dim": 12,
    }),
    "qwen2_moe": (qwen2_moe, "Qwen2MoeForCausalLM", TOKENS, {
        **LIKE_LLAMA, "num_hidden_layers": 3, "mlp_only_layers": [0], "moe_intermediate_size": 40,
        "shared_expert_intermediate_size": 72, "num_experts": 6, "num_experts_per_tok": 3,
    }),
    "qwen3_moe": (qwen3_moe, "Qwen3MoeForCausalLM", TOKENS, {
        **LIKE_LLAMA, "head_dim": 24, "num_hidden_layers": 2, "moe_intermediate_size": 40,
        "num_experts": 6, "num_experts_per_tok": 3,
    }),
    "whisper": (whisper, "WhisperForConditionalGeneration",
                {"input_features": (20, 100), "decoder_input_ids": (DECODED,)}, {
        **WORDS, "decoder_start_token_id": 1, "num_mel_bins": 20, "d_model": 48,
        "encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 4,
        "decoder_attention_heads": 6, "encoder_ffn_dim": 96, "decoder_ffn_dim": 80,
        "max_source_positions": 50, "max_target_positions": 32,
    }),
    "t5": (t5, "T5ForConditionalGeneration", {**TOKENS, "decoder_input_ids": (DECODED,)}, {
        "vocab_size": V, "d_model": 48, "d_kv": 14, "d_ff": 96, "num_layers": 2,
        "num_decoder_layers": 3, "num_heads": 4, "feed_forward_proj": "gated-gelu",
    }),
    "vit": (vit, "ViTForImageClassification", {"pixel_values": (3, 32, 32)}, {
        "hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 96, "image_size": 32, "patch_size": 8, "num_labels": 7,
    }),
    "clip": (clip, "CLIPModel", {**TOKENS, "pixel_values": (3, 32, 32)}, {
        "projection_dim": 20,
        "text_config": {
            **WORDS, "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 2,
            "num_attention_heads": 4, "max_position_embeddings": 24,
        },
        "vision_config": {
            "hidden_size": 40, "intermediate_size": 80, "num_hidden_layers": 3,
            "num_attention_heads": 5, "image_size": 32, "patch_size": 8,
        },
    }),
    "detr": (detr, "DetrForObjectDetection", {"pixel_values": (3, 128, 128)}, {
        "use_timm_backbone": False, "use_pretrained_backbone": False, "backbone": None,
        "backbone_config": {
            "model_type": "resnet", "embedding_size": 8, "hidden_sizes": [16, 24, 32, 48],
            "depths": [1, 2, 1, 1], "layer_type": "bottleneck", "out_features": ["stage4"],
        },
        "num_queries": 10, "d_model": 32, "encoder_layers": 2, "decoder_layers": 3,
        "encoder_attention_heads": 4, "decoder_attention_heads": 2, "encoder_ffn_dim": 64,
        "decoder_ffn_dim": 48, "num_labels": 5,
    }),
    "mamba": (mamba, "MambaForCausalLM", TOKENS, {
        **WORDS, "hidden_size": 32, "state_size": 8, "num_hidden_layers": 2, "conv_kernel": 4,
        "expand": 2, "time_step_rank": 4,
    }),
}  # fmt: skip


def built(kind: str, device: str = "meta", **more: Any) -> Any:
    """The model of a case, by the library's own way."""
    _, name, _, told = CASES[kind]
    config = transformers.CONFIG_MAPPING[kind](**{**told, **more})
    return on(device, lambda: getattr(transformers, name)(config)).eval()


def written(folder: Path, kind: str, **more: Any) -> str:
    _, name, _, told = CASES[kind]
    path = folder / "config.json"
    path.write_text(json.dumps({"model_type": kind, "architectures": [name], **told, **more}))
    return f"hf:{path}"


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("kind", CASES)
def test_from_a_config(tmp_path: Path, kind: str, batch: int) -> None:
    form, _, inputs, _ = CASES[kind]
    shapes = {name: (batch, *shape) for name, shape in inputs.items()}
    report = layerscope.analyze(written(tmp_path, kind), input=shapes)
    model = built(kind)
    assert report.total_params == sum(p.numel() for p in model.parameters())
    assert not report.coverage.unknown
    assert report.total_macs == form(model.config, batch)


@pytest.mark.parametrize("kind", CASES)
def test_attention_written_out(tmp_path: Path, kind: str) -> None:
    """Products one by one, not the fused operator: the same figures."""
    form, _, inputs, _ = CASES[kind]
    shapes = {name: (1, *shape) for name, shape in inputs.items()}
    report = layerscope.analyze(written(tmp_path, kind, attn_implementation="eager"), input=shapes)
    assert report.total_macs == form(built(kind).config, 1)
    assert not report.coverage.unknown


@pytest.mark.parametrize("way", ["grouped_mm", "batched_mm", "eager"])
@pytest.mark.parametrize("kind", ["mixtral", "deepseek_v3", "qwen2_moe", "qwen3_moe"])
def test_ways_to_run_experts(kind: str, way: str) -> None:
    """One expert after the other, each on the tokens it was given, takes real numbers."""
    form, _, _, _ = CASES[kind]
    device = "cpu" if way == "eager" else "meta"
    model = built(kind, device, experts_implementation=way)
    data = {"input_ids": torch.arange(3 * T, device=device).view(3, T)}
    report = layerscope.summary(model, input_data=data, verbose=0)
    assert report.total_macs == form(model.config, 3)
    assert report.total_params == sum(p.numel() for p in model.parameters())
    assert not report.coverage.unknown


@pytest.mark.parametrize("device", ["meta", "cpu"])
@pytest.mark.parametrize("padding", [0, 1, None])
def test_looking_for_padding_is_left_out(padding: int | None, device: str) -> None:
    """It reads the ids where no mask is given, for a warning alone; the model keeps doing so."""
    model = built("gpt2", device, pad_token_id=padding)
    before = [set(vars(module)) for module in model.modules()]
    data = {"input_ids": torch.ones((1, T), dtype=torch.int64, device=device)}
    report = layerscope.summary(model, input_data=data, verbose=0)
    assert report.total_macs == gpt2(model.config, 1)
    assert not report.graph.notes
    assert [set(vars(module)) for module in model.modules()] == before


LLAMA_405B = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 16384,
    "intermediate_size": 53248, "num_hidden_layers": 126, "num_attention_heads": 128,
    "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072,
    "rms_norm_eps": 1e-5, "bos_token_id": 128000, "eos_token_id": 128001,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16",
    "rope_parameters": {
        "rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 8192,
    },
}  # fmt: skip
ALONE = """
import resource, sys
import layerscope
report = layerscope.analyze(sys.argv[1], input={"input_ids": (1, 128)})
held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
if sys.platform == "linux":  # where that counts what the parent held when it was forked
    held = next(int(line.split()[1]) for line in open("/proc/self/status") if "VmHWM" in line)
print(report.total_params, report.total_macs, len(report.coverage.unknown), held)
"""


def test_llama_of_405_billion(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA_405B), encoding="utf-8")
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", ALONE, f"hf:{path}"]
    done = subprocess.run(command, env=paths, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    params, macs, unknown, held = map(int, done.stdout.split())
    h, keys = 16384, 8 * 128
    layer = 128 * (h * (2 * h + 2 * keys) + gated(h, 53248)) + pairs(128, 128, h)
    assert params == 405_853_388_800
    assert macs == 126 * layer + 128 * h * 128256
    assert unknown == 0
    scale = 1 if sys.platform == "darwin" else 1024
    assert held * scale < 1.5e9


@pytest.mark.parametrize("kind", ["bert", "llama", "t5", "gpt2", "mistral", "gemma3_text"])
def test_a_mask_without_values_is_that_of_a_text_without_padding(kind: str) -> None:
    """The account on the meta device is that with a mask of ones on a real one."""
    ids, ones = torch.zeros(1, T, dtype=torch.long), torch.ones(1, T, dtype=torch.long)
    given = {"input_ids": ids, "attention_mask": ones}
    if kind == "t5":
        given["decoder_input_ids"] = ids
    real = layerscope.summary(small(kind), input_data=given, verbose=0)
    on_meta = {name: tensor.to("meta") for name, tensor in given.items()}
    report = layerscope.summary(on("meta", lambda: small(kind)), input_data=on_meta, verbose=0)
    assert report.totals == real.totals
    assert [node.op for node in report.graph.nodes] == [node.op for node in real.graph.nodes]
