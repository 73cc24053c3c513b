"""ptflops 0.7.5, its aten backend: convolutions and matrix products with their biases.

As it runs on a CPU without gradients, where it does not see fused attention or oneDNN's LSTM.
"""

from __future__ import annotations

from layerscope.conventions.convention import Convention
from layerscope.conventions.counted_nodes import CountedNode
from layerscope.conventions.functions import (
    CELLS,
    CONV,
    CONV_TRANSPOSE,
    MATMUL,
    TWO_PRODUCTS,
    Rule,
    biased,
    by_function,
    one,
    products,
    products_and_bias,
    steps,
)
from layerscope.ops import Ops


def _recurrent(node: CountedNode) -> Ops:
    """Products, and both biases at every time step."""
    biases = [p.elements for p in node.cost.params if p.role == "bias"]
    return Ops(mac=node.ops.mac, add=sum(biases) * steps(node) if biased(node) else 0)


RULES: dict[str, Rule] = {
    **one((*CONV, *CONV_TRANSPOSE, "convolution", "linear"), products_and_bias),
    **one((*MATMUL, "addmm", "einsum", TWO_PRODUCTS), products),
    **one(("gru", "rnn_tanh", "rnn_relu", *CELLS), _recurrent),
}

CONVENTION = Convention(
    name="ptflops-aten",
    says="MACs of convolutions and products with their biases; fused attention not seen",
    figure="MACs",
    headline=lambda ops: ops.mac + ops.add,
    sees="functions",
    count=by_function(RULES),
    counted_params="trainable",
    why={
        "attention modules": "without gradients PyTorch runs them as one kernel it does not know",
        "fused attention": "it has no formula for it",
        "recurrent layers": "oneDNN runs an LSTM as one kernel it does not know",
    },
)
