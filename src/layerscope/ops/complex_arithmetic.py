"""Operation counts of nodes with complex dtypes, in operations on real numbers.

A product takes four multiplications and two additions, a sum two additions; with a real number half
of the product, and one addition. A multiply-add adds the product to a sum: four real ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from layerscope.ops.spec import Call, Ops

COMPLEX = "complex"  # how the names of such dtypes begin
PRODUCT = Ops(mul=4, add=2)
QUOTIENT = Ops(mul=6, add=3, div=2)  # (a + bi)(c − di) / (c² + d²)
BY_KIND = "complex numbers: every kind of operation as of two complex operands"

# of one complex element
UNITS: dict[str, Ops] = {
    "neg": Ops(mul=2),
    "abs": Ops(mul=2, add=1, exp=1),
    "square": PRODUCT,
    "reciprocal": Ops(mul=3, add=1, div=2),  # (c − di) / (c² + d²)
    "exp": Ops(exp=3, mul=2),  # eᵃ · (cos b + i sin b)
    "log": Ops(exp=3, mul=2, add=1, div=1),  # log |z| + i atan2(b, a)
    "compare": Ops(comp=2),
    "where": Ops(comp=1),
}


def is_complex(dtype: str) -> bool:
    """Whether numbers of this dtype have an imaginary part."""
    return dtype.startswith(COMPLEX)


def by_kind(ops: Ops) -> Ops:
    """Every kind of operation as of two complex operands."""
    converted = Ops(mac=4 * ops.mac, add=2 * ops.add, comp=2 * ops.comp, exp=2 * ops.exp)
    return converted + PRODUCT * ops.mul + QUOTIENT * ops.div


def _products(call: Call, ops: Ops, real: int) -> Ops:
    """Multiply-adds, products and sums; half of a product where one operand is real."""
    product = Ops(mul=2) if real else PRODUCT
    return Ops(mac=(2 if real else 4) * ops.mac, add=2 * ops.add) + product * ops.mul


def _sum(call: Call, ops: Ops, real: int) -> Ops:
    """Real parts of all operands, imaginary parts of those that have one; a constant has none."""
    count = max(len(call.inputs), 2)
    imaginary = len(call.inputs) - real
    scaled = 2 * ops.mul
    return Ops(add=(count + imaginary - 2) * call.out_elements, mul=scaled)


def _mul(call: Call, ops: Ops, real: int) -> Ops:
    """A constant is real."""
    real += len(call.inputs) == 1
    complexes = max(len(call.inputs), 2) - real
    unit = PRODUCT * (complexes - 1) + Ops(mul=real - 1 + 2 if real else 0)
    return unit * call.out_elements


def _div(call: Call, ops: Ops, real: int) -> Ops:
    """By a real number, and a constant is one, both parts are divided."""
    by_real = len(call.inputs) == 1 or real
    return (Ops(div=2) if by_real else QUOTIENT) * call.out_elements


def _twice(call: Call, ops: Ops, real: int) -> Ops:
    """Sums of both parts, and divisions by a real number."""
    return Ops(add=2 * ops.add, div=2 * ops.div)


def _as_counted(call: Call, ops: Ops, real: int) -> Ops:
    """Of real operations already."""
    return ops


def _l1(call: Call, ops: Ops, real: int) -> Ops:
    return UNITS["abs"] * call.in_elements + Ops(add=ops.add)


def _l2(call: Call, ops: Ops, real: int) -> Ops:
    """Squares of both parts, all summed."""
    return Ops(mul=2 * ops.mul, add=2 * ops.add + call.out_elements, exp=ops.exp)


Count = Callable[[Call, Ops, int], Ops]
COUNTS: dict[str, Count] = {
    **dict.fromkeys(("conv", "conv_transpose", "linear", "matmul", "einsum"), _products),
    **dict.fromkeys(("reduce_prod", "cum_prod"), _products),
    **dict.fromkeys(("add", "sub"), _sum),
    "mul": _mul,
    "div": _div,
    **dict.fromkeys(("reduce_sum", "reduce_mean", "cum_sum", "scatter", "scatter_nd"), _twice),
    **dict.fromkeys(("fft", "masked_scatter", "complex"), _as_counted),
    "reduce_l1": _l1,
    **dict.fromkeys(("reduce_l2", "reduce_sum_square"), _l2),
}


def complex_ops(op: str, call: Call, ops: Ops, inputs: Sequence[str]) -> tuple[Ops, str]:
    """Real operations of a node that reads these dtypes, and why they are an estimate, if so."""
    if not ops.flops:
        return ops, ""
    unit = UNITS.get(op)
    if unit is not None:
        return unit * call.out_elements, ""
    count = COUNTS.get(op)
    if count is None:
        return by_kind(ops), BY_KIND
    real = sum([not is_complex(dtype) for dtype in inputs])
    if op == "einsum" and len(inputs) > 2 and real:
        return by_kind(ops), BY_KIND
    return count(call, ops, real), ""
