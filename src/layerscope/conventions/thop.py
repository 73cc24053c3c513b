"""thop 0.1.1: known classes of leaf modules; what it does not know costs and holds nothing."""

from __future__ import annotations

from fractions import Fraction

from layerscope.conventions.convention import Convention
from layerscope.conventions.functions import (
    BATCH_NORM_CLASSES,
    CONV_CLASSES,
    CONV_TRANSPOSE_CLASSES,
    GATES,
    INSTANCE_NORM_CLASSES,
    RANKS,
    RECURRENT_CLASSES,
    Rule,
    biased,
    cell,
    free,
    layers,
    norm,
    one,
    per_input,
    per_output,
    products,
    steps,
)
from layerscope.conventions.sites import Site
from layerscope.graph.types import elements
from layerscope.ops import Ops


def _conv(site: Site) -> Ops:
    """Output elements times what each reads, of transposed ones too."""
    told, x = site.call.attributes, site.call.x
    return Ops(mac=elements(site.call.y) * (x[1] // told.groups) * told.window.positions)


def _softmax(site: Site) -> Ops:
    x = site.call.x
    size = x[site.call.attributes.axis]
    return Ops(add=elements(x) // size * (3 * size - 1))


def _adaptive_average(site: Site) -> Ops:
    """The mean window's size and a division, an output."""
    x, y = site.call.x[2:], site.call.y[2:]
    return Ops(add=int((Fraction(elements(x), elements(y)) + 1) * elements(site.call.y)))


def _upsample(site: Site) -> Ops:
    mode = site.call.attributes.mode
    if len(site.call.x) == 5 and mode != "nearest":
        return Ops()
    linear = 11 if len(site.call.x) == 4 else 5
    cost = {"nearest": 1, "linear": linear, "bilinear": linear, "bicubic": 259, "cubic": 259}
    return Ops(add=cost.get(mode, 0) * elements(site.call.y))


def _recurrent(site: Site) -> Ops:
    """Both products, and of every gate a sum and two biases; then what joins the gates."""
    told = site.call.attributes
    gates = GATES[cell(site)]
    joins = {"RNN": 0, "GRU": 4, "LSTM": 4}[cell(site)]
    directions = 2 if told.bidirectional else 1
    macs = adds = 0
    for size, hidden in layers(site):
        macs += gates * (size + hidden) * hidden
        adds += gates * hidden * (3 if biased(site) else 1) + joins * hidden
    return Ops(mac=macs, add=adds) * (steps(site) * directions)


RULES: dict[str, Rule] = {
    **one((*CONV_CLASSES, *CONV_TRANSPOSE_CLASSES), _conv),
    **one((*BATCH_NORM_CLASSES, *INSTANCE_NORM_CLASSES, "LayerNorm"), norm(2, 4)),
    "SyncBatchNorm": norm(2, 4),
    "Linear": products,
    "PReLU": per_input(1),
    "Softmax": _softmax,
    **one([f"AvgPool{n}d" for n in RANKS], per_output(1)),
    **one([f"AdaptiveAvgPool{n}d" for n in RANKS], _adaptive_average),
    **one(("Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"), _upsample),
    **one(RECURRENT_CLASSES, _recurrent),
}


def _seen(site: Site) -> Ops:
    """As often as a module stands somewhere it is hooked, and again added up."""
    return RULES.get(site.kind, free)(site) * site.places**2


def _params(site: Site) -> int:
    """Of modules it knows, each once."""
    if site.leaf is None or site.leaf.kind not in RULES or site.leaf.again:
        return 0
    return site.leaf.param_count * site.places


CONVENTION = Convention(
    name="thop",
    says="MACs by class of leaf module, 4 per element of a norm; unknown classes cost, hold none",
    figure="MACs",
    headline=lambda ops: ops.mac + ops.add,
    seen=_seen,
    seen_params=_params,
    why={
        "transposed convolutions": "it counts output positions, not input positions",
        "attention modules": "it has no rule for the class",
    },
)
