"""ATen operators without a converter, counted by the shapes of the inputs and outputs of a run."""

from __future__ import annotations

from collections.abc import Sequence

from layerscope.errors import ShapeError
from layerscope.graph.attributes import CustomCost, DeclaredOutputs, NonMaxSuppression
from layerscope.graph.types import Shape
from layerscope.ops import SPECS, Call
from layerscope.ops.calls import infer_call

# ATen operator -> op; its tensors are the inputs of the op in the same order.
OPS: dict[str, str] = {
    # other strides or another dtype of the same storage
    "view_as_real": "view",
    "view_as_complex": "view",
    "_conj": "view",
    "_neg_view": "view",
    "narrow": "view",  # with a tensor as start
    "tensor_split": "view",
    # output sizes that depend on values
    "nonzero": "non_zero",
    "masked_select": "compress",
    "index": "compress",  # by a mask; with an index it has a converter
    "_unsafe_masked_index": "compress",
    "index_put": "masked_scatter",
    "_index_put_impl": "masked_scatter",
    "_unique2": "unique",
    "_unique": "unique",
    "unique_dim": "unique",
    "unique_consecutive": "unique",
    "unique_dim_consecutive": "unique",
    "searchsorted": "searchsorted",
    "masked_scatter": "masked_scatter",
    "bincount": "bincount",
    "repeat_interleave": "range",  # with a tensor of repeats
    # linear algebra
    "linalg_lu_factor_ex": "lu",
    "linalg_lu": "lu",
    "linalg_ldl_factor_ex": "lu",
    "_linalg_slogdet": "slogdet",
    "linalg_inv_ex": "inverse",
    "linalg_cholesky_ex": "cholesky",
    "cholesky": "cholesky",
    "_linalg_solve_ex": "solve",
    "linalg_solve_triangular": "triangular_solve",
    "linalg_qr": "qr",
    "geqrf": "qr",
    "linalg_householder_product": "householder_product",
    "_linalg_svd": "svd",
    "_linalg_eigh": "eigh",
    "linalg_eig": "eig",
    "_linalg_eigvals": "eig",
    "linalg_eigvals": "eig",
    "linalg_matrix_exp": "matrix_exp",
}

# Operators with more outputs than the converter returns: statistics for the gradient or a
# permutation. No node computes them unless one is read.
BY_PRODUCTS = frozenset((
    "_embedding_bag", "_embedding_bag_forward_only", "embedding_bag", "native_layer_norm",
    "native_group_norm", "native_batch_norm", "_native_batch_norm_legit",
    "_batch_norm_with_update", "_native_batch_norm_legit_no_training", "nll_loss_forward",
    "nll_loss2d_forward", "_linalg_det", "native_dropout", "log_sigmoid_forward", "_ctc_loss",
    "multilabel_margin_loss_forward", "fractional_max_pool2d", "fractional_max_pool3d",
    "_fused_rms_norm",
))  # fmt: skip


def declared_op(
    operator: str, inputs: Sequence[Shape], outputs: DeclaredOutputs
) -> tuple[str, DeclaredOutputs | CustomCost] | None:
    """The op, with its attributes, that counts an operator by its shapes; None without one.

    `operator` has its namespace: `aten.nonzero`.
    """
    space, _, name = operator.partition(".")
    if operator == "torchvision.nms":
        return _suppression(inputs, outputs)
    op = OPS.get(name) if space == "aten" else None
    if op is None:
        return None
    try:
        infer_call(op, outputs, tuple(inputs))
    except ShapeError:
        return None
    return op, outputs


def _suppression(
    inputs: Sequence[Shape], outputs: DeclaredOutputs
) -> tuple[str, CustomCost] | None:
    """Suppression that keeps as many boxes as the run did."""
    if [len(shape) for shape in inputs] != [2, 1] or inputs[0] != (inputs[1][0], 4):
        return None
    boxes, kept = inputs[0][0], outputs.shapes[0][0]
    ops = SPECS["nms"].ops(Call(NonMaxSuppression(kept), ((1, boxes, 4), (1, 1, boxes))))
    return "custom", CustomCost(
        outputs.shapes, outputs.dtypes, add=ops.add, mul=ops.mul, comp=ops.comp, div=ops.div,
        estimate="bound: each box that is kept is compared with all others",
    )  # fmt: skip
