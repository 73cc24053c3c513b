"""Micro-networks for calibration: chains of layers of all usual sizes, so that caches are cold.

None of them is a published network. Sizes are random with a fixed seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from layerscope.builder import Builder
from layerscope.graph import Graph
from layerscope.prediction.engine_rules import EngineRules

CHANNELS = (16, 24, 32, 40, 48, 64, 80, 96, 112, 128, 160, 192, 256, 320, 384, 512, 768, 1024, 2048)
UNEVEN = (18, 30, 42, 50, 58, 90, 122, 150)  # near these, channels that fill no block
MOST_FLOPS, LEAST_FLOPS = 2.6e9, 2e6
MOST_WEIGHTS = 12e6  # elements of a layer
ROWS = 26  # layers of a chain
BLOCKS = (
    (197, 768, 12),
    (50, 512, 8),
    (197, 192, 3),
    (128, 768, 12),
    (400, 384, 6),
    (64, 1024, 16),
)
STEMS = (
    (64, 7, 2, 200), (48, 7, 2, 240), (32, 3, 2, 208), (32, 3, 2, 256), (24, 3, 2, 232),
    (40, 3, 2, 260), (16, 3, 2, 240), (64, 3, 1, 216), (48, 3, 1, 240), (64, 11, 4, 232),
    (96, 4, 4, 256), (384, 16, 16, 256), (24, 3, 2, 192),
)  # fmt: skip
VECTORS = ((1024, 1000), (2048, 1000), (512, 1000), (1280, 1000), (4096, 4096), (4096, 1000),
           (9216, 2048), (20000, 2048), (768, 1000))  # fmt: skip


def networks(rules: EngineRules, seed: int = 1) -> Iterator[Graph]:
    """All micro-networks, fast and slow ones mixed; some channels depend on the engine's blocks."""
    source = Random(seed)
    channels = uneven_channels(rules)
    for repeat in range(5):
        for side in (112, 56, 28, 14, 7):
            if repeat < 3:
                yield chain(f"chain{side}_{repeat}", side, source, batch=1)
            yield light(f"light{side}_{repeat}", side, source)
    for repeat in range(3):
        for side in (56, 28, 14, 7):
            yield uneven(f"uneven{side}_{repeat}", side, source, channels)
    for side, width in ((56, 64), (28, 128), (14, 256), (112, 32), (28, 64), (7, 512)):
        yield branches(f"branches{side}_{width}", side, width)
    for side in (28, 14):
        yield chain(f"batch{side}", side, source, batch=4)
    for n, (tokens, width, heads) in enumerate(BLOCKS):
        yield blocks(f"blocks{n}", tokens, width, heads)
    for side in (56, 28, 14, 7):
        for width in (48, 116, 232):
            yield shuffled(f"shuffled{side}_{width}", side, width)
    yield vectors()
    for out, kernel, stride, side in STEMS:
        yield stem(f"stem{out}_{kernel}_{side}", out, kernel, stride, side)
    yield large()


def _output_channels(source: Random, side: int, batch: int, c: int, kernel: int) -> int:
    """Output channels with which the layer is neither too long nor too short."""
    good = []
    for out in CHANNELS:
        flops = 2 * batch * side * side * c * out * kernel * kernel
        if LEAST_FLOPS <= flops <= MOST_FLOPS and c * out * kernel * kernel <= MOST_WEIGHTS:
            good.append(out)
    return source.choice(good or [16])


def chain(name: str, side: int, source: Random, batch: int) -> Graph:
    """Dense convolutions with norms, activations and sums, a few pools, groups and strides."""
    b = Builder(name)
    c = source.choice((32, 64, 96, 128))
    x = b.input("data", (batch, c, side, side))
    for n in range(ROWS):
        kernel = source.choices((1, 3, 5, 7), (46, 46, 5, 3))[0]
        what = source.random()
        stride = 2 if what > 0.94 and side > 7 and n > ROWS // 2 else 1
        out = _output_channels(source, side, batch, c, kernel)
        if what < 0.12 and kernel in (1, 3):
            y = b.batch_norm(b.conv(x, c, kernel, padding=kernel // 2))
            x = b.relu(b.add(y, x))
            continue
        groups = 1
        if 0.12 <= what < 0.22 and kernel == 3 and c >= 64:
            groups, out = source.choice((8, 16, 32)), c
            groups = groups if c % groups == 0 else 1
        y = b.conv(x, out, kernel, stride=stride, padding=kernel // 2, groups=groups)
        x = b.relu(b.batch_norm(y)) if what < 0.8 else y
        c, side = out, -(-side // stride)
        if 0.86 < what < 0.9 and side > 2:
            x = b.max_pool(x, 3, stride=1, padding=1)
        if 0.9 <= what < 0.93 and side > 2:
            x = b.avg_pool(x, 3, stride=1, padding=1)
        if 0.8 < what < 0.83 and c <= 1024:
            more = b.relu(b.conv(x, 32, 1))
            x = b.concat(x, more)
            c += 32
    return b.build(b.global_pool(x))


def light(name: str, side: int, source: Random) -> Graph:
    """Inverted bottlenecks (expand, depthwise, project) with the usual activations."""
    b = Builder(name)
    c = source.choice((16, 24, 32) if side > 28 else (40, 64, 96, 160))
    x = b.input("data", (1, c, side, side))
    for n in range(7):
        kind = source.choice(("relu6", "relu6", "silu", "hard_swish", "relu"))
        kernel = source.choice((3, 3, 5))
        stride = 2 if n in (3, 5) and side > 7 else 1
        out = (
            c
            if stride == 1 and source.random() < 0.5
            else source.choice([k for k in CHANNELS if k <= 4 * c and k <= 384])
        )
        wide = min(c * source.choice((1, 3, 4, 6)), 1200)
        y = _act(b, b.batch_norm(b.conv(x, wide, 1, bias=False)), kind)
        y = b.batch_norm(
            b.conv(y, wide, kernel, stride=stride, padding=kernel // 2, groups=wide, bias=False)
        )
        y = _act(b, y, kind)
        if source.random() < 0.3:
            s = b.relu(b.conv(b.global_pool(y), max(wide // 4, 8), 1))
            y = b.mul(y, b.activation("sigmoid", b.conv(s, wide, 1)))
        y = b.batch_norm(b.conv(y, out, 1, bias=False))
        x = b.add(x, y) if stride == 1 and out == c else y
        c, side = out, -(-side // stride)
    return b.build(b.global_pool(x))


def uneven_channels(rules: EngineRules) -> tuple[int, ...]:
    """Channels that are not stored in blocks, and some whose last block is partly empty."""
    multiple, block = rules.conv_multiple, rules.block
    if not block:
        return UNEVEN
    apart = [c if c % multiple else c + 1 for c in UNEVEN]
    whole = [c - c % multiple for c in UNEVEN]
    return (*apart, *(c if c % block else c + multiple for c in whole))


def uneven(name: str, side: int, source: Random, channels: Sequence[int]) -> Graph:
    """Convolutions with channels that fill no block, and between them some that do."""
    b = Builder(name)
    x = b.input("data", (1, source.choice(channels), side, side))
    for _ in range(6):
        out = source.choice(channels)
        x = b.relu(b.batch_norm(b.conv(x, out, 1, bias=False)))
        y = b.conv(x, out, 3, padding=1, groups=source.choice((1, out)), bias=False)
        x = b.relu(b.batch_norm(y))
        if source.random() < 0.5:
            x = b.relu(b.conv(b.concat(x, x), source.choice(CHANNELS[:10]), 1))
        x = b.max_pool(x, 3, stride=1, padding=1) if source.random() < 0.2 else x
    return b.build(b.global_pool(x))


def branches(name: str, side: int, width: int) -> Graph:
    """Branches that are joined, pools between them, norms before convolutions."""
    b = Builder(name)
    x = b.input("data", (1, width, side, side))
    x = b.relu(b.conv(x, width, 1))
    for n in range(3):
        thin = b.relu(b.conv(x, max(width // 4, 16), 1))
        parts = [
            b.relu(b.conv(thin, width // 2, 3, padding=1)),
            b.relu(b.conv(thin, width // 2, 1)),
            b.relu(b.conv(b.max_pool(x, 3, stride=1, padding=1), 32, 1)),
            b.relu(b.conv(b.avg_pool(x, 3, stride=1, padding=1), 16, 1)),
        ]
        x = b.concat(*parts[: n + 2])
        more = b.conv(b.relu(b.batch_norm(x)), 32, 3, padding=1)
        x = b.concat(x, more)
    if side > 7:
        x = b.max_pool(x, 3, stride=2, padding=1)
        x = b.avg_pool(b.relu(b.batch_norm(x)), 2, stride=2)
    return b.build(b.global_pool(x))


def shuffled(name: str, side: int, width: int) -> Graph:
    """Copies: split, concat and permute."""
    b = Builder(name)
    x = b.relu(b.conv(b.input("data", (1, width, side, side)), width, 1))
    for groups in (2, 4):
        part = width // 2
        kept, y = b.split(x, (part, part))
        x = b.concat(kept, b.relu(b.conv(y, part, 1)))
        y = b.reshape(x, (1, groups, width // groups, side, side))
        x = b.reshape(b.permute(y, (0, 2, 1, 3, 4)), (1, width, side, side))
    y = b.permute(x, (0, 2, 3, 1))  # channels last, and back
    return b.build(b.global_pool(b.permute(b.layer_norm(y), (0, 3, 1, 2))))


def _act(b: Builder, x: str, kind: str) -> str:
    return b.relu(x) if kind == "relu" else b.activation(kind, x)


def blocks(name: str, tokens: int, width: int, heads: int) -> Graph:
    """Transformer blocks, whose activations exceed the smallest caches."""
    b = Builder(name)
    x = b.input("data", (1, tokens, width))
    for _ in range(2):
        y = b.linear(b.layer_norm(x), 3 * width)
        q, k, v = b.split(y, (width,) * 3, axis=2)
        y = b.linear(b.attention(q, k, v, heads=heads), width)
        x = b.add(y, x)
        y = b.activation("gelu", b.linear(b.layer_norm(x), 4 * width))
        x = b.add(b.linear(y, width), x)
    y = b.permute(x, (0, 2, 1))
    y = b.softmax(y, axis=2)
    return b.build(b.reduce("mean", y, (2,)))


def vectors() -> Graph:
    """Linear layers on one vector, as at the end of a network: reading weights dominates."""
    b = Builder("vectors")
    outs = []
    for n, (given, out) in enumerate(VECTORS):
        x = b.input(f"data{n}", (1, given))
        outs.append(b.relu(b.linear(x, out)))
    return b.build(*outs)


def stem(name: str, out: int, kernel: int, stride: int, side: int) -> Graph:
    """A first layer with three channels: its input is cold, and threads are asleep."""
    b = Builder(name)
    pad = kernel // 2 if stride < kernel else 0
    x = b.conv(b.input("data", (1, 3, side, side)), out, kernel, stride=stride, padding=pad)
    x = b.activation("hard_swish", x) if out in (24, 40) else b.relu(x)
    y = b.max_pool(x, 3, stride=2, padding=1)
    return b.build(b.global_pool(b.relu(b.conv(y, 64, 1))))


def large() -> Graph:
    """Large images with few channels, on which convolutions take longest."""
    b = Builder("large")
    x = b.input("data", (1, 32, 224, 224))
    for out, kernel in ((48, 3), (48, 1), (64, 3), (16, 3), (32, 1), (64, 3)):
        x = b.relu(b.conv(x, out, kernel, padding=kernel // 2))
    x = b.max_pool(x, 2, stride=2)
    for out in (96, 128, 160, 64):
        x = b.relu(b.conv(x, out, 3, padding=1))
    x = b.max_pool(x, 2, stride=2)
    for out in (192, 256, 320, 224):
        x = b.relu(b.conv(x, out, 3, padding=1))
    x = b.max_pool(x, 2, stride=2)
    for out in (448, 512, 480):
        x = b.relu(b.conv(x, out, 3, padding=1))
    return b.build(b.max_pool(x, 2, stride=2))
