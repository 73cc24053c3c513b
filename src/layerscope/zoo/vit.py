"""ViT of Dosovitskiy et al. 2020 as torchvision has it; positions belong to one image size."""

from __future__ import annotations

from msgspec import Struct

from layerscope.builder import Builder
from layerscope.errors import ShapeError
from layerscope.graph.attributes import Linear
from layerscope.graph.types import Graph

EPS = 1e-6


class VitConfig(Struct, frozen=True):
    """What tells one ViT from another."""

    patch: int
    layers: int
    heads: int
    width: int
    hidden: int


CONFIGS = {
    "vit_b_16": VitConfig(patch=16, layers=12, heads=12, width=768, hidden=3072),
    "vit_b_32": VitConfig(patch=32, layers=12, heads=12, width=768, hidden=3072),
    "vit_l_16": VitConfig(patch=16, layers=24, heads=16, width=1024, hidden=4096),
    "vit_l_32": VitConfig(patch=32, layers=24, heads=16, width=1024, hidden=4096),
    "vit_h_14": VitConfig(patch=14, layers=32, heads=16, width=1280, hidden=5120),
}
BLOCK = ("ln_1", "self_attention", "dropout", "ln_2", "mlp")  # as torchvision declares its parts


def vit(name: str, height: int = 224, width: int = 224) -> Graph:
    """The ViT of that name for images of that many pixels."""
    return network(name, CONFIGS[name], height, width)


def network(name: str, config: VitConfig, height: int, width: int) -> Graph:
    """A ViT of this configuration, with a position embedding for every patch of the image."""
    patch = config.patch
    if height < patch or width < patch or height % patch or width % patch:
        raise ShapeError(
            f"{name}: an image of {height}x{width}, expected multiples of {patch} for height and "
            "width"
        )
    b = Builder(name, "VisionTransformer")
    x = b.input("data", (1, 3, height, width))
    x = b.conv(x, config.width, config.patch, stride=config.patch, name="conv_proj")
    x = b.permute(b.reshape(x, (0, config.width, -1)), (0, 2, 1))
    first = b.table(x, (1, 1, config.width), batched=True, name="class_token")
    x = b.concat(first, x, axis=1)
    with b.scope("encoder", "Encoder", order=("dropout", "layers", "ln")):
        tokens = (height // patch) * (width // patch) + 1
        positions = b.table(x, (1, tokens, config.width), name="pos_embedding")
        x = b.dropout(b.add(x, positions, name="add"), 0.0, name="dropout")
        with b.scope("layers", "Sequential"):
            for n in range(config.layers):
                with b.scope(f"encoder_layer_{n}", "EncoderBlock", order=BLOCK):
                    x = _block(b, x, config)
        x = b.layer_norm(x, eps=EPS, name="ln")
    x = b.flatten(b.slice(x, 1, 0, 1), name="flatten")
    with b.scope("heads", "Sequential"):
        x = b.linear(x, 1000, name="head")
    return b.build(x)


def _block(b: Builder, x: str, config: VitConfig) -> str:
    y = b.layer_norm(x, eps=EPS, name="ln_1")
    with b.scope("self_attention", "MultiheadAttention"):
        y = _attention(b, y, config)
    x = b.add(b.dropout(y, 0.0, name="dropout"), x)
    y = b.layer_norm(x, eps=EPS, name="ln_2")
    with b.scope("mlp", "MLPBlock"):
        y = mlp(b, y, config.hidden, config.width)
    return b.add(x, y)


def _attention(b: Builder, x: str, config: VitConfig) -> str:
    """nn.MultiheadAttention: one matrix for queries, keys and values, which is no module."""
    projection = Linear(3 * config.width)
    packed = b.add_node("linear", (x,), projection, name="in_proj", module=False)[0]
    q, k, v = b.split(packed, (config.width,) * 3, axis=-1, name="split")
    x = b.attention(q, k, v, heads=config.heads, name="attention")
    return b.linear(x, config.width, name="out_proj")


def mlp(b: Builder, x: str, hidden: int, width: int) -> str:
    """Torchvision's MLP: two linear layers with GELU between them."""
    x = b.activation("gelu", b.linear(x, hidden, name="0"), name="1")
    x = b.linear(b.dropout(x, 0.0, name="2"), width, name="3")
    return b.dropout(x, 0.0, name="4")
