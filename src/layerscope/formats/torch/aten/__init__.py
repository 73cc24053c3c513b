"""Converters of ATen operators to ops: one table by operator name, without namespace and overload.

A converter is called as `converter(d, *args, **kwargs)` with the arguments that PyTorch passes to
the operator, tensors as TensorRef. It adds nodes to `d` and returns the outputs in the order of the
schema; by-products that only the gradient needs may be left out (declared_outputs.BY_PRODUCTS).

To add one, write a function whose parameters have the names in the operator's schema
(`torch.ops.aten.addmm.default._schema`) into the file of the family of the op that it emits, and
name it in the TABLE of that file. Families that few models need are loaded on first use (table.py).
With more than a few arguments, make them the fields of a Struct
and decorate the converter (signatures.takes). Raise Unsupported for a call that no op covers: it is
recorded under the operator's own name, without costs. Raise Refused for a call that PyTorch rejects
with real tensors, but not on the meta device.
"""

from __future__ import annotations

from layerscope.formats.torch.aten import (
    activation,
    attention,
    control,
    convolution,
    elementwise,
    indexing,
    layout,
    linear,
    normalization,
    pooling,
    quantization,
    reduction,
    resize,
    slice_concat,
)
from layerscope.formats.torch.lowering import Converter
from layerscope.tables import merge_tables

COMMON: dict[str, Converter] = merge_tables(
    "ATen converters",
    linear.TABLE,
    attention.TABLE,
    convolution.TABLE,
    pooling.TABLE,
    resize.TABLE,
    normalization.TABLE,
    activation.TABLE,
    elementwise.TABLE,
    reduction.TABLE,
    layout.TABLE,
    slice_concat.TABLE,
    indexing.TABLE,
    quantization.TABLE,
    control.TABLE,
)


def converter_of(name: str) -> Converter | None:
    """The converter of an operator; None if it has none."""
    found = COMMON.get(name)
    if found is None and name not in CONSTANTS and name not in RANDOM:
        from layerscope.formats.torch.aten.table import CONVERTERS

        found = CONVERTERS.get(name)
    return found


# PyTorch rejects integers here; its meta kernels do not check it.
FLOATS_ONLY = frozenset((
    "mean", "var", "std", "var_mean", "norm", "linalg_vector_norm", "lerp", "prelu",
    "_prelu_kernel", "softmax", "_softmax", "_safe_softmax", "log_softmax", "_log_softmax",
    "layer_norm", "batch_norm", "instance_norm", "group_norm", "rms_norm", "gelu", "glu", "silu",
    "mish", "celu", "softplus", "hardswish", "hardsigmoid", "hardshrink", "log_sigmoid",
    "log_sigmoid_forward",
    "scaled_dot_product_attention", "cross_entropy_loss", "nll_loss", "nll_loss_nd", "nll_loss2d",
    "upsample_linear1d", "frac", "logcumsumexp", "_pdist_forward", "cholesky_inverse", "rrelu",
    "grid_sampler_3d",
    "upsample_trilinear3d", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d",
    *(f"adaptive_{kind}_pool{n}d" for kind in ("avg", "max") for n in (1, 2, 3)),
))  # fmt: skip

# Of these, the ones that take integers with a dtype argument, to which they cast first.
INTEGERS_WITH_DTYPE = frozenset(("mean", "softmax", "log_softmax"))

# Operators without tensor inputs: no node until the result is read.
CONSTANTS = frozenset((
    "zeros", "ones", "full", "empty", "empty_strided", "arange", "linspace", "logspace",
    "scalar_tensor", "eye", "tril_indices", "triu_indices", "zeros_like", "ones_like",
    "full_like", "empty_like", "new_zeros", "new_ones", "new_full", "new_empty",
    "new_empty_strided", "new_tensor", "bartlett_window", "hann_window", "hamming_window",
    "range", "_new_zeros_with_same_feature_meta",
))  # fmt: skip
RANDOM = frozenset((
    "rand", "randn", "randint", "rand_like", "randn_like", "randint_like", "randperm",
    "bernoulli", "normal", "uniform", "multinomial", "exponential", "cauchy", "geometric",
    "log_normal", "poisson", "binomial", "_standard_gamma", "_sample_dirichlet",
))  # fmt: skip

# ATen's own operators that make quantized tensors, or take them alone.
QUANTIZED_ONLY = frozenset((
    "quantize_per_tensor", "quantize_per_channel", "quantize_per_tensor_dynamic", "dequantize",
    "int_repr", "quantized_lstm", "quantized_gru",
))  # fmt: skip
