"""A layer of a printed module, and what its parameters are."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from layerscope.errors import LayerscopeError
from layerscope.formats.document.module_arguments import Arguments
from layerscope.graph.types import Param, Shape
from layerscope.ops.calls import infer_call, params_of

Reader = Callable[[Arguments], "TextLayer"]
RANKS = (1, 2, 3)  # of windows
WIDTH = 64  # of a sample input, along axes that parameters do not depend on


class TextLayer(Struct, frozen=True):
    """A layer as its text has it; `sample` is a shape that it takes, if parameters need one."""

    op: str
    attributes: Struct | None = None
    sample: Shape = ()
    channels: int = 0  # that it takes along axis 1; 0: any
    trailing: Shape = ()  # last axes that it takes; (): any
    rank: int = 0  # of its input; 0: any
    params: tuple[Param, ...] | None = None  # instead of those that the op has
    left_open: str = ""  # what its text does not say, and what is assumed
    why: str = ""  # why its operations are not counted
    keeps_text: bool = False  # the arguments are not in op and attributes without an input
    dtype: str = "fp32"

    def parameters(self) -> tuple[Param, ...]:
        """Parameters and buffers."""
        if self.params is not None or not self.sample:
            return self.params or ()
        try:
            found = params_of(self.op, infer_call(self.op, self.attributes, (self.sample,)), "fp32")
        except LayerscopeError:  # sizes that the op refuses
            return ()
        if self.dtype == "fp32":
            return found
        return tuple(
            replace(param, dtype=self.dtype) if param.role == "weight" else param for param in found
        )


def plane(channels: int, rank: int) -> Shape:
    """A sample input with so many channels and spatial axes."""
    return (1, channels, *(WIDTH,) * rank)
