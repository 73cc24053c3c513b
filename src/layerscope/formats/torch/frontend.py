"""A live module and what it is called with, in all the ways people say it, as a Graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from layerscope.errors import ModelError, UsageError
from layerscope.formats.torch.capture import InMode, the_torch
from layerscope.formats.torch.decoding import capture_tokens, with_tokens
from layerscope.formats.torch.dtypes import torch_dtype
from layerscope.formats.torch.inputs import from_sizes, map_tensors
from layerscope.formats.torch.module_table import too_deep
from layerscope.graph.types import Graph

__all__ = ["InMode", "graph_of"]


def graph_of(
    model: Any,
    *,
    input: Any = None,
    input_size: Any = None,
    input_data: Any = None,
    dtypes: Any = None,
    batch: int | None = None,
    rules: Mapping[str, Any] | None = None,
    name: str = "",
    shortcuts: bool = True,
    device: Any = None,
    real: bool = True,
    tokens: int | None = None,
    decode: int | None = None,
    **forward: Any,
) -> Graph:
    """The graph of a module on inputs of these sizes, or on these very arguments.

    `input_data` is one tensor, a row of arguments, or a dict of named ones; what else is told goes
    to the forward by name. `device` is taken and makes no difference. With `real=False` a model
    that cannot be followed without numbers is refused, else it is run with real ones.
    """
    torch = the_torch()
    mode = None
    if isinstance(model, InMode):
        model, mode = model.model, model.mode
    if not isinstance(model, torch.nn.Module):
        raise UsageError(f"a {type(model).__name__}, expected a torch.nn.Module")
    sizes = input_size if input_size is not None else input
    if (sizes is None) == (input_data is None):
        raise UsageError(
            f"{type(model).__name__}: say either input_size=(1, 3, 224, 224) or input_data=…"
        )
    if sizes is not None:
        given = from_sizes(torch, _with_batch(sizes, batch), dtypes or _default(torch, model))
    else:
        given = _arguments(torch, input_data)
        if batch is not None:
            raise UsageError("batch goes with input_size; input_data has its own")
        if dtypes:
            kinds = dtypes if isinstance(dtypes, (list, tuple)) else [dtypes]
            each = iter([*kinds, *[None] * 99])
            given = map_tensors(given, torch, lambda t: _typed(torch, t, next(each)))
    if tokens is not None:
        given = with_tokens(given, tokens, name or type(model).__name__)
    args, kwargs = ((), given) if isinstance(given, dict) else (tuple(given), {})
    how = {"shortcuts": shortcuts, "rules": rules, "real": real, "mode": mode}
    return capture_tokens(model, args, {**kwargs, **forward}, decode, name, **how)


def _default(torch: Any, model: Any) -> Any:
    """Number type of inputs told by their size: that of the weights, ids for embeddings."""
    try:
        first = next((p for p in model.parameters() if p.is_floating_point()), None)
    except RecursionError:
        raise ModelError(too_deep(type(model).__name__, "modules")) from None
    inner = model
    while inner._modules and not isinstance(inner, torch.nn.Embedding):
        if type(inner) is not torch.nn.Sequential:
            break
        inner = next(iter(inner._modules.values()))
    if isinstance(inner, torch.nn.Embedding):
        return torch.int64
    return first.dtype if first is not None else None


def _typed(torch: Any, tensor: Any, kind: Any) -> Any:
    if kind is None:
        return tensor
    return torch.empty(tensor.shape, dtype=torch_dtype(torch, kind), device="meta")


def _with_batch(sizes: Any, batch: int | None) -> Any:
    if batch is None:
        return sizes
    if batch < 1:
        raise UsageError(f"batch {batch}, expected at least 1")
    if isinstance(sizes, Mapping):
        return {name: (batch, *size[1:]) for name, size in sizes.items()}
    if sizes and not isinstance(sizes[0], int):
        return [(batch, *size[1:]) for size in sizes]
    return (batch, *sizes[1:])


def _arguments(torch: Any, data: Any) -> tuple[Any, ...] | dict[str, Any]:
    if isinstance(data, (list, tuple)) and not hasattr(data, "_fields"):
        return tuple(data)
    return dict(data) if isinstance(data, Mapping) else (data,)
