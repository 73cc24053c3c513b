"""One call of PyTorch put in our words: a few steps of ours, their shapes known at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from layerscope.errors import ShapeError
from layerscope.graph.attributes import Cast, Concat
from layerscope.graph.types import Param, Role, Shape, Source
from layerscope.ops import SPECS, Call
from layerscope.ops.calls import infer_call, params_of
from layerscope.ops.spec import out_dtype

ValueId = int | tuple[int, int]  # the n-th tensor of the call, or a step and which of its outputs


class TensorRef(Struct, frozen=True, gc=False):
    """A tensor of a call: given, or made by a step."""

    shape: Shape
    dtype: str
    value_id: ValueId
    stored: bool = False  # a parameter or buffer of the model
    buffer: bool = False
    scales: tuple[tuple[str, TensorRef], ...] | None = (
        None  # of an array that a module keeps packed
    )
    stored_dtype: str = ""  # of an array that autocast casts; "": as `dtype`

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)


class PlannedNode(Struct, frozen=True, gc=False):
    """One node to be: what it reads, and the arrays it holds, by the names of its rule."""

    op: str
    inputs: tuple[ValueId, ...]
    attributes: Any
    holds: tuple[tuple[str, int], ...]  # name in the rule, n-th tensor of the call
    outputs: int
    source: Source | None
    params: tuple[Param, ...] | None = None  # arrays in types of their own; None: as the rule says


class Unsupported(Exception):
    """A call that our ops do not cover; it stays unknown under its own name."""


class Refused(Exception):
    """A call that PyTorch refuses with numbers, and not without."""


class Lowering:
    """Steps of one call, in order; attributes that are same_dtypes are one value."""

    def __init__(self, source: Source, same: dict[Any, Any], floating: str) -> None:
        self.steps: list[PlannedNode] = []
        self.source = source
        self.in_place = False
        self.training = False  # the model is in train mode
        self._same = same
        self.floating = floating

    def add(
        self,
        op: str,
        *inputs: TensorRef,
        at: Any = None,
        holds: Mapping[str, TensorRef] | None = None,
        bare: bool = False,
    ) -> TensorRef:
        """A step with one output."""
        return self.several(op, *inputs, at=at, holds=holds, bare=bare)[0]

    def several(
        self,
        op: str,
        *inputs: TensorRef,
        at: Any = None,
        holds: Mapping[str, TensorRef] | None = None,
        bare: bool = False,
    ) -> tuple[TensorRef, ...]:
        """A step with as many outputs as its rule tells; a bare one has no arrays at all."""
        rule = SPECS.get(op)
        if rule is None:
            raise Unsupported(op)
        if at is not None:
            at = self._same.setdefault((type(at), at), at)
        call = infer_call(op, at, tuple([ref.shape for ref in inputs]))
        shapes = call.outputs
        if holds and not bare:
            _need_fit(op, call, holds, inputs[0].dtype if inputs else "")
        held = []
        params: tuple[Param, ...] | None = () if bare else None
        for name, ref in (holds or {}).items():
            if not ref.stored or not isinstance(ref.value_id, int):
                raise Unsupported(f"{op} with a computed {name}")
            held.append((name, ref.value_id))
            if ref.scales is not None:
                params = (*(params or ()), *packed(op, name, ref))
                held += [(own, s.value_id) for own, s in ref.scales if isinstance(s.value_id, int)]
        n = len(self.steps)
        kinds = [ref.dtype for ref in inputs[:2]]
        outs = tuple(
            [
                TensorRef(shape, out_dtype(rule.out_dtypes, k, at, kinds, self.floating), (n, k))
                for k, shape in enumerate(shapes)
            ]
        )
        if holds and params is None:
            params = _own_types(op, call, holds, outs[0].dtype)
        self.steps.append(
            PlannedNode(
                op,
                tuple([ref.value_id for ref in inputs]),
                at,
                tuple(held),
                len(shapes),
                self.source,
                params,
            )
        )
        return outs

    def with_param_inputs(
        self, op: str, x: TensorRef, at: Any, arrays: Mapping[str, TensorRef | None]
    ) -> TensorRef:
        """A step that holds its arrays, or reads them where they are worked out on the way."""
        given = {name: ref for name, ref in arrays.items() if ref is not None}
        learned = [ref for name, ref in given.items() if not name.startswith("running_")]
        if all(ref.stored for ref in given.values()) and not any(ref.buffer for ref in learned):
            return self.add(op, x, at=at, holds=given)
        return self.add(op, x, *given.values(), at=at)

    def cast(self, x: TensorRef, dtype: str) -> TensorRef:
        """The same numbers in another type."""
        return x if x.dtype == dtype else self.add("cast", x, at=Cast(dtype))

    def concat(self, parts: list[TensorRef], axis: int) -> TensorRef:
        """Parts joined, empty ones left out as PyTorch does."""
        full = [part for part in parts if 0 not in part.shape] or parts[:1]
        if len(full) == 1:
            return self.add("identity", full[0])
        return self.add("concat", *full, at=Concat(axis))


def _need_fit(op: str, call: Call, holds: Mapping[str, TensorRef], dtype: str) -> None:
    """Raise where an array has another shape than the rule has for it: PyTorch refuses those."""
    for param in params_of(op, call, dtype):  # as they are asked for again when costs are told
        ref = holds.get(param.name)
        if ref is not None and ref.shape != param.shape:
            raise Unsupported(
                f"{op} with {param.name} of shape {ref.shape}, expected {param.shape}"
            )


def _own_types(
    op: str, call: Call, holds: Mapping[str, TensorRef], dtype: str
) -> tuple[Param, ...] | None:
    """Arrays in the dtypes they are stored in; None where that is the output's."""
    kept = {name: ref.stored_dtype or ref.dtype for name, ref in holds.items()}
    if {*kept.values()} == {dtype}:
        return None
    params = params_of(op, call, dtype)
    return tuple([replace(param, dtype=kept[param.name]) for param in params if param.name in kept])


def axis(dim: int, rank: int) -> int:
    """An axis counted from the front, refused where there is none: PyTorch may not look."""
    if not -rank <= dim < rank:
        raise Refused(f"axis {dim} of a tensor with {rank} axes")
    return dim % rank


def same_dtypes(words: Any, first: int | None = None) -> Any:
    """Words of a product that PyTorch refuses of numbers of several types, `first` tensors told."""

    def translate(d: Lowering, *told: Any, **named: Any) -> Any:
        kinds: dict[str, None] = {}
        for arg in (*told, *named.values()) if first is None else told[:first]:
            for each in arg if isinstance(arg, list) else (arg,):
                if isinstance(each, TensorRef):
                    kinds[each.dtype] = None
        if len(kinds) > 1:
            raise Refused(f"numbers of {' and '.join(kinds)} in one product")
        return words(d, *told, **named)

    return translate


def packed(op: str, name: str, ref: TensorRef) -> tuple[Param, ...]:
    """An array in the number type it is kept in, and the scales it is to be read by."""
    role: Role = "bias" if name.startswith("bias") else "weight"
    if op == "select":
        role = "embedding"
    arrays: list[tuple[str, TensorRef, Role]] = [(name, ref, role)]
    arrays += [(own, scale, "statistic") for own, scale in ref.scales or ()]
    return tuple([Param(own, each.shape, what, each.dtype) for own, each, what in arrays])


def fits(refs: list[TensorRef], outs: list[tuple[Shape, str]]) -> bool:
    """Whether what the steps make has the shapes that PyTorch makes."""
    return [ref.shape for ref in refs] == [shape for shape, _ in outs]


__all__ = [
    "Lowering",
    "PlannedNode",
    "ShapeError",
    "TensorRef",
    "Unsupported",
    "ValueId",
    "axis",
    "fits",
    "same_dtypes",
]
