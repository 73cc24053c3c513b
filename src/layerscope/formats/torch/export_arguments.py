"""Arguments of the calls of an exported program, as its converters take them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

from layerscope.errors import FormatError, ShapeError
from layerscope.formats.torch.export_schema import (
    FLOATS,
    FORMS,
    KINDS,
    ExportedGraph,
    Named,
    SizeReader,
)
from layerscope.formats.torch.export_schema import Arg as ExportedArg
from layerscope.formats.torch.lowering import Converter, Lowering, Refused, TensorRef, Unsupported
from layerscope.formats.torch.tensors import TracedTensor
from layerscope.formats.torch.torch_types import Arg, Kwargs

# Keyword arguments, in old files that do not say how an argument is passed.
KEYWORDS = frozenset((
    "dtype", "layout", "device", "pin_memory", "memory_format", "alpha", "beta", "scale",
    "enable_gqa", "rounding_mode", "approximate", "output_size", "implicit",
))  # fmt: skip
REFUSED = (
    Unsupported, Refused, ShapeError, TypeError, ValueError, ArithmeticError, LookupError,
    AttributeError, RuntimeError,
)  # fmt: skip
TENSORS = (
    "as_tensor", "as_tensors", "as_optional_tensors", "as_optional_tensor", "as_nested_tensors",
)  # fmt: skip
Values = dict[str, Any]  # by name in the file: a TracedTensor, or an int that the program computes


class ArgumentReader:
    """Reads arguments, with the tensors and numbers of the calls before."""

    def __init__(self, path: str, graph: ExportedGraph, sizes: SizeReader) -> None:
        self.path, self.graph, self.sizes = path, graph, sizes

    def read_all(
        self, inputs: list[Named], given: list[TracedTensor], values: Values
    ) -> tuple[list[Arg], Kwargs]:
        """Positional and keyword arguments of a call; its tensors are appended to `given`."""
        args: list[Arg] = []
        kwargs: Kwargs = {}
        for each in inputs:
            arg = self.read(each.arg, given, values)
            if each.kind == 2 or (each.kind is None and each.name in KEYWORDS):
                kwargs[each.name] = arg
            else:
                args.append(arg)
        return args, kwargs

    def read(self, arg: ExportedArg | object, given: list[TracedTensor], values: Values) -> Arg:
        """One argument, in the type that a converter takes."""
        kind, value = next(iter(arg.items()), ("", None)) if isinstance(arg, dict) else ("", arg)
        if kind in TENSORS:
            return self._tensors(value, given, values)
        if kind == "as_none":
            return None
        if kind in ("as_sym_int", "as_sym_bool", "as_sym_float"):
            return self._number(value, values)
        if kind in ("as_sym_ints", "as_sym_bools", "as_sym_floats") and isinstance(value, list):
            return [self._number(each, values) for each in value]
        if kind == "as_scalar_type":
            return f"torch.{KINDS.get(value, 'unknown') if isinstance(value, int) else 'unknown'}"
        if kind == "as_memory_format":
            return f"torch.{FORMS.get(value, FORMS[4]) if isinstance(value, int) else FORMS[4]}"
        if kind == "as_layout":
            return "torch.strided"
        if kind == "as_device":
            return value.get("type") if isinstance(value, dict) else None
        if kind == "as_float" and isinstance(value, str):
            return FLOATS.get(value)
        return value

    def _tensors(self, arg: object, given: list[TracedTensor], values: Values) -> Arg:
        if isinstance(arg, list):
            return [self._tensors(each, given, values) for each in arg]
        if not isinstance(arg, dict) or "as_none" in arg:
            return None
        traced = self.tensor(self.name(arg.get("as_tensor", arg), "tensor"), values)
        given.append(traced)
        return traced

    def _number(self, arg: object, values: Values) -> Arg:
        """A number that the program computes; None if it is unknown."""
        if not isinstance(arg, dict):
            return None
        if "as_name" in arg:
            name = str(arg["as_name"])
            found = values.get(name)
            if found is None and name in self.graph.sym_int_values:
                found = self.sizes.number(self.graph.sym_int_values[name], name)
            return None if isinstance(found, TracedTensor) else found
        return next(iter(arg.values()), None)

    def name(self, arg: object, what: str) -> str:
        """The name of a tensor; raises if the file has none."""
        name = arg.get("name") if isinstance(arg, dict) else None
        if not isinstance(name, str):
            raise FormatError(f"{self.path}: a {what} without a name, expected a tensor's")
        return name

    def tensor(self, name: str, values: Values) -> TracedTensor:
        """The tensor of that name; raises if nothing makes it."""
        found = values.get(name)
        if not isinstance(found, TracedTensor):
            raise FormatError(f"{self.path}: tensor {name!r} is read and nothing makes it")
        return found


def convert_exported(
    convert: Converter, lowering: Lowering, args: list[Arg], kwargs: Kwargs
) -> list[TensorRef] | None:
    """The results of a converter; None if it does not support the call."""
    ids = count()
    try:
        out = convert(
            lowering,
            *[_with_refs(arg, ids) for arg in args],
            **{name: _with_refs(arg, ids) for name, arg in kwargs.items()},
        )
    except (*REFUSED, StopIteration):
        return None
    results = list(out) if isinstance(out, (list, tuple)) else [out]
    return results if all(isinstance(ref, TensorRef) for ref in results) else None


def _with_refs(arg: Arg, ids: Iterator[int]) -> Arg:
    """An argument with a reference instead of each tensor."""
    if isinstance(arg, TracedTensor):
        meta = arg.meta
        return TensorRef(meta.shape, meta.name, next(ids), meta.kind != "", meta.kind == "buffer")
    if isinstance(arg, list):
        return [_with_refs(each, ids) for each in arg]
    return arg


def makes_as_many(
    name: str, args: list[Arg], kwargs: Kwargs, given: list[TracedTensor], outs: int
) -> bool:
    """Whether a split makes as many pieces as the file has names for; others are not converted."""
    if name not in ("unbind", "split", "unsafe_split", "chunk", "unsafe_chunk", "tensor_split"):
        return True
    try:
        parts = None if name == "unbind" else args[1]
        after = 1 if name == "unbind" else 2
        dim = args[after] if len(args) > after else kwargs.get("dim", 0)
        whole = given[0].meta.shape[dim]
        if name == "unbind":
            return bool(whole == outs)
        if not isinstance(parts, int):
            return True
        if name == "tensor_split":
            return bool(parts == outs)
        size = parts if "split" in name else -(-whole // parts)
        return bool(-(-whole // size) == outs)
    except REFUSED:
        return False
