"""Tensors and stored arrays while a file is imported: shape, dtype, constant value and role."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, get_args

from msgspec import Struct

from layerscope.formats.onnx.arrays import SmallArray
from layerscope.formats.onnx.tensors import StoredTensor
from layerscope.graph.types import Param, Role, Shape

ROLES: dict[str, Role] = {role: role for role in get_args(Role)}


class Initializer(Struct, eq=False, gc=False):
    """An array that the file stores, as an initializer or in a Constant node, and its role."""

    name: str
    shape: Shape
    dtype: str
    source: StoredTensor | None
    declared_role: Role | None = None  # the role in the file's metadata
    role: Role | None = None
    first_use: Role | None = None  # its role for the first node that computes with it
    mixed: bool = False  # nodes use it in different roles
    from_constant_node: bool = False
    quantized: bool = False  # integers that stand for learned floats
    fill: float | None = None  # the number that a ConstantOfShape fills it with

    def set_role(self, role: Role) -> Role:
        """Add the role in which a node uses it and return the resulting one.

        A learned role wins over `statistic`, and `statistic` over `constant`.
        """
        if self.declared_role is not None:
            self.role = self.declared_role
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


class TensorInfo(Struct, eq=False, gc=False):  # values and items refer to earlier tensors only
    """Name, shape and dtype of a tensor; its value where it is constant."""

    name: str
    shape: Shape | None  # None: unknown
    dtype: str
    lazy_value: SmallArray | Callable[[], SmallArray | None] | None = None
    initializer: Initializer | None = None  # the stored array that it is
    items: list[TensorInfo] | None = None  # of a sequence
    empty: bool = False  # an optional without an element
    virtual: bool = False  # the imported graph has no tensor of its name

    @property
    def tensor(self) -> bool:
        """Whether the imported graph has a tensor of its name."""
        return not self.virtual and not self.empty and self.items is None

    @property
    def value(self) -> SmallArray | None:
        """Its value, if that is constant and small."""
        if callable(self.lazy_value):
            self.lazy_value = self.lazy_value()
        return self.lazy_value

    @property
    def constant(self) -> bool:
        """Whether it does not depend on graph inputs, small or large."""
        return self.initializer is not None or self.lazy_value is not None


class NeedsValue(Exception):
    """A shape or count depends on run-time data; the message says on which."""


Env: TypeAlias = dict[str, TensorInfo]


class BodyEnv(Env):
    """Tensors by name inside a subgraph: its own, else those of the graph around it."""

    __slots__ = ("around",)

    def __init__(self, around: Env, own: Env) -> None:
        super().__init__(own)
        self.around = around

    def __missing__(self, name: str) -> TensorInfo:
        return self.around[name]

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self.around

    def get(self, name: str, default: Any = None) -> Any:
        """The tensor of a name, here or in the graph around."""
        found = super().get(name)
        return self.around.get(name, default) if found is None else found
