"""Every op worked out with plain loops from its definition: what the rules must agree with."""

from __future__ import annotations

from collections.abc import Callable

from tests.brute import (
    algebra,
    attention,
    caffe,
    control,
    deciding,
    indexing,
    losses,
    moves,
    norms,
    pointwise,
    products,
    recurrent,
    reductions,
    sampling,
    windows,
)
from tests.brute.arrays import Array, Run

BRUTE: dict[str, Callable[[Run], list[Array]]] = {
    **windows.BRUTE,
    **products.BRUTE,
    **norms.BRUTE,
    **pointwise.BRUTE,
    **losses.BRUTE,
    **moves.BRUTE,
    **reductions.BRUTE,
    **indexing.BRUTE,
    **attention.BRUTE,
    **recurrent.BRUTE,
    **sampling.BRUTE,
    **caffe.BRUTE,
    **control.BRUTE,
    **deciding.BRUTE,
    **algebra.BRUTE,
}
