"""ConvNeXt of Liu and others 2022 as torchvision has it."""

from __future__ import annotations

from typing import NamedTuple

from layerscope.builder import Builder
from layerscope.graph.attributes import LayerNorm, Scale
from layerscope.graph.types import Graph
from layerscope.zoo.blocks import declare, residual

NORM = LayerNorm(eps=1e-6)
LAST, FIRST = (0, 2, 3, 1), (0, 3, 1, 2)  # where the channels go


class ConvNextConfig(NamedTuple):
    """A ConvNeXt: channels and blocks of its four stages, and how often training drops the last."""

    widths: tuple[int, ...]
    depths: tuple[int, ...]
    drop: float


CONFIGS = {
    "convnext_tiny": ConvNextConfig((96, 192, 384, 768), (3, 3, 9, 3), 0.1),
    "convnext_small": ConvNextConfig((96, 192, 384, 768), (3, 3, 27, 3), 0.4),
    "convnext_base": ConvNextConfig((128, 256, 512, 1024), (3, 3, 27, 3), 0.5),
    "convnext_large": ConvNextConfig((192, 384, 768, 1536), (3, 3, 27, 3), 0.5),
}


def convnext(name: str) -> Graph:
    """The ConvNeXt of that name."""
    return network(name, CONFIGS[name])


def network(name: str, config: ConvNextConfig, *, kernel: int = 7) -> Graph:
    """A ConvNeXt by its config; `kernel` is the window of the depthwise convolutions."""
    b = Builder(name, "ConvNeXt")
    x = b.input("data", (1, 3, 224, 224))
    blocks, done = sum(config.depths), 0
    with b.scope("features", "Sequential"):
        with b.scope("0", "Conv2dNormActivation"):
            x = b.conv(x, config.widths[0], 4, stride=4, name="0")
            x = _norm_maps(b, x, "1")
        for n, (width, depth) in enumerate(zip(config.widths, config.depths, strict=True)):
            if n:
                with b.scope(str(2 * n), "Sequential"):
                    x = b.conv(_norm_maps(b, x, "0"), width, 2, stride=2, name="1")
            with b.scope(str(2 * n + 1), "Sequential"):
                for m in range(depth):
                    with b.scope(str(m), "CNBlock"):
                        x = _block(b, x, width, kernel, config.drop * done / (blocks - 1.0))
                    done += 1
    x = b.global_pool(x, name="avgpool")
    with b.scope("classifier", "Sequential"):
        x = _norm_maps(b, x, "0")
        declare(b, "1", "Flatten(start_dim=1, end_dim=-1)")
        x = b.linear(b.flatten(x, name="1"), 1000, name="2")
    return b.build(x)


def _block(b: Builder, x: str, width: int, kernel: int, drop: float) -> str:
    with b.scope("block", "Sequential"):
        y = b.conv(x, width, kernel, padding=kernel // 2, groups=width, name="0")
        declare(b, "1", "Permute")
        y = b.permute(y, LAST, name="1")
        (y,) = b.add_node("layer_norm", (y,), NORM, name="2")
        y = b.activation("gelu", b.linear(y, 4 * width, name="3"), name="4")
        y = b.linear(y, width, name="5")
        declare(b, "6", "Permute")
        y = b.permute(y, FIRST, name="6")
    (y,) = b.add_node("scale", (y,), Scale(), name="layer_scale", module=False)
    return residual(b, y, x, drop)


def _norm_maps(b: Builder, x: str, name: str) -> str:
    """Torchvision's LayerNorm2d: over the channels of each position, which go last for it."""
    declare(b, name, "LayerNorm2d")
    x = b.permute(x, LAST, name=f"{name}.permute")
    (x,) = b.add_node("layer_norm", (x,), NORM, name=name)
    return b.permute(x, FIRST, name=f"{name}.permute_1")
