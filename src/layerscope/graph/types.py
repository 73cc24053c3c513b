"""The network as data: a frozen graph of nodes in execution order, apart from files and costs."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, Literal

from msgspec import Struct, field

from layerscope.errors import UnknownName
from layerscope.graph.block_dtypes import BLOCK_DTYPES
from layerscope.graph.checks import check

Shape = tuple[int, ...]
# "statistic" is a buffer, "constant" is used and not trained, "unused" is only stored.
Role = Literal[
    "weight", "bias", "scale", "slope", "embedding", "statistic", "constant", "unused"
]  # fmt: skip

DTYPE_BITS: Mapping[str, int] = {
    "fp64": 64, "fp32": 32, "fp16": 16, "bf16": 16, "fp8": 8,
    "int64": 64, "int32": 32, "int16": 16, "int8": 8, "uint8": 8, "int4": 4, "bool": 8,
    "uint64": 64, "uint32": 32, "uint16": 16, "uint4": 4, "int2": 2, "uint2": 2, "fp4": 4,
    "complex32": 32, "complex64": 64, "complex128": 128,
    "string": 64,  # the pointer to a string
}  # fmt: skip


def elements(shape: Shape) -> int:
    """Number of elements of a tensor of this shape."""
    return prod(shape)


def is_floating(dtype: str) -> bool:
    """Whether a dtype is floating-point or complex."""
    return dtype.startswith(("fp", "bf", "complex"))


def storage_bytes(count: int, dtype: str) -> int:
    """Bytes of `count` elements, packed: two int4 share a byte, dtypes of ggml are blocks."""
    if dtype in BLOCK_DTYPES:
        numbers, size = BLOCK_DTYPES[dtype]
        return -(-count // numbers) * size
    bits = DTYPE_BITS.get(dtype)
    if bits is None:
        raise UnknownName("dtype", dtype, DTYPE_BITS)
    return (count * bits + 7) // 8


class Source(Struct, frozen=True, gc=False):
    """Where a node comes from, for tables and error messages."""

    file: str = ""
    line: int = 0
    op: str = ""  # operator or layer type in the file
    name: str = ""  # name in the file, if it differs from the node's
    column: int = 0  # from 1, 0 where the reader has no columns

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class Tensor(Struct, frozen=True, gc=False):
    """A tensor that nodes read and write; shape None means that it could not be inferred."""

    name: str
    shape: Shape | None
    dtype: str = "fp32"
    source: Source | None = None  # of an input that is described in a file
    declared: bool = False  # the shape is declared in a file, not inferred

    @property
    def elements(self) -> int:
        """Number of elements; 0 if the shape is unknown, and the row is then marked unknown."""
        return elements(self.shape) if self.shape is not None else 0

    @property
    def bytes(self) -> int:
        """Size in bytes, packed."""
        return storage_bytes(self.elements, self.dtype)


class Param(Struct, frozen=True, gc=False):
    """A parameter or buffer. Two with the same storage are tied and counted once."""

    name: str
    shape: Shape
    role: Role = "weight"
    dtype: str = "fp32"
    storage: str = ""

    @property
    def elements(self) -> int:
        """Number of elements."""
        return elements(self.shape)

    @property
    def bytes(self) -> int:
        """Size in bytes, packed."""
        return storage_bytes(self.elements, self.dtype)

    @property
    def learnable(self) -> bool:
        """False for statistics, which are buffers, and for constants."""
        return self.role not in ("statistic", "constant", "unused")


class Node(Struct, frozen=True, gc=False):
    """One operation. With `params` None its OpSpec derives the params from the input shapes."""

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Any = None
    params: tuple[Param, ...] | None = None
    scope: tuple[str, ...] = ()  # names of the enclosing modules, outermost first
    module: str = ""  # path of the module that is this operation; "" for a bare function call
    ties: Mapping[str, str] | None = None  # param name -> storage shared with another node
    source: Source | None = None
    times: int = 1  # runs per forward pass: iterations of a loop, 0 in a branch not taken
    note: str = ""  # remark of the reader of the file
    estimate: bool = False  # its costs are an estimate, as the note says
    inner: bool = False  # one step of an operator of the file, which has no such tensors


class Constant(Struct, frozen=True, gc=False):
    """Storage of a constant tensor; `storage` is the name of the first tensor that uses it."""

    storage: str
    bytes: int  # of the storage
    stride: Shape


class Autograd(Struct, frozen=True, gc=False):
    """What a run of a live module shows about training and its nodes do not say."""

    training: bool  # the module was in train mode
    onednn: bool = True  # whether PyTorch may use oneDNN
    contiguous: frozenset[str] = frozenset()  # tensors read through `contiguous()`
    also_read: frozenset[str] = frozenset()  # of these, tensors that are also read without a copy
    no_grad: frozenset[str] = frozenset()  # nodes that ran without gradients
    custom: frozenset[str] = frozenset()  # nodes that ran in an `autograd.Function`
    hooked: frozenset[str] = frozenset()  # nodes that ran under hooks of saved tensors
    detached: frozenset[str] = frozenset()  # tensors read through `detach()`
    constants: Mapping[str, Constant] = {}  # constants that nodes read, by name
    inputs: frozenset[str] = frozenset()  # inputs that require a gradient
    notes: tuple[str, ...] = ()  # why the saved bytes are an estimate


class Claims(Struct, frozen=True, gc=False):
    """Cells that a document prints and its text does not determine, in one notation."""

    notation: str  # stem of its module in `notations`
    rows: Mapping[str, tuple[str, ...]] = {}  # node or input -> cells as they are printed
    totals: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()  # all of it, where the text does not determine the network


class KeyWindow(Struct, frozen=True, gc=False):
    """Sliding window of attention: keys before and after the query, or its chunk of tokens."""

    before: int = 0
    after: int = 0
    chunk: int = 0

    @property
    def size(self) -> int:
        """Greatest number of keys of a query."""
        return self.chunk or self.before + 1 + self.after


class Graph(Struct, frozen=True, gc=False):
    """A network. `params` are parameters that nodes read as ordinary inputs, by name."""

    name: str
    inputs: tuple[Tensor, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    params: tuple[Param, ...] = ()
    modules: Mapping[str, str] = {}  # module path -> class name, in the order of declaration
    kinds: Mapping[str, str] = {}  # module path -> class, with its package unless that is torch.nn
    # module path -> number of paths to it, if several; `places` in JSON
    module_uses: Mapping[str, int] = field(default_factory=dict, name="places")
    containers: frozenset[str] = frozenset()  # paths of every nn.Sequential and nn.ModuleList
    dtype: str = "fp32"  # of floating-point results of integers, such as embeddings
    notes: tuple[str, ...] = ()  # remarks of the reader of the file
    unused: tuple[Param, ...] = ()  # parameters of the model that no node uses
    frozen: frozenset[str] = frozenset()  # storages that do not require a gradient
    all_params: bool = False  # nodes, `params` and `unused` have all parameters of the model
    autograd: Autograd | None = None  # only of a live module
    own_layout: bool = False  # params have the layout of the file, not that of the OpSpec
    cache: frozenset[str] = frozenset()  # inputs with keys, values or states of past tokens
    past: int = 0  # length of this cache in tokens
    windows: Mapping[str, KeyWindow | None] = {}  # path of an attention module; None: no window
    causal: frozenset[str] = frozenset()  # paths of attention modules with a causal mask
    claims: Claims | None = None  # only of a document
    batch: int = 0  # batch size, if it is not the first axis of the first input

    def __post_init__(self) -> None:
        check(self)


def claims_of(graph: Graph, notation: str) -> Claims:
    """What the document of a graph prints in a notation; none if it is not in that notation."""
    claims = graph.claims
    return claims if claims is not None and claims.notation == notation else Claims(notation)
