"""torch.utils.flop_counter 2.13 on the meta device without gradients: 2 FLOPs per multiply-add.

On that device PyTorch runs no fused kernels, so every product is counted. On a CPU it has no
formula for fused attention, the fast path of nn.MultiheadAttention or oneDNN's LSTM.
"""

from __future__ import annotations

from layerscope.conventions.convention import Convention
from layerscope.conventions.counted_nodes import CountedNode
from layerscope.conventions.functions import (
    CELLS,
    CONV,
    CONV_TRANSPOSE,
    MATMUL,
    RECURRENT,
    TWO_PRODUCTS,
    free,
    one,
    products,
)
from layerscope.ops import Ops

ATTENTION = "scaled_dot_product_attention"
RULES = one(
    (*CONV, *CONV_TRANSPOSE, *MATMUL, ATTENTION, TWO_PRODUCTS, "linear", "addmm", "baddbmm",
     "einsum", "convolution", *RECURRENT, *CELLS),
    products,
)  # fmt: skip


def _count(node: CountedNode) -> Ops:
    return RULES.get(node.function, free)(node)


CONVENTION = Convention(
    name="flop_counter",
    says="2 FLOPs per multiply-add of convolutions and products, on the meta device, without grad",
    figure="FLOPs",
    headline=lambda ops: 2 * ops.mac,
    sees="functions",
    count=_count,
    counted_params="all",
    two_per_mac=True,
)
