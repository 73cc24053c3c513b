"""Families of language models, one file each: a configuration as layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from layerscope.errors import UnknownName
from layerscope.llm.config_values import ConfigValues
from layerscope.llm.description import LanguageModel
from layerscope.llm.families import (
    deepseek,
    encoder_decoder,
    gemma4,
    gpt,
    hybrid,
    llama,
    llama4,
    mixed_heads,
    recurrent,
)

Family = Callable[[ConfigValues], LanguageModel]

FAMILIES: dict[str, Family] = {
    **dict.fromkeys(llama.FORMS, llama.describe),
    **dict.fromkeys(deepseek.FORMS, deepseek.describe),
    **gpt.FAMILY,
    **hybrid.FAMILY,
    **recurrent.FAMILY,
    **encoder_decoder.FAMILY,
    **mixed_heads.FAMILY,
    "gemma4_text": gemma4.describe,
    "llama4_text": llama4.describe,
}
# Models of images and text by the model_type of their text part, where it is not given.
TEXT_PARTS = {
    "gemma3": "gemma3_text",
    "gemma4": "gemma4_text",
    "kimi_k25": "deepseek_v3",
    "llama4": "llama4_text",
    "llava": "llama",
    "minimax_m3_vl": "minimax_m3_vl_text",
    "mistral3": "mistral",
    "qwen3_5": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text",
    "qwen3_vl": "qwen3_vl_text",
    "qwen3_vl_moe": "qwen3_vl_moe_text",
}
# Other names that publishers give to a type of transformers.
ALIASES = {"minimax_m3": "minimax_m3_vl_text"}
KIND = "model_type for caches and memory:"
TEXT_NOTE = "the text part alone: images are read by layers that are not counted here"


def describe(values: Mapping[str, object], where: str = "configuration") -> LanguageModel:
    """The layers that a configuration describes; of a model of images and text, its text part."""
    found = _whole_or_text(values, where)
    return replace(found, quantized=_quantized(values) or _quantized(values.get("text_config")))


def _quantized(values: object) -> str:
    """How a checkpoint is quantized: the algorithm, else the program that did it."""
    found = values.get("quantization_config") if isinstance(values, dict) else None
    names = ("quant_algo", "quant_method")
    given = [found[name] for name in names if found.get(name)] if isinstance(found, dict) else []
    return str(given[0])[:80] if given else ""


def _whole_or_text(values: Mapping[str, object], where: str) -> LanguageModel:
    kind = str(values.get("model_type", ""))
    config = ConfigValues(values, where, kind)
    if kind in TEXT_PARTS:
        part = config.part("text_config", TEXT_PARTS[kind])
        if part.value("tie_word_embeddings") is None or "tie_word_embeddings" in values:
            part = part.with_value("tie_word_embeddings", config.value("tie_word_embeddings"))
        return replace(_described(part), notes=(TEXT_NOTE,))
    return _described(config)


def _described(config: ConfigValues) -> LanguageModel:
    config = config.of_type(ALIASES.get(config.model_type, config.model_type))
    if config.model_type not in FAMILIES:
        raise UnknownName(KIND, config.model_type, FAMILIES)
    return FAMILIES[config.model_type](config)
