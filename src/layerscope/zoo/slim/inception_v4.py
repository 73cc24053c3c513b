"""Inception v4 of Szegedy and others 2016 as TF-Slim has it, without its training head."""

from __future__ import annotations

from layerscope.builder import Builder
from layerscope.graph.types import Graph
from layerscope.zoo.slim.inception import Branches, Fork, SlimLayer, average, chain, halving, mixed
from layerscope.zoo.slim.layers import VALID, logits

CLASSES = 1001  # ImageNet's and one for background

STEM = (
    halving("Conv2d_1a_3x3", 32),
    SlimLayer("Conv2d_2a_3x3", 3, 32, padding=VALID),
    SlimLayer("Conv2d_2b_3x3", 3, 64),
)
WIDE: Branches = (
    (SlimLayer("Conv2d_0a_1x1", 1, 96),),
    (SlimLayer("Conv2d_0a_1x1", 1, 64), SlimLayer("Conv2d_0b_3x3", 3, 96)),
    (
        SlimLayer("Conv2d_0a_1x1", 1, 64),
        SlimLayer("Conv2d_0b_3x3", 3, 96),
        SlimLayer("Conv2d_0c_3x3", 3, 96),
    ),
    (average(), SlimLayer("Conv2d_0b_1x1", 1, 96)),
)
CROSSED: Branches = (
    (SlimLayer("Conv2d_0a_1x1", 1, 384),),
    (
        SlimLayer("Conv2d_0a_1x1", 1, 192),
        SlimLayer("Conv2d_0b_1x7", (1, 7), 224),
        SlimLayer("Conv2d_0c_7x1", (7, 1), 256),
    ),
    (
        SlimLayer("Conv2d_0a_1x1", 1, 192),
        SlimLayer("Conv2d_0b_7x1", (7, 1), 192),
        SlimLayer("Conv2d_0c_1x7", (1, 7), 224),
        SlimLayer("Conv2d_0d_7x1", (7, 1), 224),
        SlimLayer("Conv2d_0e_1x7", (1, 7), 256),
    ),
    (average(), SlimLayer("Conv2d_0b_1x1", 1, 128)),
)
FORK: Fork = (SlimLayer("Conv2d_0b_1x3", (1, 3), 256), SlimLayer("Conv2d_0c_3x1", (3, 1), 256))
LATE_FORK: Fork = (SlimLayer("Conv2d_0d_1x3", (1, 3), 256), SlimLayer("Conv2d_0e_3x1", (3, 1), 256))
FORKED: Branches = (
    (SlimLayer("Conv2d_0a_1x1", 1, 256),),
    (SlimLayer("Conv2d_0a_1x1", 1, 384), FORK),
    (
        SlimLayer("Conv2d_0a_1x1", 1, 384),
        SlimLayer("Conv2d_0b_3x1", (3, 1), 448),
        SlimLayer("Conv2d_0c_1x3", (1, 3), 512),
        LATE_FORK,
    ),
    (average(), SlimLayer("Conv2d_0b_1x1", 1, 256)),
)
BLOCKS: dict[str, Branches] = {
    "Mixed_3a": ((halving("MaxPool_0a_3x3"),), (halving("Conv2d_0a_3x3", 96),)),
    "Mixed_4a": (
        (SlimLayer("Conv2d_0a_1x1", 1, 64), SlimLayer("Conv2d_1a_3x3", 3, 96, padding=VALID)),
        (
            SlimLayer("Conv2d_0a_1x1", 1, 64),
            SlimLayer("Conv2d_0b_1x7", (1, 7), 64),
            SlimLayer("Conv2d_0c_7x1", (7, 1), 64),
            SlimLayer("Conv2d_1a_3x3", 3, 96, padding=VALID),
        ),
    ),
    "Mixed_5a": ((halving("Conv2d_1a_3x3", 192),), (halving("MaxPool_1a_3x3"),)),
    **{f"Mixed_5{letter}": WIDE for letter in "bcde"},
    "Mixed_6a": (
        (halving("Conv2d_1a_3x3", 384),),
        (
            SlimLayer("Conv2d_0a_1x1", 1, 192),
            SlimLayer("Conv2d_0b_3x3", 3, 224),
            halving("Conv2d_1a_3x3", 256),
        ),
        (halving("MaxPool_1a_3x3"),),
    ),
    **{f"Mixed_6{letter}": CROSSED for letter in "bcdefgh"},
    "Mixed_7a": (
        (SlimLayer("Conv2d_0a_1x1", 1, 192), halving("Conv2d_1a_3x3", 192)),
        (
            SlimLayer("Conv2d_0a_1x1", 1, 256),
            SlimLayer("Conv2d_0b_1x7", (1, 7), 256),
            SlimLayer("Conv2d_0c_7x1", (7, 1), 320),
            halving("Conv2d_1a_3x3", 320),
        ),
        (halving("MaxPool_1a_3x3"),),
    ),
    **{f"Mixed_7{letter}": FORKED for letter in "bcd"},
}


def inception_v4() -> Graph:
    """Inception v4 on 299x299."""
    b = Builder("inception_v4-slim", separator="/")
    x = chain(b, b.input("data", (1, 3, 299, 299)), STEM)
    for name, branches in BLOCKS.items():
        x = mixed(b, x, name, branches)
    return b.build(logits(b, x, CLASSES, keep=0.8))
