"""ptflops 0.7.5, its aten backend: convolutions and matrix products with their biases.

On a processor without gradients, where fused attention and oneDNN's LSTM are not seen.
"""

from __future__ import annotations

from layerscope.conventions.convention import Convention
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
from layerscope.conventions.sites import Site
from layerscope.ops import Ops


def _recurrent(site: Site) -> Ops:
    """Products with both biases, step by step."""
    biases = [p.elements for p in site.cost.params if p.role == "bias"]
    return Ops(mac=site.ops.mac, add=sum(biases) * steps(site) if biased(site) else 0)


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
    seen=by_function(RULES),
    learned="trainable",
    why={
        "attention modules": "without gradients PyTorch runs them as one kernel it does not know",
        "fused attention": "it has no formula for it",
        "recurrent layers": "oneDNN runs an LSTM as one kernel it does not know",
    },
)
