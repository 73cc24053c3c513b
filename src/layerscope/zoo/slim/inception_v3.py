"""Inception v3 of Szegedy and others 2015 as TF-Slim has it, without its training head."""

from __future__ import annotations

from layerscope.builder import Builder
from layerscope.graph.types import Graph
from layerscope.zoo.slim.inception import Branches, Fork, SlimLayer, average, chain, halving, mixed
from layerscope.zoo.slim.layers import VALID, logits

STEM = (
    halving("Conv2d_1a_3x3", 32),
    SlimLayer("Conv2d_2a_3x3", 3, 32, padding=VALID),
    SlimLayer("Conv2d_2b_3x3", 3, 64),
    halving("MaxPool_3a_3x3"),
    SlimLayer("Conv2d_3b_1x1", 1, 80, padding=VALID),
    SlimLayer("Conv2d_4a_3x3", 3, 192, padding=VALID),
    halving("MaxPool_5a_3x3"),
)


def _wide(projected: int, names: tuple[str, str] = ("Conv2d_0a_1x1", "Conv2d_0b_5x5")) -> Branches:
    reduction, five = names
    return (
        (SlimLayer("Conv2d_0a_1x1", 1, 64),),
        (SlimLayer(reduction, 1, 48), SlimLayer(five, 5, 64)),
        (
            SlimLayer("Conv2d_0a_1x1", 1, 64),
            SlimLayer("Conv2d_0b_3x3", 3, 96),
            SlimLayer("Conv2d_0c_3x3", 3, 96),
        ),
        (average(), SlimLayer("Conv2d_0b_1x1", 1, projected)),
    )


def _crossed(narrow: int) -> Branches:
    return (
        (SlimLayer("Conv2d_0a_1x1", 1, 192),),
        (
            SlimLayer("Conv2d_0a_1x1", 1, narrow),
            SlimLayer("Conv2d_0b_1x7", (1, 7), narrow),
            SlimLayer("Conv2d_0c_7x1", (7, 1), 192),
        ),
        (
            SlimLayer("Conv2d_0a_1x1", 1, narrow),
            SlimLayer("Conv2d_0b_7x1", (7, 1), narrow),
            SlimLayer("Conv2d_0c_1x7", (1, 7), narrow),
            SlimLayer("Conv2d_0d_7x1", (7, 1), narrow),
            SlimLayer("Conv2d_0e_1x7", (1, 7), 192),
        ),
        (average(), SlimLayer("Conv2d_0b_1x1", 1, 192)),
    )


def _forked(tall: str) -> Branches:
    fork: Fork = (SlimLayer("Conv2d_0b_1x3", (1, 3), 384), SlimLayer(tall, (3, 1), 384))
    late: Fork = (SlimLayer("Conv2d_0c_1x3", (1, 3), 384), SlimLayer("Conv2d_0d_3x1", (3, 1), 384))
    return (
        (SlimLayer("Conv2d_0a_1x1", 1, 320),),
        (SlimLayer("Conv2d_0a_1x1", 1, 384), fork),
        (SlimLayer("Conv2d_0a_1x1", 1, 448), SlimLayer("Conv2d_0b_3x3", 3, 384), late),
        (average(), SlimLayer("Conv2d_0b_1x1", 1, 192)),
    )


# Slim's names have slips, kept here: 3x3 windows of Mixed_6a are called 1x1.
BLOCKS: dict[str, Branches] = {
    "Mixed_5b": _wide(32),
    "Mixed_5c": _wide(64, ("Conv2d_0b_1x1", "Conv_1_0c_5x5")),
    "Mixed_5d": _wide(64),
    "Mixed_6a": (
        (halving("Conv2d_1a_1x1", 384),),
        (
            SlimLayer("Conv2d_0a_1x1", 1, 64),
            SlimLayer("Conv2d_0b_3x3", 3, 96),
            halving("Conv2d_1a_1x1", 96),
        ),
        (halving("MaxPool_1a_3x3"),),
    ),
    "Mixed_6b": _crossed(128),
    "Mixed_6c": _crossed(160),
    "Mixed_6d": _crossed(160),
    "Mixed_6e": _crossed(192),
    "Mixed_7a": (
        (SlimLayer("Conv2d_0a_1x1", 1, 192), halving("Conv2d_1a_3x3", 320)),
        (
            SlimLayer("Conv2d_0a_1x1", 1, 192),
            SlimLayer("Conv2d_0b_1x7", (1, 7), 192),
            SlimLayer("Conv2d_0c_7x1", (7, 1), 192),
            halving("Conv2d_1a_3x3", 192),
        ),
        (halving("MaxPool_1a_3x3"),),
    ),
    "Mixed_7b": _forked("Conv2d_0b_3x1"),
    "Mixed_7c": _forked("Conv2d_0c_3x1"),
}


def inception_v3() -> Graph:
    """Inception v3 on 299x299."""
    b = Builder("inception_v3-slim", separator="/")
    x = chain(b, b.input("data", (1, 3, 299, 299)), STEM)
    for name, branches in BLOCKS.items():
        x = mixed(b, x, name, branches)
    return b.build(logits(b, x, 1000, keep=0.8))
