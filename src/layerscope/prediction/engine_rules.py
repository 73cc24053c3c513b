"""Layout and fusion rules of an engine on this processor, read from the graphs it writes.

ONNX Runtime stores images in blocks of channels (NCHWc) whose size depends on the vector width of
the processor, or not at all; what it fuses depends on that too. Nothing is assumed: small graphs
are optimised, without being run, and inspected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import gcd
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from layerscope.builder import Builder
from layerscope.graph import Graph

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

Body = Callable[[Builder, str], str]
SizedBody = Callable[[Builder, str, int], str]  # the last argument is a number of channels
SumFusion = Literal["", "first operand", "first node"]  # "": the sum is a node of its own
Optimise = Callable[[Graph], "ModelProto"]  # the engine's optimised model of a graph

ACTIVATIONS = (
    "relu", "relu6", "sigmoid", "tanh", "leaky_relu", "hard_sigmoid", "hard_swish", "silu", "clip",
    "gelu", "elu", "softplus",
)  # fmt: skip
POOLS: dict[str, Body] = {
    "max_pool": lambda b, x: b.max_pool(x, 2),
    "avg_pool": lambda b, x: b.avg_pool(x, 2),
    "global_avg_pool": lambda b, x: b.global_pool(x),
    "global_max_pool": lambda b, x: b.global_pool(x, "max"),
    "adaptive_avg_pool": lambda b, x: b.adaptive_pool(x, 1),
}
BLOCKED = ".nchwc"  # suffix of the domain of nodes on blocks
MOST_BLOCK = 64  # largest block of channels that is expected
SIDE = 8


class EngineRules(Struct, frozen=True):
    """Blocks of channels and fusion of an engine on one processor.

    Channels must be divisible by the fields that end in `multiple` to be stored in blocks; 0 means
    never.
    """

    block: int = 0  # channels per block; 0: images are never in blocks
    direct: int = 0  # with fewer input channels, a convolution reads an image that is not in blocks
    conv_multiple: int = 0  # of input channels
    depthwise_multiple: int = 0
    group_multiple: int = 0  # of channels of a group
    pool_multiple: int = 0
    concat_multiple: int = 0
    pools: tuple[str, ...] = ()  # ops that run in blocks
    by_element: tuple[str, ...] = ()  # ops that keep the layout of their inputs
    after_conv: tuple[str, ...] = ()  # activations fused into a convolution
    after_linear: tuple[str, ...] = ()  # activations fused into linear layers on vectors
    after_linear_3d: tuple[str, ...] = ()  # and on sequences of vectors
    sums_in_blocks: SumFusion = ""  # which of two convolutions a sum is fused into
    sums_plain: SumFusion = ""  # the same for convolutions that are not in blocks
    norm_relu: bool = False  # whether a relu is fused into a batch norm


NO_RULES = EngineRules()


def rules_of(optimise: Optimise) -> EngineRules:
    """Find the rules of an engine from the optimised models of small graphs."""
    fused = _fused(optimise)
    block = _block(optimise)
    if not block:
        return fused
    span = range(1, max(4 * block, MOST_BLOCK) + 1)
    dense = _chains(optimise, [(c, lambda b, x: b.conv(x, block, 1)) for c in span])
    direct = next((c for c in span if dense[c - 1][:1] != ["Conv*"]), span[-1] + 1)
    wide = [c for c in span if c >= direct]
    return EngineRules(
        block=block,
        direct=direct,
        conv_multiple=_multiple(c for c in wide if "Conv*" in dense[c - 1]),
        depthwise_multiple=_multiple(
            _blocked_channels(
                optimise, span, lambda b, x, c: b.conv(x, c, 3, padding=1, groups=c), 1
            )
        ),
        group_multiple=_multiple(
            _blocked_channels(optimise, span, lambda b, x, c: b.conv(x, 2 * c, 1, groups=2), 2)
        ),
        pool_multiple=_multiple(_after_conv(optimise, span, "MaxPool*", _pooled)),
        concat_multiple=_multiple(_after_conv(optimise, span, "Concat", _joined)),
        pools=tuple(_in_blocks(optimise, block, POOLS)),
        by_element=tuple(_in_blocks(optimise, block, _by_element())),
        after_conv=fused.after_conv,
        after_linear=fused.after_linear,
        after_linear_3d=fused.after_linear_3d,
        sums_in_blocks=_sum_fusion(optimise, 2 * MOST_BLOCK),
        sums_plain=_sum_fusion(optimise, 2 * MOST_BLOCK + 1),
        norm_relu=fused.norm_relu,
    )


def _activation(op: str) -> Body:
    return (lambda b, x: b.relu(x)) if op == "relu" else (lambda b, x: b.activation(op, x))


def _by_element() -> dict[str, Body]:
    """Elementwise ops; the norm follows a relu, so that it is not folded into a convolution."""
    found = {op: _activation(op) for op in ACTIVATIONS}
    found["batch_norm"] = lambda b, x: b.batch_norm(b.relu(x))
    found["add"] = lambda b, x: b.add(b.relu(x), b.activation("sigmoid", x))
    found["mul"] = lambda b, x: b.mul(b.relu(x), b.activation("sigmoid", x))
    return found


def _block(optimise: Optimise) -> int:
    """Output channels that a convolution with one output channel is padded to."""
    b = Builder("block")
    model = optimise(b.build(b.conv(b.input("x", (1, 3, SIDE, SIDE)), 1, 3, bias=False)))
    for node in model.graph.node:
        if node.op_type == "Conv" and node.domain.endswith(BLOCKED):
            sizes = {each.name: tuple(each.dims) for each in model.graph.initializer}
            return int(sizes[node.input[1]][0])
    return 0


def _sum_fusion(optimise: Optimise, channels: int) -> SumFusion:
    """Which of two convolutions a sum is fused into; their kernel sizes tell them apart."""
    b = Builder("sum")
    x = b.input("x", (1, channels, SIDE, SIDE))
    node, operand = b.conv(x, channels, 3, padding=1), b.conv(x, channels, 1)
    graph = optimise(b.build(b.add(operand, node))).graph
    sizes = {each.name: tuple(each.dims) for each in graph.initializer}
    for each in graph.node:
        if each.op_type in ("Conv", "FusedConv") and len(each.input) > 3 and each.input[3]:
            return "first operand" if sizes[each.input[1]][-1] == 1 else "first node"
    return ""


def _fused(optimise: Optimise) -> EngineRules:
    """Which ops are fused into the preceding one, in any layout."""
    c = 2 * MOST_BLOCK
    image, vector, sequence = (1, c, SIDE, SIDE), (1, c), (1, 5, c)
    after: list[tuple[str, ...]] = []
    for shape, product in (
        (image, lambda b, x: b.conv(x, c, 1)),
        (vector, lambda b, x: b.linear(x, c)),
        (sequence, lambda b, x: b.linear(x, c)),
    ):
        bodies = [(shape, _between(product, lambda b, x: x))]
        bodies += [(shape, _between(product, _activation(op))) for op in ACTIVATIONS]
        alone, *both = _walk(optimise, bodies)
        pairs = zip(ACTIVATIONS, both, strict=True)
        after.append(tuple(op for op, chain in pairs if len(chain) == len(alone)))

    def norm(b: Builder, x: str) -> str:
        return b.relu(b.batch_norm(b.activation("sigmoid", b.conv(x, c, 1))))

    [norms] = _walk(optimise, [(image, norm)])
    return EngineRules(
        after_conv=after[0],
        after_linear=after[1],
        after_linear_3d=after[2],
        sums_plain=_sum_fusion(optimise, c),
        norm_relu="Relu" not in norms,
    )


def _sized(body: SizedBody, channels: int) -> Body:
    return lambda b, x: body(b, x, channels)


def _between(product: Body, body: Body) -> Body:
    """A body with the same product before and after it."""
    return lambda b, x: product(b, body(b, product(b, x)))


def _chains(optimise: Optimise, bodies: Sequence[tuple[int, Body]]) -> list[list[str]]:
    """Op types of each body on an image of that many channels."""
    return _walk(optimise, [((1, c, SIDE, SIDE), body) for c, body in bodies])


def _walk(optimise: Optimise, bodies: Sequence[tuple[tuple[int, ...], Body]]) -> list[list[str]]:
    """Op types from the input to the output of each body, in one graph; * marks blocks."""
    b = Builder("probe")
    outputs = [body(b, b.input(f"in{n}", shape)) for n, (shape, body) in enumerate(bodies)]
    graph = optimise(b.build(*outputs)).graph
    readers: dict[str, list[NodeProto]] = {}
    for node in graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    found = []
    for n in range(len(bodies)):
        seen: list[str] = []
        done: set[int] = set()
        waiting = [f"in{n}"]
        while waiting:
            for node in readers.get(waiting.pop(0), ()):
                if id(node) not in done:
                    done.add(id(node))
                    seen.append(node.op_type + "*" * node.domain.endswith(BLOCKED))
                    waiting += node.output
        found.append(seen)
    return found


def _blocked_channels(
    optimise: Optimise,
    span: Iterable[int],
    conv: SizedBody,
    groups: int,
) -> list[int]:
    """Channels per group with which a convolution runs in blocks."""
    tried = [c for c in span if c > 1]
    chains = _chains(optimise, [(c * groups, _sized(conv, c)) for c in tried])
    return [c for c, chain in zip(tried, chains, strict=True) if "Conv*" in chain]


def _pooled(b: Builder, x: str, c: int) -> str:
    return b.max_pool(b.conv(x, c, 1), 2)


def _joined(b: Builder, x: str, c: int) -> str:
    return b.conv(b.concat(b.conv(x, c, 1), b.activation("sigmoid", b.conv(x, c, 1))), 4, 1)


def _after_conv(
    optimise: Optimise,
    span: Iterable[int],
    op: str,
    body: SizedBody,
) -> list[int]:
    """Channels with which an op after a convolution runs in blocks."""
    tried = list(span)
    chains = _chains(optimise, [(2 * MOST_BLOCK, _sized(body, c)) for c in tried])
    return [
        c
        for c, chain in zip(tried, chains, strict=True)
        if op in chain and "ReorderOutput*" not in chain[: chain.index(op)]
    ]


def _in_blocks(optimise: Optimise, block: int, bodies: dict[str, Body]) -> list[str]:
    """Ops between two convolutions that keep the image in blocks."""
    wide = 2 * block

    def product(b: Builder, x: str) -> str:
        return b.conv(x, wide, 1)

    chains = _chains(optimise, [(wide, _between(product, body)) for body in bodies.values()])
    pairs = zip(bodies, chains, strict=True)
    return [op for op, chain in pairs if chain.count("ReorderOutput*") == 1]


def _multiple(channels: Iterable[int]) -> int:
    """Greatest common divisor; 0 of none."""
    return gcd(*channels)
