"""Arguments of the calls of an exported program: values in place of names, then in our words."""

from __future__ import annotations

from typing import Any

from layerscope.errors import FormatError, ShapeError
from layerscope.formats.torch.export_schema import FLOATS, FORMS, KINDS, Flow, Named, Sizes
from layerscope.formats.torch.lowering import Lowering, Refused, TensorRef, Unsupported
from layerscope.formats.torch.tensors import TracedTensor

# Given by name alone, in files that do not say how an argument is given.
BY_NAME = frozenset((
    "dtype", "layout", "device", "pin_memory", "memory_format", "alpha", "beta", "scale",
    "enable_gqa", "rounding_mode", "approximate", "output_size", "implicit",
))  # fmt: skip
REFUSED = (
    Unsupported, Refused, ShapeError, TypeError, ValueError, ArithmeticError, LookupError,
    AttributeError, RuntimeError,
)  # fmt: skip
Values = dict[str, Any]  # by name in the file: what a tensor is here, or a number


class Arguments:
    """Reads them by the values that are known so far."""

    def __init__(self, path: str, flow: Flow, sizes: Sizes) -> None:
        self.path, self.flow, self.sizes = path, flow, sizes

    def of(
        self, inputs: list[Named], given: list[TracedTensor], values: Values
    ) -> tuple[list[Any], dict[str, Any]]:
        """Arguments with values in place of names; tensors are collected on the way."""
        args: list[Any] = []
        named: dict[str, Any] = {}
        for each in inputs:
            told = self.told(each.arg, given, values)
            if each.kind == 2 or (each.kind is None and each.name in BY_NAME):
                named[each.name] = told
            else:
                args.append(told)
        return args, named

    def told(self, arg: Any, given: list[TracedTensor], values: Values) -> Any:
        """One argument, in the types that our words take."""
        kind, told = next(iter(arg.items()), ("", None)) if isinstance(arg, dict) else ("", arg)
        if kind in ("as_tensor", "as_tensors", "as_optional_tensors", "as_optional_tensor",
                    "as_nested_tensors"):  # fmt: skip
            return self._tensors(told, given, values)
        if kind == "as_none":
            return None
        if kind in ("as_sym_int", "as_sym_bool", "as_sym_float"):
            return self._number(told, values)
        if kind in ("as_sym_ints", "as_sym_bools", "as_sym_floats") and isinstance(told, list):
            return [self._number(each, values) for each in told]
        if kind == "as_scalar_type":
            return f"torch.{KINDS.get(told, 'unknown') if isinstance(told, int) else 'unknown'}"
        if kind == "as_memory_format":
            return f"torch.{FORMS.get(told, FORMS[4]) if isinstance(told, int) else FORMS[4]}"
        if kind == "as_layout":
            return "torch.strided"
        if kind == "as_device":
            return told.get("type") if isinstance(told, dict) else None
        if kind == "as_float" and isinstance(told, str):
            return FLOATS.get(told)
        return told

    def _tensors(self, told: Any, given: list[TracedTensor], values: Values) -> Any:
        if isinstance(told, list):
            return [self._tensors(each, given, values) for each in told]
        if not isinstance(told, dict):
            return None
        if "as_none" in told:
            return None
        told = told.get("as_tensor", told)
        value = self.value(self.name(told, "tensor"), values)
        given.append(value)
        return value

    def _number(self, told: Any, values: Values) -> Any:
        """A number of the program's own; None where it is not known."""
        if not isinstance(told, dict):
            return None
        if "as_name" in told:
            name = str(told["as_name"])
            found = values.get(name)
            if found is None and name in self.flow.sym_int_values:
                found = self.sizes.number(self.flow.sym_int_values[name], name)
            return None if isinstance(found, TracedTensor) else found
        return next(iter(told.values()), None)

    def name(self, arg: Any, what: str) -> str:
        """Name of a tensor; raises where a file has none."""
        name = arg.get("name") if isinstance(arg, dict) else None
        if not isinstance(name, str):
            raise FormatError(f"{self.path}: a {what} without a name, expected a tensor's")
        return name

    def value(self, name: str, values: Values) -> TracedTensor:
        """The tensor of that name; raises where nothing makes it."""
        found = values.get(name)
        if not isinstance(found, TracedTensor):
            raise FormatError(f"{self.path}: tensor {name!r} is read and nothing makes it")
        return found


def translated(
    words: Any, draft: Lowering, args: list[Any], named: dict[str, Any], given: list[TracedTensor]
) -> list[TensorRef] | None:
    """What a call makes in our words, None where there are none."""
    places = iter(range(len(given)))

    def refer(arg: Any) -> Any:
        if isinstance(arg, TracedTensor):
            sig = arg.sig
            return TensorRef(
                sig.shape, sig.name, next(places), sig.kind != "", sig.kind == "buffer"
            )
        if isinstance(arg, list):
            return [refer(each) for each in arg]
        return arg

    told = [refer(arg) for arg in args]
    by_name = {name: refer(arg) for name, arg in named.items()}
    try:
        made = words(draft, *told, **by_name)
    except (*REFUSED, StopIteration):
        return None
    results = list(made) if isinstance(made, (list, tuple)) else [made]
    return results if all(isinstance(ref, TensorRef) for ref in results) else None


def counted(name: str, args: list[Any], named: Any, given: list[TracedTensor], outs: int) -> bool:
    """Whether a cut makes as many pieces as the file has names for: others are not begun."""
    if name not in ("unbind", "split", "unsafe_split", "chunk", "unsafe_chunk", "tensor_split"):
        return True
    try:
        parts = None if name == "unbind" else args[1]
        after = 1 if name == "unbind" else 2
        dim = args[after] if len(args) > after else named.get("dim", 0)
        whole = given[0].sig.shape[dim]
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
