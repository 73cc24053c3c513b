"""The network as data: a frozen, ordered graph that knows nothing of files or costs."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, Literal

from msgspec import Struct

from layerscope.errors import UnknownName
from layerscope.graph.checks import check

Shape = tuple[int, ...]
# A constant is reckoned with and not learned; what is unused is only stored.
Role = Literal[
    "weight", "bias", "scale", "slope", "embedding", "statistic", "constant", "unused"
]  # fmt: skip

DTYPE_BITS: Mapping[str, int] = {
    "fp64": 64, "fp32": 32, "fp16": 16, "bf16": 16, "fp8": 8,
    "int64": 64, "int32": 32, "int16": 16, "int8": 8, "uint8": 8, "int4": 4, "bool": 8,
    "uint64": 64, "uint32": 32, "uint16": 16, "uint4": 4, "int2": 2, "uint2": 2, "fp4": 4,
    "complex32": 32, "complex64": 64, "complex128": 128,
    "string": 64,  # of a string, what refers to it
}  # fmt: skip


def elements(shape: Shape) -> int:
    """Count the numbers a tensor of this shape holds."""
    return prod(shape)


def is_floating(dtype: str) -> bool:
    """Whether a dtype is of floating-point or complex numbers."""
    return dtype.startswith(("fp", "bf", "complex"))


def storage_bytes(count: int, dtype: str) -> int:
    """Bytes that `count` numbers take, packed: two int4 share a byte."""
    bits = DTYPE_BITS.get(dtype)
    if bits is None:
        raise UnknownName("dtype", dtype, DTYPE_BITS)
    return (count * bits + 7) // 8


class Source(Struct, frozen=True, gc=False):
    """Where a node was described: every row and every error can point back to it."""

    file: str = ""
    line: int = 0
    op: str = ""
    name: str = ""  # what it is called there, if otherwise than here

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class Tensor(Struct, frozen=True, gc=False):
    """A value that flows between nodes; shape None means it could not be inferred."""

    name: str
    shape: Shape | None
    dtype: str = "fp32"
    source: Source | None = None  # of an input that a file describes
    declared: bool = False  # the shape is what a file declares, and nothing infers it

    @property
    def elements(self) -> int:
        """Numbers held, 0 only where the shape is unknown (the row is then marked unknown)."""
        return elements(self.shape) if self.shape is not None else 0

    @property
    def bytes(self) -> int:
        """Bytes held, packed."""
        return storage_bytes(self.elements, self.dtype)


class Param(Struct, frozen=True, gc=False):
    """A stored array of a node. Two with the same storage are tied and counted once."""

    name: str
    shape: Shape
    role: Role = "weight"
    dtype: str = "fp32"
    storage: str = ""

    @property
    def elements(self) -> int:
        """Numbers stored."""
        return elements(self.shape)

    @property
    def bytes(self) -> int:
        """Bytes stored, packed."""
        return storage_bytes(self.elements, self.dtype)

    @property
    def learnable(self) -> bool:
        """False for statistics, which are buffers, and for constants."""
        return self.role not in ("statistic", "constant", "unused")


class Node(Struct, frozen=True, gc=False):
    """One operation. `params` None asks the op's rule, which knows them from the input shapes."""

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Any = None
    params: tuple[Param, ...] | None = None
    scope: tuple[str, ...] = ()  # path of the modules around it, outermost first
    module: str = ""  # path of the module that is this operation; "" for a bare function call
    ties: Mapping[str, str] | None = None  # param name -> storage shared with another node
    source: Source | None = None
    times: int = 1  # how often it runs in a pass: trips of a loop, 0 in a branch not taken
    note: str = ""  # what the reader has to say of it
    estimate: bool = False  # its figures are a bound, as the note says
    inner: bool = False  # a step inside one operator of a file: its outputs are no tensors there


class Constant(Struct, frozen=True, gc=False):
    """A tensor made of constants, as it is stored: the first one of its storage names it."""

    storage: str
    bytes: int  # of the storage
    stride: Shape


class Autograd(Struct, frozen=True, gc=False):
    """What the run of a live module shows of training that its nodes do not."""

    training: bool  # the module was in train mode
    onednn: bool = True  # PyTorch may use it
    contiguous: frozenset[str] = frozenset()  # tensors read through `contiguous()`
    also_read: frozenset[str] = frozenset()  # of these, those that may be read as they are, too
    no_grad: frozenset[str] = frozenset()  # nodes that ran without gradients
    custom: frozenset[str] = frozenset()  # nodes that ran in an `autograd.Function`
    hooked: frozenset[str] = frozenset()  # nodes that ran under hooks of saved tensors
    detached: frozenset[str] = frozenset()  # tensors read through `detach()`
    constants: Mapping[str, Constant] = {}  # that are read, by name
    inputs: frozenset[str] = frozenset()  # inputs that require a gradient
    notes: tuple[str, ...] = ()  # why the bytes kept are an estimate


class KeyWindow(Struct, frozen=True, gc=False):
    """Keys that attention lets a query see besides its own, or the chunk of tokens it is in."""

    before: int = 0
    after: int = 0
    chunk: int = 0

    @property
    def size(self) -> int:
        """Most keys that a query sees."""
        return self.chunk or self.before + 1 + self.after


class Graph(Struct, frozen=True, gc=False):
    """A network. `params` are stored arrays that nodes take as ordinary inputs, by name."""

    name: str
    inputs: tuple[Tensor, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    params: tuple[Param, ...] = ()
    modules: Mapping[str, str] = {}  # module path -> class name, in the order of declaration
    kinds: Mapping[str, str] = {}  # module path -> class, with its package unless that is torch.nn
    places: Mapping[str, int] = {}  # module path -> how many places it stands in, if several
    dtype: str = "fp32"  # of what is made of integers, such as embeddings
    notes: tuple[str, ...] = ()  # what a reader has to say of the file
    unused: tuple[Param, ...] = ()  # parameters of the model that no node uses
    frozen: frozenset[str] = frozenset()  # storages that training leaves as they are
    all_params: bool = False  # the model has no parameters but its nodes', `params` and `unused`
    autograd: Autograd | None = None  # of a live module
    own_layout: bool = False  # arrays lie as the file has them, not as the rules derive them
    cache: frozenset[str] = frozenset()  # inputs that hold the keys, values, states of past tokens
    past: int = 0  # tokens that this cache is of
    windows: Mapping[str, KeyWindow | None] = {}  # path of an attention module; None: no window
    batch: int = 0  # where the first axis of the first input is none

    def __post_init__(self) -> None:
        check(self)
