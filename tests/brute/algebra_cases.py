"""Cases of linear algebra, distances, searches, and of functions that PyTorch alone has."""

from __future__ import annotations

from layerscope.graph import attributes as at
from layerscope.graph.types import Shape
from tests.brute.case import Case


def told(*shapes: Shape) -> at.DeclaredOutputs:
    return at.DeclaredOutputs(shapes, ("fp32",) * len(shapes))


BAG = at.EmbeddingBag
CASES = [
    Case("lu", told((4, 4)), ((4, 4),)),
    Case("lu", told((2, 3, 5)), ((2, 3, 5),), "wide"),
    Case("lu", told((5, 3)), ((5, 3),), "tall"),
    Case("slogdet", told((2,), (2,)), ((2, 4, 4),)),
    Case("inverse", told((2, 3, 3)), ((2, 3, 3),)),
    Case("solve", told((4, 3)), ((4, 4), (4, 3))),
    Case("lu_solve", told((4, 2)), ((4, 4), (4, 2))),
    Case("triangular_solve", told((2, 4, 3)), ((2, 4, 4), (2, 4, 3))),
    Case("cholesky", told((2, 4, 4)), ((2, 4, 4),)),
    Case("cholesky_solve", told((4, 3)), ((4, 4), (4, 3))),
    Case("qr", told((5, 3), (3, 3)), ((5, 3),)),
    Case("qr", told((4, 4), (4, 4)), ((4, 4),), "square"),
    Case("householder_product", told((5, 3)), ((5, 3), (3,))),
    *[Case("cdist", at.Distance(p), ((2, 3, 4), (2, 5, 4)), f"{p}")
      for p in (0.0, 1.0, 2.0, 3.0, float("inf"))],
    Case("cdist", None, ((4, 3),), "each-with-each"),
    Case("searchsorted", told((2, 3)), ((5,), (2, 3))),
    Case("searchsorted", told((3,)), ((8,), (3,)), "power-of-2"),
    Case("bincount", told((4,)), ((6,),)),
    Case("cum_max", at.CumSum(1), ((2, 4, 3),)),
    Case("cum_min", None, ((3, 4),)),
    Case("masked_scatter", None, ((3, 4), (3, 4), (12,))),
    Case("embedding_bag", BAG(5, 3, 2), ((6,), (2,)), "sum"),
    Case("embedding_bag", BAG(5, 3, 2, "mean"), ((6,), (2,)), "mean"),
    Case("embedding_bag", BAG(5, 3, 2, "max"), ((6,), (2,)), "max"),
    Case("embedding_bag", BAG(5, 3, 2), ((6,), (2,), (6,)), "weighted"),
    Case("special", None, ((2, 3),)),
    Case("special", None, ((2, 3), (3,)), "two"),
    Case("binary_cross_entropy", None, ((2, 3), (2, 3))),
    Case("huber", None, ((2, 3), (2, 3))),
    Case("smooth_l1", None, ((2, 3), (2, 3))),
]  # fmt: skip
