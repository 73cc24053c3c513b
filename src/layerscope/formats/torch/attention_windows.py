"""Windows of attention in models of transformers: which keys a layer lets a query see.

PyTorch computes the scores of all pairs and masks those outside. The windows are noted so that a
report can tell what they leave.
"""

from __future__ import annotations

import sys
from typing import Any

from layerscope.graph.types import KeyWindow

SLIDING = ("sliding_attention", "hybrid_sliding", "reference_sliding_attention", "local")
CHUNKED = "chunked_attention"
WHOLE = ("full_attention", "hybrid", "attention", "global")
UNKNOWN = ("compressed_sparse_attention", "heavily_compressed_attention", "indexed_attention")
SIZES = ("sliding_window", "attention_chunk_size", "attention_layers")  # of configurations
# what the file of a model imports if its masks have windows, whatever its configuration says
MASKS = (
    "create_sliding_window_causal_mask",
    "create_bidirectional_sliding_window_mask",
    "create_chunked_causal_mask",
)


def attention_windows(model: Any) -> dict[str, KeyWindow | None]:
    """Windows by the path of the attention module; None for one that sees all keys.

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


def _may_have_windows(config: Any) -> bool:
    """Whether a configuration, or one of a part of the model in it, has the size of a window."""
    parts = [value for value in vars(config).values() if hasattr(value, "model_type")]
    return any(getattr(each, name, None) for each in (config, *parts) for name in SIZES)


def other_masks(model: Any) -> str:
    """A note on layers whose attention leaves out keys in a way that is not known here."""
    config: Any = getattr(model, "config", None)
    if not hasattr(config, "get_text_config"):
        return ""
    kinds = getattr(config.get_text_config(decoder=True), "layer_types", None) or ()
    listed = ", ".join(kind for kind in dict.fromkeys(kinds) if kind in UNKNOWN)
    if not listed:
        return ""
    return f"layers of {listed}: attention is counted over all the pairs that PyTorch computes"


def _window(module: Any, config: Any) -> KeyWindow | None:
    kinds: Any = getattr(config, "layer_types", None) or getattr(config, "attention_layers", ())
    index: Any = getattr(module, "layer_idx", getattr(module, "layer_id", None))
    known = isinstance(index, int) and 0 <= index < len(kinds or ())
    kind = str(kinds[index]) if known else ""
    if kind == "local":  # GPT-Neo, whose mask is a buffer
        return KeyWindow(before=config.window_size - 1)
    home = vars(sys.modules[type(module).__module__])
    if not any(name in home for name in MASKS):
        return None
    if kind == CHUNKED:
        size = getattr(config, "attention_chunk_size", None)
        return KeyWindow(chunk=size) if size else None
    # Where no layer is called sliding, a window is one of all layers.
    if kind and kind not in SLIDING and (kind not in WHOLE or set(kinds) & {*SLIDING}):
        return None
    size = getattr(module, "sliding_window", getattr(config, "sliding_window", None))
    if not isinstance(size, int) or size < 1 or getattr(module, "is_sliding", True) is False:
        return None
    after = 0 if getattr(module, "is_causal", True) else size - 1
    return KeyWindow(before=size - 1, after=after)
