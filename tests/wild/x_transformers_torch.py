"""x-transformers: encoders, decoders and wrappers with the options of its README, one by one."""

from __future__ import annotations

from typing import Any

import torch

from tests.wild.compare_torch import Built

IDS, MASK = (2, 24), (2, 24)
LAYERS: dict[str, dict[str, Any]] = {
    "plain": {},
    "flash": {"attn_flash": True},
    "memory key values": {"attn_num_mem_kv": 4},
    "sparse topk": {"attn_sparse_topk": 4},
    "talking heads": {"attn_pre_talking_heads": True, "attn_post_talking_heads": True},
    "one key head": {"attn_one_kv_head": True},
    "grouped heads": {"attn_kv_heads": 2},
    "head scale": {"attn_head_scale": True},
    "on attention": {"attn_on_attn": True},
    "gate values": {"attn_gate_values": True},
    "gate value heads": {"attn_gate_value_heads": True},
    "swiglu values": {"attn_swiglu_values": True},
    "qk norm": {"attn_qk_norm": True},
    "qk norm groups": {"attn_qk_norm": True, "attn_qk_norm_groups": 4},
    "qk norm dim scale": {"attn_qk_norm": True, "attn_qk_norm_dim_scale": True},
    "qk rmsnorm": {"attn_qk_rmsnorm": True},
    "value rmsnorm": {"attn_value_rmsnorm": True},
    "l2 distance": {"attn_l2_distance": True},
    "sigmoid": {"attn_sigmoid": True},
    "gumbel softmax": {"attn_gumbel_softmax": True},
    "selective": {"attn_selective": True},
    "cog signed": {"attn_cog_signed": True},
    "hard": {"attn_hard": True},
    "zero key value": {"attn_add_zero_kv": True},
    "learned sink": {"attn_head_learned_sink": True},
    "data dependent alibi": {"attn_data_dependent_alibi": True},
    "data dependent alibi per row": {
        "attn_data_dependent_alibi": True, "attn_data_dependent_alibi_per_row": True,
    },
    "relative projected bias": {"attn_use_rel_proj_pos_bias": True},
    "cope": {"attn_use_cope": True},
    "softclamp logits": {"attn_softclamp_logits": True},
    "orthogonal values": {"attn_orthog_projected_values": True},
    "laser": {"attn_laser": True},
    "latent queries": {"attn_use_latent_q": True, "attn_dim_latent_q": 24},
    "latent keys": {"attn_use_latent_kv": True, "attn_dim_latent_kv": 24},
    "inverted": {"attn_inverted_attention": True},
    "max past": {"attn_max_attend_past": 8},
    "scalenorm": {"use_scalenorm": True},
    "rmsnorm": {"use_rmsnorm": True},
    "simple rmsnorm": {"use_simple_rmsnorm": True},
    "dynamic tanh": {"use_dynamic_tanh": True},
    "derf": {"use_derf": True},
    "alibi": {"alibi_pos_bias": True, "alibi_num_heads": 2},
    "relative bias": {"rel_pos_bias": True},
    "dynamic bias": {"dynamic_pos_bias": True},
    "dynamic log bias": {"dynamic_pos_bias": True, "dynamic_pos_bias_log_distance": True},
    "rotary": {"rotary_pos_emb": True},
    "rotary xpos": {"rotary_pos_emb": True, "rotary_xpos": True},
    "polar": {"polar_pos_emb": True},
    "tied layers": {"weight_tie_layers": True},
    "sandwich": {"sandwich_coef": 1},
    "parallel ratio": {"depth": 6, "par_ratio": 3},
    "residual attention": {"residual_attn": True},
    "macaron": {"macaron": True},
    "post norm": {"pre_norm": False},
    "sandwich norm": {"sandwich_norm": True},
    "aggregated residuals": {"attn_aggregated_residuals": True, "dim": 128},
    "gate residual": {"gate_residual": True},
    "orthogonal residual": {"orthog_residual": True},
    "scale residual": {"scale_residual": True},
    "shift tokens": {"shift_tokens": 1},
    "layerscale": {"use_layerscale": True},
    "unet skips": {"unet_skips": True},
    "integrate layers": {"integrate_layers": True},
    "residual streams": {"num_residual_streams": 2},
    "differing residuals": {"num_residual_streams": 2, "qkv_receive_diff_residuals": True},
    "reinject input": {"reinject_input": True},
    "value residual": {"add_value_residual": True},
    "glu": {"ff_glu": True},
    "glu bias": {"ff_glu": True, "ff_glu_mult_bias": True},
    "swish glu": {"ff_swish": True, "ff_glu": True},
    "relu squared": {"ff_relu_squared": True},
    "solu": {"ff_solu": True},
    "norm in feed forward": {"ff_post_act_ln": True},
    "no bias": {"ff_no_bias": True},
    "attention alone": {"only_attn": True},
}  # fmt: skip
WRAPPERS: dict[str, dict[str, Any]] = {
    "memory tokens": {"num_memory_tokens": 4},
    "tied embedding": {"tie_embedding": True},
    "sinusoidal": {"scaled_sinu_pos_emb": True},
    "normed embedding": {"l2norm_embed": True},
    "narrow embedding": {"emb_dim": 32},
    "average pool": {"average_pool_embed": True},
    "class token": {"use_cls_token": True},
    "attention pool": {"attn_pool": True},
    "mixture of softmax": {"mixture_of_softmax": True},
    "output heads": {"num_output_heads": 2},
    "deep embedding": {"ff_deep_embed": True},
}  # fmt: skip
OTHERS = ("image", "encoder and decoder", "continuous", "cross attender", "xval", "several inputs")
CAUSAL = (
    "data dependent alibi per row",
    "selective",
    "cope",
    "latent keys",
    "max past",
    "shift tokens",
    "rotary xpos",
)


def names() -> list[str]:
    """Options of the layers, options of the wrapper, and other classes."""
    return [*LAYERS, *WRAPPERS, *(f"decoder {name}" for name in list(LAYERS)[:8]), *OTHERS]


def build(name: str) -> Built:
    """A model of two layers on tokens, with a mask of them where it takes one."""
    if name in OTHERS:
        return _other(name)
    kind, options = "Encoder", LAYERS.get(name, {})
    if name in CAUSAL or name.startswith("decoder "):
        kind, options = "Decoder", LAYERS[name.removeprefix("decoder ")]
    model = _tokens(_layers(kind, options), **WRAPPERS.get(name, {}))
    mask = {"mask": torch.ones(MASK, dtype=torch.bool)}
    return Built(model, (torch.zeros(IDS, dtype=torch.int64),), mask=mask)


def _layers(kind: str, options: dict[str, Any]) -> Any:
    import x_transformers

    return getattr(x_transformers, kind)(
        **{"dim": 64, "depth": 2, "heads": 4, "attn_dim_head": 16, "verbose": False, **options}
    )


def _tokens(layers: Any, **options: Any) -> Any:
    from x_transformers import TransformerWrapper

    return TransformerWrapper(num_tokens=100, max_seq_len=32, attn_layers=layers, **options)


def _other(name: str) -> Built:
    import x_transformers as x

    ids, floats = torch.zeros(IDS, dtype=torch.int64), torch.zeros(2, 24, 64)
    if name == "image":
        image = x.ViTransformerWrapper(
            image_size=32, patch_size=8, num_classes=10, attn_layers=_layers("Encoder", {})
        )
        return Built(image, (torch.zeros(2, 3, 32, 32),))
    if name == "encoder and decoder":
        both = {"num_tokens": 100, "depth": 2, "heads": 4, "max_seq_len": 32}
        options = {f"{end}_{key}": value for end in ("enc", "dec") for key, value in both.items()}
        return Built(x.XTransformer(dim=64, tie_token_emb=True, **options), (ids, ids))
    if name == "continuous":
        wrapper = x.ContinuousTransformerWrapper(
            dim_in=64, dim_out=48, max_seq_len=32, attn_layers=_layers("Encoder", {})
        )
        return Built(wrapper, (floats,), mask={"mask": torch.ones(MASK, dtype=torch.bool)})
    if name == "cross attender":
        return Built(_layers("CrossAttender", {}), (floats,), {"context": torch.zeros(2, 9, 64)})
    if name == "xval":
        numbers = x.XValTransformerWrapper(
            num_tokens=100, numerical_token_id=3, max_seq_len=32, attn_layers=_layers("Decoder", {})
        )
        return Built(numbers, (ids, torch.zeros(IDS)))
    several = x.MultiInputTransformerWrapper(
        num_tokens={"note": 20, "pitch": 30}, max_seq_len=32, attn_layers=_layers("Decoder", {})
    )
    return Built(several, ({"note": ids, "pitch": ids},))
