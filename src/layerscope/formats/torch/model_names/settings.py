"""Settings of a model of transformers, from its config.json or the metadata of a GGUF file.

Publishers write some lists of layers under names that the class of transformers does not read; they
are given to it under its own, and values that it cannot follow are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from types import ModuleType
from typing import TYPE_CHECKING

from layerscope.errors import FormatError
from layerscope.formats.config_file import Settings, read_config
from layerscope.formats.gguf import gguf_file, stored_types
from layerscope.formats.gguf_config import gguf_config

if TYPE_CHECKING:
    from transformers import PreTrainedModel

GGUF_SUFFIX = ".gguf"
# Lists of 0 and 1 by layer: the name that transformers reads, and what it calls 0 and 1.
LISTS: Mapping[str, Mapping[str, tuple[str, str, str]]] = {
    "mimo_v2_flash": {
        "hybrid_layer_pattern": ("layer_types", "full_attention", "sliding_attention"),
        "moe_layer_freq": ("mlp_layer_types", "dense", "sparse"),
    },
}
# Values that the class of transformers computes from others: the other, and how often.
COMPUTED: Mapping[str, Mapping[str, tuple[str, int]]] = {
    "mimo_v2_flash": {
        "swa_head_dim": ("head_dim", 1),
        "swa_num_attention_heads": ("num_attention_heads", 1),
        "swa_num_key_value_heads": ("num_key_value_heads", 2),
        "swa_v_head_dim": ("v_head_dim", 1),
    },
}
# Values that the class of transformers takes for granted.
FIXED: Mapping[str, Mapping[str, object]] = {
    "mimo_v2_flash": {
        "add_full_attention_sink_bias": False, "add_swa_attention_sink_bias": True,
        "n_shared_experts": None,
    },
}  # fmt: skip


def is_gguf(path: str) -> bool:
    """Whether a path is that of a GGUF file."""
    return path.lower().endswith(GGUF_SUFFIX)


def model_settings(path: str) -> Settings:
    """The settings of a model, in the names that transformers reads."""
    if is_gguf(path):
        return gguf_config(gguf_file(path), path)
    return _with_lists(path, read_config(path))


def generating_class(kind: str, transformers: ModuleType) -> str | None:
    """The class of a model_type that generates text, which a GGUF file is for; None without one."""
    names: Mapping[str, str] = (
        transformers.models.auto.modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    )
    return names.get(kind)


def _with_lists(path: str, settings: Settings) -> Settings:
    kind = str(settings.get("model_type"))
    found = dict(settings)
    for name, (wanted, *names) in LISTS.get(kind, {}).items():
        listed = settings.get(name)
        if listed is None or settings.get(wanted) is not None:
            continue
        number = settings.get("num_hidden_layers")
        if not isinstance(listed, list) or len(listed) != number or set(listed) - {0, 1}:
            raise FormatError(
                f"{path}: {name} {str(listed)[:80]}, expected 0 or 1 for {number} layers"
            )
        found[wanted] = [names[each] for each in listed]
    for name, (other, times) in COMPUTED.get(kind, {}).items():
        value, base = settings.get(name), settings.get(other)
        if value is not None and isinstance(base, int) and value != times * base:
            raise FormatError(
                f"{path}: {name} {str(value)[:80]}, but the class of transformers for {kind} has "
                f"{times * base}"
            )
    for name, fixed in FIXED.get(kind, {}).items():
        if settings.get(name, fixed) != fixed:
            raise FormatError(
                f"{path}: {name} {str(settings[name])[:80]}, but the class of transformers for "
                f"{kind} has {fixed}"
            )
    return found


def stored_array_notes(path: str, model: PreTrainedModel) -> tuple[str, ...]:
    """How many parameters a GGUF file stores, beside those of the network that it describes."""
    found = gguf_file(path)
    arrays, parts = found.arrays, found.metadata.get("split.count")
    stored = sum(prod(array.shape) for array in arrays)
    counted = sum(each.numel() for each in model.parameters())
    if isinstance(parts, int) and parts > 1:
        where = f"{path}, one file of {parts}"
        return (f"parameters of the arrays of {where}: {stored:,}; the network has {counted:,}",)
    if counted > stored:
        raise FormatError(
            f"{path}: its arrays have {stored:,} parameters, and the network of its metadata "
            f"{counted:,}: it is another one"
        )
    both = f"{stored:,}, as the network has"
    if stored != counted:
        both = f"{stored:,}, and the network has {counted:,}"
    return (f"parameters of the arrays of {path}: {both}", stored_types(arrays))
