"""Attention as one op, einsum, and the rotation of positions."""

from __future__ import annotations

from string import ascii_letters

from msgspec import Struct

from layerscope.errors import ShapeError
from layerscope.graph.attributes import Attention, Einsum, Rotary
from layerscope.graph.types import Shape, elements
from layerscope.ops.access_map import SAME, AccessMap, keep
from layerscope.ops.autograd import NOTHING, Fold, Saved, nothing, product
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


SPARE = "".join(chr(code) for code in range(0x100, 0x140))  # letters for axes under an ellipsis


def einsum_terms(call: Call) -> tuple[list[str], str, dict[str, int]]:
    """Letters of each operand, of the result, and the size each letter stands for."""
    a: Einsum = call.attributes
    left, arrow, right = a.equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(call.inputs):
        raise ShapeError(f"einsum {a.equation!r} of {len(call.inputs)} operands")
    for term in (*terms, right):
        if not set(term.replace("...", "", 1)) <= set(ascii_letters):
            raise ShapeError(f"einsum {a.equation!r}: {term!r}, expected letters and one ellipsis")
    if not arrow:
        once = (letter for letter in sorted(set(left)) if left.count(letter) == 1)
        right = ("..." if "." in left else "") + "".join(filter(str.isalpha, once))
    if "." in left:
        terms, right = _spell_out(terms, right, call)
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, call.inputs, strict=True):
        if len(term) != len(shape):
            raise ShapeError(f"einsum {a.equation!r}: {term!r} for a tensor of {len(shape)} axes")
        own: dict[str, int] = {}
        for letter, size in zip(term, shape, strict=True):
            before = own.setdefault(letter, size)  # on the diagonal no axis of one is repeated
            earlier = sizes.get(letter, 1)
            if size != before or (earlier != 1 and size not in (1, earlier)):
                both = (before, size) if size != before else (earlier, size)
                raise ShapeError(f"einsum {a.equation!r}: {letter} is {both[0]} and {both[1]}")
            sizes[letter] = max(earlier, size)
    for letter in right:
        if letter not in sizes or right.count(letter) > 1:
            what = "stands in no operand" if letter not in sizes else "is twice in the result"
            raise ShapeError(f"einsum {a.equation!r}: {letter} {what}")
    return terms, right, sizes


def _spell_out(terms: list[str], right: str, call: Call) -> tuple[list[str], str]:
    """Letters instead of `...`, aligned at the last axis; summed if not in the result."""
    widest = ""
    spelt = []
    for term, shape in zip(terms, call.inputs, strict=True):
        count = len(shape) - len(term.replace("...", ""))
        hidden = SPARE[len(SPARE) - count :] if "..." in term and count > 0 else ""
        widest = max(widest, hidden, key=len)
        spelt.append(term.replace("...", hidden))
    return spelt, right.replace("...", widest)


def _einsum_shape(call: Call) -> tuple[Shape, ...]:
    _, right, sizes = einsum_terms(call)
    return (tuple(sizes[letter] for letter in right),)


def _einsum_ops(call: Call) -> Ops:
    """Operands are joined from the left, what no later one needs being summed at once."""
    terms, right, sizes = einsum_terms(call)
    if len(terms) == 1:
        return Ops(add=elements(tuple(sizes.values())) - elements(call.y))
    total = FREE
    joined = dict(zip(terms[0], call.x, strict=True))  # letters so far, and their sizes
    for n, term in enumerate(terms[1:], 1):
        for letter, size in zip(term, call.inputs[n], strict=True):
            joined[letter] = max(size, joined.get(letter, 1))
        work = elements(tuple(joined.values()))
        needed = set(right).union(*terms[n + 1 :])
        kept = {letter: size for letter, size in joined.items() if letter in needed}
        total += Ops(mul=work) if len(kept) == len(joined) else Ops(mac=work)
        joined = kept
    return total


def _einsum_access(call: Call) -> tuple[AccessMap, ...]:
    """Letters of the result are followed, the others looked at as a whole."""
    terms, right, sizes = einsum_terms(call)
    return tuple(
        {
            axis: (right.index(letter), SAME)
            for axis, letter in enumerate(term)
            if letter in right and shape[axis] == sizes[letter]
        }
        for term, shape in zip(terms, call.inputs, strict=True)
    )


class _Pair(Struct, frozen=True):
    """Letters of an einsum of two operands, as PyTorch makes a batched product of it."""

    batch: tuple[str, ...]
    left: tuple[str, ...]
    inner: tuple[str, ...]
    right: tuple[str, ...]


def _pair(call: Call) -> _Pair | str:
    """The matrix product that an einsum is equal to, or why there is none."""
    terms, right, sizes = einsum_terms(call)
    if len(terms) != 2 or any(len({*term}) < len(term) for term in terms):
        return "einsum of other than two operands"
    one, two = ({*term} for term in terms)
    if (one ^ two) - {*right}:
        return "einsum that sums an operand by itself"
    for term, shape in zip(terms, call.inputs, strict=True):
        if any(sizes[c] != size for c, size in zip(term, shape, strict=True)):
            return "einsum that broadcasts"
    letters = (*right, *sorted((one | two) - {*right}))
    return _Pair(
        tuple([c for c in letters if c in one & two and c in right]),
        tuple([c for c in letters if c in one - two]),
        tuple([c for c in letters if c in one & two and c not in right]),
        tuple([c for c in letters if c in two - one]),
    )


def _einsum_saves(call: Call) -> Saved:
    """Of two operands: each for the other's gradient, as a batch of matrices or as it is."""
    if len(call.inputs) == 1:
        return NOTHING
    pair = _pair(call)
    if isinstance(pair, str):
        return Saved(inputs=tuple(range(len(call.inputs))), note=pair)
    terms, _, sizes = einsum_terms(call)
    if all(sizes[c] == 1 for c in pair.inner):
        return product(call)
    sides = ((pair.batch, pair.left, pair.inner), (pair.batch, pair.inner, pair.right))
    folds = []
    for n, (term, parts) in enumerate(zip(terms, sides, strict=True)):
        order = tuple([term.index(c) for part in parts for c in part])
        wide = tuple([call.inputs[n][axis] for axis in order])
        flat = tuple([elements(tuple([sizes[c] for c in part])) for part in parts])
        folds.append(Fold(n, wide, flat, order))
    return Saved(crossed=((0, 1), (1, 0)), folds=tuple(folds))


def einsum_order(call: Call) -> tuple[int, ...] | None:
    """Axes of the result as they are stored, outermost first; None if unknown."""
    pair = _pair(call) if len(call.inputs) == 2 else ""
    if isinstance(pair, str) or not pair.inner:
        return None
    _, right, _ = einsum_terms(call)
    return tuple([right.index(c) for c in (*pair.batch, *pair.left, *pair.right)])


def _einsum_backward(call: Call) -> tuple[Ops, Ops]:
    """A product for each side; what was only summed is given back as it is."""
    return (_einsum_ops(call) * 2 if len(call.inputs) > 1 else FREE), FREE


def _einsum_gemm(call: Call) -> Gemm | None:
    """Of two operands: shared letters that stay are the batch, those that go the inner size."""
    terms, right, sizes = einsum_terms(call)
    if len(terms) != 2:
        return None
    left, other = set(terms[0]), set(terms[1])
    inner, batch = (left & other) - set(right), left & other & set(right)
    if not inner or (left - other - set(right)) or (other - left - set(right)):
        return None

    def size(letters: set[str]) -> int:
        return elements(tuple(sizes[letter] for letter in letters))

    return Gemm(m=size(left - other), n=size(other - left), k=size(inner), count=size(batch))


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
    "einsum": OpSpec(
        family="attention",
        attributes=Einsum,
        names={"torch": "", "torch_function": "einsum", "plural": "einsum"},
        shape=_einsum_shape,
        saved_for_backward=_einsum_saves,
        ops=_einsum_ops,
        gemm=_einsum_gemm,
        access_map=_einsum_access,
        backward=_einsum_backward,
        arity=(1, None),
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
