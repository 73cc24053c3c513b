"""Small networks that tests share."""

from __future__ import annotations

from layerscope import Builder, Graph


def waves() -> Graph:
    """A 1-D network: two convolutions, a pool, a dilated convolution, a linear layer."""
    b = Builder("waves", "Waves")
    x = b.input("data", (1, 2, 400))
    x = b.relu(
        b.batch_norm(b.conv(x, 16, 9, stride=2, padding=4, name="conv1"), name="bn1"), name="relu1"
    )
    x = b.max_pool(x, 4, name="pool1")
    x = b.relu(b.conv(x, 32, 3, padding=2, dilation=2, name="conv2"), name="relu2")
    x = b.dropout(b.global_pool(x, name="pool2"), name="drop2")
    return b.build(b.linear(b.flatten(x, name="flatten"), 5, name="fc3"))
