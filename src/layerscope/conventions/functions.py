"""What rules of several counters have in common: groups of functions and classes, formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from layerscope.conventions.sites import Site
from layerscope.graph.attributes import Recurrent
from layerscope.graph.types import elements
from layerscope.ops import FREE, Ops
from layerscope.ops.attention import Sizes

Rule = Callable[[Site], Ops]

RANKS = (1, 2, 3)
CONV = tuple(f"conv{n}d" for n in RANKS)
CONV_TRANSPOSE = tuple(f"conv_transpose{n}d" for n in RANKS)
POOLS = tuple(
    f"{kind}_pool{n}d" for kind in ("max", "avg", "adaptive_max", "adaptive_avg") for n in RANKS
)
UPSAMPLES = (
    *(f"upsample_nearest{n}d" for n in RANKS),
    "upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d",
)  # fmt: skip
MATMUL = ("matmul", "mm", "bmm")
TWO_PRODUCTS = "attention_in_two_products"
NORMS = ("layer_norm", "group_norm", "instance_norm")

CONV_CLASSES = tuple(f"Conv{n}d" for n in RANKS)
CONV_TRANSPOSE_CLASSES = tuple(f"ConvTranspose{n}d" for n in RANKS)
BATCH_NORM_CLASSES = tuple(f"BatchNorm{n}d" for n in RANKS)
INSTANCE_NORM_CLASSES = tuple(f"InstanceNorm{n}d" for n in RANKS)
POOL_CLASSES = tuple(
    f"{kind}Pool{n}d" for kind in ("Max", "Avg", "AdaptiveMax", "AdaptiveAvg") for n in RANKS
)
RECURRENT_CLASSES = ("RNN", "GRU", "LSTM", "RNNCell", "GRUCell", "LSTMCell")
CELLS = ("lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell")
RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")


def one(names: Iterable[str], rule: Rule) -> dict[str, Rule]:
    """The same rule under several names."""
    return dict.fromkeys(names, rule)


def by_function(rules: Mapping[str, Rule]) -> Rule:
    """Count by the function called; what runs in a fused kernel is not seen."""
    return lambda site: FREE if site.fused else rules.get(site.function, free)(site)


def free(site: Site) -> Ops:
    """Nothing."""
    return FREE


def products(site: Site) -> Ops:
    """Multiply-adds alone."""
    return Ops(mac=site.ops.mac)


def products_and_bias(site: Site) -> Ops:
    """Multiply-adds, and an addition an output where there is a bias."""
    return Ops(mac=site.ops.mac, add=elements(site.call.y) if biased(site) else 0)


def biased(site: Site) -> bool:
    """Whether a product adds a bias."""
    return bool(getattr(site.call.attributes, "bias", False))


def affine(site: Site) -> bool:
    """Whether a norm scales by what it learned."""
    return bool(getattr(site.call.attributes, "affine", False))


def per_input(count: int) -> Rule:
    """So many an element of the input."""
    return lambda site: Ops(add=count * elements(site.call.x))


def per_output(count: int) -> Rule:
    """So many an element of the output."""
    return lambda site: Ops(add=count * elements(site.call.y))


def norm(plain: int, scaled: int) -> Rule:
    """So many an element of the input, by whether it is scaled by what was learned."""

    def rule(site: Site) -> Ops:
        size = elements(site.call.x)
        if site.node.op == "scale":  # the second step of a norm
            return Ops(add=(scaled - plain) * size)
        return Ops(add=(scaled if affine(site) else plain) * size)

    return rule


def batch_norm(site: Site) -> Ops:
    """One an element, two if it is scaled; four and five where it takes statistics of its input."""
    own = site.node.op == "layer_norm"
    return norm(4, 5)(site) if own else norm(1, 2)(site)


def two_products(site: Site) -> Ops:
    """Attention written out: both products, and a softmax of the scores."""
    return Ops(mac=site.ops.mac, add=Sizes(site.call).scores)


GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
JOINS = {"RNN": 1, "GRU": 7, "LSTM": 10}  # operations a hidden unit that join the gates


def cell(site: Site) -> str:
    """What kind of recurrent layer it is."""
    return site.node.op.upper()


def steps(site: Site) -> int:
    """Steps of all sequences of a recurrent layer."""
    return elements(site.call.x[:-1])


def layers(site: Site) -> list[tuple[int, int]]:
    """Of every layer of a recurrent one: size of what it reads, and hidden size."""
    told: Recurrent = site.call.attributes
    directions = 2 if told.bidirectional else 1
    inner = (told.projection or told.hidden) * directions
    return [(inner if n else site.call.x[-1], told.hidden) for n in range(told.layers)]
