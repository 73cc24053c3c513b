"""Swin Transformer of Liu et al. 2021 as torchvision has it, for images of any size."""

from __future__ import annotations

from msgspec import Struct

from layerscope.builder import Builder
from layerscope.errors import ShapeError
from layerscope.graph.attributes import Slice
from layerscope.graph.types import Graph
from layerscope.zoo.vit import mlp

PATCH, WINDOW = 4, 7
TOKENS = WINDOW**2
BLOCK = ("norm1", "attn", "stochastic_depth", "norm2", "mlp")  # as torchvision declares its parts


Map = tuple[int, int]  # height and width


class SwinBlock(Struct, frozen=True):
    """What tells one block from another."""

    width: int
    heads: int
    shifted: bool


class SwinConfig(Struct, frozen=True):
    """What tells one Swin from another; width and heads double from stage to stage."""

    width: int
    heads: int
    depths: tuple[int, ...]


CONFIGS = {
    "swin_t": SwinConfig(width=96, heads=3, depths=(2, 2, 6, 2)),
    "swin_s": SwinConfig(width=96, heads=3, depths=(2, 2, 18, 2)),
    "swin_b": SwinConfig(width=128, heads=4, depths=(2, 2, 18, 2)),
}


def swin(name: str, height: int = 224, width: int = 224) -> Graph:
    """The Swin Transformer of that name for images of that many pixels."""
    return network(name, CONFIGS[name], (height, width))


def network(name: str, config: SwinConfig, image: Map = (224, 224)) -> Graph:
    """A Swin Transformer of this configuration; windows that do not fit the image are padded."""
    if min(image) < PATCH:
        raise ShapeError(f"{name}: an image of {image[0]}x{image[1]}, expected at least 4x4")
    b = Builder(name, "SwinTransformer")
    x = b.input("data", (1, 3, *image))
    size, width, heads = (image[0] // PATCH, image[1] // PATCH), config.width, config.heads
    with b.scope("features", "Sequential"):
        with b.scope("0", "Sequential"):
            x = b.conv(x, width, PATCH, stride=PATCH, name="0")
            x = b.layer_norm(b.permute(x, (0, 2, 3, 1), name="1"), name="2")
        for stage, depth in enumerate(config.depths):
            if stage > 0:
                with b.scope(str(2 * stage), "PatchMerging", order=("reduction", "norm")):
                    x = _merge(b, x, size, width)
                size = (-(-size[0] // 2), -(-size[1] // 2))
                width, heads = width * 2, heads * 2
            with b.scope(str(2 * stage + 1), "Sequential"):
                for n in range(depth):
                    with b.scope(str(n), "SwinTransformerBlock", order=BLOCK):
                        x = _block(b, x, size, SwinBlock(width, heads, shifted=n % 2 == 1))
    x = b.permute(b.layer_norm(x, name="norm"), (0, 3, 1, 2), name="permute")
    x = b.flatten(b.adaptive_pool(x, 1, name="avgpool"), name="flatten")
    return b.build(b.linear(x, 1000, name="head"))


def _block(b: Builder, x: str, size: Map, block: SwinBlock) -> str:
    y = b.layer_norm(x, name="norm1")
    with b.scope("attn", "ShiftedWindowAttention"):
        y = _attention(b, y, size, block)
    x = b.add(x, _stochastic_depth(b, y))
    y = b.layer_norm(x, name="norm2")
    with b.scope("mlp", "MLP"):
        y = mlp(b, y, 4 * block.width, block.width)
    return b.add(x, _stochastic_depth(b, y))


def _stochastic_depth(b: Builder, x: str) -> str:
    """Nothing at inference."""
    return b.add_node("identity", (x,), name="stochastic_depth")[0]


def _attention(b: Builder, x: str, size: Map, block: SwinBlock) -> str:
    """Attention within windows, moved by half a window in every other block."""
    width = block.width
    spare = (-size[0] % WINDOW, -size[1] % WINDOW)
    down, across = (size[0] + spare[0]) // WINDOW, (size[1] + spare[1]) // WINDOW  # windows
    if any(spare):
        x = b.pad(x, ((0, 0), (0, spare[0]), (0, spare[1]), (0, 0)))
    shifted = block.shifted and max(down, across) > 1  # along an axis of one window nothing moves
    if shifted:
        x = b.roll(x)
    x = b.reshape(x, (-1, down, WINDOW, across, WINDOW, width))
    x = b.reshape(b.permute(x, (0, 1, 3, 2, 4, 5)), (-1, TOKENS, width))
    mask = _position_bias(b, block.heads)
    if shifted:
        mask = b.add(mask, _shift_mask(b, x))
    q, k, v = b.split(b.linear(x, 3 * width, name="qkv"), (width,) * 3, axis=-1)
    x = b.attention(q, k, v, heads=block.heads, mask=mask, name="attention")
    x = b.linear(x, width, name="proj")
    x = b.reshape(x, (-1, down, across, WINDOW, WINDOW, width))
    x = b.reshape(
        b.permute(x, (0, 1, 3, 2, 4, 5)), (-1, size[0] + spare[0], size[1] + spare[1], width)
    )
    if shifted:
        x = b.roll(x)
    if any(spare):
        x = b.add_node("slice", (x,), Slice((1, 2), (0, 0), size))[0]
    return x


def _position_bias(b: Builder, heads: int) -> str:
    """Heads x tokens x tokens, looked up in a table of all distances within a window."""
    index = b.stored("relative_position_index", (TOKENS**2,), "statistic", "int64")
    distances = (2 * WINDOW - 1) ** 2
    x = b.embedding(index, distances, heads, module=False, name="relative_position_bias_table")
    return b.permute(b.reshape(x, (TOKENS, TOKENS, heads)), (2, 0, 1))


def _shift_mask(b: Builder, x: str) -> str:
    """Windows x 1 x tokens x tokens: whether two tokens of a window come from different regions."""
    regions = b.slice(x, 2, 0, 1)  # stands for the region of every token
    apart = b.sub(b.reshape(regions, (0, 1, TOKENS)), regions)
    mask = b.activation("threshold", apart, name="masked_fill", module=False)
    return b.reshape(mask, (0, 1, TOKENS, TOKENS))


def _merge(b: Builder, x: str, size: Map, width: int) -> str:
    """Four neighbours joined, normalised and reduced to twice the width."""
    odd = (size[0] % 2, size[1] % 2)
    if any(odd):
        x = b.pad(x, ((0, 0), (0, odd[0]), (0, odd[1]), (0, 0)))
    ends = (size[0] + odd[0], size[1] + odd[1])
    parts = [
        b.add_node("slice", (x,), Slice((1, 2), (row, column), ends, (2, 2)))[0]
        for row, column in ((0, 0), (1, 0), (0, 1), (1, 1))
    ]
    x = b.layer_norm(b.concat(*parts, axis=-1), name="norm")
    return b.linear(x, 2 * width, bias=False, name="reduction")
