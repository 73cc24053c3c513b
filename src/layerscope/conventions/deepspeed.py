"""DeepSpeed 0.19.8's profiler: functions it wraps, MACs of products and FLOPs of more.

On a processor without gradients; MACs are its figure here, its FLOPs are the total of FLOPs.
"""

from __future__ import annotations

from layerscope.conventions.convention import Convention
from layerscope.conventions.einsum_path import numpy_flops
from layerscope.conventions.functions import (
    CELLS,
    CONV,
    CONV_TRANSPOSE,
    GATES,
    JOINS,
    MATMUL,
    NORMS,
    POOLS,
    RECURRENT,
    TWO_PRODUCTS,
    UPSAMPLES,
    Rule,
    batch_norm,
    biased,
    by_function,
    cell,
    layers,
    norm,
    one,
    per_input,
    per_output,
    products,
    products_and_bias,
    steps,
    two_products,
)
from layerscope.conventions.sites import Site
from layerscope.ops import Ops

ACTIVATIONS = ("relu", "prelu", "elu", "leaky_relu", "relu6", "silu", "gelu", "softmax")


def _recurrent(site: Site) -> Ops:
    """FLOPs alone: of products a multiplication and an addition less, and what joins the gates."""
    gates, joins = GATES[cell(site)], JOINS[cell(site)]
    flops = 0
    for size, hidden in layers(site):
        flops += gates * hidden * (2 * (size + hidden) - 2)
        flops += joins * hidden + (2 * gates * hidden if biased(site) else 0)
    both = 2 if site.call.attributes.bidirectional else 1
    return Ops(add=flops * steps(site) * both)


RULES: dict[str, Rule] = {
    **one((*MATMUL, "linear", "addmm", "baddbmm", "scaled_dot_product_attention"), products),
    TWO_PRODUCTS: two_products,
    **one((*CONV, *CONV_TRANSPOSE), products_and_bias),
    **one((*ACTIVATIONS, *POOLS), per_input(1)),
    **one(UPSAMPLES, per_output(1)),
    "batch_norm": batch_norm,
    **one(NORMS, norm(4, 5)),
    "einsum": lambda site: Ops(add=numpy_flops(site.call)),
    **one((*RECURRENT, *CELLS), _recurrent),
}

CONVENTION = Convention(
    name="deepspeed",
    says="MACs of products by wrapped function; FLOPs with biases, norms, activations and pools",
    figure="MACs",
    headline=lambda ops: ops.mac,
    seen=by_function(RULES),
    learned="all",
    why={
        "attention modules": "without gradients PyTorch runs them as one kernel it does not wrap",
        "recurrent layers": "counted in its FLOPs alone",
        "einsum": "counted in its FLOPs alone",
    },
)
