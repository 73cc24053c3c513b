"""One decoding step of a model of transformers: a token after the cache that a prefill leaves.

The cache is the model's own: its forward is run on as many tokens, without numbers, and what it
returns as its cache is given back to it. So keys and values, windows of them and recurrent states
have the shapes that the model gives them.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from layerscope.errors import UsageError
from layerscope.formats.torch.attention_windows import attention_windows, other_masks
from layerscope.formats.torch.capture import capture, the_torch
from layerscope.formats.torch.hugging_face import check_positions
from layerscope.formats.torch.inputs import map_tensors
from layerscope.graph.types import Graph

CACHES = ("past_key_values", "cache_params", "state")  # arguments that a cache is given in
ONLY_FIRST = ("pixel_values", "input_features", "input_values")  # read before the first token
Arguments = dict[str, Any]


def capture_tokens(
    model: Any, args: tuple[Any, ...], kwargs: Arguments, decode: int | None, name: str, **how: Any
) -> Graph:
    """The graph of one forward, or of one decoding step after a cache of `decode` tokens."""
    if decode is None:
        graph = capture(model, args, kwargs, name=name, **how)
    else:
        graph = _step(model, args, kwargs, decode, name, **how)
    try:
        windows, note = attention_windows(model), other_masks(model)
    except Exception as error:  # a configuration may refuse to tell what differs by layer
        reason = f"{type(error).__name__}: {error}".splitlines()[0][:120]
        windows, note = {}, f"attention is counted over all pairs, windows are not known ({reason})"
    notes = (*graph.notes, note) if note else graph.notes
    return replace(graph, windows=windows, notes=notes) if windows or note else graph


def with_tokens(given: Any, tokens: int, name: str) -> Any:
    """The arguments of a call with so many tokens in every tensor of int64, N x T."""
    torch = the_torch()
    if tokens < 1:
        raise UsageError(f"{tokens} tokens, expected at least 1")
    found = []

    def change(tensor: Any) -> Any:
        if tensor.dtype != torch.int64 or tensor.dim() != 2:
            return tensor
        found.append(tensor)
        return torch.empty(tensor.shape[0], tokens, dtype=torch.int64, device="meta")

    changed = map_tensors(given, torch, change)
    if not found:
        raise UsageError(f"{name} takes no tokens: it has no input of int64, N x T")
    return changed


def _step(
    model: Any, args: tuple[Any, ...], kwargs: Arguments, length: int, name: str, **how: Any
) -> Graph:
    name = name or type(model).__name__
    if length < 0:
        raise UsageError(f"a cache of {length} tokens, expected at least 0")
    cache, ids = _names(model, name)
    given = {**dict(zip(_parameters(model), args, strict=False)), **kwargs}
    if ids not in given:
        raise UsageError(f"{name}: no {ids} is given, which decoding needs")
    check_positions(model, length + 1, name)
    batch = given[ids].shape[0]
    step = _on_tokens(given, ids, batch, 1, length)
    if length:
        prompt = _on_tokens(given, ids, batch, length, 0)
        filled, encoded = _prefill(model, prompt, cache, name)
        step[cache] = filled
        if encoded is not None:
            step = {key: value for key, value in step.items() if key.startswith("decoder_")}
            step = {**step, "encoder_outputs": encoded, cache: filled}
    step = {key: value for key, value in step.items() if key not in ONLY_FIRST or not length}
    graph = capture(model, (), {**step, "use_cache": True}, name=name, **how)
    return _marked(graph, cache, length)


def _parameters(model: Any) -> list[str]:
    return list(inspect.signature(model.forward).parameters)


def _names(model: Any, name: str) -> tuple[str, str]:
    """The arguments that take the cache and the new token."""
    taken = _parameters(model)
    kind = type(model).__name__
    cache = next((each for each in CACHES if each in taken), None)
    if getattr(model, "config", None) is None or not hasattr(model.config, "model_type"):
        raise UsageError(
            f"{name}: decoding needs a cache, and where {kind} keeps one is not known: it is "
            "no model of transformers"
        )
    if cache is None:
        raise UsageError(
            f"{name}: {kind}.forward takes no cache (none of {', '.join(CACHES)}), so that it "
            "cannot decode token by token"
        )
    return cache, "decoder_input_ids" if "decoder_input_ids" in taken else "input_ids"


def _on_tokens(given: Arguments, ids: str, batch: int, tokens: int, past: int) -> Arguments:
    """The arguments with so many tokens, and masks of them that reach over the cache."""
    torch = the_torch()
    mask = ids.replace("input_ids", "attention_mask")
    changed = dict(given)
    changed[ids] = torch.empty(batch, tokens, dtype=torch.int64, device="meta")
    if changed.get(mask) is not None and ids in changed:
        changed[mask] = torch.empty(batch, past + tokens, dtype=changed[mask].dtype, device="meta")
    return changed


def _prefill(model: Any, prompt: Arguments, cache: str, name: str) -> tuple[Any, Any]:
    """The cache that a run on the prompt returns, and what its encoder made, if there is one."""
    torch = the_torch()
    kept: list[Any] = []

    class Prefill(torch.nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, **given: Any) -> Any:
            kept[:] = [self.model(**given, use_cache=True, return_dict=True)]
            return kept[0]

    text = {key: value for key, value in prompt.items() if key != "pixel_values"}
    capture(Prefill(), (), text if "input_ids" in text else prompt, name=name)
    [result] = kept
    filled = getattr(result, cache, None)
    if filled is None:
        kind = type(model).__name__
        reason = f"its forward returns no {cache}"
        if getattr(model.config, "is_decoder", None) is False:
            reason = "it is an encoder: its configuration has is_decoder false"
        raise UsageError(f"{name}: {kind} does not decode token by token: {reason}")
    encoded = getattr(result, "encoder_last_hidden_state", None)
    if encoded is not None:
        from importlib import import_module

        outputs = import_module("transformers.modeling_outputs")
        encoded = outputs.BaseModelOutput(last_hidden_state=_empty(encoded, torch))
    return _empty(filled, torch), encoded


def _empty(value: Any, torch: Any) -> Any:
    """The same value with new tensors of the same shapes and dtypes, on the meta device."""
    if isinstance(value, torch.Tensor):
        return torch.empty(tuple(value.shape), dtype=value.dtype, device="meta")
    if type(value) in (list, tuple):
        return type(value)([_empty(each, torch) for each in value])
    if isinstance(value, Mapping) and type(value) is dict:
        return {key: _empty(each, torch) for key, each in value.items()}
    if type(value).__module__.startswith("transformers.") and hasattr(value, "__dict__"):
        for key, each in vars(value).items():
            if key != "config":
                setattr(value, key, _empty(each, torch))
    return value


def _marked(graph: Graph, cache: str, length: int) -> Graph:
    """The graph whose inputs out of the cache are known as such; what is new of it is no output."""
    inside = [tensor.name for tensor in graph.inputs if tensor.name.startswith(f"{cache}.")]
    read = {name for node in graph.nodes for name in node.inputs}
    inputs = tuple(t for t in graph.inputs if t.name not in inside or t.name in read)
    kept = {name for name in inside if name in read}
    renewed = set(inside)
    for node in graph.nodes:
        if node.op in KEEPING and renewed.intersection(node.inputs):
            renewed.update(node.outputs)
    outputs = tuple(name for name in graph.outputs if name not in renewed)
    return replace(graph, inputs=inputs, outputs=outputs, cache=frozenset(kept), past=length)


KEEPING = ("concat", "slice", "reshape", "transpose", "identity")  # a cache stays one through these
