"""A language model as its layers: what each mixes tokens with, what it caches, its weights.

Weights are shapes by name, in the parts of a layer: attention, recurrence, mlp, experts, router,
norms. An expert stack has the number of experts as its first axis.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from layerscope.graph.types import Shape

Weights = Mapping[str, Shape]
Parts = Mapping[str, Weights]
EXPERTS = "experts"  # the part whose weights a token reads only for the experts that it is sent to


class HeadAttention(Struct, frozen=True, kw_only=True):
    """Softmax attention with keys and values per head."""

    heads: int
    kv_heads: int
    key_dim: int
    value_dim: int
    window: int = 0  # keys that a query sees, its own included; 0 is all
    chunk: int = 0  # a query sees the keys of its own chunk; 0 is all
    index_dim: int = 0  # key of the indexer that selects the keys to attend to
    index_heads: int = 0
    index_keys: int = 0  # keys selected for a query; 0 is all
    is_cached: bool = True  # false: it reads the keys and values of an earlier layer
    is_causal: bool = True

    @property
    def kind(self) -> str:
        """How far a query sees."""
        return "sliding" if self.window else "chunked" if self.chunk else "full"


class LatentAttention(Struct, frozen=True, kw_only=True):
    """Attention whose keys and values are projected from one latent vector per token (MLA)."""

    heads: int
    latent: int
    rope_dim: int
    nope_dim: int
    value_dim: int
    index_dim: int = 0  # key of the indexer that selects the keys to attend to
    index_heads: int = 0
    index_keys: int = 0  # keys selected for a query; 0 is all

    kind: Literal["latent"] = "latent"


class Recurrence(Struct, frozen=True, kw_only=True):
    """A state of fixed size instead of keys and values: state-space and linear attention layers."""

    kind: Literal["mamba", "mamba2", "delta"]
    conv_channels: int
    conv_kernel: int
    state: Shape


Mixer = HeadAttention | LatentAttention | Recurrence


class Experts(Struct, frozen=True):
    """Experts of a layer, and how many of them a token is sent to."""

    count: int
    per_token: int


class DecoderLayer(Struct, frozen=True, kw_only=True):
    """One layer; without a mixer it is a feed-forward layer alone."""

    parts: Parts
    mixer: Mixer | None = None
    cross: HeadAttention | None = None  # attention to the tokens of an encoder
    experts: Experts | None = None


class LanguageModel(Struct, frozen=True, kw_only=True):
    """A decoder, or an encoder and a decoder, as a configuration describes it."""

    model_type: str
    hidden: int
    layers: tuple[DecoderLayer, ...]
    vocabulary: int
    outer: Parts  # weights outside of layers: embedding, positions, norm, head
    encoder: tuple[DecoderLayer, ...] = ()
    predictors: tuple[
        DecoderLayer, ...
    ] = ()  # layers of multi-token prediction, in checkpoints alone
    notes: tuple[str, ...] = ()
    encoded: int = 0  # tokens of the encoder, where their number is fixed
    quantized: str = ""  # how the checkpoint is quantized, as the configuration says


ENCODED = 128  # tokens of an encoder for a step of decoding, unless their number is fixed


def encoder_tokens(model: LanguageModel, prompt: int | None) -> int:
    """Tokens that the decoder attends to in the encoder: the prompt, or what the model fixes."""
    if not model.encoder:
        return 0
    return model.encoded or prompt or ENCODED
