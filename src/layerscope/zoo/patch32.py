"""patch32: a classifier of 32x32 patches with 32 channels into 5 classes, from MatConvNet."""

from __future__ import annotations

from collections.abc import Sequence

from layerscope.builder import Builder
from layerscope.graph.types import Graph

Convs = Sequence[tuple[int, int, int]]  # channels, kernel, groups

CONVS: Convs = (
    (128, 3, 1),
    (128, 3, 4),
    (256, 3, 1),
    (256, 3, 1),
    (512, 3, 1),
    (512, 3, 1),
    (512, 3, 1),
    (512, 3, 1),
)
POOLS = {2: "pool1", 4: "pool2", 6: "pool3"}  # number of the convolution before -> name


def patch32() -> Graph:
    """The patch classifier with its training loss, as MatConvNet displays it."""
    return network("patch32", CONVS)


def network(name: str, convs: Convs) -> Graph:
    """The patch classifier with these convolutions before the fully connected ones."""
    b = Builder(name, separator="/")
    x = b.input("data", (1, 32, 32, 32))
    for n, (channels, kernel, groups) in enumerate(convs, 1):
        x = b.conv(x, channels, kernel, padding=kernel // 2, groups=groups, name=f"conv{n}")
        x = b.relu(x, name=f"relu{n}")
        if n in POOLS:
            x = b.max_pool(x, 2, name=POOLS[n])
    x = b.relu(b.conv(x, 1024, 4, stride=4, name="fc9"), name="relu9")
    x = b.relu(b.conv(x, 1024, 1, name="fc10"), name="relu10")
    return b.build(b.softmax_loss(b.conv(x, 5, 1, name="fc11"), name="sftmx"))
