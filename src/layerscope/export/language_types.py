"""The structs of a language model in use in the JSON of a report."""

from __future__ import annotations

from msgspec import Struct


class LayerCacheJson(Struct):
    """Bytes that one layer of the decoder caches for all sequences."""

    kind: str  # full, sliding, chunked, latent, mamba, mamba2, delta, shared or none
    cells: int  # tokens with room, of all sequences
    key_bytes: int
    value_bytes: int
    state_bytes: int
    cross_bytes: int  # keys and values of the encoder's tokens


class CacheJson(Struct):
    """Caches and states of all layers."""

    tokens: int  # of each sequence
    sequences: int
    key_format: str
    value_format: str
    bytes: int  # as the runtime allocates them
    needed_bytes: int  # as the mathematics needs them
    bytes_per_token: int  # that one more token of a sequence adds, far behind all windows
    layers: list[LayerCacheJson]


class UseJson(Struct):
    """Bytes by use."""

    weights: int
    cache: int
    activations: int
    workspace: int
    total: int


class AttentionJson(Struct):
    """Multiply-adds of attention."""

    all_macs: int  # of all pairs of queries and keys
    needed_macs: int  # of the pairs that masks and windows leave


class ContextJson(Struct):
    """The longest context of each sequence at a batch size; null if any length fits."""

    batch: int
    tokens: int | None


class LanguageFitJson(Struct):
    """What fits in a memory; null if any number fits, 0 if not even one does."""

    memory_bytes: int
    usable_bytes: int  # what the runtime takes of it: 90 % with vLLM, else all
    largest_batch: int | None  # at the tokens of the cache
    longest_context: int | None  # at the batch of the cache
    contexts: list[ContextJson]


class DevicesJson(Struct):
    """A model cut into parts; the product of their numbers is that of the devices."""

    tensor: int
    pipeline: int
    expert: int
    stages: list[UseJson]  # of one device of each stage of the pipeline


class DeploymentJson(Struct):
    """A language model in use, with --runtime, --weight-dtype or --cache-dtype."""

    model_type: str
    runtime: str  # "" is none: what the mathematics needs
    weight_format: str
    params: int
    active_params: dict[str, int]  # by convention; of a mixture of experts less than params
    predictor_params: int  # of layers of multi-token prediction, which params leaves out
    attention: AttentionJson | None  # null for recurrent layers and encoders
    cache: CacheJson
    memory: UseJson
    fit: LanguageFitJson | None  # with --fit
    notes: list[str]
    devices: DevicesJson | None = None  # with --parallel
