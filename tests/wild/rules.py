"""Reasons for which our multiply-adds may differ from FlopCounterMode's, checked by arithmetic.

A reason is a function of the calls that reached PyTorch's dispatcher and of the rows of our report.
It gives the exact number of multiply-adds by which we count more (or, negative, less). All reasons
are applied to every model: figures agree if the difference is the sum of them. No reason knows the
name of a model or a package.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from msgspec import Struct

Shape = tuple[int, ...]


class Call(Struct, frozen=True):
    """A call of a PyTorch operator, as the reference saw it."""

    operator: str  # "aten::mm"
    shapes: tuple[Shape, ...]  # of its tensor arguments
    output: Shape  # of its first result
    macs: int  # half the FLOPs that FlopCounterMode counts for it
    constant: bool  # it depends on neither inputs nor parameters
    complex_arguments: int = 0


class Row(Struct, frozen=True):
    """A row of our report that counts multiply-adds."""

    op: str
    macs: int
    elements: int  # of its output


Reason = Callable[[Sequence[Call], Sequence[Row]], int]


def constants(calls: Sequence[Call], rows: Sequence[Row]) -> int:
    """Products of constants alone, which are computed once and are no row of ours."""
    return -sum(call.macs for call in calls if call.constant)


def _vectors(call: Call) -> int:
    """Multiply-adds of a product with a vector: elements of the largest argument."""
    return max(prod(shape) for shape in call.shapes)


def _grouped(call: Call) -> int:
    """Multiply-adds of a grouped product of (tokens, in) with (groups, in, out)."""
    left, right = call.shapes[:2]
    if len(left) == 2 and len(right) == 3:
        return left[0] * right[1] * right[2]
    raise ValueError(f"{call.operator} of {left} and {right}, expected (m, k) and (g, k, n)")


def _distances(call: Call) -> int:
    """Multiply-adds of distances: PyTorch takes a product of rows with two numbers more.

    Of few rows it computes each distance by itself, without a product.
    """
    left, right = call.shapes[:2]
    few = max(left[-2], right[-2]) <= 25 and call.operator == "aten::_cdist_forward"
    return 0 if few else prod(call.output) * (left[-1] + 2)


def _lstm_layer(call: Call) -> int:
    """Multiply-adds of one direction of an LSTM in oneDNN: steps x batch x both matrices."""
    x, of_input, of_state = call.shapes[:3]
    return prod(x[:2]) * (prod(of_input) + prod(of_state))


def _bilinear(call: Call) -> int:
    """Multiply-adds of nn.Bilinear: by every element of both inputs, one after the other."""
    left, weight = call.shapes[:2]
    return prod(call.output) * (left[-1] + 1) * weight[-1]


# Operators that multiply matrices and have no formula in torch.utils.flop_counter 2.13.
UNCOUNTED: dict[str, Callable[[Call], int]] = {
    "aten::mv": _vectors,
    "aten::addmv": lambda call: prod(call.shapes[1]),
    "aten::addmv_": lambda call: prod(call.shapes[1]),
    "aten::dot": _vectors,
    "aten::vdot": _vectors,
    "aten::_grouped_mm": _grouped,
    "aten::_int_mm": lambda call: prod(call.shapes[0]) * call.shapes[1][-1],
    "aten::_trilinear": _bilinear,
    "aten::addbmm": lambda call: prod(call.shapes[1]) * call.shapes[2][-1],
    "aten::_cdist_forward": _distances,
    "aten::_euclidean_dist": _distances,
    "aten::mkldnn_rnn_layer": _lstm_layer,
}
# Algorithms of linear algebra without a formula there -> our rows that count them.
ALGORITHMS = {
    "aten::_linalg_solve_ex": "solve",
    "aten::linalg_inv_ex": "inverse",
    "aten::linalg_lu_factor_ex": "lu",
    "aten::linalg_cholesky_ex": "cholesky",
    "aten::_cholesky_solve_helper": "cholesky_solve",
    "aten::cholesky_solve": "cholesky_solve",
    "aten::_linalg_svd": "svd",
    "aten::_linalg_eigh": "eigh",
    "aten::linalg_solve_triangular": "triangular_solve",
    "aten::linalg_qr": "qr",
    "aten::linalg_householder_product": "householder_product",
    "aten::_linalg_det": "det",
    "aten::_linalg_slogdet": "slogdet",
    "aten::linalg_matrix_exp": "matrix_exp",
}


def uncounted(calls: Sequence[Call], rows: Sequence[Row]) -> int:
    """Products that FlopCounterMode has no formula for, such as a matrix with a vector."""
    return sum(
        UNCOUNTED[call.operator](call)
        for call in calls
        if call.operator in UNCOUNTED and not call.constant
    )


def algorithms(calls: Sequence[Call], rows: Sequence[Row]) -> int:
    """Rows of algorithms of linear algebra that the reference ran as one operator."""
    ran = {ALGORITHMS.get(call.operator) for call in calls if not call.constant}
    return sum(row.macs for row in rows if row.op in ran)


def complex_products(calls: Sequence[Call], rows: Sequence[Row]) -> int:
    """Complex products, of which FlopCounterMode counts one multiply-add instead of four."""
    return sum(
        {1: 1, 2: 3}[min(2, call.complex_arguments)] * call.macs
        for call in calls
        if call.complex_arguments and not call.constant
    )


def einsum_without_sum(calls: Sequence[Call], rows: Sequence[Row]) -> int:
    """einsum over axes of size 1, which PyTorch runs as a multiplication, not as a product."""
    return sum(row.macs for row in rows if row.op == "einsum" and row.macs == row.elements)


REASONS: dict[str, Reason] = {
    "constants": constants,
    "no formula": uncounted,
    "linear algebra": algorithms,
    "complex": complex_products,
    "einsum over axes of size 1": einsum_without_sum,
}


def explain(
    difference: int, calls: Sequence[Call], rows: Sequence[Row]
) -> tuple[dict[str, int], int]:
    """Multiply-adds by reason, those that apply, and what is left of the difference."""
    found = {name: reason(calls, rows) for name, reason in REASONS.items()}
    found = {name: macs for name, macs in found.items() if macs}
    return found, difference - sum(found.values())
