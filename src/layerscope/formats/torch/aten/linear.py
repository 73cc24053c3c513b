"""Matrix products: linear, matmul, einsum and what PyTorch builds from them."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_lowercase

from msgspec import Struct

from layerscope.formats.torch.aten.control import constant
from layerscope.formats.torch.aten.layout import transpose
from layerscope.formats.torch.aten.signatures import Converter, DType, OneOutput, Scalar, takes
from layerscope.formats.torch.dtypes import name_of
from layerscope.formats.torch.lowering import Lowering, Refused, TensorRef, Unsupported
from layerscope.formats.torch.lowering import same_dtypes as one_dtype
from layerscope.graph import attributes as at


def linear(
    d: Lowering, input: TensorRef, weight: TensorRef, bias: TensorRef | None = None
) -> TensorRef:
    if weight.rank != 2:
        return _with_bias(d, d.add("matmul", input, weight), bias)
    if input.shape[-1:] != weight.shape[1:]:
        raise Unsupported("the last axis of the input differs from that of the weight")
    attrs = at.Linear(weight.shape[0], bias is not None)
    return d.with_param_inputs("linear", input, attrs, {"weight": weight, "bias": bias})


def _with_bias(d: Lowering, x: TensorRef, bias: TensorRef | None) -> TensorRef:
    return x if bias is None else d.add("add", x, bias)


def matmul(d: Lowering, self: TensorRef, other: TensorRef) -> TensorRef:
    return d.add("matmul", self, other)


def of_ranks(converter: OneOutput, *ranks: int) -> OneOutput:
    """The converter, for tensors whose last ones have these ranks; others have none."""

    def convert(d: Lowering, *args: object, **kwargs: object) -> TensorRef:
        refs = [each for each in (*args, *kwargs.values()) if isinstance(each, TensorRef)]
        if tuple([ref.rank for ref in refs[-len(ranks) :]]) != ranks:
            raise Unsupported(f"a product of other ranks than {ranks}")
        return converter(d, *args, **kwargs)

    return convert


def _scaled_sum(
    d: Lowering, self: TensorRef, product: TensorRef, beta: Scalar, alpha: Scalar
) -> TensorRef:
    """Beta · self + alpha · product; a factor of 1 takes no node."""
    if alpha != 1:
        product = d.add("mul", product)
    if beta == 0:
        return product
    return d.add("add", product, self if beta == 1 else d.add("mul", self))


def addmm(
    d: Lowering,
    self: TensorRef,
    mat1: TensorRef,
    mat2: TensorRef,
    *,
    beta: Scalar = 1,
    alpha: Scalar = 1,
) -> TensorRef:
    return _scaled_sum(d, self, d.add("matmul", mat1, mat2), beta, alpha)


def addbmm(
    d: Lowering,
    self: TensorRef,
    batch1: TensorRef,
    batch2: TensorRef,
    *,
    beta: Scalar = 1,
    alpha: Scalar = 1,
) -> TensorRef:
    product = d.add("einsum", batch1, batch2, at=at.Einsum("bij,bjk->ik"))
    return _scaled_sum(d, self, product, beta, alpha)


def addr(
    d: Lowering,
    self: TensorRef,
    vec1: TensorRef,
    vec2: TensorRef,
    *,
    beta: Scalar = 1,
    alpha: Scalar = 1,
) -> TensorRef:
    product = d.add("einsum", vec1, vec2, at=at.Einsum("i,j->ij"))
    return _scaled_sum(d, self, product, beta, alpha)


class ScaledMMArgs(Struct, frozen=True):
    """Arguments of aten::_scaled_mm."""

    self: TensorRef
    mat2: TensorRef
    scale_a: TensorRef | None = None
    scale_b: TensorRef | None = None
    bias: TensorRef | None = None
    scale_result: TensorRef | None = None
    out_dtype: DType = None
    use_fast_accum: bool = False


@takes(ScaledMMArgs)
def scaled_mm(d: Lowering, args: ScaledMMArgs) -> TensorRef:
    """A product of float8 matrices, multiplied by the scale of each side, and a bias."""
    product = d.add("matmul", args.self, args.mat2)
    if args.out_dtype is not None:
        product = d.cast(product, name_of(args.out_dtype))
    for scale in (args.scale_a, args.scale_b):
        if isinstance(scale, TensorRef):
            product = d.add("mul", product, scale)
    return _with_bias(d, product, args.bias)


def einsum(
    d: Lowering, equation: str, tensors: Sequence[TensorRef], *, path: object = None
) -> TensorRef:
    equation = equation.replace(" ", "")
    inputs, arrow, result = equation.partition("->")
    dtypes = list(dict.fromkeys(ref.dtype for ref in tensors))
    if len(dtypes) > 1:
        _reject_mixed(dtypes, summed=not arrow or not set(inputs) - {","} <= set(result))
    return d.add("einsum", *tensors, at=at.Einsum(equation))


def _reject_mixed(dtypes: Sequence[str], summed: bool) -> None:
    """Raise for mixed dtypes; without a sum PyTorch runs `mul`, which promotes them."""
    if summed:
        raise Refused(f"a product of mixed dtypes {' and '.join(dtypes)}")
    raise Unsupported("a product of mixed dtypes without a sum")


def bilinear(
    d: Lowering,
    input1: TensorRef,
    input2: TensorRef,
    weight: TensorRef,
    bias: TensorRef | None = None,
) -> TensorRef:
    """One matrix between both inputs for each output feature."""
    product = d.add("einsum", input1, weight, input2, at=at.Einsum("...i,oij,...j->...o"))
    return _with_bias(d, product, bias)


def grouped_mm(
    d: Lowering,
    self: TensorRef,
    mat2: TensorRef,
    offs: TensorRef | None = None,
    *_: object,
    **__: object,
) -> TensorRef:
    """Each row is multiplied by the matrix of its group, as in a mixture of experts."""
    if self.rank != 2 or mat2.rank != 3:
        raise Unsupported("groups of columns")
    rows, inner, columns = self.shape[0], self.shape[1], mat2.shape[2]
    attrs = at.CustomCost(((rows, columns),), (self.dtype,), mac=rows * inner * columns)
    return d.add("custom", self, mat2, at=attrs)


def outer(d: Lowering, self: TensorRef, vec2: TensorRef) -> TensorRef:
    if self.dtype != vec2.dtype:
        _reject_mixed((self.dtype, vec2.dtype), summed=False)
    return d.add("einsum", self, vec2, at=at.Einsum("i,j->ij"))


def inner(d: Lowering, self: TensorRef, other: TensorRef) -> TensorRef:
    """Sums of products along the last axes of both."""
    if not self.rank or not other.rank:
        raise Unsupported("an inner product with a tensor of rank 0")
    one, two = ascii_lowercase[1 : self.rank], ascii_lowercase[self.rank :][: other.rank - 1]
    return d.add("einsum", self, other, at=at.Einsum(f"{one}a,{two}a->{one}{two}"))


def dot(d: Lowering, self: TensorRef, tensor: TensorRef) -> TensorRef:
    if self.shape != tensor.shape:
        raise Unsupported("vectors of different lengths")
    return d.add("einsum", self, tensor, at=at.Einsum("i,i->"))


def euclidean_dist(d: Lowering, x1: TensorRef, x2: TensorRef) -> TensorRef:
    """√(|x|² − 2·x·y + |y|²) as one matrix product: (−2x, |x|², 1) by (y, 1, |y|²)."""
    factors = []
    for n, x in enumerate((x1, x2)):
        norms = d.add("reduce_sum", d.add("square", x), at=at.Reduce((-1,), keep=True))
        ones = constant(d, norms.shape, x.dtype)
        parts = [x, ones, norms] if n else [d.add("mul", x), norms, ones]
        factors.append(d.concat(parts, x.rank - 1))
    squares = d.add("matmul", factors[0], transpose(d, factors[1], -2, -1))
    return d.add("sqrt", d.add("max", squares))


TABLE: dict[str, Converter] = {
    "linear": one_dtype(linear),
    "matmul": one_dtype(matmul),
    "mm": one_dtype(of_ranks(matmul, 2, 2)),
    "bmm": one_dtype(of_ranks(matmul, 3, 3)),
    "mv": one_dtype(of_ranks(matmul, 2, 1)),
    "_int_mm": matmul,
    "addmm": one_dtype(of_ranks(addmm, 2, 2)),
    "baddbmm": one_dtype(of_ranks(addmm, 3, 3)),
    "addmv": one_dtype(of_ranks(addmm, 2, 1)),
    "addbmm": one_dtype(addbmm),
    "addr": one_dtype(addr),
    "_scaled_mm": scaled_mm,
    "einsum": einsum,
    "bilinear": one_dtype(bilinear),
    "_grouped_mm": grouped_mm,
    "grouped_mm": grouped_mm,
    "inner": one_dtype(inner),
    "outer": outer,
    "ger": outer,
    "dot": one_dtype(dot),
    "vdot": one_dtype(dot),
    "_euclidean_dist": euclidean_dist,
}
