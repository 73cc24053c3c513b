"""ShuffleNet v2 of Ma, Zhang, Zheng and Sun 2018 as torchvision has it."""

from __future__ import annotations

from layerscope.builder import Builder
from layerscope.graph.types import Graph

Widths = tuple[int, int, int, int]

# channels of the three stages and of the last convolution
WIDTHS: dict[str, Widths] = {
    "shufflenet_v2_x0_5": (48, 96, 192, 1024),
    "shufflenet_v2_x1_0": (116, 232, 464, 1024),
    "shufflenet_v2_x1_5": (176, 352, 704, 1024),
    "shufflenet_v2_x2_0": (244, 488, 976, 2048),
}
DEPTHS = (4, 8, 4)


def shufflenet(name: str) -> Graph:
    """The ShuffleNet of that name."""
    return network(name, WIDTHS[name])


def network(name: str, widths: Widths, *, kernel: int = 3) -> Graph:
    """A ShuffleNet of these channels; `kernel` is the window of the depthwise convolutions."""
    *stages, last = widths
    b = Builder(name, "ShuffleNetV2")
    x = b.input("data", (1, 3, 224, 224))
    with b.scope("conv1", "Sequential"):
        x = b.conv(x, 24, 3, stride=2, padding=1, bias=False, name="0")
        x = b.relu(b.batch_norm(x, name="1"), in_place=True, name="2")
    x = b.max_pool(x, 3, stride=2, padding=1, name="maxpool")
    into = 24
    for n, (channels, depth) in enumerate(zip(stages, DEPTHS, strict=True), 2):
        with b.scope(f"stage{n}", "Sequential"):
            for m in range(depth):
                with b.scope(str(m), "InvertedResidual"):
                    if m == 0:
                        x = _halve(b, x, into, channels // 2, kernel)
                    else:
                        x = _keep(b, x, channels // 2, kernel)
        into = channels
    with b.scope("conv5", "Sequential"):
        x = b.conv(x, last, 1, bias=False, name="0")
        x = b.relu(b.batch_norm(x, name="1"), in_place=True, name="2")
    x = b.reduce("mean", x, (2, 3), name="mean")
    return b.build(b.linear(x, 1000, name="fc"))


def _halve(b: Builder, x: str, into: int, half: int, kernel: int) -> str:
    with b.scope("branch1", "Sequential"):
        left = b.conv(
            x, into, kernel, stride=2, padding=kernel // 2, groups=into, bias=False, name="0"
        )
        left = b.conv(b.batch_norm(left, name="1"), half, 1, bias=False, name="2")
        left = b.relu(b.batch_norm(left, name="3"), in_place=True, name="4")
    return _shuffle(b, left, _branch(b, x, half, kernel, 2))


def _keep(b: Builder, x: str, half: int, kernel: int) -> str:
    left, right = b.split(x, (half, half), name="chunk")
    with b.scope("branch1", "Sequential"):
        pass  # declared, but nothing is in it
    return _shuffle(b, left, _branch(b, right, half, kernel, 1))


def _branch(b: Builder, x: str, half: int, kernel: int, stride: int) -> str:
    with b.scope("branch2", "Sequential"):
        x = b.conv(x, half, 1, bias=False, name="0")
        x = b.relu(b.batch_norm(x, name="1"), in_place=True, name="2")
        x = b.conv(
            x, half, kernel, stride=stride, padding=kernel // 2, groups=half, bias=False, name="3"
        )
        x = b.conv(b.batch_norm(x, name="4"), half, 1, bias=False, name="5")
        return b.relu(b.batch_norm(x, name="6"), in_place=True, name="7")


def _shuffle(b: Builder, left: str, right: str) -> str:
    """Channels of both in turn; they go last first, as only there an axis of any map is cut."""
    x = b.permute(b.concat(left, right, name="cat"), (0, 2, 3, 1), name="last")
    x = b.reshape(x, (0, 0, 0, 2, -1), name="view")
    x = b.permute(x, (0, 4, 3, 1, 2), name="transpose")
    return b.flatten(x, 1, 2, name="view_1")
