"""Windows of attention in models of transformers: which keys a layer lets a query see.

PyTorch computes the scores of all pairs and masks those outside. The windows are noted so that a
report can tell what they leave.
"""

from __future__ import annotations

from typing import Any

from layerscope.graph.types import KeyWindow

SLIDING = ("sliding_attention", "hybrid_sliding", "local")
CHUNKED = "chunked_attention"


def attention_windows(model: Any) -> dict[str, KeyWindow]:
    """Windows by the path of the attention module, of those that have one."""
    if not hasattr(getattr(model, "config", None), "model_type"):
        return {}
    found = {}
    for path, module in model.named_modules():
        if "attention" not in type(module).__name__.lower():
            continue
        config = getattr(module, "config", None)
        window = _window(module, config) if config is not None else None
        if window is not None:
            found[path] = window
    return found


def _window(module: Any, config: Any) -> KeyWindow | None:
    kind = _layer_type(module, config)
    if kind == CHUNKED:
        size = getattr(config, "attention_chunk_size", None)
        return KeyWindow(chunk=size) if size else None
    if kind is not None and kind not in SLIDING:
        return None
    size = getattr(module, "sliding_window", getattr(config, "sliding_window", None))
    if not isinstance(size, int) or size < 1 or getattr(module, "is_sliding", True) is False:
        return None
    if getattr(module, "is_causal", True):
        return KeyWindow(before=size - 1)
    return KeyWindow(before=size - 1, after=size - 1)


def _layer_type(module: Any, config: Any) -> str | None:
    """What the configuration calls the attention of this layer, None where it names none."""
    kinds = getattr(config, "layer_types", None)
    index = getattr(module, "layer_idx", None)
    if not kinds or not isinstance(index, int) or not 0 <= index < len(kinds):
        return None
    return str(kinds[index])
