"""What autograd saves where an ATen operator is not the op that its nodes stand for.

A converter may write one operator as several nodes, or several operators as the same op. The
bytes kept are those of the operator.
"""

from __future__ import annotations

from layerscope.graph.attributes import Reduce
from layerscope.graph.types import elements
from layerscope.ops.autograd import (
    Saved,
    SavedRule,
    both,
    every_input,
    first_input,
    nothing,
    result,
)
from layerscope.ops.spec import Call


def _extreme(call: Call) -> Saved:
    """Along an axis the indices are kept; over all elements the input and the result."""
    a: Reduce = call.attributes or Reduce()
    return Saved(extra=((elements(call.y), "int64"),)) if a.axes else both(call)


def _with_statistics(call: Call) -> Saved:
    """The input, which is permuted here, and two numbers per channel."""
    return Saved(inputs=(0,), extra=((2 * call.x[0], ""),))


def _computed_scale(call: Call) -> Saved:
    """A scale that is no parameter."""
    return Saved(inputs=tuple(range(1, len(call.inputs))))


def _running(call: Call) -> Saved:
    """As `instance_norm`, and both stored statistics repeated for every example."""
    channels = elements(call.x[:2])
    repeated = 3 if call.attributes is not None and call.attributes.affine else 2
    kept = (repeated + 2) * channels
    return Saved(inputs=(0,), extra=((kept, ""),), contiguous=((0, False),))


def _smoothed(call: Call) -> Saved:
    """Besides a cross entropy's own: which labels are left out, and how many are not."""
    rows = elements(call.inputs[1])
    return Saved(inputs=(1,), extra=((elements(call.x) + 1, ""), (rows, "bool"), (1, "int64")))


def _bound(call: Call) -> Saved:
    """The upper of two bounds; the input is kept with the lower one."""
    return Saved(inputs=(1,))


def _index_and_source(call: Call) -> Saved:
    return Saved(inputs=(1, 2))


def _labelled(call: Call) -> Saved:
    """Scores, labels, and the sum of the labels' weights."""
    return Saved(inputs=(0, 1), extra=((1, ""),))


def _third_input(call: Call) -> Saved:
    """What a choice by flags takes where they are not set."""
    return Saved(inputs=(2,))


def _kth_indices(call: Call) -> Saved:
    """Where the k-th of each row is."""
    return Saved(extra=((elements(call.y) // call.attributes.k, "int64"),))


def _kth_of_all(call: Call) -> Saved:
    return Saved(inputs=(0,), extra=((1, ""),))


def _scattered(call: Call) -> Saved:
    return Saved(inputs=(0, 1, 2), outputs=(0,))


def _with_noise(call: Call) -> Saved:
    return Saved(inputs=(0,), extra=((elements(call.x), ""),))


def _mask(call: Call) -> Saved:
    return Saved(extra=((elements(call.x), "bool"),))


# Operators written as several nodes, of which only those in the table below keep anything.
COMPOSED = frozenset((
    "logit", "logit.clipped", "sinc", "nan_to_num", "nansum", "special_entr", "mvlgamma",
    "logaddexp", "logaddexp2", "xlogy", "special_xlog1py", "logcumsumexp", "kthvalue", "median",
    "median.all", "nanmedian", "nanmedian.all", "mode", "renorm",
    "binary_cross_entropy_with_logits", "soft_margin_loss", "multi_margin_loss", "polar",
    "heaviside", "_weight_norm_interface",
))  # fmt: skip
NLL = ("nll_loss_nd", "nll_loss", "nll_loss2d", "nll_loss_forward", "nll_loss2d_forward")

# (ATen operator without its namespace and in-place underscore, op)
BY_OPERATOR: dict[tuple[str, str], SavedRule] = {
    ("pow", "sqrt"): first_input,
    ("pow", "rsqrt"): first_input,
    ("pow", "identity"): first_input,
    ("pow.Scalar", "pow"): both,
    ("max", "reduce_max"): _extreme,
    ("min", "reduce_min"): _extreme,
    ("glu", "sigmoid"): first_input,  # a view of the whole input
    ("glu", "mul"): nothing,
    ("linalg_vector_norm", "abs"): first_input,
    ("norm", "abs"): first_input,
    ("linalg_vector_norm", "reduce_max"): result,
    ("norm", "reduce_max"): result,
    ("linalg_vector_norm", "reduce_min"): result,
    ("norm", "reduce_min"): result,
    ("pad.circular", "pad"): nothing,
    ("batch_norm", "layer_norm"): _with_statistics,
    ("batch_norm", "scale"): _computed_scale,
    ("batch_norm", "bias"): nothing,
    ("group_norm", "scale"): nothing,
    ("instance_norm.running", "instance_norm"): _running,
    ("cross_entropy_loss.smoothed", "softmax_loss"): _smoothed,
    ("addcdiv", "mul"): nothing,
    ("sgn", "sign"): both,
    ("clamp.second", "min"): _bound,
    ("clip.second", "min"): _bound,
    ("col2im", "scatter"): nothing,
    ("unfold", "gather"): nothing,  # a view
    ("index_add", "scatter_nd"): _index_and_source,
    ("index_copy", "scatter_nd"): _index_and_source,
    ("index_add", "scatter"): _index_and_source,
    ("logit", "div"): first_input,
    ("logit.clipped", "clip"): first_input,
    ("sinc", "mul"): first_input,
    ("nan_to_num", "where"): _third_input,
    ("nansum", "where"): _third_input,
    ("copysign", "bitwise"): every_input,
    ("special_entr", "mul"): first_input,
    ("mvlgamma", "sub"): first_input,
    **{(f"special_{name}", "special"): both for name in ("i1", "i0e", "i1e", "log_ndtr", "erfcx")},
    **{(name, "max"): every_input for name in ("logaddexp", "logaddexp2")},
    ("xlogy", "log"): first_input,
    ("xlogy", "mul"): first_input,
    ("special_xlog1py", "log1p"): first_input,
    ("special_xlog1py", "mul"): first_input,
    ("ldexp", "pow"): nothing,
    ("logcumsumexp", "cum_max"): first_input,
    ("logcumsumexp", "add"): result,
    **{(name, "top_k"): _kth_indices for name in ("kthvalue", "median", "nanmedian", "mode")},
    **{(f"{name}.all", "top_k"): _kth_of_all for name in ("median", "nanmedian")},
    ("renorm", "mul"): first_input,
    ("mse_loss", "sub"): every_input,
    ("mse_loss", "square"): nothing,
    ("binary_cross_entropy_with_logits", "log_sigmoid"): first_input,
    ("binary_cross_entropy_with_logits", "mul"): first_input,
    ("soft_margin_loss", "mul"): every_input,
    ("multi_margin_loss", "gather"): every_input,
    ("take", "gather"): every_input,
    ("put", "scatter"): _index_and_source,
    **{(name, "scatter"): _scattered for name in ("scatter_reduce", "index_reduce")},
    ("masked_select", "compress"): every_input,
    ("polar", "complex"): result,
    ("conj_physical", "complex"): nothing,
    ("_conj_physical", "complex"): nothing,
    ("_fft_r2c", "fft"): first_input,
    **{(name, op): nothing for name in ("cdist", "_euclidean_dist") for op in ("matmul", "max")},
    ("conv_tbc", "conv"): every_input,
    ("_weight_norm_interface", "reduce_l2"): both,
    ("_weight_norm_interface", "div"): first_input,
    ("rrelu", "leaky_relu"): _with_noise,
    ("native_dropout", "dropout"): _mask,
    **{(name, "gather"): _labelled for name in NLL},
    **{(f"{name}.weight", "gather"): first_input for name in NLL},
    **{(f"{name}.weight", op): nothing for name in NLL for op in ("mul", "div")},
}
