"""The Builder's methods as calls in a text: their parameters, and which values each accepts."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Literal, Union, get_args, get_origin

from msgspec import Struct

from layerscope.builder import Builder
from layerscope.builder.assembly import Assembly
from layerscope.builder.sequences import Sequences

# Parameters of type str that are tensors, not words.
TENSORS = frozenset(
    ("x", "xs", "a", "b", "q", "k", "v", "mask", "ids", "indices", "like", "regions")
)
DECLARATIONS = ("input", "stored", "add_node")  # calls that name a tensor and are no op
WORDS = {int: "a whole number", float: "a number", bool: "True or False", str: "a string",
         NoneType: "None"}  # fmt: skip


class TensorName(str):
    """The name of a tensor, which a variable stands for."""

    __slots__ = ()


class CallParameter(Struct, frozen=True):
    """A parameter of a call."""

    name: str
    hint: object
    default: object  # `inspect.Parameter.empty` if it must be given
    keyword: bool  # given by name only
    several: bool  # takes all other positional arguments

    @property
    def needed(self) -> bool:
        """Whether it has no default."""
        return self.default is inspect.Parameter.empty and not self.several

    @property
    def takes_tensor(self) -> bool:
        """Whether its values are tensors."""
        return self.name in TENSORS and str in (self.hint, *get_args(self.hint))

    def accepts(self, value: object) -> bool:
        """Whether a value has its type."""
        if self.name == "inputs":
            return isinstance(value, tuple) and all(isinstance(x, TensorName) for x in value)
        if self.takes_tensor:
            return isinstance(value, TensorName) or (value is None and self.default is None)
        return has_type(value, self.hint)

    @property
    def wanted(self) -> str:
        """What it accepts, in words."""
        if self.name == "inputs":
            return "a tuple of tensors"
        return "a tensor" if self.takes_tensor else type_words(self.hint)


@cache
def calls() -> Mapping[str, tuple[CallParameter, ...]]:
    """The parameters of every call that returns tensors, by its name."""
    methods = {
        name: method
        for kind in (Builder, Sequences)
        for name, method in vars(kind).items()
        if not name.startswith("_") and inspect.isfunction(method)
    }
    methods.update({name: getattr(Assembly, name) for name in DECLARATIONS})
    return {name: parameters_of(method) for name, method in methods.items()}


@cache
def blocks() -> Mapping[str, tuple[CallParameter, ...]]:
    """The parameters of the calls that return no tensor: network, scope, build."""
    dtype = CallParameter("dtype", str, "fp32", True, False)
    outputs = CallParameter("xs", str, inspect.Parameter.empty, False, True)
    return {
        "network": (*parameters_of(Assembly.__init__), dtype),
        "scope": parameters_of(Assembly.scope),
        "build": (outputs,),
    }


def parameters_of(function: object) -> tuple[CallParameter, ...]:
    """The parameters of a method without `self`."""
    assert callable(function)
    found = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    return tuple(
        CallParameter(
            each.name,
            each.annotation,
            each.default,
            each.kind is inspect.Parameter.KEYWORD_ONLY,
            each.kind is inspect.Parameter.VAR_POSITIONAL,
        )
        for each in found
        if each.name != "source"  # a text has lines of its own
    )


def has_type(value: object, hint: object) -> bool:
    """Whether a value of a text has the type of an annotation."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(has_type(value, each) for each in args)
    if origin is Literal:
        return isinstance(value, str) and value in args
    if origin is tuple and args[-1] is not Ellipsis:
        return (
            isinstance(value, tuple) and len(value) == len(args) and all(map(has_type, value, args))
        )
    if origin in (tuple, Sequence):
        return isinstance(value, tuple) and all(has_type(each, args[0]) for each in value)
    if origin is Mapping:
        return isinstance(value, dict)
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if isinstance(hint, type) and hint in WORDS:
        return type(value) is hint
    return isinstance(hint, type) and isinstance(value, hint)


def type_words(hint: object) -> str:
    """An annotation in words, for errors."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(type_words(each) for each in args))
    if origin is Literal:
        return " or ".join(map(repr, args))
    if origin in (tuple, Sequence):
        return "a tuple"
    if isinstance(hint, type) and hint in WORDS:
        return WORDS[hint]
    return "attributes such as Pool(…)" if hint is Struct else "a mapping"
