"""The memory of a language model in use: weights, cache, activations and workspace."""

from __future__ import annotations

import os
from collections.abc import Mapping
from math import prod

from msgspec import Struct
from msgspec.structs import replace

from layerscope.errors import UsageError
from layerscope.formats.config_file import read_config
from layerscope.formats.gguf import gguf_file
from layerscope.graph.types import storage_bytes
from layerscope.llm.block_formats import block_format
from layerscope.llm.cache import CacheOptions, LayerCache, Rule, cache_bytes, layer_caches, needed
from layerscope.llm.description import EXPERTS, DecoderLayer, LanguageModel
from layerscope.llm.families import describe
from layerscope.llm.gguf_model import gguf_model
from layerscope.llm.runtimes import runtime
from layerscope.llm.runtimes.vllm import PERCENT, ProfileRun, profile_run
from layerscope.llm.weight_bytes import weight_bytes

PREFIX, GGUF_SUFFIX = "hf:", ".gguf"
F32_BYTES = 4


class Deployment(Struct, frozen=True, kw_only=True):
    """A language model with formats and a runtime; without a runtime, what mathematics needs."""

    model: LanguageModel
    cache: CacheOptions
    weights: str = "bf16"
    stored: int | None = None  # bytes of the weights, where a file has them
    activations: str = "bf16"
    program: str = ""
    device_bytes: int | None = None  # the memory to fit in: vLLM schedules more on large devices

    @property
    def rule(self) -> Rule:
        """How the caches of layers are counted."""
        return runtime(self.program) if self.program else needed

    @property
    def profile(self) -> ProfileRun | None:
        """The run by which vLLM measures its peak, which other runtimes have not."""
        return profile_run(self.device_bytes) if self.program == "vllm" else None

    @property
    def usable_bytes(self) -> int | None:
        """What the runtime takes of the memory of the device."""
        if self.device_bytes is None or self.program != "vllm":
            return self.device_bytes
        return self.device_bytes * PERCENT // 100

    def sized(self, batch: int, tokens: int) -> Deployment:
        """The same with other numbers of sequences and of tokens in each."""
        return replace(self, cache=replace(self.cache, sequences=batch, tokens=tokens))

    def layers(self) -> tuple[LayerCache, ...]:
        """What every layer caches."""
        return layer_caches(self.model, self.cache, self.rule)


class DeployedMemory(Struct, frozen=True):
    """Bytes of a deployment by use."""

    weights: int
    cache: int
    activations: int
    workspace: int

    @property
    def total(self) -> int:
        """All bytes."""
        return self.weights + self.cache + self.activations + self.workspace


def is_gguf(network: str) -> bool:
    """Whether a network is a GGUF file, with or without `hf:`."""
    return network.lower().endswith(GGUF_SUFFIX)


def read_language_model(network: str) -> LanguageModel:
    """The language model of `hf:config.json`, `hf:folder` or a GGUF file."""
    if is_gguf(network):
        path = network.removeprefix(PREFIX)
        return gguf_model(gguf_file(path), path)
    if not network.startswith(PREFIX):
        raise UsageError(f"{network}: no configuration of a language model, such as hf:config.json")
    path = network.removeprefix(PREFIX)
    path = os.path.join(path, "config.json") if os.path.isdir(path) else path
    settings: Mapping[str, object] = read_config(path)
    return describe(settings, path)


def stored_weights(network: str) -> int | None:
    """Bytes of the arrays of a GGUF file; None for a configuration."""
    if not is_gguf(network):
        return None
    arrays = gguf_file(network.removeprefix(PREFIX)).arrays
    return sum(storage_bytes(prod(array.shape), array.dtype) for array in arrays)


def rows_at_once(deployment: Deployment) -> tuple[int, int]:
    """Tokens that a runtime computes at once at most, and those of them that have logits."""
    sequences = deployment.cache.sequences
    asked = max(deployment.cache.tokens, 1) * sequences
    if deployment.program == "llama.cpp":
        rows = min(asked, deployment.cache.micro_batch)
        return rows, rows
    run = deployment.profile
    if run is not None:
        return max(run.tokens, sequences), max(run.sequences, sequences)
    return sequences, sequences


def layer_width(layer: DecoderLayer, hidden: int) -> int:
    """Numbers per token that are alive in the widest step of a layer, its input included."""
    widths = [0]
    for part, weights in layer.parts.items():
        times = layer.experts.per_token if part == EXPERTS and layer.experts is not None else 1
        sizes = {name: shape[-2:] for name, shape in weights.items() if len(shape) > 1}
        if part in (EXPERTS, "mlp", "shared expert"):
            # the gate and the value beside it are alive together
            widths.append(times * sum(s[0] for name, s in sizes.items() if "down" not in name))
        elif "q_proj" in sizes:
            widths.append(sum(sizes[name][0] for name in sizes if name[0] in "qkv"))
        elif part in ("attention", "recurrence"):
            widths.append(max((prod(s[:1]) for s in sizes.values()), default=0))
    return hidden + max(widths)


def memory_use(deployment: Deployment, weights: int | None = None) -> DeployedMemory:
    """Bytes of a deployment; `weights` are their bytes if they are counted already.

    Activations are those of the widest layer. At the end of the pass they are one row per token
    beside the logits in fp32, which are the workspace; the larger of both moments counts.
    """
    model = deployment.model
    rows, outputs = rows_at_once(deployment)
    size = F32_BYTES if deployment.program == "llama.cpp" else 0
    number = size or block_format(deployment.activations).row_bytes(1)
    different = {id(layer): layer for layer in model.layers}.values()
    widest = max((layer_width(layer, model.hidden) for layer in different), default=model.hidden)
    inside = rows * widest * number
    logits = outputs * model.vocabulary * F32_BYTES
    at_end = rows * model.hidden * number
    is_end = at_end + logits > inside
    weights = deployment.stored if weights is None else weights
    if weights is None:
        weights = weight_bytes(model, block_format(deployment.weights), deployment.activations)
    return DeployedMemory(
        weights=weights,
        cache=cache_bytes(model, deployment.cache, deployment.rule),
        activations=at_end if is_end else inside,
        workspace=logits if is_end else 0,
    )
