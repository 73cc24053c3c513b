"""Inputs of a model: tensors from shapes, nested containers of tensors, names of inputs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from operator import index
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, SupportsIndex

from layerscope.errors import UnknownName, UsageError
from layerscope.formats.torch.dtypes import torch_dtype

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

Nested = Any  # a tensor, or lists, tuples, mappings and dataclasses of tensors and other values


def from_sizes(
    torch: ModuleType, sizes: Any, dtypes: object = None
) -> tuple[Tensor, ...] | dict[str, Tensor]:
    """Meta tensors of these shapes: one shape, a sequence of shapes, or a mapping by name."""
    if hasattr(sizes, "tolist"):  # a NumPy array
        sizes = sizes.tolist()
    if isinstance(sizes, Mapping):
        kinds = _by_name(dtypes, sizes)
        return {name: _empty(torch, size, kinds.get(name)) for name, size in sizes.items()}
    if not isinstance(sizes, Sequence) or isinstance(sizes, str) or not sizes:
        raise UsageError(f"input_size {sizes!r}, expected sizes such as (1, 3, 224, 224)")
    many = isinstance(sizes[0], Sequence)
    listed = list(sizes) if many else [sizes]
    given = _in_order(dtypes, len(listed))
    return tuple(_empty(torch, size, kind) for size, kind in zip(listed, given, strict=True))


def _in_order(dtypes: object, count: int) -> list[object]:
    """One dtype for each input."""
    given = list(dtypes) if isinstance(dtypes, (list, tuple)) else [dtypes] * count
    if len(given) != count:
        raise UsageError(f"{len(given)} dtypes for {count} inputs")
    return given


def _by_name(dtypes: object, names: Iterable[str]) -> Mapping[str, object]:
    """The dtypes of named inputs; a list has them in the order of the names."""
    names = list(names)
    if not isinstance(dtypes, Mapping):
        return dict(zip(names, _in_order(dtypes, len(names)), strict=True))
    for name in dtypes:
        if name not in names:
            raise UnknownName("input", name, names, f"; the sizes are of {', '.join(names)}")
    return dtypes


def _empty(torch: ModuleType, size: Iterable[SupportsIndex], dtype: object) -> Tensor:
    try:
        shape = tuple([index(n) for n in size])
    except TypeError:
        raise UsageError(f"input_size {size!r}, expected whole numbers") from None
    if not all(n > 0 for n in shape):
        raise UsageError(f"input_size {shape}, expected every size to be at least 1")
    kind = torch_dtype(torch, dtype)
    return torch.empty(shape, dtype=kind or torch.get_default_dtype(), device="meta")


def map_tensors(nested: Nested, torch: ModuleType, change: Callable[[Tensor], Tensor]) -> Nested:
    """Copy nested containers with every tensor replaced by `change(tensor)`."""
    if isinstance(nested, torch.Tensor):
        return change(nested)
    if type(nested) in (list, tuple, set):
        return type(nested)([map_tensors(each, torch, change) for each in nested])
    if isinstance(nested, torch.nn.utils.rnn.PackedSequence):
        orders = map_tensors(nested[2:], torch, change)
        return type(nested)(
            change(nested.data), nested.batch_sizes.clone(), *orders
        )  # read on the CPU
    if isinstance(nested, Mapping):
        changed = {key: map_tensors(value, torch, change) for key, value in nested.items()}
        if type(nested) is dict:
            return changed
        kind: Callable[[object], object] = type(nested)
        try:
            return kind(changed)
        except TypeError:
            return changed
    if isinstance(nested, tuple) and hasattr(nested, "_fields"):
        return type(nested)(*[map_tensors(each, torch, change) for each in nested])
    if is_dataclass(nested) and not isinstance(nested, type):
        return replace(
            nested,
            **{
                f.name: map_tensors(getattr(nested, f.name), torch, change)
                for f in fields(nested)
                if f.init
            },
        )
    return nested


def has_arrays(nested: Nested) -> bool:
    """Whether the inputs of a model contain NumPy arrays."""
    if isinstance(nested, Mapping):
        nested = [*nested.values()]
    if isinstance(nested, (list, tuple)):
        return any(has_arrays(each) for each in nested)
    return type(nested).__module__ == "numpy"


def tensors_in(nested: Nested, torch: ModuleType, name: str = "") -> Iterator[tuple[str, Tensor]]:
    """Every tensor in nested containers, with its path."""
    if isinstance(nested, torch.Tensor):
        yield name, nested
        return
    pairs: Iterable[tuple[object, object]] = ()
    if type(nested) in (list, tuple):
        pairs = enumerate(nested)
    elif isinstance(nested, Mapping):
        pairs = nested.items()
    elif isinstance(nested, tuple) and hasattr(nested, "_fields"):
        pairs = zip(nested._fields, nested, strict=True)
    elif isinstance(nested, (list, tuple, set)):
        pairs = enumerate(nested)
    elif is_dataclass(nested) and not isinstance(nested, type):
        pairs = [(f.name, getattr(nested, f.name)) for f in fields(nested)]
    elif hasattr(nested, "__dict__") and type(nested).__module__ not in ("builtins", "torch"):
        pairs = [(key, value) for key, value in vars(nested).items() if not key.startswith("__")]
        if isinstance(nested, (torch.nn.Module, type)):
            pairs = ()
    for key, value in pairs:
        if isinstance(value, (str, int, float)):
            continue
        yield from tensors_in(value, torch, f"{name}.{key}" if name else str(key))


def _names(forward: Callable[..., object]) -> Sequence[str]:
    """Names of the positional parameters."""
    function = getattr(forward, "__func__", None)
    if type(function) is FunctionType and not vars(function):  # the usual case, ten times as fast
        code = function.__code__
        return code.co_varnames[1 : code.co_argcount]
    try:
        return [
            name
            for name, parameter in inspect.signature(forward).parameters.items()
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        ]
    except (TypeError, ValueError):
        return ()


def named_inputs(
    model: Module, args: Sequence[Nested], kwargs: Mapping[str, Nested], torch: ModuleType
) -> list[tuple[str, Tensor]]:
    """Tensors of a call, named after the parameters of the forward."""
    names = _names(model.forward)
    found: list[tuple[str, Tensor]] = []
    for n, arg in enumerate(args):
        found += tensors_in(arg, torch, names[n] if n < len(names) else f"input{n}")
    for name, arg in kwargs.items():
        found += tensors_in(arg, torch, name)
    return found
