"""A language model on several devices: what each has under tensor, pipeline, expert parallelism.

A device has a model of its own, whose matrices are cut, so that bytes are counted as of any model:

- pipeline: consecutive layers; where they do not divide, the first stages have one more. The first
  stage has the embedding, the last one the head, which is a copy of a tied embedding.
- tensor: outputs of the first matrices of attention and feed-forward layers are cut by heads or
  columns, inputs of the last ones; embedding and head by the vocabulary. A head of keys and values
  is copied where there are fewer of them than devices. Norms, routers and latents are copied.
- expert: whole experts; everything else is copied, and each copy has its share of the sequences.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from layerscope.errors import UsageError
from layerscope.graph.types import Shape
from layerscope.llm.account import DeployedMemory, Deployment, memory_use
from layerscope.llm.description import (
    EXPERTS,
    DecoderLayer,
    Experts,
    HeadAttention,
    LanguageModel,
    LatentAttention,
    Mixer,
    Parts,
    Recurrence,
    Weights,
)

FIRST, LAST = ("embedding", "positions", "layer embeddings"), ("norm", "head")
CUT_PARTS = ("attention", "cross attention", "mlp", "shared expert", "recurrence", EXPERTS)
CUT_INPUTS = ("o_proj", "down_proj", "out_proj", "x_proj")  # whose last axis is cut
COPIED = (
    "q_a_",
    "kv_a_",
    "index",
    "wk",
    "wq_b",
    "weights_proj",
    "k_norm",
    "q_norm",
    "dt_proj.bias",
)


class Parallelism(Struct, frozen=True):
    """Into how many parts a model is cut, by kind; their product is the number of devices."""

    tensor: int = 1
    pipeline: int = 1
    expert: int = 1

    @property
    def devices(self) -> int:
        """All devices."""
        return self.tensor * self.pipeline * self.expert


def check_parallelism(model: LanguageModel, split: Parallelism) -> None:
    """Raise for more stages than layers, more parts than heads, and experts that are not there."""
    if model.encoder:
        raise UsageError(f"--parallel: {model.model_type} has an encoder; a decoder was expected")
    if split.pipeline > len(model.layers):
        raise UsageError(f"--parallel pp={split.pipeline}: there are {len(model.layers)} layers")
    heads = [m.heads for m in _mixers(model) if isinstance(m, (HeadAttention, LatentAttention))]
    if heads and split.tensor > min(heads):
        raise UsageError(f"--parallel tp={split.tensor}: a layer has {min(heads)} heads")
    experts = [layer.experts.count for layer in model.layers if layer.experts is not None]
    if split.expert > 1 and split.expert > min(experts, default=0):
        count = f"{min(experts)} experts" if experts else "no experts"
        raise UsageError(f"--parallel ep={split.expert}: a layer has {count}")


def stage_memory(deployment: Deployment, split: Parallelism) -> tuple[DeployedMemory, ...]:
    """Bytes of one device of each stage of the pipeline."""
    check_parallelism(deployment.model, split)
    if deployment.stored is not None:
        raise UsageError("--parallel needs formats of weights, not those of a file")
    batch = -(-deployment.cache.sequences // split.expert)
    sized = deployment.sized(batch, deployment.cache.tokens)
    return tuple(
        memory_use(replace(sized, model=stage_model(deployment.model, split, n)))
        for n in range(split.pipeline)
    )


def stage_model(model: LanguageModel, split: Parallelism, stage: int) -> LanguageModel:
    """What one device of a stage has."""
    each, more = divmod(len(model.layers), split.pipeline)
    start = stage * each + min(stage, more)
    chosen = model.layers[start : start + each + (stage < more)]
    cut = {id(layer): _layer(layer, split) for layer in chosen}
    outer: dict[str, Weights] = {}
    for part, weights in model.outer.items():
        is_here = (part in FIRST and stage == 0) or (part in LAST and stage == split.pipeline - 1)
        if is_here or part not in (*FIRST, *LAST):
            outer[part] = weights
    if stage == split.pipeline - 1 and "head" not in model.outer:
        outer["embedding"] = model.outer["embedding"]
    return replace(
        model,
        layers=tuple(cut[id(layer)] for layer in chosen),
        outer=_outer(outer, split),
        predictors=(),
    )


def _mixers(model: LanguageModel) -> list[Mixer]:
    return [layer.mixer for layer in model.layers if layer.mixer is not None]


def _layer(layer: DecoderLayer, split: Parallelism) -> DecoderLayer:
    experts = layer.experts
    if experts is not None:
        count = _share(experts.count, split.expert)
        experts = Experts(count, min(experts.per_token, count))
    parts: dict[str, Weights] = {}
    for part, weights in layer.parts.items():
        mine = weights
        if part == EXPERTS and experts is not None:
            mine = {name: (experts.count, *shape[1:]) for name, shape in weights.items()}
        cuts = part in CUT_PARTS
        parts[part] = {
            name: _cut(layer, (part, name), shape, split.tensor) if cuts else shape
            for name, shape in mine.items()
        }
    return replace(layer, parts=parts, mixer=_mixer(layer.mixer, split.tensor), experts=experts)


def _share(count: int, parts: int) -> int:
    return -(-count // parts)


def _mixer(mixer: Mixer | None, parts: int) -> Mixer | None:
    if isinstance(mixer, HeadAttention):
        heads, kv_heads = _share(mixer.heads, parts), _share(mixer.kv_heads, parts)
        return replace(mixer, heads=heads, kv_heads=kv_heads)
    if isinstance(mixer, LatentAttention):
        return replace(mixer, heads=_share(mixer.heads, parts))
    if isinstance(mixer, Recurrence):
        first, *rest = mixer.state
        state = (_share(first, parts), *rest)
        return replace(mixer, conv_channels=_share(mixer.conv_channels, parts), state=state)
    return None


def _cut(layer: DecoderLayer, weight: tuple[str, str], shape: Shape, parts: int) -> Shape:
    """The shape of one device's part of a weight."""
    part, name = weight
    stem = name.removesuffix(".bias")
    if parts == 1 or stem.startswith(COPIED) or "norm" in stem:
        return shape
    if stem in CUT_INPUTS:  # a bias is added once, to the sum
        return (*shape[:-1], _share(shape[-1], parts)) if stem == name else shape
    axis = len(shape) - (1 if stem != name or len(shape) == 1 else 2)
    if part == "recurrence":
        axis = 0
    size = _share(shape[axis], parts)
    mixer = layer.cross if part == "cross attention" else layer.mixer
    if isinstance(mixer, HeadAttention) and part.endswith("attention") and name[:1] in "qkv":
        count = mixer.heads if name[0] == "q" else mixer.kv_heads
        size = shape[axis] // count * _share(count, parts)
    return (*shape[:axis], size, *shape[axis + 1 :])


def _outer(outer: Parts, split: Parallelism) -> Parts:
    """Embedding and head are cut by the vocabulary."""
    cut = ("embedding", "head")
    return {
        part: {
            name: (_share(shape[0], split.tensor), *shape[1:])
            if part in cut and len(shape) > 1
            else shape
            for name, shape in weights.items()
        }
        for part, weights in outer.items()
    }
