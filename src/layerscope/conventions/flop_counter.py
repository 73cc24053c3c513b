"""torch.utils.flop_counter 2.13 on the meta device without gradients: 2 FLOPs per multiply-add.

There no fused kernel hides a product. On a processor it has no formula for fused attention, for
the fast path of nn.MultiheadAttention, or for oneDNN's LSTM.
"""

from __future__ import annotations

from layerscope.conventions.convention import Convention
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
from layerscope.conventions.sites import Site
from layerscope.ops import Ops

ATTENTION = "scaled_dot_product_attention"
RULES = one(
    (*CONV, *CONV_TRANSPOSE, *MATMUL, ATTENTION, TWO_PRODUCTS, "linear", "addmm", "baddbmm",
     "einsum", "convolution", *RECURRENT, *CELLS),
    products,
)  # fmt: skip


def _seen(site: Site) -> Ops:
    return RULES.get(site.function, free)(site)


CONVENTION = Convention(
    name="flop_counter",
    says="2 FLOPs per multiply-add of convolutions and products, on the meta device, without grad",
    figure="FLOPs",
    headline=lambda ops: 2 * ops.mac,
    seen=_seen,
    learned="all",
    twice=True,
)
