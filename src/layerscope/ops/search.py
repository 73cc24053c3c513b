"""Top-k, distances, binary search, running sums and extremes, embedding bags, masked scatter."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.graph.attributes import CumSum, DeclaredOutputs, Distance, EmbeddingBag, TopK
from layerscope.graph.types import Param, Shape, elements
from layerscope.ops.access_map import AccessMap, everything, keep
from layerscope.ops.autograd import Saved, SavedRule, both, every_input, nothing
from layerscope.ops.spec import (
    FREE,
    Call,
    Ops,
    OpSpec,
    OpsRule,
    axis_of,
    broadcast,
    param,
    passes,
    shown,
)


def _declared(call: Call) -> tuple[Shape, ...]:
    a: DeclaredOutputs = call.attributes
    return a.shapes


def _search(call: Call) -> Ops:
    """A binary search of m sorted numbers: as many comparisons as m + 1 answers have bits."""
    return Ops(comp=call.x[-1].bit_length() * call.out_elements)


def _pairs(call: Call) -> tuple[Shape, ...]:
    """Every row of the first with every row of the second, or of one tensor each pair once."""
    if len(call.inputs) == 1:
        if len(call.x) != 2:
            raise ShapeError(f"distances of the rows of {shown(call.x)}, expected a matrix")
        return ((call.x[0] * (call.x[0] - 1) // 2,),)
    left, right = call.inputs
    if min(len(left), len(right)) < 2 or left[-1] != right[-1]:
        raise ShapeError(f"distances of {shown(left)} and {shown(right)}: rows do not agree")
    return ((*broadcast((left[:-2], right[:-2])), left[-2], right[-2]),)


def _distances(call: Call) -> Ops:
    """Differences, their sizes to the power p added up, and the root; by p as norms are."""
    p = (call.attributes or Distance()).p
    n = call.x[-1]
    if p == float("inf"):
        unit = Ops(add=n, comp=2 * n - 1)
    elif p == 0 or p == 1:
        unit = Ops(add=2 * n - 1, comp=n)
    elif p == 2:
        unit = Ops(add=2 * n - 1, mul=n, exp=1)
    else:
        unit = Ops(add=2 * n - 1, comp=n, exp=n + 1)
    return unit * call.out_elements


def _top_k_shape(call: Call) -> tuple[Shape, ...]:
    a: TopK = call.attributes
    axis = axis_of(a.axis, len(call.x))
    if not 1 <= a.k <= call.x[axis]:
        raise ShapeError(f"the {a.k} largest of {call.x[axis]}")
    shape = (*call.x[:axis], a.k, *call.x[axis + 1 :])
    return (shape, shape)


def _top_k_ops(call: Call) -> Ops:
    """A heap of the k best: every element is compared with its least, log2(k) deep."""
    k = call.attributes.k
    return Ops(comp=elements(call.x) * max((k - 1).bit_length(), 1))


def _top_k_access(call: Call) -> tuple[AccessMap, ...]:
    axis = axis_of(call.attributes.axis, len(call.x))
    kept = keep(tuple(n for n in range(len(call.x)) if n != axis))
    return (kept, kept)


def _line(call: Call) -> int:
    """The axis along which elements are joined."""
    return axis_of((call.attributes or CumSum()).axis, len(call.x))


def _running_shape(call: Call) -> tuple[Shape, ...]:
    _line(call)
    return (call.x,)


def _running(unit: Ops) -> OpsRule:
    """Every element joined to all before it: one operation less than elements of a row."""

    def ops(call: Call) -> Ops:
        size = elements(call.x)
        return unit * (size - size // max(call.x[_line(call)], 1))

    return ops


def _running_access(call: Call) -> tuple[AccessMap, ...]:
    return (keep(tuple(n for n in range(len(call.x)) if n != _line(call))),)


def _running_total(unit: Ops, saves: SavedRule) -> OpSpec:
    ops = _running(unit)
    return OpSpec(
        family="reduction",
        attributes=CumSum,
        shape=_running_shape,
        ops=ops,
        access_map=_running_access,
        backward=lambda call: (ops(call), FREE),
        saved_for_backward=saves,
    )


def _running_extreme() -> OpSpec:
    """Every element against the best so far: values and their indices."""
    return OpSpec(
        family="reduction",
        attributes=CumSum,
        shape=lambda call: _running_shape(call) * 2,
        ops=_running(Ops(comp=1)),
        access_map=lambda call: _running_access(call) * 2,
        backward=lambda call: (Ops(add=elements(call.x)), FREE),
        saved_for_backward=lambda call: Saved(inputs=(0,), outputs=(1,)),
        out_dtypes=("input", "int64"),
    )


def _bag_shape(call: Call) -> tuple[Shape, ...]:
    a: EmbeddingBag = call.attributes
    if min(a.rows, a.features, a.bags) < 1 or len(call.x) != 1:
        raise ShapeError(f"{a.bags} bags of {call.x} in a table of {a.rows} x {a.features}")
    if len(call.inputs) > 2 and call.inputs[2] != call.x:
        raise ShapeError(f"weights {call.inputs[2]} of indices {call.x}")
    return ((a.bags, a.features),)


def _bag_ops(call: Call) -> Ops:
    """Vectors of each bag joined, none of them empty; a mean is divided, a weight multiplied."""
    a: EmbeddingBag = call.attributes
    count = call.x[0] * a.features
    joined = max(count - a.bags * a.features, 0)
    ops = Ops(comp=joined) if a.mode == "max" else Ops(add=joined)
    if a.mode == "mean":
        ops += Ops(div=a.bags * a.features)
    return ops + Ops(mul=count if len(call.inputs) > 2 else 0)


def _bag_params(call: Call) -> tuple[Param, ...]:
    a: EmbeddingBag = call.attributes
    return (param("weight", (a.rows, a.features), "embedding"),)


SPECS = {
    "cdist": OpSpec(
        family="linear",
        attributes=Distance,
        shape=_pairs,
        ops=_distances,
        access_map=lambda call: everything(call.inputs),
        backward=lambda call: (_distances(call) * 2, FREE),
        saved_for_backward=lambda call: Saved(inputs=tuple(range(len(call.inputs))), outputs=(0,)),
        arity=(1, 2),
    ),
    "top_k": OpSpec(
        family="indexing",
        attributes=TopK,
        shape=_top_k_shape,
        ops=_top_k_ops,
        access_map=_top_k_access,
        backward=passes,
        out_dtypes=("input", "int64"),
        saved_for_backward=lambda call: Saved(outputs=(1,)),  # indices
    ),
    # positions in sorted numbers (first input) of every number of the second
    "searchsorted": OpSpec(
        family="indexing",
        attributes=DeclaredOutputs,
        shape=_declared,
        ops=_search,
        access_map=lambda call: everything(call.inputs),
        input_elements=lambda call: (
            min(elements(call.x), call.x[-1].bit_length() * call.out_elements),
            *[elements(shape) for shape in call.inputs[1:]],
        ),
        backward=passes,
        saved_for_backward=nothing,
        out_dtypes=("attribute",),
        arity=(1, 2),
        estimate="bound: as many steps as a binary search may take",
    ),
    # how often each whole number occurs, or the sum of the weights (second input) of each
    "bincount": OpSpec(
        family="indexing",
        attributes=DeclaredOutputs,
        shape=_declared,
        ops=lambda call: Ops(add=elements(call.x)),
        access_map=lambda call: everything(call.inputs),
        backward=passes,
        saved_for_backward=nothing,
        out_dtypes=("attribute",),
        arity=(1, 2),
    ),
    "cum_sum": _running_total(Ops(add=1), nothing),
    "cum_prod": _running_total(Ops(mul=1), both),
    "cum_max": _running_extreme(),
    "cum_min": _running_extreme(),
    # where flags are set, elements of the last input in order; else those of the first
    "masked_scatter": OpSpec(
        family="indexing",
        shape=lambda call: (call.x,),
        ops=lambda call: Ops(comp=sum(map(elements, call.inputs[1:-1]))),
        access_map=lambda call: (keep(range(len(call.x))), *everything(call.inputs[1:])),
        backward=passes,
        saved_for_backward=lambda call: Saved(inputs=tuple(range(1, len(call.inputs) - 1))),
        arity=(3, None),
    ),
    "embedding_bag": OpSpec(
        family="indexing",
        attributes=EmbeddingBag,
        shape=_bag_shape,
        ops=_bag_ops,
        params=_bag_params,
        access_map=lambda call: everything(call.inputs),
        param_elements=lambda call: call.x[0] * call.attributes.features,
        backward=lambda call: (FREE, Ops(add=call.x[0] * call.attributes.features)),
        out_dtypes=("float",),
        saved_for_backward=every_input,
        arity=(2, 3),
        estimate="no bag is empty",
    ),
}
