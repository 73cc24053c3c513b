"""What is known of a tensor while a model runs: its name in the graph, its layout, its origin."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from layerscope.graph.types import Shape
from layerscope.ops.strides import dense

NO_STRIDES: Shape = (-1,)  # stands for those of a sparse layout
NO_VALUES = "no values"  # the recipe of an input that is given by its shape alone


class TensorMeta:
    """Shape, layout and number type; tensors alike in these share one, told apart by identity."""

    __slots__ = (
        "blank", "contiguous", "dtype", "kind", "name", "shape", "sparse", "stored_dtype", "stride"
    )  # fmt: skip

    def __init__(self, shape: Shape, stride: Shape, dtype: Any, kind: str, name: str) -> None:
        self.shape = shape
        self.stride = stride
        self.dtype = dtype
        self.kind = kind  # "param" and "buffer" are held by the model, "" is all else
        self.name = name  # of the number type, in our words
        self.contiguous = stride == dense(shape)
        self.sparse = stride == NO_STRIDES
        self.stored_dtype = ""  # of an array of the model that autocast casts; "": as `name`
        self.blank: Any = None  # a tensor of it without numbers, to make others of


class TracedTensor(Struct, gc=False, eq=False):
    """A tensor of the run. Those of a run are let go together: see `Tracker.forget`."""

    tensor: Any
    name: str
    sig: TensorMeta
    plain: bool = True  # its name may be read as it stands
    parent: TracedTensor | None = None  # what it is a view of
    remake: Any = None  # and how: entry, what is given and which result; or what tells these
    place: Any = None  # the module that took the view
    version: int = 0
    was_read: bool = False  # of a view: by a node
    twin: Any = None  # on the meta device, where the tensor itself is not
    known: bool = False  # its numbers can be worked out without the model's weights
    recipe: Any = None
    drawn: Any = None  # the recipe of random numbers, whose `recipe` says that they are
    assumed: dict[str, None] | None = None  # inputs taken as zeros in its values
    fixed: bool = False  # made of constants alone

    @property
    def made(self) -> tuple[Any, Any, int]:
        """The call that makes a view, what it is given, and which of its results this is."""
        if not isinstance(self.remake, tuple):
            self.remake = self.remake()
        found: tuple[Any, Any, int] = self.remake
        return found

    @property
    def constant(self) -> bool:
        """OutDtype of constants alone, and nothing else was written into it since."""
        return self.fixed and (self.parent is None or self.version == self.root.version)

    @property
    def root(self) -> TracedTensor:
        """What holds the storage."""
        value = self
        while value.parent is not None:
            value = value.parent
        return value


__all__ = ["NO_STRIDES", "NO_VALUES", "TensorMeta", "TracedTensor", "dense"]
