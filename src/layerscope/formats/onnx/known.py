"""What is known of tensors and of stored arrays while a file is walked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, get_args

from layerscope.formats.onnx.arrays import Array
from layerscope.formats.onnx.tensors import Stored
from layerscope.graph.types import Param, Role, Shape

ROLES: dict[str, Role] = {role: role for role in get_args(Role)}


class Entry:
    """An array that the file stores, and what it turns out to be."""

    __slots__ = (
        "aside",
        "dtype",
        "fill",
        "mixed",
        "name",
        "narrow",
        "role",
        "shape",
        "source",
        "told",
        "use",
    )

    def __init__(
        self, name: str, shape: Shape, dtype: str, source: Stored | None, told: str = ""
    ) -> None:
        self.name, self.shape, self.dtype, self.source = name, shape, dtype, source
        self.told: Role | None = ROLES.get(told)  # what the file says that it is
        self.role: Role | None = None
        self.use: Role | None = None  # what it would be to the first node that computes with it
        self.mixed = False  # it may be something else to another node
        self.aside = False  # in a Constant node rather than among the initializers
        self.narrow = False  # whole numbers that stand for learned ones
        self.fill: Any = None  # the number it is full of, if it is made by a ConstantOfShape

    def settle(self, role: Role) -> Role:
        """What it is, now that a node reads it so: learned if anything learns it."""
        if self.told is not None:
            self.role = self.told
        elif self.role is None:
            self.role = role
        elif self.role != role:
            self.mixed = True
            if self.role == "constant" or (self.role == "statistic" and role != "constant"):
                self.role = role
        assert self.role is not None
        return self.role

    @property
    def learned(self) -> bool:
        """Whether it counts as parameters."""
        return self.role not in (None, "constant", "statistic", "unused")

    @property
    def param(self) -> Param:
        """The array as it is stored."""
        return Param(self.name, self.shape, self.role or "unused", self.dtype, self.name)


class Known:
    """What is known of a tensor where the walk stands."""

    __slots__ = ("_value", "dtype", "empty", "entry", "items", "name", "shape", "tensor")

    def __init__(
        self,
        name: str,
        shape: Shape | None,
        dtype: str,
        value: Array | Callable[[], Array | None] | None = None,
        entry: Entry | None = None,
        items: list[Known] | None = None,
        *,
        empty: bool = False,
        tensor: bool = True,
    ) -> None:
        self.name, self.shape, self.dtype, self.entry = name, shape, dtype, entry
        self._value = value
        self.items = items  # of a sequence
        self.empty = empty  # an optional without an element
        self.tensor = tensor and not empty and items is None  # the graph has a tensor of its name

    @property
    def value(self) -> Array | None:
        """Its numbers, if they are few and known before the run."""
        if callable(self._value):
            self._value = self._value()
        return self._value

    @property
    def constant(self) -> bool:
        """Whether it is known before the run, small or large."""
        return self.entry is not None or self._value is not None


class NeedsValue(Exception):
    """A shape or a count depends on what only the run knows; the message says on what."""


Env: TypeAlias = dict[str, Known]


class Inner(Env):
    """Names inside a body: its own, else those around it."""

    __slots__ = ("around",)

    def __init__(self, around: Env, own: Env) -> None:
        super().__init__(own)
        self.around = around

    def __missing__(self, name: str) -> Known:
        return self.around[name]

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self.around

    def get(self, name: str, default: Any = None) -> Any:
        """What is known by a name, here or around."""
        found = super().get(name)
        return self.around.get(name, default) if found is None else found
