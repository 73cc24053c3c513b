"""Attention as one op, and the rotation of positions."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.graph.attributes import Attention, Rotary
from layerscope.graph.types import Shape, elements
from layerscope.ops.access_map import SAME, AccessMap, keep
from layerscope.ops.autograd import Fold, Saved, nothing
from layerscope.ops.spec import FREE, Call, Gemm, Ops, OpSpec, broadcast, need_rank, same

CAP = Ops(div=2, exp=1, add=2, mul=1)  # c · tanh(s / c)


class Sizes:
    """What an attention works on: batch, query heads, both lengths, sizes of keys and values."""

    def __init__(self, call: Call) -> None:
        a: Attention = call.attributes
        q, k, v = call.inputs[:3]
        shapes = ", ".join("x".join(map(str, shape)) for shape in (q, k, v))
        kv_heads = a.kv_heads or a.heads
        if a.heads < 1 or kv_heads < 1 or a.heads % kv_heads:
            raise ShapeError(f"{a.heads} heads cannot share {kv_heads} heads of keys and values")
        if a.past < 0:
            raise ShapeError(f"a cache of {a.past} steps, expected at least 0")
        if len(q) == 3:
            widths = (q[2], k[2], v[2]) if len(k) == len(v) == 3 else ()
            if not widths or widths[0] % a.heads or widths[1] % kv_heads or widths[2] % kv_heads:
                raise ShapeError(f"attention of {shapes} with {a.heads} heads, {kv_heads} of keys")
            q, k, v = (
                (shape[0], heads, shape[1], shape[2] // heads)
                for shape, heads in ((q, a.heads), (k, kv_heads), (v, kv_heads))
            )
        if len(q) != 4 or len(k) != 4 or len(v) != 4:
            raise ShapeError(f"attention takes three or four axes, got {shapes}")
        agree = q[3] == k[3] and k[2] == v[2] and q[0] == k[0] == v[0]
        if not agree or q[1] != a.heads or k[1] != kv_heads or v[1] != kv_heads:
            raise ShapeError(f"attention of {shapes}: sizes do not agree")
        self.batch, self.heads, self.queries, self.key_size = q
        self.kv_heads, self.keys, self.value_size = kv_heads, k[2] + a.past, v[3]
        self.scores = self.batch * self.heads * self.queries * self.keys


def _attention_shape(call: Call) -> tuple[Shape, ...]:
    s = Sizes(call)
    if len(call.inputs) == 4:
        scores = (s.batch, s.heads, s.queries, s.keys)
        if broadcast((call.inputs[3], scores)) != scores:
            raise ShapeError(f"a mask of {call.inputs[3]} on scores of {scores}")
    if len(call.x) == 3:
        return ((s.batch, s.queries, s.heads * s.value_size),)
    return ((s.batch, s.heads, s.queries, s.value_size),)


def _attention_ops(call: Call) -> Ops:
    """Both products in full, masked positions included; scaling, mask and softmax of the scores."""
    s = Sizes(call)
    a: Attention = call.attributes
    softmax = Ops(comp=1 + a.causal, add=2, exp=1, div=1, mul=int(a.scaled))
    if len(call.inputs) == 4:
        softmax += Ops(comp=1) if a.mask == "bool" else Ops(add=1)
    if a.softcap:
        softmax += CAP
    return Ops(mac=s.scores * (s.key_size + s.value_size)) + softmax * s.scores


def _cache(call: Call) -> int:
    """Keys and values of earlier steps."""
    s = Sizes(call)
    a: Attention = call.attributes
    return a.past * s.batch * s.kv_heads * (s.key_size + s.value_size)


def _attention_gemm(call: Call) -> Gemm:
    """The first of the two products; the second is its like with the sizes turned."""
    s = Sizes(call)
    return Gemm(m=s.queries, n=s.keys, k=s.key_size, count=s.batch * s.heads)


def _attention_backward(call: Call) -> tuple[Ops, Ops]:
    s = Sizes(call)
    return Ops(mac=2 * s.scores * (s.key_size + s.value_size)) + Ops(mul=3, add=2) * s.scores, FREE


def _attention_saves(call: Call) -> Saved:
    """Fused: all inputs, the output, and the logarithm of each row's sum."""
    s = Sizes(call)
    a: Attention = call.attributes
    if not a.fused:
        return _unfused_saves(s, a)
    rows = s.batch * s.heads * s.queries
    note = "" if len(call.x) == 4 else HEADS
    return Saved(tuple(range(len(call.inputs))), (0,), ((rows, "fp32"),), note=note)


HEADS = "copies that a framework makes to split and join heads are not counted"


def _unfused_saves(s: Sizes, a: Attention) -> Saved:
    """By single operators: scaled queries and keys, weights, and what dropout makes of them."""
    count = s.batch * s.heads
    scaled = count * s.key_size * (s.queries + s.keys)
    weights = s.scores * (3 if a.dropout else 1)
    if s.kv_heads != s.heads:
        return Saved(extra=((scaled + weights + count * s.keys * s.value_size, ""),))
    value = (s.batch, s.heads, s.keys, s.value_size)
    fold = Fold(2, value, (count, s.keys, s.value_size))
    return Saved(inputs=(2,), extra=((scaled + weights, ""),), folds=(fold,))


def _attention_access(call: Call) -> tuple[AccessMap, ...]:
    """A query sees all keys and values, and nothing of other queries; heads stay apart."""
    s = Sizes(call)
    packed = len(call.x) == 3
    same_heads = s.heads == s.kv_heads
    q, k = (keep((0, 1)), keep((0,))) if packed else (keep((0, 1, 2)), keep((0, 1)))
    last = len(call.x) - 1
    v = {**k, last: (last, SAME)}  # a feature of the result is a mean of that feature of values
    if not same_heads:
        k, v = keep((0,)), keep((0,)) if packed else keep((0, last))
    if len(call.inputs) == 3:
        return (q, k, v)
    mask = call.inputs[3]
    result_axes = {0: 0, 2: 1} if packed else {0: 0, 1: 1, 2: 2}  # axes of scores in the result
    sizes = (s.batch, s.heads, s.queries)
    access: AccessMap = {}
    for axis, size in enumerate(mask, 4 - len(mask)):
        if axis in result_axes and size == sizes[axis]:
            access[axis - 4 + len(mask)] = (result_axes[axis], SAME)
    return (q, k, v, access)


def _rotary_shape(call: Call) -> tuple[Shape, ...]:
    need_rank(call, 3, "a rotary embedding")
    a: Rotary = call.attributes
    if a.heads < 1 or (len(call.x) == 3 and call.x[-1] % a.heads):
        raise ShapeError(f"{call.x[-1]} features cannot be cut into {a.heads} heads")
    size = call.x[-1] // (a.heads if len(call.x) == 3 else 1)
    if size % 2:
        raise ShapeError(f"rotating heads of {size} features, expected pairs")
    return same(call)


SPECS = {
    "attention": OpSpec(
        family="attention",
        attributes=Attention,
        names={
            "torch": "",
            "torch_function": "scaled_dot_product_attention",
            "plural": "fused attention",
        },
        shape=_attention_shape,
        saved_for_backward=_attention_saves,
        ops=_attention_ops,
        gemm=_attention_gemm,
        access_map=_attention_access,
        param_elements=_cache,
        backward=_attention_backward,
        arity=(3, 4),
    ),
    # x·cos + rotate_half(x)·sin; the tables of cosines and sines are not counted
    "rotary": OpSpec(
        family="attention",
        attributes=Rotary,
        shape=_rotary_shape,
        saved_for_backward=nothing,
        ops=lambda call: Ops(mul=2, add=1) * elements(call.y),
        access_map=lambda call: (keep(range(len(call.x) - 1)),),
        backward=lambda call: (Ops(mul=2, add=1) * elements(call.y), FREE),
    ),
}
