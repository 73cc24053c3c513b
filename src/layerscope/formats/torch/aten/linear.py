"""Matrix products: linear, matmul, einsum and what PyTorch builds from them."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_lowercase

from layerscope.formats.torch.aten.control import constant
from layerscope.formats.torch.aten.layout import transpose
from layerscope.formats.torch.aten.signatures import Converter, DType, OneOutput, Scalar
from layerscope.formats.torch.draft import Draft, NoWords, Ref, Refused
from layerscope.formats.torch.draft import alike as one_dtype
from layerscope.formats.torch.dtypes import name_of
from layerscope.graph import attributes as at


def linear(d: Draft, input: Ref, weight: Ref, bias: Ref | None = None) -> Ref:
    if weight.rank != 2:
        return _with_bias(d, d.add("matmul", input, weight), bias)
    if input.shape[-1:] != weight.shape[1:]:
        raise NoWords("the last axis of the input differs from that of the weight")
    attrs = at.Linear(weight.shape[0], bias is not None)
    return d.with_param_inputs("linear", input, attrs, {"weight": weight, "bias": bias})


def _with_bias(d: Draft, x: Ref, bias: Ref | None) -> Ref:
    return x if bias is None else d.add("add", x, bias)


def matmul(d: Draft, self: Ref, other: Ref) -> Ref:
    return d.add("matmul", self, other)


def of_ranks(converter: OneOutput, *ranks: int) -> OneOutput:
    """The converter, for tensors whose last ones have these ranks; others have none."""

    def convert(d: Draft, *args: object, **kwargs: object) -> Ref:
        refs = [each for each in (*args, *kwargs.values()) if isinstance(each, Ref)]
        if tuple([ref.rank for ref in refs[-len(ranks) :]]) != ranks:
            raise NoWords(f"a product of other ranks than {ranks}")
        return converter(d, *args, **kwargs)

    return convert


def _scaled_sum(d: Draft, self: Ref, product: Ref, beta: Scalar, alpha: Scalar) -> Ref:
    """Beta · self + alpha · product; a factor of 1 takes no node."""
    if alpha != 1:
        product = d.add("mul", product)
    if beta == 0:
        return product
    return d.add("add", product, self if beta == 1 else d.add("mul", self))


def addmm(d: Draft, self: Ref, mat1: Ref, mat2: Ref, *, beta: Scalar = 1, alpha: Scalar = 1) -> Ref:
    return _scaled_sum(d, self, d.add("matmul", mat1, mat2), beta, alpha)


def addbmm(
    d: Draft, self: Ref, batch1: Ref, batch2: Ref, *, beta: Scalar = 1, alpha: Scalar = 1
) -> Ref:
    product = d.add("einsum", batch1, batch2, at=at.Einsum("bij,bjk->ik"))
    return _scaled_sum(d, self, product, beta, alpha)


def addr(d: Draft, self: Ref, vec1: Ref, vec2: Ref, *, beta: Scalar = 1, alpha: Scalar = 1) -> Ref:
    product = d.add("einsum", vec1, vec2, at=at.Einsum("i,j->ij"))
    return _scaled_sum(d, self, product, beta, alpha)


def scaled_mm(
    d: Draft,
    self: Ref,
    mat2: Ref,
    scale_a: Ref | None = None,
    scale_b: Ref | None = None,
    bias: Ref | None = None,
    scale_result: Ref | None = None,
    out_dtype: DType = None,
    *_: object,
) -> Ref:
    """A product of float8 matrices, multiplied by the scale of each side, and a bias."""
    product = d.add("matmul", self, mat2)
    if out_dtype is not None:
        product = d.cast(product, name_of(out_dtype))
    for scale in (scale_a, scale_b):
        if isinstance(scale, Ref):
            product = d.add("mul", product, scale)
    return _with_bias(d, product, bias)


def einsum(d: Draft, equation: str, tensors: Sequence[Ref], *, path: object = None) -> Ref:
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
    raise NoWords("a product of mixed dtypes without a sum")


def bilinear(d: Draft, input1: Ref, input2: Ref, weight: Ref, bias: Ref | None = None) -> Ref:
    """One matrix between both inputs for each output feature."""
    product = d.add("einsum", input1, weight, input2, at=at.Einsum("...i,oij,...j->...o"))
    return _with_bias(d, product, bias)


def grouped_mm(
    d: Draft, self: Ref, mat2: Ref, offs: Ref | None = None, *_: object, **__: object
) -> Ref:
    """Each row is multiplied by the matrix of its group, as in a mixture of experts."""
    if self.rank != 2 or mat2.rank != 3:
        raise NoWords("groups of columns")
    rows, inner, columns = self.shape[0], self.shape[1], mat2.shape[2]
    attrs = at.CustomCost(((rows, columns),), (self.dtype,), mac=rows * inner * columns)
    return d.add("custom", self, mat2, at=attrs)


def outer(d: Draft, self: Ref, vec2: Ref) -> Ref:
    if self.dtype != vec2.dtype:
        _reject_mixed((self.dtype, vec2.dtype), summed=False)
    return d.add("einsum", self, vec2, at=at.Einsum("i,j->ij"))


def inner(d: Draft, self: Ref, other: Ref) -> Ref:
    """Sums of products along the last axes of both."""
    if not self.rank or not other.rank:
        raise NoWords("an inner product with a tensor of rank 0")
    one, two = ascii_lowercase[1 : self.rank], ascii_lowercase[self.rank :][: other.rank - 1]
    return d.add("einsum", self, other, at=at.Einsum(f"{one}a,{two}a->{one}{two}"))


def dot(d: Draft, self: Ref, tensor: Ref) -> Ref:
    if self.shape != tensor.shape:
        raise NoWords("vectors of different lengths")
    return d.add("einsum", self, tensor, at=at.Einsum("i,i->"))


def euclidean_dist(d: Draft, x1: Ref, x2: Ref) -> Ref:
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
