"""Models of transformers for tests: small ones that run, default ones cut to two layers."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from tests.formats.torch.torch_nets import on, torch, vision

SMALL: dict[str, Any] = {
    "hidden_size": 32, "d_model": 32, "intermediate_size": 48, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "vocab_size": 64, "num_hidden_layers": 4,
    "num_layers": 4, "sliding_window": 5, "attention_chunk_size": 5, "use_sliding_window": True,
    "max_window_layers": 0, "max_position_embeddings": 64, "num_experts": 4,
    "num_local_experts": 4, "moe_intermediate_size": 16, "pad_token_id": 0, "window_size": 5,
    "bos_token_id": 1, "eos_token_id": 2, "local_attention": 10, "global_attn_every_n_layers": 2,
    "sliding_window_pattern": 2, "num_experts_per_tok": 2,
    "attention_types": [[["global", "local"], 2]],
}  # fmt: skip
DEPTHS = (
    "num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers",
    "num_decoder_layers",
)  # fmt: skip
KINDS = ("layer_types", "layers_block_type", "mlp_layer_types", "attention_layers")


def library() -> Any:
    """The transformers package."""
    found = pytest.importorskip("transformers", reason="transformers is not installed")
    vision()
    found.logging.set_verbosity_error()
    return found


def class_of(kind: str) -> str:
    """Name of the class with a head that decodes, else of the plain model."""
    library()
    from transformers.models.auto import modeling_auto as auto

    for table in (
        auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
        auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        auto.MODEL_MAPPING_NAMES,
    ):
        if kind in table:
            found = table[kind]
            return found if isinstance(found, str) else found[0]
    raise KeyError(kind)


def small(kind: str) -> Any:
    """A model of a few thousand weights with real numbers, whose attention can be looked at."""
    transformers = library()
    known = transformers.CONFIG_MAPPING[kind]().to_dict()
    options = {name: value for name, value in SMALL.items() if name in known}
    config = transformers.CONFIG_MAPPING[kind](**options, attn_implementation="eager")
    return getattr(transformers, class_of(kind))(config).eval()


def cut(kind: str) -> Any:
    """The default model on the meta device, cut to two layers of different kinds if it has any."""
    transformers = library()
    config = transformers.CONFIG_MAPPING[kind]()
    texts = {id(each): each for each in (config, config.get_text_config(decoder=True))}
    for text in texts.values():
        for name in DEPTHS:
            if isinstance(getattr(text, name, None), int):
                setattr(text, name, 2)
        for name in KINDS:
            kinds = list(getattr(text, name, None) or ())
            if kinds:
                other = [each for each in kinds if each != kinds[0]]
                with suppress(AttributeError):  # of some it follows from the depth
                    setattr(text, name, [kinds[0], *(other or kinds)][:2])
    torch.set_default_dtype(torch.bfloat16)  # PyTorch's product of experts takes no other on meta
    try:
        return on("meta", lambda: getattr(transformers, class_of(kind))(config)).eval()
    finally:
        torch.set_default_dtype(torch.float32)


def ids(batch: int, tokens: int) -> Any:
    """Token ids without numbers."""
    return torch.empty(batch, tokens, dtype=torch.int64, device="meta")
