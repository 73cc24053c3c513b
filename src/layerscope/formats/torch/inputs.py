"""What a model is called with: shapes into tensors, nests of them, names of inputs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from operator import index
from types import FunctionType
from typing import Any

from layerscope.errors import UsageError
from layerscope.formats.torch.dtypes import torch_dtype

Nest = Any


def from_sizes(torch: Any, sizes: Any, dtypes: Any = None) -> tuple[Any, ...] | dict[str, Any]:
    """Tensors without numbers of these shapes: one, several in a row, or by name."""
    if hasattr(sizes, "tolist"):  # of an array
        sizes = sizes.tolist()
    if isinstance(sizes, Mapping):
        kinds = dtypes if isinstance(dtypes, Mapping) else dict.fromkeys(sizes, dtypes)
        return {name: _empty(torch, size, _first(kinds.get(name))) for name, size in sizes.items()}
    if not isinstance(sizes, Sequence) or isinstance(sizes, str) or not sizes:
        raise UsageError(f"input_size {sizes!r}, expected sizes such as (1, 3, 224, 224)")
    many = isinstance(sizes[0], Sequence)
    listed = list(sizes) if many else [sizes]
    given = list(dtypes) if isinstance(dtypes, (list, tuple)) else [dtypes] * len(listed)
    if len(given) != len(listed):
        raise UsageError(f"{len(given)} dtypes for {len(listed)} inputs")
    return tuple(_empty(torch, size, kind) for size, kind in zip(listed, given, strict=True))


def _first(kind: Any) -> Any:
    return kind[0] if isinstance(kind, (list, tuple)) else kind


def _empty(torch: Any, size: Any, dtype: Any) -> Any:
    try:
        shape = tuple([index(n) for n in size])
    except TypeError:
        raise UsageError(f"input_size {size!r}, expected whole numbers") from None
    if not all(n > 0 for n in shape):
        raise UsageError(f"input_size {shape}, expected every size to be at least 1")
    kind = torch_dtype(torch, dtype)
    return torch.empty(shape, dtype=kind or torch.get_default_dtype(), device="meta")


def map_tensors(nest: Nest, torch: Any, change: Callable[[Any], Any]) -> Nest:
    """The same nest with every tensor changed; what is no container stays as it is."""
    if isinstance(nest, torch.Tensor):
        return change(nest)
    if type(nest) in (list, tuple, set):
        return type(nest)([map_tensors(each, torch, change) for each in nest])
    if isinstance(nest, torch.nn.utils.rnn.PackedSequence):
        orders = map_tensors(nest[2:], torch, change)
        return type(nest)(change(nest.data), nest.batch_sizes.clone(), *orders)  # read on the CPU
    if isinstance(nest, Mapping):
        changed = {key: map_tensors(value, torch, change) for key, value in nest.items()}
        if type(nest) is dict:
            return changed
        kind: Any = type(nest)
        try:
            return kind(changed)
        except TypeError:
            return changed
    if isinstance(nest, tuple) and hasattr(nest, "_fields"):
        return type(nest)(*[map_tensors(each, torch, change) for each in nest])
    if is_dataclass(nest) and not isinstance(nest, type):
        return replace(
            nest,
            **{
                f.name: map_tensors(getattr(nest, f.name), torch, change)
                for f in fields(nest)
                if f.init
            },
        )
    return nest


def has_arrays(nest: Nest) -> bool:
    """Whether NumPy's arrays are among what a model is called with."""
    if isinstance(nest, Mapping):
        nest = [*nest.values()]
    if isinstance(nest, (list, tuple)):
        return any(has_arrays(each) for each in nest)
    return type(nest).__module__ == "numpy"


def tensors_in(nest: Nest, torch: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every tensor in a nest with its path in it."""
    if isinstance(nest, torch.Tensor):
        yield name, nest
        return
    pairs: Any = ()
    if type(nest) in (list, tuple):
        pairs = enumerate(nest)
    elif isinstance(nest, Mapping):
        pairs = nest.items()
    elif isinstance(nest, tuple) and hasattr(nest, "_fields"):
        pairs = zip(nest._fields, nest, strict=True)
    elif isinstance(nest, (list, tuple, set)):
        pairs = enumerate(nest)
    elif is_dataclass(nest) and not isinstance(nest, type):
        pairs = [(f.name, getattr(nest, f.name)) for f in fields(nest)]
    elif hasattr(nest, "__dict__") and type(nest).__module__ not in ("builtins", "torch"):
        pairs = [(key, value) for key, value in vars(nest).items() if not key.startswith("__")]
        if isinstance(nest, (torch.nn.Module, type)):
            pairs = ()
    for key, value in pairs:
        if isinstance(value, (str, int, float)):
            continue
        yield from tensors_in(value, torch, f"{name}.{key}" if name else str(key))


def _names(forward: Any) -> Sequence[str]:
    """Names of the arguments that go by place."""
    function = getattr(forward, "__func__", None)
    if type(function) is FunctionType and not vars(function):  # as most are, in a tenth of the time
        code = function.__code__
        return code.co_varnames[1 : code.co_argcount]
    try:
        return [
            name
            for name, told in inspect.signature(forward).parameters.items()
            if told.kind in (told.POSITIONAL_ONLY, told.POSITIONAL_OR_KEYWORD)
        ]
    except (TypeError, ValueError):
        return ()


def named_inputs(model: Any, args: Any, kwargs: Any, torch: Any) -> list[tuple[str, Any]]:
    """Tensors of the call, named by the parameters of the forward."""
    names = _names(model.forward)
    found: list[tuple[str, Any]] = []
    for n, arg in enumerate(args):
        found += tensors_in(arg, torch, names[n] if n < len(names) else f"input{n}")
    for name, arg in kwargs.items():
        found += tensors_in(arg, torch, name)
    return found
