"""What is known of a tensor while a model runs: its name in the graph, its layout, its origin."""

from __future__ import annotations

from typing import Any

from layerscope.graph.types import Shape


class Sig:
    """Shape, layout and number type; tensors alike in these share one, told apart by identity."""

    __slots__ = ("contiguous", "dtype", "kind", "name", "shape", "stride")

    def __init__(self, shape: Shape, stride: Shape, dtype: Any, kind: str, name: str) -> None:
        self.shape = shape
        self.stride = stride
        self.dtype = dtype
        self.kind = kind  # "param" and "buffer" are held by the model, "" is all else
        self.name = name  # of the number type, in our words
        self.contiguous = stride == dense(shape)


class Value:
    """A tensor of the run. `parent` is what it is a view of, `remake` tells how."""

    __slots__ = (
        "fixed", "known", "name", "parent", "plain", "recipe", "remake", "sig", "tensor", "twin",
        "version",
    )  # fmt: skip

    def __init__(self, tensor: Any, name: str, sig: Sig, *, plain: bool = True) -> None:
        self.tensor = tensor
        self.name = name
        self.sig = sig
        self.plain = plain  # its name may be read as it stands
        self.parent: Value | None = None
        self.remake: Any = None
        self.version = 0
        self.twin: Any = None  # on the meta device, where the tensor itself is not
        self.known = False  # its numbers can be worked out without the model's weights
        self.recipe: Any = None
        self.fixed = False  # made of constants alone

    @property
    def constant(self) -> bool:
        """Made of constants alone, and nothing else was written into it since."""
        return self.fixed and (self.parent is None or self.version == self.root.version)

    @property
    def root(self) -> Value:
        """What holds the storage."""
        value = self
        while value.parent is not None:
            value = value.parent
        return value


def dense(shape: Shape) -> Shape:
    """Strides of a tensor whose elements stand one behind the other."""
    strides = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))
