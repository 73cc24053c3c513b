"""Rules that several conventions share, and names of PyTorch functions and classes by group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from layerscope.conventions.counted_nodes import CountedNode
from layerscope.graph.attributes import Recurrent
from layerscope.graph.types import elements
from layerscope.ops import FREE, Ops
from layerscope.ops.attention import Sizes

Rule = Callable[[CountedNode], Ops]

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
    """Count by the function called; nodes in a fused kernel are not seen and count nothing."""
    return lambda node: FREE if node.fused else rules.get(node.function, free)(node)


def free(node: CountedNode) -> Ops:
    """Nothing."""
    return FREE


def products(node: CountedNode) -> Ops:
    """Multiply-adds alone."""
    return Ops(mac=node.ops.mac)


def products_and_bias(node: CountedNode) -> Ops:
    """Multiply-adds, and one addition per output element where there is a bias."""
    return Ops(mac=node.ops.mac, add=elements(node.call.y) if biased(node) else 0)


def biased(node: CountedNode) -> bool:
    """Whether a product adds a bias."""
    return bool(getattr(node.call.attributes, "bias", False))


def affine(node: CountedNode) -> bool:
    """Whether a norm has a learned scale."""
    return bool(getattr(node.call.attributes, "affine", False))


def per_input(count: int) -> Rule:
    """`count` additions per input element."""
    return lambda node: Ops(add=count * elements(node.call.x))


def per_output(count: int) -> Rule:
    """`count` additions per output element."""
    return lambda node: Ops(add=count * elements(node.call.y))


def norm(plain: int, scaled: int) -> Rule:
    """Additions per input element: `scaled` of a norm with a learned scale, `plain` without."""

    def rule(node: CountedNode) -> Ops:
        size = elements(node.call.x)
        if node.op == "scale":  # the second node of a norm
            return Ops(add=(scaled - plain) * size)
        return Ops(add=(scaled if affine(node) else plain) * size)

    return rule


def batch_norm(node: CountedNode) -> Ops:
    """1 per element, 2 with a scale; 4 and 5 where it computes the statistics of its input."""
    computes_statistics = node.op == "layer_norm"
    return norm(4, 5)(node) if computes_statistics else norm(1, 2)(node)


def two_products(node: CountedNode) -> Ops:
    """Attention written out: both products, and a softmax of the scores."""
    return Ops(mac=node.ops.mac, add=Sizes(node.call).scores)


GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
JOINS = {"RNN": 1, "GRU": 7, "LSTM": 10}  # operations per hidden unit that combine the gates


def cell(node: CountedNode) -> str:
    """RNN, GRU or LSTM."""
    return node.op.upper()


def steps(node: CountedNode) -> int:
    """Time steps of all sequences of a recurrent layer."""
    return elements(node.call.x[:-1])


def layers(node: CountedNode) -> list[tuple[int, int]]:
    """Input size and hidden size of every layer of a stacked recurrent module."""
    attrs: Recurrent = node.call.attributes
    directions = 2 if attrs.bidirectional else 1
    inner = (attrs.projection or attrs.hidden) * directions
    return [(inner if n else node.call.x[-1], attrs.hidden) for n in range(attrs.layers)]
