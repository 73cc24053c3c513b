"""calflops 0.3.2: DeepSpeed's way of an earlier day, without fused attention.

On a processor without gradients; MACs are its figure here, its FLOPs are the total of FLOPs.
"""

from __future__ import annotations

from layerscope.conventions import deepspeed
from layerscope.conventions.convention import Convention
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
from layerscope.conventions.sites import Site
from layerscope.graph.types import elements
from layerscope.ops import Ops


def _conv_transpose(site: Site) -> Ops:
    """Groups are divided out twice, and the bias is of an output as if nothing were transposed."""
    told, x = site.call.attributes, site.call.x
    w = told.window
    filters = told.out_channels // told.groups
    macs = w.positions * x[1] * (filters // told.groups) * x[0] * elements(x[2:])
    places = x[0]
    for n, size in enumerate(x[2:]):
        reach = w.dilation[n] * (w.kernel[n] - 1) + 1
        places *= (size + 2 * w.pads[n][0] - reach) // w.stride[n] + 1
    return Ops(mac=macs, add=filters * places if biased(site) else 0)


RULES: dict[str, Rule] = {
    **deepspeed.RULES,
    **one(CONV_TRANSPOSE, _conv_transpose),
    **one(UPSAMPLES, per_input(1)),
    **one(("mm", "bmm", "scaled_dot_product_attention"), free),
}


def _seen(site: Site) -> Ops:
    """A module that stands in several places is added up in each."""
    return by_function(RULES)(site) * site.places


CONVENTION = Convention(
    name="calflops",
    says="MACs of products by wrapped function, fused attention not seen; FLOPs with more",
    figure="MACs",
    headline=lambda ops: ops.mac,
    seen=_seen,
    learned="trainable",
    why={
        "attention modules": "without gradients PyTorch runs them as one kernel it does not wrap",
        "fused attention": "it does not wrap that function",
        "recurrent layers": "counted in its FLOPs alone",
        "einsum": "counted in its FLOPs alone",
        "transposed convolutions": "it divides by groups twice",
    },
)
