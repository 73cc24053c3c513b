"""Matrix products: linear layers, the product of two tensors, and einsum."""

from __future__ import annotations

from msgspec import Struct

from layerscope.errors import ShapeError
from layerscope.graph.attributes import Einsum, Linear, MatMul
from layerscope.graph.types import Param, Shape, elements
from layerscope.ops.access_map import SAME, AccessMap, keep, pointwise
from layerscope.ops.autograd import NOTHING, WEIGHT, Fold, Saved, product
from layerscope.ops.spec import (
    FREE,
    Call,
    Gemm,
    Ops,
    OpSpec,
    axis_of,
    broadcast,
    need_rank,
    param,
    product_backward,
    with_param_inputs,
)


def _leading_axes(call: Call) -> int:
    """Number of axes that the matrix leaves alone."""
    a: Linear = call.attributes
    return axis_of(a.axis, len(call.x)) if a.flatten else len(call.x) - 1


def _features(call: Call) -> int:
    return elements(call.x[_leading_axes(call) :])


def _linear_shape(call: Call) -> tuple[Shape, ...]:
    a: Linear = call.attributes
    need_rank(call, a.axis + 1 if a.flatten else 1, "a linear layer")
    if a.out_features < 1:
        raise ShapeError(f"{a.out_features} output features, expected at least 1")
    return ((*call.x[: _leading_axes(call)], a.out_features),)


def _linear_ops(call: Call) -> Ops:
    out = elements(call.y)
    return Ops(mac=out * _features(call), add=out if call.attributes.bias else 0)


def _linear_params(call: Call) -> tuple[Param, ...]:
    a: Linear = call.attributes
    weight = param("weight", (a.out_features, _features(call)), "weight")
    return (weight, param("bias", (a.out_features,), "bias")) if a.bias else (weight,)


def _linear_gemm(call: Call) -> Gemm:
    return Gemm(m=elements(call.y[:-1]), n=call.y[-1], k=_features(call))


def _linear_access(call: Call) -> tuple[AccessMap, ...]:
    return (keep(range(_leading_axes(call))),)


def _linear_backward(call: Call) -> tuple[Ops, Ops]:
    ops = _linear_ops(call)
    return product_backward(ops.mac, ops.add)


def _linear_saves(call: Call) -> Saved:
    """The input as a matrix, for the weight's gradient; a computed weight for the input's."""
    x = call.x
    flat = (elements(x[:-1]), x[-1]) if len(x) > 2 and not call.attributes.flatten else x
    crossed = ((0, 1), (1, 0)) if len(call.inputs) > 1 else ((0, WEIGHT),)
    return Saved(crossed=crossed, folds=(Fold(0, x, flat),))


def _matmul_saves(call: Call) -> Saved:
    """Each side for the other's gradient, as `torch.matmul` folds it to a matrix or a batch."""
    crossed = ((0, 1), (1, 0))
    a: MatMul = call.attributes or MatMul()
    left, right = call.inputs
    if a.transpose_a or a.transpose_b:
        return Saved(crossed=crossed)
    if len(left) < 3 and len(right) < 3:
        return Saved(crossed=crossed)
    if len(right) < 3:
        return Saved(crossed=crossed, folds=(Fold(0, left, (elements(left[:-1]), left[-1])),))
    if len(left) < 3:
        *batch, inner, columns = right
        order = (*range(len(batch)), len(right) - 1, len(right) - 2) if len(left) == 2 else ()
        turned = (*batch, columns, inner)
        if len(left) == 1:  # the batch of matrices, each transposed, by one vector
            order = (*range(len(batch)), len(right) - 1, len(right) - 2)
        flat = (elements(tuple(batch)) * columns, inner)
        return Saved(crossed=crossed, folds=(Fold(1, turned, flat, order),))
    batch_of = broadcast((left[:-2], right[:-2]))
    count = elements(batch_of)
    sides = [(*batch_of, *side[-2:]) for side in (left, right)]
    folds = tuple([Fold(n, wide, (count, *wide[-2:])) for n, wide in enumerate(sides)])
    return Saved(crossed=crossed, folds=folds)


def _matrices(call: Call) -> tuple[Shape, Shape]:
    """Both operands as batches of m x k and k x n; a vector is never transposed."""
    a: MatMul = call.attributes or MatMul()
    left, right = call.inputs
    if len(left) == 1:
        left = (1, *left)
    elif a.transpose_a:
        left = (*left[:-2], left[-1], left[-2])
    if len(right) == 1:
        right = (*right, 1)
    elif a.transpose_b:
        right = (*right[:-2], right[-1], right[-2])
    return left, right


def _matmul_shape(call: Call) -> tuple[Shape, ...]:
    if not call.inputs[0] or not call.inputs[1]:
        raise ShapeError("a matrix product needs at least one axis on each side")
    left, right = _matrices(call)
    if left[-1] != right[-2]:
        shapes = " by ".join("x".join(map(str, shape)) for shape in call.inputs)
        raise ShapeError(f"matrix product of {shapes}: {left[-1]} and {right[-2]} do not agree")
    batch = broadcast((left[:-2], right[:-2])) if len(left) > 2 or len(right) > 2 else ()
    rows = () if len(call.inputs[0]) == 1 else (left[-2],)
    columns = () if len(call.inputs[1]) == 1 else (right[-1],)
    return ((*batch, *rows, *columns),)


def _matmul_ops(call: Call) -> Ops:
    return Ops(mac=elements(call.y) * _matrices(call)[0][-1])


def _matmul_gemm(call: Call) -> Gemm:
    left, right = _matrices(call)
    m, n = left[-2], right[-1]
    return Gemm(m=m, n=n, k=left[-1], count=elements(call.y) // (m * n))


def _matmul_access(call: Call) -> tuple[AccessMap, ...]:
    """Batch axes elementwise; rows from the left operand, columns from the right."""
    a: MatMul = call.attributes or MatMul()
    maps: list[AccessMap] = []
    for side, shape in enumerate(call.inputs):
        if len(shape) < 2 or len(call.inputs[1 - side]) < 2:
            maps.append({})
            continue
        batch = pointwise((shape[:-2],), call.y[:-2])[0]
        swapped = a.transpose_b if side else a.transpose_a
        kept = len(shape) - (1 if swapped != bool(side) else 2)
        maps.append({**batch, kept: (len(call.y) - (1 if side else 2), keep((0,))[0][1])})
    return tuple(maps)


SPARE = "".join(chr(code) for code in range(0x100, 0x140))  # letters for axes under an ellipsis


def einsum_terms(call: Call) -> tuple[list[str], str, dict[str, int]]:
    """Letters of each operand, of the result, and the size each letter stands for."""
    a: Einsum = call.attributes
    left, arrow, right = a.equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(call.inputs):
        raise ShapeError(f"einsum {a.equation!r} of {len(call.inputs)} operands")
    for term in (*terms, right):
        letters = term.replace("...", "", 1)
        if letters and not (letters.isascii() and letters.isalpha()):
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


def _matrix_product(call: Call) -> _Pair | str:
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
    pair = _matrix_product(call)
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
    pair = _matrix_product(call) if len(call.inputs) == 2 else ""
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


SPECS = {
    "linear": with_param_inputs(
        OpSpec(
            family="linear",
            attributes=Linear,
            names={
                "torch": "Linear",
                "torch_function": "linear",
                "caffe": "InnerProduct",
                "matconvnet": "conv",
                "dagnn": "Conv",
                "keras": "Dense",
                "sheet": "fc",
                "plural": "linear layers",
            },
            shape=_linear_shape,
            ops=_linear_ops,
            params=_linear_params,
            gemm=_linear_gemm,
            access_map=_linear_access,
            backward=_linear_backward,
            saved_for_backward=_linear_saves,
        ),
        2,
        saved_for_backward=_linear_saves,
    ),
    "matmul": OpSpec(
        family="linear",
        attributes=MatMul,
        names={"torch": "", "torch_function": "matmul", "plural": "matrix products"},
        shape=_matmul_shape,
        ops=_matmul_ops,
        gemm=_matmul_gemm,
        access_map=_matmul_access,
        backward=lambda call: (_matmul_ops(call) * 2, FREE),
        saved_for_backward=_matmul_saves,
        arity=(2, 2),
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
}
