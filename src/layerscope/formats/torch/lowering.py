"""One operator call of PyTorch as nodes of the graph.

A converter (aten/) takes a `Lowering` and the arguments of the call, with a `TensorRef` for each
tensor, and adds nodes to it. Shapes are inferred at once. The result is kept as a `CallPlan`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from layerscope.errors import ShapeError
from layerscope.formats.torch.torch_types import Arg
from layerscope.graph.attributes import Cast, Concat, CustomCost
from layerscope.graph.types import Param, Role, Shape, Source
from layerscope.ops import SPECS, Call
from layerscope.ops.calls import infer_call, params_of
from layerscope.ops.spec import out_dtype

if TYPE_CHECKING:
    from layerscope.formats.torch.caches import AttrCache
    from layerscope.formats.torch.tensors import TensorMeta

ValueId = int | tuple[int, int]  # the n-th tensor of the call, or (node, output) of its plan
Converter = Callable[..., Any]  # (lowering, *args, **kwargs) -> TensorRef or a list of them


class TensorRef(Struct, frozen=True, gc=False):
    """A tensor in a converter: an argument of the call, or the output of a planned node."""

    shape: Shape
    dtype: str
    value_id: ValueId
    stored: bool = False  # a parameter or buffer of the model
    buffer: bool = False
    # scales and zero points of an array that a quantized module keeps packed
    scales: tuple[tuple[str, TensorRef], ...] | None = None
    stored_dtype: str = ""  # dtype of a parameter before autocast casts it; "": same as `dtype`

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)


class PlannedNode(Struct, frozen=True, gc=False):
    """A node without names: its inputs and parameters are numbered by the tensors of the call."""

    op: str
    inputs: tuple[ValueId, ...]
    attributes: Any
    holds: tuple[tuple[str, int], ...]  # parameters: name in the op's spec, n-th tensor of the call
    outputs: int
    source: Source | None
    params: tuple[Param, ...] | None = None  # with dtypes of their own; None: as the spec says


class CallPlan(Struct, frozen=True, gc=False):
    """The nodes of a call, and which of their outputs are its results."""

    nodes: tuple[PlannedNode, ...]
    results: tuple[Any, ...]  # the `ValueId` of each
    outs: tuple[TensorMeta, ...]
    form: Any = None  # None for a single tensor, else list or tuple
    # How the results of a view are stored: "view" in the storage of the input, "copy" in their own,
    # "itself" if the input is returned. "" if only a run can say.
    alias: str = ""


FIRST_OUTPUT = ((0, 0),)  # the results of most plans: the first output of the first node


class Unsupported(Exception):
    """A call that no op covers. It becomes an unknown node under the operator's name."""


class Refused(Exception):
    """A call that PyTorch refuses on real tensors, but not on the meta device."""


class Lowering:
    """Collects the nodes of one call, in order. Equal attributes become one object."""

    def __init__(self, source: Source, attr_cache: AttrCache, floating: str) -> None:
        self.nodes: list[PlannedNode] = []
        self.source = source
        self.in_place = False
        self.training = False  # the model is in train mode
        self._attr_cache = attr_cache
        self.floating = floating  # float dtype of the model

    def add(
        self,
        op: str,
        *inputs: TensorRef,
        at: Struct | None = None,
        holds: Mapping[str, TensorRef] | None = None,
        bare: bool = False,
    ) -> TensorRef:
        """Add a node with one output."""
        return self.several(op, *inputs, at=at, holds=holds, bare=bare)[0]

    def gradient(self, op: str, grad: TensorRef, shape: Shape, at: Struct) -> TensorRef:
        """Add the gradient of the only input of an op, of this shape, given that of its output."""
        call = infer_call(op, at, (shape,))
        if call.outputs != (grad.shape,):
            raise Unsupported(f"{op} of {shape} to {grad.shape}")
        ops, _ = SPECS[op].backward(call)
        return self.add("custom", grad, at=CustomCost((shape,), (grad.dtype,), **asdict(ops)))

    def several(
        self,
        op: str,
        *inputs: TensorRef,
        at: Struct | None = None,
        holds: Mapping[str, TensorRef] | None = None,
        bare: bool = False,
    ) -> tuple[TensorRef, ...]:
        """Add a node with as many outputs as its shape rule infers.

        `at` has its attributes, `holds` its parameters. A bare node has no parameters at all.
        """
        spec = SPECS.get(op)
        if spec is None:
            raise Unsupported(op)
        if at is not None:
            at = self._attr_cache.setdefault((type(at), at), at)
        call = infer_call(op, at, tuple([ref.shape for ref in inputs]))
        shapes = call.outputs
        if holds and not bare:
            _check_param_shapes(op, call, holds, inputs[0].dtype if inputs else "")
        sources: list[tuple[str, int]] = []
        params: tuple[Param, ...] | None = () if bare else None
        for name, ref in (holds or {}).items():
            if not ref.stored or not isinstance(ref.value_id, int):
                raise Unsupported(f"{op} with a computed {name}")
            sources.append((name, ref.value_id))
            if ref.scales is not None:
                params = (*(params or ()), *packed(op, name, ref))
                sources += [
                    (own, s.value_id) for own, s in ref.scales if isinstance(s.value_id, int)
                ]
        n = len(self.nodes)
        dtypes = [ref.dtype for ref in inputs[:2]]
        outs = tuple(
            [
                TensorRef(shape, out_dtype(spec.out_dtypes, k, at, dtypes, self.floating), (n, k))
                for k, shape in enumerate(shapes)
            ]
        )
        if holds and params is None:
            params = _stored_dtypes(op, call, holds, outs[0].dtype)
        self.nodes.append(
            PlannedNode(
                op,
                tuple([ref.value_id for ref in inputs]),
                at,
                tuple(sources),
                len(shapes),
                self.source,
                params,
            )
        )
        return outs

    def with_param_inputs(
        self, op: str, x: TensorRef, at: Struct | None, arrays: Mapping[str, TensorRef | None]
    ) -> TensorRef:
        """Add a node whose arrays are parameters, or inputs if the forward computes any of them."""
        given = {name: ref for name, ref in arrays.items() if ref is not None}
        learned = [ref for name, ref in given.items() if not name.startswith("running_")]
        if all(ref.stored for ref in given.values()) and not any(ref.buffer for ref in learned):
            return self.add(op, x, at=at, holds=given)
        return self.add(op, x, *given.values(), at=at)

    def cast(self, x: TensorRef, dtype: str) -> TensorRef:
        """Cast to a dtype; no node if it is the tensor's own."""
        return x if x.dtype == dtype else self.add("cast", x, at=Cast(dtype))

    def concat(self, parts: list[TensorRef], axis: int) -> TensorRef:
        """Concatenate, without empty parts, as PyTorch does."""
        full = [part for part in parts if 0 not in part.shape] or parts[:1]
        if len(full) == 1:
            return self.add("identity", full[0])
        return self.add("concat", *full, at=Concat(axis))

    def plan(
        self,
        results: list[TensorRef],
        metas: tuple[TensorMeta, ...],
        form: type | None = None,
        alias: str = "",
    ) -> CallPlan:
        """The nodes added so far, with these of their outputs as results."""
        ids = tuple([ref.value_id for ref in results])
        return CallPlan(tuple(self.nodes), ids, metas, form, alias)


def _check_param_shapes(op: str, call: Call, holds: Mapping[str, TensorRef], dtype: str) -> None:
    """Raise if a parameter has another shape than the op's spec: PyTorch refuses those calls."""
    for param in params_of(op, call, dtype):  # cached under this dtype: costs need them again
        ref = holds.get(param.name)
        if ref is not None and ref.shape != param.shape:
            raise Unsupported(
                f"{op} with {param.name} of shape {ref.shape}, expected {param.shape}"
            )


def _stored_dtypes(
    op: str, call: Call, holds: Mapping[str, TensorRef], dtype: str
) -> tuple[Param, ...] | None:
    """Parameters in the dtypes that they are stored in; None if that is the output's."""
    stored = {name: ref.stored_dtype or ref.dtype for name, ref in holds.items()}
    if {*stored.values()} == {dtype}:
        return None
    params = params_of(op, call, dtype)
    return tuple([
        replace(param, dtype=stored[param.name]) for param in params if param.name in stored
    ])  # fmt: skip


def axis(dim: int, rank: int) -> int:
    """An axis counted from the front; raises if out of range, which PyTorch may not check."""
    if not -rank <= dim < rank:
        raise Refused(f"axis {dim} of a tensor with {rank} axes")
    return dim % rank


def same_dtypes(convert: Converter, first: int | None = None) -> Converter:
    """A converter that refuses operands of several dtypes, as PyTorch does for products.

    With `first`, only so many of the arguments are operands.
    """

    def converter(d: Lowering, *args: Arg, **kwargs: Arg) -> Arg:
        dtypes: dict[str, None] = {}
        for arg in (*args, *kwargs.values()) if first is None else args[:first]:
            for each in arg if isinstance(arg, list) else (arg,):
                if isinstance(each, TensorRef):
                    dtypes[each.dtype] = None
        if len(dtypes) > 1:
            raise Refused(f"numbers of {' and '.join(dtypes)} in one product")
        return convert(d, *args, **kwargs)

    return converter


def packed(op: str, name: str, ref: TensorRef) -> tuple[Param, ...]:
    """A quantized array in the dtype that it is stored in, with its scales and zero points."""
    role: Role = "bias" if name.startswith("bias") else "weight"
    if op == "select":
        role = "embedding"
    arrays: list[tuple[str, TensorRef, Role]] = [(name, ref, role)]
    arrays += [(own, scale, "statistic") for own, scale in ref.scales or ()]
    return tuple([Param(own, each.shape, what, each.dtype) for own, each, what in arrays])


__all__ = [
    "CallPlan", "Converter", "Lowering", "PlannedNode", "Refused", "ShapeError", "TensorRef",
    "Unsupported", "ValueId", "axis", "same_dtypes",
]  # fmt: skip
