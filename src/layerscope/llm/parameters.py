"""Parameters of a language model: in all, by part, and those that a token reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from math import prod

from msgspec import Struct

from layerscope.llm.description import EXPERTS, DecoderLayer, Experts, LanguageModel, Parts, Weights

BUFFERS = "buffers"  # stored with the weights, but no parameters
CONVENTIONS = {
    "all weights": (),
    "without the input embedding": ("embedding",),
    "without both embeddings": ("embedding", "head"),
}


class ActiveCount(Struct, frozen=True):
    """Parameters that one token reads, and what is counted."""

    convention: str
    params: int


def weights_count(weights: Weights) -> int:
    """Numbers in a group of weights."""
    return sum(prod(shape) for shape in weights.values())


def parts_count(parts: Parts) -> int:
    """Parameters in all parts, without buffers."""
    return sum(weights_count(each) for name, each in parts.items() if name != BUFFERS)


def layer_params(layer: DecoderLayer) -> int:
    """Parameters of a layer."""
    return parts_count(layer.parts)


def active_layer_params(layer: DecoderLayer) -> int:
    """Parameters of a layer that a token reads: of the experts, those that it is sent to."""
    if layer.experts is None:
        return layer_params(layer)
    stacks = weights_count(layer.parts[EXPERTS])
    one = stacks // layer.experts.count
    return layer_params(layer) - stacks + one * layer.experts.per_token


def _layers(model: LanguageModel) -> Iterable[DecoderLayer]:
    return (*model.encoder, *model.layers)


def total_params(model: LanguageModel) -> int:
    """Parameters of a model; a tied head counts once, layers of multi-token prediction do not."""
    return parts_count(model.outer) + sum(map(layer_params, _layers(model)))


def predictor_params(model: LanguageModel) -> int:
    """Parameters of the layers of multi-token prediction."""
    return sum(map(layer_params, model.predictors))


def stored_buffers(model: LanguageModel, predictors: bool = False) -> int:
    """Numbers that a checkpoint stores beside parameters."""
    layers = (*_layers(model), *(model.predictors if predictors else ()))
    groups = (model.outer, *(layer.parts for layer in layers))
    return sum(weights_count(parts.get(BUFFERS, {})) for parts in groups)


def params_by_part(model: LanguageModel) -> dict[str, int]:
    """Parameters of all layers by part, then those outside of layers."""
    found: Counter[str] = Counter()
    for parts in (*(layer.parts for layer in _layers(model)), model.outer):
        for name, weights in parts.items():
            if name != BUFFERS:
                found[name] += weights_count(weights)
    return dict(found)


def active_params(model: LanguageModel) -> tuple[ActiveCount, ...]:
    """Parameters that a token reads, under each published convention.

    A tied head is the embedding, so that leaving out the input embedding keeps it.
    """
    layers = sum(map(active_layer_params, _layers(model)))
    others = parts_count(model.outer)
    embedding = weights_count(model.outer["embedding"])
    head = weights_count(model.outer.get("head", {}))
    left_out = {
        "all weights": 0,
        "without the input embedding": embedding if head else 0,
        "without both embeddings": embedding + head,
    }
    return tuple(ActiveCount(name, layers + others - left_out[name]) for name in CONVENTIONS)


def expected_experts(experts: Experts, tokens: int) -> Fraction:
    """Distinct experts that so many tokens are sent to, if all are as likely."""
    missed = Fraction(experts.count - experts.per_token, experts.count) ** tokens
    return experts.count * (1 - missed)
