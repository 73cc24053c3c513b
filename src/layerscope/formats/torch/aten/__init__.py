"""PyTorch's operators in our words: one table from their names to what makes steps of them."""

from __future__ import annotations

from typing import Any

from layerscope.formats.torch.aten import (
    algebra,
    complexes,
    core,
    cutting,
    elements,
    indexing,
    losses,
    norms,
    products,
    reductions,
    shaping,
    special,
    windows,
)


def _merge(*tables: dict[str, Any]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for table in tables:
        twice = merged.keys() & table.keys()
        if twice:
            raise ValueError(f"operators told twice: {', '.join(sorted(twice))}")
        merged |= table
    return merged


TABLE = _merge(
    products.TABLE,
    windows.TABLE,
    norms.TABLE,
    elements.TABLE,
    reductions.TABLE,
    shaping.TABLE,
    cutting.TABLE,
    indexing.TABLE,
    losses.TABLE,
    complexes.TABLE,
    special.TABLE,
    algebra.TABLE,
    core.TABLE,
)

# Of whole numbers PyTorch has none of these; its kernels without numbers do not say so.
FLOATS_ONLY = frozenset((
    "mean", "var", "std", "var_mean", "norm", "linalg_vector_norm", "lerp", "prelu",
    "_prelu_kernel", "softmax", "_softmax", "_safe_softmax", "log_softmax", "_log_softmax",
    "layer_norm", "batch_norm", "instance_norm", "group_norm", "rms_norm", "gelu", "glu", "silu",
    "mish", "celu", "softplus", "hardswish", "hardsigmoid", "hardshrink", "log_sigmoid",
    "scaled_dot_product_attention", "cross_entropy_loss", "nll_loss", "nll_loss_nd", "nll_loss2d",
    "upsample_linear1d", "frac", "logcumsumexp", "_pdist_forward", "cholesky_inverse", "rrelu",
    "grid_sampler_3d",
    "upsample_trilinear3d", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d",
    *(f"adaptive_{kind}_pool{n}d" for kind in ("avg", "max") for n in (1, 2, 3)),
))  # fmt: skip

TYPE_TOLD = frozenset(("mean", "softmax", "log_softmax"))  # but these, told a type to reckon in

# What is made of nothing: no node until somebody reads it.
CONSTANTS = frozenset((
    "zeros", "ones", "full", "empty", "empty_strided", "arange", "linspace", "logspace",
    "scalar_tensor", "eye", "tril_indices", "triu_indices", "zeros_like", "ones_like",
    "full_like", "empty_like", "new_zeros", "new_ones", "new_full", "new_empty",
    "new_empty_strided", "new_tensor", "bartlett_window", "hann_window", "hamming_window",
    "range",
))  # fmt: skip
DRAWN = frozenset((
    "rand", "randn", "randint", "rand_like", "randn_like", "randint_like", "randperm",
    "bernoulli", "normal", "uniform", "multinomial", "exponential", "cauchy", "geometric",
    "log_normal",
))  # fmt: skip
