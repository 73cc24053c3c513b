"""A live module and its inputs, given as sizes, tensors or named arguments, as a Graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from layerscope.errors import ModelError, UsageError
from layerscope.formats.torch.capture import InMode, the_torch
from layerscope.formats.torch.decoding import capture_tokens, with_tokens
from layerscope.formats.torch.dtypes import torch_dtype
from layerscope.formats.torch.inputs import from_sizes, map_tensors
from layerscope.formats.torch.module_log import ModuleLog
from layerscope.formats.torch.module_table import too_deep
from layerscope.formats.torch.torch_types import Arg, Args, Kwargs, Rule, Torch
from layerscope.graph.types import Graph

if TYPE_CHECKING:
    from torch import Tensor, dtype
    from torch.nn import Module

__all__ = ["InMode", "graph_of"]

Sizes = Any  # (1, 3, 224, 224), a list of such sizes, or a dict of named ones
Dtypes = Any  # a dtype or its name, or a list of these


def graph_of(
    model: Module | InMode,
    *,
    input: Sizes | None = None,
    input_size: Sizes | None = None,
    input_data: Arg = None,
    dtypes: Dtypes = None,
    batch: int | None = None,
    rules: Mapping[str, Rule] | None = None,
    name: str = "",
    shortcuts: bool = True,
    device: object = None,
    real: bool = True,
    tokens: int | None = None,
    decode: int | None = None,
    module_log: ModuleLog | None = None,
    **forward: Arg,
) -> Graph:
    """The graph of a module on inputs of these sizes, or on these arguments.

    `input_data` is one tensor, a sequence of arguments, or a dict of named ones; other keyword
    arguments go to the forward. `device` is accepted and ignored. A model whose control flow
    depends on values is run on real tensors, or refused with `real=False`. `module_log` receives
    the calls of modules.
    """
    torch = the_torch()
    mode = None
    if isinstance(model, InMode):
        model, mode = model.model, model.mode
    if not isinstance(model, torch.nn.Module):
        raise UsageError(f"a {type(model).__name__}, expected a torch.nn.Module")
    if not isinstance(rules or {}, Mapping) or not all(map(callable, (rules or {}).values())):
        raise UsageError("rules: expected a dict of functions by the names of operators")
    if input_size is not None and input is not None:
        raise UsageError("input cannot be combined with input_size, which is the same")
    sizes = input_size if input_size is not None else input
    if (sizes is None) == (input_data is None):
        raise UsageError(
            f"{type(model).__name__}: say either input_size=(1, 3, 224, 224) or input_data=…"
        )
    if sizes is not None:
        given = from_sizes(torch, _with_batch(sizes, batch), dtypes or _default(torch, model))
    else:
        given = _arguments(input_data)
        if batch is not None:
            raise UsageError("batch goes with input_size; input_data has its own")
        if dtypes:
            listed = dtypes if isinstance(dtypes, (list, tuple)) else [dtypes]
            each = iter([*listed, *[None] * 99])
            given = map_tensors(given, torch, lambda t: _typed(torch, t, next(each)))
    if tokens is not None:
        given = with_tokens(given, tokens, name or type(model).__name__)
    args, kwargs = ((), given) if isinstance(given, dict) else (tuple(given), {})
    options = {"shortcuts": shortcuts, "rules": rules, "real": real, "mode": mode}
    options["module_log"] = module_log
    return capture_tokens(model, args, {**kwargs, **forward}, decode, name, **options)


def _default(torch: Torch, model: Module) -> dtype | None:
    """Dtype of inputs given by their size: that of the weights, int64 for embeddings."""
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


def _typed(torch: Torch, tensor: Tensor, dtype: dtype | str | None) -> Tensor:
    if dtype is None:
        return tensor
    return torch.empty(tensor.shape, dtype=torch_dtype(torch, dtype), device="meta")


def _with_batch(sizes: Sizes, batch: int | None) -> Sizes:
    if batch is None:
        return sizes
    if batch < 1:
        raise UsageError(f"batch {batch}, expected at least 1")
    if isinstance(sizes, Mapping):
        return {name: (batch, *size[1:]) for name, size in sizes.items()}
    if sizes and not isinstance(sizes[0], int):
        return [(batch, *size[1:]) for size in sizes]
    return (batch, *sizes[1:])


def _arguments(data: Arg) -> Args | Kwargs:
    if isinstance(data, (list, tuple)) and not hasattr(data, "_fields"):
        return tuple(data)
    return dict(data) if isinstance(data, Mapping) else (data,)
