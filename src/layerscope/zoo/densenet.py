"""DenseNet of Huang, Liu, van der Maaten and Weinberger 2016 (BC form) as torchvision has it."""

from __future__ import annotations

from layerscope.builder import Builder
from layerscope.graph.types import Graph
from layerscope.zoo.blocks import averaged

Depths = tuple[int, ...]

# growth, channels after the stem, layers of each dense block
SIZES: dict[str, tuple[int, int, Depths]] = {
    "densenet121": (32, 64, (6, 12, 24, 16)),
    "densenet161": (48, 96, (6, 12, 36, 24)),
    "densenet169": (32, 64, (6, 12, 32, 32)),
    "densenet201": (32, 64, (6, 12, 48, 32)),
}
BOTTLENECK = 4  # times the growth


def densenet(name: str) -> Graph:
    """The DenseNet of that name."""
    return network(name, *SIZES[name])


def network(name: str, growth: int, channels: int, depths: Depths, *, kernel: int = 3) -> Graph:
    """A DenseNet; `kernel` is the window of the second convolution of every layer."""
    b = Builder(name, "DenseNet")
    x = b.input("data", (1, 3, 224, 224))
    with b.scope("features", "Sequential"):
        x = b.conv(x, channels, 7, stride=2, padding=3, bias=False, name="conv0")
        x = b.relu(b.batch_norm(x, name="norm0"), in_place=True, name="relu0")
        x = b.max_pool(x, 3, stride=2, padding=1, name="pool0")
        for n, depth in enumerate(depths, 1):
            with b.scope(f"denseblock{n}", "_DenseBlock"):
                x = _dense(b, x, depth, growth, kernel)
            channels += depth * growth
            if n < len(depths):
                channels //= 2
                with b.scope(f"transition{n}", "_Transition"):
                    x = b.relu(b.batch_norm(x, name="norm"), in_place=True, name="relu")
                    x = b.conv(x, channels, 1, bias=False, name="conv")
                    x = b.avg_pool(x, 2, name="pool")
        x = b.batch_norm(x, name="norm5")
    x = b.relu(x, in_place=True, name="relu", module=False)
    return b.build(b.linear(averaged(b, x), 1000, name="classifier"))


def _dense(b: Builder, x: str, depth: int, growth: int, kernel: int) -> str:
    """Every layer reads the concatenation of the input and all earlier outputs."""
    features = [x]
    for n in range(1, depth + 1):
        with b.scope(f"denselayer{n}", "_DenseLayer"):
            y = b.batch_norm(b.concat(*features, name="cat"), name="norm1")
            y = b.relu(y, in_place=True, name="relu1")
            y = b.conv(y, BOTTLENECK * growth, 1, bias=False, name="conv1")
            y = b.relu(b.batch_norm(y, name="norm2"), in_place=True, name="relu2")
            y = b.conv(y, growth, kernel, padding=kernel // 2, bias=False, name="conv2")
            features.append(y)
    return b.concat(*features, name="cat")
