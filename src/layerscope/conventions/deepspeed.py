"""DeepSpeed 0.19.8's profiler: MACs and FLOPs of the functions it wraps.

As it runs on a CPU without gradients. Its figure here is MACs; it prints FLOPs as well.
"""

from __future__ import annotations

from layerscope.conventions.convention import Convention
from layerscope.conventions.counted_nodes import CountedNode
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
from layerscope.ops import Ops

ACTIVATIONS = ("relu", "prelu", "elu", "leaky_relu", "relu6", "silu", "gelu", "softmax")


def _recurrent(node: CountedNode) -> Ops:
    """FLOPs only: products less one multiply-add per output, and combining the gates."""
    gates, joins = GATES[cell(node)], JOINS[cell(node)]
    flops = 0
    for size, hidden in layers(node):
        flops += gates * hidden * (2 * (size + hidden) - 2)
        flops += joins * hidden + (2 * gates * hidden if biased(node) else 0)
    directions = 2 if node.call.attributes.bidirectional else 1
    return Ops(add=flops * steps(node) * directions)


RULES: dict[str, Rule] = {
    **one((*MATMUL, "linear", "addmm", "baddbmm", "scaled_dot_product_attention"), products),
    TWO_PRODUCTS: two_products,
    **one((*CONV, *CONV_TRANSPOSE), products_and_bias),
    **one((*ACTIVATIONS, *POOLS), per_input(1)),
    **one(UPSAMPLES, per_output(1)),
    "batch_norm": batch_norm,
    **one(NORMS, norm(4, 5)),
    "einsum": lambda node: Ops(add=numpy_flops(node.call)),
    **one((*RECURRENT, *CELLS), _recurrent),
}

CONVENTION = Convention(
    name="deepspeed",
    says="MACs of products by wrapped function; FLOPs with biases, norms, activations and pools",
    figure="MACs",
    headline=lambda ops: ops.mac,
    sees="functions",
    count=by_function(RULES),
    counted_params="all",
    prints_flops=True,
    why={
        "attention modules": "without gradients PyTorch runs them as one kernel it does not wrap",
        "recurrent layers": "counted in its FLOPs alone",
        "einsum": "counted in its FLOPs alone",
    },
)
