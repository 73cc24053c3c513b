"""calflops 0.3.2: the rules of an earlier DeepSpeed, without fused attention.

As it runs on a CPU without gradients. Its figure here is MACs; it prints FLOPs as well.
"""

from __future__ import annotations

from layerscope.conventions import deepspeed
from layerscope.conventions.convention import Convention
from layerscope.conventions.counted_nodes import CountedNode
from layerscope.conventions.functions import (
    CONV_TRANSPOSE,
    UPSAMPLES,
    Rule,
    biased,
    by_function,
    free,
    one,
    per_input,
)
from layerscope.graph.types import elements
from layerscope.ops import Ops


def _conv_transpose(node: CountedNode) -> Ops:
    """Divides by groups twice; counts the bias on the output size of a plain convolution."""
    attrs, x = node.call.attributes, node.call.x
    w = attrs.window
    filters = attrs.out_channels // attrs.groups
    macs = w.positions * x[1] * (filters // attrs.groups) * x[0] * elements(x[2:])
    positions = x[0]
    for n, size in enumerate(x[2:]):
        span = w.dilation[n] * (w.kernel[n] - 1) + 1
        positions *= (size + 2 * w.pads[n][0] - span) // w.stride[n] + 1
    return Ops(mac=macs, add=filters * positions if biased(node) else 0)


RULES: dict[str, Rule] = {
    **deepspeed.RULES,
    **one(CONV_TRANSPOSE, _conv_transpose),
    **one(UPSAMPLES, per_input(1)),
    **one(("mm", "bmm", "scaled_dot_product_attention"), free),
}


def _count(node: CountedNode) -> Ops:
    """A module with several paths in the model is counted once per path."""
    return by_function(RULES)(node) * node.module_uses


CONVENTION = Convention(
    name="calflops",
    says="MACs of products by wrapped function, fused attention not seen; FLOPs with more",
    figure="MACs",
    headline=lambda ops: ops.mac,
    sees="functions",
    count=_count,
    counted_params="trainable",
    prints_flops=True,
    why={
        "attention modules": "without gradients PyTorch runs them as one kernel it does not wrap",
        "fused attention": "it does not wrap that function",
        "recurrent layers": "counted in its FLOPs alone",
        "einsum": "counted in its FLOPs alone",
        "transposed convolutions": "it divides by groups twice",
    },
)
