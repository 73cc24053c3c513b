"""OpSpec, the schema of an op: pure functions of shapes, its attributes and its names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from layerscope.errors import ShapeError
from layerscope.graph.attributes import CustomCost, DeclaredOutputs
from layerscope.graph.types import Param, Role, Shape
from layerscope.limits import ARRAY_RANK, MOST_SIZE, plain
from layerscope.ops.access_map import AccessMap, everything, pointwise
from layerscope.ops.autograd import Saved, SavedRule, first_input


class Ops(Struct, frozen=True, gc=False):
    """Operations by kind, exact. FLOPs come out of it only through a convention."""

    mac: int = 0
    add: int = 0
    mul: int = 0
    comp: int = 0
    div: int = 0
    exp: int = 0

    def __add__(self, other: Ops) -> Ops:
        return Ops(
            self.mac + other.mac,
            self.add + other.add,
            self.mul + other.mul,
            self.comp + other.comp,
            self.div + other.div,
            self.exp + other.exp,
        )

    def __mul__(self, times: int) -> Ops:
        return Ops(
            self.mac * times,
            self.add * times,
            self.mul * times,
            self.comp * times,
            self.div * times,
            self.exp * times,
        )

    @property
    def flops(self) -> int:
        """2 per multiply-add, 1 per everything else."""
        return 2 * self.mac + self.add + self.mul + self.comp + self.div + self.exp


FREE = Ops()


class Gemm(Struct, frozen=True, gc=False):
    """The matrix product an operation amounts to: `count` times (m x k) by (k x n)."""

    m: int
    n: int
    k: int
    count: int = 1


class Call(Struct, frozen=True, eq=False, gc=False):
    """One use of an op: its attributes and the shapes of its inputs and outputs.

    A call is hashed by identity, so that it is a cheap key of caches: only the same object is
    found. `ops.calls.infer_call` returns the same call for the same op, attributes and shapes.
    Comparison is by value, so that a report is equal to its copy.
    """

    attributes: Any
    inputs: tuple[Shape, ...]
    outputs: tuple[Shape, ...] = ()

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Call)
            and self.inputs == other.inputs
            and self.outputs == other.outputs
            and bool(self.attributes == other.attributes)
        )

    __hash__ = object.__hash__

    @property
    def x(self) -> Shape:
        """Shape of the first input."""
        return self.inputs[0] if self.inputs else ()

    @property
    def y(self) -> Shape:
        """Shape of the first output."""
        return self.outputs[0]

    @property
    def out_elements(self) -> int:
        """Numbers in all outputs."""
        return sum(map(prod, self.outputs))

    @property
    def in_elements(self) -> int:
        """Numbers in all inputs."""
        return sum(map(prod, self.inputs))


ShapeRule = Callable[[Call], tuple[Shape, ...]]
OpsRule = Callable[[Call], Ops]
# How the dtype of an output follows: from the first or second input, the graph's float dtype, the
# first input's real or complex counterpart, the attributes; or a fixed dtype.
OutDtype = Literal[
    "input", "second", "float", "real", "complex", "transformed", "attribute", "index",
    "int64", "int32", "bool",
]  # fmt: skip
REAL_PARTS = {"complex32": "fp16", "complex64": "fp32", "complex128": "fp64"}
COMPLEX_OF = {"fp16": "complex32", "bf16": "complex64", "fp32": "complex64", "fp64": "complex128"}
BackwardRule = Callable[[Call], tuple[Ops, Ops]]  # for the gradients of inputs, of params
AccessRule = Callable[
    [Call], tuple[AccessMap, ...]
]  # one an input; of several outputs, one an output
ReadsRule = Callable[[Call], tuple[int, ...]]
ParamsRule = Callable[[Call], tuple[Param, ...]]


def all_inputs(call: Call) -> tuple[int, ...]:
    """Every element of every input is read."""
    return tuple(map(prod, call.inputs))


def no_inputs(call: Call) -> tuple[int, ...]:
    """No element is read: a view, or only shapes matter."""
    return (0,) * len(call.inputs)


def no_params(call: Call) -> tuple[Param, ...]:
    """No params."""
    return ()


def gradient(call: Call) -> tuple[Ops, Ops]:
    """One product for every output element, and no parameters."""
    return Ops(mul=call.out_elements), FREE


class OpSpec(Struct, frozen=True, gc=False):
    """The schema of one op: everything that the package knows about it."""

    family: str  # the group that reports show; mostly the stem of the file that defines the op
    shape: ShapeRule
    ops: OpsRule
    params: ParamsRule = no_params
    gemm: Callable[[Call], Gemm | None] = lambda call: None
    access_map: AccessRule = lambda call: pointwise(call.inputs, call.y)
    input_elements: ReadsRule = all_inputs  # elements read of each input
    param_elements: Callable[[Call], int] | None = (
        None  # of its arrays or a cache; None: all of them
    )
    out_dtypes: tuple[
        OutDtype, ...
    ] = ()  # dtype of each output; that of the first input if not said
    backward: BackwardRule = gradient
    saved_for_backward: SavedRule = first_input  # for the backward pass
    arity: tuple[int, int | None] = (1, 1)  # least and most inputs; None for any number
    in_place: bool = False  # can run in-place on its first input
    estimate: str = ""  # why its counts are an estimate; "": they are exact
    view: bool = False  # its output is a view of its first input
    arrays: ParamsRule | None = None  # params that further inputs replace, in order; None: none
    sized: bool = False  # exact if its attributes declare the output shapes
    data_sized: bool = False  # data decides the size of its output; the shape is an upper bound
    attributes: type | None = None  # class of Node.attributes; None: the op has none
    names: Mapping[str, str] = {}  # name in other systems; see `display_name`
    folded: bool = False  # computed before the run: uses no memory, moves nothing

    @property
    def has_params(self) -> bool:
        """Whether nodes of this op can have params."""
        return self.params is not no_params


def out_dtype(
    out_dtypes: tuple[OutDtype, ...], n: int, attributes: Any, given: Sequence[str], floating: str
) -> str:
    """Dtype of the n-th output, from those of the inputs and the float dtype of the graph."""
    first = given[0] if given else floating
    if isinstance(attributes, (DeclaredOutputs, CustomCost)):
        return attributes.dtypes[n]
    kind = out_dtypes[n] if n < len(out_dtypes) else "input"
    if kind == "input":
        return first
    if kind == "real":
        return REAL_PARTS.get(first, first)
    if kind == "complex":
        return COMPLEX_OF.get(first, first)
    if kind == "transformed":
        return (
            REAL_PARTS.get(first, first)
            if attributes.real == "output"
            else (COMPLEX_OF.get(first, first))
        )
    if kind == "second":
        return given[1]
    if kind == "float":
        return floating
    if kind == "attribute":
        declared: str = attributes.dtype
        return declared or floating
    if kind == "index":
        index: str = attributes.index_dtype
        return index or first
    return kind


def same(call: Call) -> tuple[Shape, ...]:
    """The output has the shape of the first input."""
    return (call.x,)


def free(call: Call) -> Ops:
    """No arithmetic."""
    return FREE


def passes(call: Call) -> tuple[Ops, Ops]:
    """Gradients pass through unchanged."""
    return FREE, FREE


def product_backward(mac: int, bias: int) -> tuple[Ops, Ops]:
    """A product with weights: one like it for the input, one for the weights, sums for the bias."""
    return Ops(mac=mac), Ops(mac=mac, add=bias)


def per_output(**kinds: int) -> OpsRule:
    """A number of operations of each kind per output element."""
    unit = Ops(**kinds)
    return lambda call: unit * call.out_elements


def param(name: str, shape: Shape, role: Role, dtype: str = "") -> Param:
    """A parameter; the analysis fills in its storage, and its dtype if none is given."""
    return Param(name, shape, role, dtype)


def within_limits(shapes: tuple[Shape, ...]) -> tuple[Shape, ...]:
    """The shapes; raises for one that no framework can represent."""
    for shape in shapes:
        if len(shape) > ARRAY_RANK.most:
            raise ShapeError(f"a tensor of {len(shape)} axes, expected at most {ARRAY_RANK.most}")
        if shape and max(shape) > MOST_SIZE:
            raise ShapeError(f"an axis of {plain(max(shape))} elements, expected at most 2^63 - 1")
    return shapes


def need_rank(call: Call, least: int, what: str) -> None:
    """Raise unless the first input has at least `least` axes."""
    if len(call.x) < least:
        raise ShapeError(f"{what} needs an input of at least {least} axes, got {call.x}")


def shown(shape: Shape) -> str:
    """A shape in an error message."""
    return "x".join(map(str, shape)) or "a scalar"


def shapes_text(shapes: tuple[Shape, ...]) -> str:
    """Shapes in an error message, such as `2x3 and 4`."""
    return " and ".join(["x".join(map(str, shape)) for shape in shapes])


def axis_of(axis: int, rank: int) -> int:
    """An axis counted from the front; raises where there is no such axis."""
    if not -rank <= axis < rank:
        raise ShapeError(f"axis {axis} of a tensor with {rank} axes")
    return axis % rank


def broadcast(shapes: tuple[Shape, ...]) -> Shape:
    """The common shape of tensors whose axes agree or are 1, aligned at the last axis."""
    rank = max(map(len, shapes))
    result = []
    for axis in range(-rank, 0):
        sizes = {shape[axis] for shape in shapes if len(shape) >= -axis} - {1}
        if len(sizes) > 1:
            raise ShapeError(f"shapes {shapes_text(shapes)} do not agree")
        result.append(sizes.pop() if sizes else 1)
    return tuple(result)


def with_param_inputs(
    rule: OpSpec, most: int, saved_for_backward: SavedRule | None = None
) -> OpSpec:
    """The op with up to `most` further inputs, which replace the first of its params in order."""

    def bare(call: Call) -> Call:
        return (
            call if len(call.inputs) == 1 else Call(call.attributes, call.inputs[:1], call.outputs)
        )

    def params(call: Call) -> tuple[Param, ...]:
        return rule.params(bare(call))[len(call.inputs) - 1 :]

    def access(call: Call) -> tuple[AccessMap, ...]:
        return (*rule.access_map(bare(call)), *everything(call.inputs[1:]))

    def reads(call: Call) -> tuple[int, ...]:
        if rule.param_elements is None:
            return all_inputs(call)
        return (*rule.input_elements(bare(call)), *[0 for _ in call.inputs[1:]])

    def with_weight(call: Call) -> Saved:
        saved: Saved = rule.saved_for_backward(bare(call))
        weight = len(call.inputs) > 1 and rule.param_elements is None
        return replace(saved, inputs=(*saved.inputs, 1)) if weight else saved

    return replace(
        rule,
        shape=lambda call: rule.shape(bare(call)),
        ops=lambda call: rule.ops(bare(call)),
        params=params,
        gemm=lambda call: rule.gemm(bare(call)),
        access_map=access,
        input_elements=reads,
        backward=lambda call: rule.backward(bare(call)),
        saved_for_backward=saved_for_backward or with_weight,
        arity=(1, 1 + most),
        arrays=lambda call: rule.params(bare(call)),
    )
