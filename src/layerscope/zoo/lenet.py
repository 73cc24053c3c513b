"""LeNet-5 of LeCun, Bottou, Bengio and Haffner 1998, layers named as in the paper.

The modern form: each map of C3 sees all six of S2 (the paper connects some), S2 and S4 are plain
averages (the paper's have a weight and a bias per map), the last layer is linear (the paper's
measures distances to drawn characters).
"""

from __future__ import annotations

from layerscope.builder import Builder
from layerscope.graph.types import Graph

KERNELS = (5, 5, 5)  # C1, C3, C5


def lenet5() -> Graph:
    """LeNet-5 on a 32x32 image."""
    return network("lenet5", KERNELS)


def network(name: str, kernels: tuple[int, int, int]) -> Graph:
    """LeNet-5 with windows of these sizes in C1, C3 and C5."""
    c1, c3, c5 = kernels
    b = Builder(name, "LeNet5")
    x = b.input("data", (1, 1, 32, 32))
    x = b.activation("tanh", b.conv(x, 6, c1, name="C1"), name="tanh1")
    x = b.avg_pool(x, 2, name="S2")
    x = b.activation("tanh", b.conv(x, 16, c3, name="C3"), name="tanh3")
    x = b.avg_pool(x, 2, name="S4")
    x = b.activation("tanh", b.conv(x, 120, c5, name="C5"), name="tanh5")
    x = b.flatten(x, name="flatten")
    x = b.activation("tanh", b.linear(x, 84, name="F6"), name="tanh6")
    return b.build(b.linear(x, 10, name="output"))
