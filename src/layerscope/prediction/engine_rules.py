"""What an engine does with layers on this processor, read from the graph it writes.

ONNX Runtime holds images in blocks of channels (NCHWc) whose size depends on the vector width of
the processor, or does not do so at all; what it fuses depends on that too. None of it is assumed:
small graphs are optimised here, without being run, and looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import gcd
from typing import Any, Literal

from msgspec import Struct

from layerscope.builder import Builder
from layerscope.graph import Graph

Body = Callable[[Builder, str], str]
Sized = Callable[[Builder, str, int], str]  # of so many channels
Taker = Literal["", "first operand", "first node"]  # "": the sum is an operator of its own
Optimise = Callable[[Graph], Any]  # the engine's own graph of a network, an onnx.ModelProto

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
BLOCKED = ".nchwc"  # ends the domain of operators on blocks
MOST_BLOCK = 64  # channels: what fills no block of so many is tried up to there
SIDE = 8


class EngineRules(Struct, frozen=True):
    """Blocks of channels and fusing, as an engine does them on one processor.

    Figures that end in `multiple` are what channels must be divisible by to be held in blocks; 0
    where the engine never does it.
    """

    block: int = 0  # channels that are held together; 0: images are never in blocks
    direct: int = 0  # input channels below which a convolution reads an image that is not in blocks
    conv_multiple: int = 0  # of input channels
    depthwise_multiple: int = 0
    group_multiple: int = 0  # of channels of a group
    pool_multiple: int = 0
    concat_multiple: int = 0
    pools: tuple[str, ...] = ()  # ops that run in blocks
    by_element: tuple[str, ...] = ()  # ops that leave blocks as they are
    after_conv: tuple[str, ...] = ()  # activations that a convolution applies to its result
    after_linear: tuple[str, ...] = ()  # the same of linear layers on vectors
    after_linear_3d: tuple[str, ...] = ()  # and on sequences of them
    sums_in_blocks: Taker = ""  # which of two convolutions adds the other's result to its own
    sums_plain: Taker = ""  # the same where they do not run in blocks
    norm_relu: bool = False  # a batch norm on its own applies the relu after it


NO_RULES = EngineRules()


def rules_of(optimise: Optimise) -> EngineRules:
    """The rules of an engine, by what it makes of small graphs."""
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
            _taken(optimise, span, lambda b, x, c: b.conv(x, c, 3, padding=1, groups=c), 1)
        ),
        group_multiple=_multiple(
            _taken(optimise, span, lambda b, x, c: b.conv(x, 2 * c, 1, groups=2), 2)
        ),
        pool_multiple=_multiple(_after_conv(optimise, span, "MaxPool*", _pooled)),
        concat_multiple=_multiple(_after_conv(optimise, span, "Concat", _joined)),
        pools=tuple(_in_blocks(optimise, block, POOLS)),
        by_element=tuple(_in_blocks(optimise, block, _by_element())),
        after_conv=fused.after_conv,
        after_linear=fused.after_linear,
        after_linear_3d=fused.after_linear_3d,
        sums_in_blocks=_sum_taker(optimise, 2 * MOST_BLOCK),
        sums_plain=_sum_taker(optimise, 2 * MOST_BLOCK + 1),
        norm_relu=fused.norm_relu,
    )


def _activation(op: str) -> Body:
    return (lambda b, x: b.relu(x)) if op == "relu" else (lambda b, x: b.activation(op, x))


def _by_element() -> dict[str, Body]:
    """Ops on one tensor or on equal ones; a norm is after a relu, so that it is not folded."""
    found = {op: _activation(op) for op in ACTIVATIONS}
    found["batch_norm"] = lambda b, x: b.batch_norm(b.relu(x))
    found["add"] = lambda b, x: b.add(b.relu(x), b.activation("sigmoid", x))
    found["mul"] = lambda b, x: b.mul(b.relu(x), b.activation("sigmoid", x))
    return found


def _block(optimise: Optimise) -> int:
    """Output channels that a convolution to one channel is filled up to."""
    b = Builder("block")
    model = optimise(b.build(b.conv(b.input("x", (1, 3, SIDE, SIDE)), 1, 3, bias=False)))
    for node in model.graph.node:
        if node.op_type == "Conv" and node.domain.endswith(BLOCKED):
            sizes = {each.name: tuple(each.dims) for each in model.graph.initializer}
            return int(sizes[node.input[1]][0])
    return 0


def _sum_taker(optimise: Optimise, channels: int) -> Taker:
    """Which of two convolutions takes their sum: their kernels differ, so as to tell them apart."""
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
    """What is fused into what precedes it, whatever the layout."""
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
        sums_plain=_sum_taker(optimise, c),
        norm_relu="Relu" not in norms,
    )


def _sized(body: Sized, channels: int) -> Body:
    return lambda b, x: body(b, x, channels)


def _between(product: Body, body: Body) -> Body:
    """A body with the same product before and after it."""
    return lambda b, x: product(b, body(b, product(b, x)))


def _chains(optimise: Optimise, bodies: Sequence[tuple[int, Body]]) -> list[list[str]]:
    """Operators of each body on an image of so many channels."""
    return _walk(optimise, [((1, c, SIDE, SIDE), body) for c, body in bodies])


def _walk(optimise: Optimise, bodies: Sequence[tuple[tuple[int, ...], Body]]) -> list[list[str]]:
    """Operators from each body's input to its output, all bodies in one graph; * is in blocks."""
    b = Builder("probe")
    outputs = [body(b, b.input(f"in{n}", shape)) for n, (shape, body) in enumerate(bodies)]
    graph = optimise(b.build(*outputs)).graph
    readers: dict[str, list[Any]] = {}
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


def _taken(
    optimise: Optimise,
    span: Iterable[int],
    conv: Sized,
    groups: int,
) -> list[int]:
    """Channels of a group at which a convolution runs in blocks."""
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
    body: Sized,
) -> list[int]:
    """Channels at which an operator after a convolution runs before they leave the blocks."""
    tried = list(span)
    chains = _chains(optimise, [(2 * MOST_BLOCK, _sized(body, c)) for c in tried])
    return [
        c
        for c, chain in zip(tried, chains, strict=True)
        if op in chain and "ReorderOutput*" not in chain[: chain.index(op)]
    ]


def _in_blocks(optimise: Optimise, block: int, bodies: dict[str, Body]) -> list[str]:
    """Ops between two convolutions that do not take the image out of its blocks."""
    wide = 2 * block

    def product(b: Builder, x: str) -> str:
        return b.conv(x, wide, 1)

    chains = _chains(optimise, [(wide, _between(product, body)) for body in bodies.values()])
    pairs = zip(bodies, chains, strict=True)
    return [op for op, chain in pairs if chain.count("ReorderOutput*") == 1]


def _multiple(channels: Iterable[int]) -> int:
    """What all of them are divisible by; 0 for none."""
    return gcd(*channels)
