"""Linear algebra, of which ONNX has only Det."""

from __future__ import annotations

from layerscope.lower.builder import Emitter, plain

EMITTERS: dict[str, Emitter] = {"det": plain("Det")}

REFUSED = dict.fromkeys(
    ("lu", "slogdet", "inverse", "solve", "lu_solve", "triangular_solve", "cholesky",
     "cholesky_solve", "qr", "householder_product", "svd", "eig", "eigh", "matrix_exp"),
    "ONNX has no operator of linear algebra but Det",
)  # fmt: skip
