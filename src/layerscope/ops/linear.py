"""Matrix products: linear layers and the product of two tensors."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.graph.attributes import Linear, MatMul
from layerscope.graph.types import Param, Shape, elements
from layerscope.ops.access_map import AccessMap, keep, pointwise
from layerscope.ops.autograd import BOTH, WEIGHT, Fold, Saved
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


def _lead(call: Call) -> int:
    """Number of axes that the matrix leaves alone."""
    a: Linear = call.attributes
    return axis_of(a.axis, len(call.x)) if a.flatten else len(call.x) - 1


def _features(call: Call) -> int:
    return elements(call.x[_lead(call) :])


def _linear_shape(call: Call) -> tuple[Shape, ...]:
    a: Linear = call.attributes
    need_rank(call, a.axis + 1 if a.flatten else 1, "a linear layer")
    if a.out_features < 1:
        raise ShapeError(f"{a.out_features} output features, expected at least 1")
    return ((*call.x[: _lead(call)], a.out_features),)


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
    return (keep(range(_lead(call))),)


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


def _det_shape(call: Call) -> tuple[Shape, ...]:
    need_rank(call, 2, "a determinant")
    if call.x[-1] != call.x[-2]:
        raise ShapeError(f"a determinant of {call.x}, expected as many rows as columns")
    return (call.x[:-2],)


def _det_ops(call: Call) -> Ops:
    """Every row cleared by those above it, then the product of the diagonal."""
    n = call.x[-1]
    inner = (n - 1) * n * (2 * n - 1) // 6
    return Ops(div=n * (n - 1) // 2, mul=inner + n - 1, add=inner) * elements(call.y)


SPECS = {
    "det": OpSpec(
        family="linear",
        shape=_det_shape,
        ops=_det_ops,
        access_map=lambda call: (keep(range(len(call.y))),),
        backward=lambda call: (_det_ops(call) * 2, FREE),
        saved_for_backward=lambda call: BOTH,
        estimate="by elimination, without a search for pivots",
    ),
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
}
