"""How each op is written in ONNX. To add one, write it in its family's file."""

from __future__ import annotations

from layerscope.lower.builder import Writer
from layerscope.lower.emitters import (
    attention,
    caffe_recurrent,
    control,
    convolution,
    elementwise,
    fft,
    indexing,
    layout,
    linear,
    loss,
    normalization,
    pooling,
    quantization,
    recurrent,
    reduction,
    resize,
    roi,
)

FAMILIES = (
    convolution, linear, pooling, normalization, elementwise, loss, layout, resize, roi,
    reduction, indexing, attention, recurrent, caffe_recurrent, quantization, control, fft,
)  # fmt: skip


def _merged() -> dict[str, Writer]:
    merged: dict[str, Writer] = {}
    for family in FAMILIES:
        for op, writer in family.WRITERS.items():
            if op in merged:
                raise ValueError(f"op {op!r} has two writers")
            merged[op] = writer
    return merged


WRITERS = _merged()

# Ops that ONNX has no form for, and why.
REFUSED = {
    "proposals": "boxes that data chooses",
    "non_zero": "as many places as data decides",
    "compress": "as many results as data decides",
    "unique": "as many results as data decides",
    "random": "a graph does not tell what is drawn",
    "custom": "nobody but its owner knows what it computes",
    "detections": "boxes that data chooses",
    "psroi_pool": "ONNX has no pooling with channels of their own for every bin",
    **dict.fromkeys(
        ("lu", "slogdet", "inverse", "solve", "lu_solve", "triangular_solve", "cholesky",
         "cholesky_solve", "qr", "householder_product", "svd", "eig", "eigh", "matrix_exp"),
        "ONNX has no operator of linear algebra but Det",
    ),
    **dict.fromkeys(("fft", "complex"), "ONNX has no complex numbers"),
    "view": "a graph does not tell the strides of a view",
    **dict.fromkeys(
        ("special", "binary_cross_entropy", "huber", "smooth_l1", "cdist", "searchsorted",
         "bincount", "cum_max", "cum_min", "masked_scatter", "embedding_bag"),
        "ONNX has no operator for it",
    ),
}  # fmt: skip

__all__ = ["REFUSED", "WRITERS"]
