"""One decoding step of a model of transformers: one token after the cache of a prefill.

The cache is the model's own. Its forward runs on the prompt, on the meta device, and the cache it
returns is passed to the decoding step. Keys and values, sliding windows and recurrent states so
have the shapes that the model gives them.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from layerscope.errors import UsageError
from layerscope.formats.torch.attention_windows import attention_windows, causal_masks, other_masks
from layerscope.formats.torch.capture import capture, the_torch
from layerscope.formats.torch.inputs import map_tensors
from layerscope.graph.types import Graph

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

CACHES = ("past_key_values", "cache_params", "state")  # parameters of forward that take a cache
ONLY_FIRST = ("pixel_values", "input_features", "input_values")  # read before the first token
POSITIONS = ("wpe", "position_embeddings", "embed_positions", "position_embedding")  # embeddings
KEEPING = ("concat", "slice", "reshape", "transpose", "identity")  # a cache stays one through these
Arguments = dict[str, Any]
T = TypeVar("T")


def capture_tokens(
    model: Module,
    args: tuple[object, ...],
    kwargs: Arguments,
    decode: int | None,
    name: str,
    **how: Any,
) -> Graph:
    """Capture one forward pass, or one decoding step after a cache of `decode` tokens.

    `how` are further options of `capture`.
    """
    if decode is None:
        graph = capture(model, args, kwargs, name=name, **how)
    else:
        graph = _step(model, args, kwargs, decode, name, **how)
    try:
        windows, note = attention_windows(model), other_masks(model)
    except Exception as error:  # a configuration may lack what differs by layer
        reason = f"{type(error).__name__}: {error}".splitlines()[0][:120]
        windows, note = {}, f"attention is counted over all pairs, windows are not known ({reason})"
    notes = (*graph.notes, note) if note else graph.notes
    causal = causal_masks(model)
    if not (windows or note or causal):
        return graph
    return replace(graph, windows=windows, causal=causal, notes=notes)


def with_tokens(args: T, tokens: int, name: str) -> T:
    """Return the arguments of a call with `tokens` tokens in every int64 tensor of N x T."""
    torch = the_torch()
    if tokens < 1:
        raise UsageError(f"{tokens} tokens, expected at least 1")
    found = []

    def change(tensor: Tensor) -> Tensor:
        if tensor.dtype != torch.int64 or tensor.dim() != 2:
            return tensor
        found.append(tensor)
        return torch.empty(tensor.shape[0], tokens, dtype=torch.int64, device="meta")

    changed: T = map_tensors(args, torch, change)
    if not found:
        raise UsageError(f"{name} takes no tokens: it has no input of int64, N x T")
    return changed


def _step(
    model: Module, args: tuple[object, ...], kwargs: Arguments, length: int, name: str, **how: Any
) -> Graph:
    """Capture one decoding step after a cache of `length` tokens."""
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


def _parameters(model: Module) -> list[str]:
    return list(inspect.signature(model.forward).parameters)


def _names(model: Module, name: str) -> tuple[str, str]:
    """Names of the parameters that take the cache and the new token."""
    taken = _parameters(model)
    kind = type(model).__name__
    cache = next((each for each in CACHES if each in taken), None)
    if getattr(model, "config", None) is None or not hasattr(model.config, "model_type"):
        raise UsageError(
            f"{name}: decoding needs a cache, and {kind} has none that is supported: it is "
            "no model of transformers"
        )
    if cache is None:
        raise UsageError(
            f"{name}: {kind}.forward takes no cache (none of {', '.join(CACHES)}), so that it "
            "cannot decode token by token"
        )
    return cache, "decoder_input_ids" if "decoder_input_ids" in taken else "input_ids"


def _on_tokens(given: Arguments, ids: str, batch: int, tokens: int, past: int) -> Arguments:
    """The arguments with `tokens` tokens, and with masks that cover the cache too."""
    torch = the_torch()
    mask = ids.replace("input_ids", "attention_mask")
    changed = dict(given)
    changed[ids] = torch.empty(batch, tokens, dtype=torch.int64, device="meta")
    if changed.get(mask) is not None and ids in changed:
        changed[mask] = torch.empty(batch, past + tokens, dtype=changed[mask].dtype, device="meta")
    return changed


def _prefill(model: Module, prompt: Arguments, cache: str, name: str) -> tuple[object, object]:
    """The cache after a run on the prompt, and the output of the encoder if there is one."""
    torch = the_torch()
    results: list[object] = []

    class Prefill(torch.nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, **kwargs: object) -> object:
            results[:] = [self.model(**kwargs, use_cache=True, return_dict=True)]
            return results[0]

    text = {key: value for key, value in prompt.items() if key != "pixel_values"}
    capture(Prefill(), (), text if "input_ids" in text else prompt, name=name)
    [result] = results
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


def _empty(value: Any, torch: ModuleType) -> Any:
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
    """Mark the inputs that are the cache; the updated cache is removed from the outputs."""
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


def check_positions(model: Module, tokens: int, name: str) -> None:
    """Raise if a table of learned positions has fewer rows than there are tokens.

    An embedding on the meta device does not check its indices.
    """
    torch = the_torch()
    others: tuple[str, ...] = ()  # submodules that read images or audio, not tokens
    for path, module in model.named_modules():
        own = path.rpartition(".")[2]
        if path and "input_ids" not in getattr(module, "main_input_name", "input_ids"):
            others = (*others, f"{path}.")
        if not isinstance(module, torch.nn.Embedding) or own not in POSITIONS:
            continue
        if path.startswith(others) or "vision" in path:
            continue
        first = getattr(module, "offset", None)
        if first is None:
            first = 0 if module.padding_idx is None else module.padding_idx + 1
        rows = module.num_embeddings - int(first)
        if rows < tokens:
            raise UsageError(
                f"{name}: {tokens} tokens, expected at most {rows}, the positions of {path}"
            )
