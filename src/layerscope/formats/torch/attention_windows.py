"""Sliding windows of attention in models of transformers: the keys that a query may see.

PyTorch computes the scores of all pairs and masks those outside the window. The windows are noted
so that a report can say what a kernel with windows would compute.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from layerscope.graph.types import KeyWindow

if TYPE_CHECKING:
    from torch.nn import Module
    from transformers import PretrainedConfig

SLIDING = ("sliding_attention", "hybrid_sliding", "reference_sliding_attention", "local")
CHUNKED = "chunked_attention"
WHOLE = ("full_attention", "hybrid", "attention", "global")
UNKNOWN = ("compressed_sparse_attention", "heavily_compressed_attention", "indexed_attention")
SIZES = ("sliding_window", "attention_chunk_size", "attention_layers")  # of configurations
# imported by the source file of a model that masks by windows, whatever its configuration says
MASKS = (
    "create_sliding_window_causal_mask",
    "create_bidirectional_sliding_window_mask",
    "create_chunked_causal_mask",
)


def attention_windows(model: Module) -> dict[str, KeyWindow | None]:
    """Windows by the path of the attention module; None for one without a window.

    Empty where no module of the model has a window.
    """
    config = getattr(model, "config", None)
    if not hasattr(config, "model_type") or not _may_have_windows(config):
        return {}
    found: dict[str, KeyWindow | None] = {}
    for path, module in model.named_modules():
        own = getattr(module, "config", None)
        if own is not None and "attention" in type(module).__name__.lower():
            found[path] = _window(module, own)
    return found if any(found.values()) else {}


def causal_masks(model: Module) -> frozenset[str]:
    """Paths of the attention modules of a language model whose mask is causal."""
    if not hasattr(getattr(model, "config", None), "model_type"):
        return frozenset()
    return frozenset(
        path
        for path, module in model.named_modules()
        if "attention" in type(module).__name__.lower()
        and getattr(module, "is_causal", False) is True
    )


def _may_have_windows(config: PretrainedConfig) -> bool:
    """Whether a configuration, or that of a part of the model, has the size of a window."""
    parts = [value for value in vars(config).values() if hasattr(value, "model_type")]
    return any(getattr(each, name, None) for each in (config, *parts) for name in SIZES)


def other_masks(model: Module) -> str:
    """A note on layers whose attention skips keys in a way that is not supported."""
    config: Any = getattr(model, "config", None)
    if not hasattr(config, "get_text_config"):
        return ""
    kinds = getattr(config.get_text_config(decoder=True), "layer_types", None) or ()
    listed = ", ".join(kind for kind in dict.fromkeys(kinds) if kind in UNKNOWN)
    if not listed:
        return ""
    return f"layers of {listed}: attention is counted over all the pairs that PyTorch computes"


def _window(module: Module, config: PretrainedConfig) -> KeyWindow | None:
    kinds: Any = getattr(config, "layer_types", None) or getattr(config, "attention_layers", ())
    index: Any = getattr(module, "layer_idx", getattr(module, "layer_id", None))
    is_listed = isinstance(index, int) and 0 <= index < len(kinds or ())
    kind = str(kinds[index]) if is_listed else ""
    if kind == "local":  # GPT-Neo, whose mask is a buffer
        return KeyWindow(before=config.window_size - 1)
    home = vars(sys.modules[type(module).__module__])
    if not any(name in home for name in MASKS):
        return None
    if kind == CHUNKED:
        size = getattr(config, "attention_chunk_size", None)
        return KeyWindow(chunk=size) if size else None
    # If no layer is listed as sliding, all layers have the window.
    if kind and kind not in SLIDING and (kind not in WHOLE or set(kinds) & {*SLIDING}):
        return None
    size = getattr(module, "sliding_window", getattr(config, "sliding_window", None))
    if not isinstance(size, int) or size < 1 or getattr(module, "is_sliding", True) is False:
        return None
    after = 0 if getattr(module, "is_causal", True) else size - 1
    return KeyWindow(before=size - 1, after=after)
