"""U-Net of Ronneberger, Fischer and Brox 2015 as the paper draws it, named as in its Caffe file.

That file rectifies after up-convolutions and gives the last of them 128 channels; the drawing does
neither. No convolution pads, so maps from the way down are cut to those on the way up.
"""

from __future__ import annotations

from itertools import pairwise

from layerscope.builder import Builder
from layerscope.graph.types import Graph

WIDTHS = (64, 128, 256, 512, 1024)
DROPPED = 2  # of the lowest levels, in training
CLASSES = 2


def unet(widths: tuple[int, ...] = WIDTHS, *, kernel: int = 3) -> Graph:
    """U-Net of one level for each width; `kernel` is the window of its double convolutions."""
    b = Builder("unet", separator="/")
    x = b.input("data", (1, 1, 572, 572))
    bottom = len(widths) - 1
    levels = []
    for n, width in enumerate(widths):
        x = _twice(b, x, width, kernel, [f"d{n}{letter}" for letter in "abc"])
        if n > bottom - DROPPED:
            x = b.dropout(x, in_place=True, name=f"dropout_d{n}c")
        levels.append(x)
        if n < bottom:
            x = b.max_pool(x, 2, name=f"pool_d{n}c-{n + 1}a")
    lost = 0  # rows and columns at this level that the way down and up has taken from one side
    source = f"d{bottom}c"
    for n in reversed(range(bottom)):
        lost = 2 * (lost + 2 * (kernel // 2))
        up = b.conv_transpose(x, widths[n], 2, stride=2, name=f"upconv_{source}_u{n}a")
        cut = b.crop(levels[n], up, offset=lost, name=f"crop_d{n}c-d{n}cc")
        x = b.concat(up, cut, name=f"concat_d{n}cc_u{n}a-b")
        x = _twice(b, x, widths[n], kernel, [f"u{n}{letter}" for letter in "bcd"])
        lost += 2 * (kernel // 2)
        source = f"u{n}d"
    return b.build(b.conv(x, CLASSES, 1, name="conv_u0d-score"))


def _twice(b: Builder, x: str, width: int, kernel: int, maps: list[str]) -> str:
    """Two convolutions between three feature maps of these names, such as d0a, d0b and d0c."""
    for before, after in pairwise(maps):
        x = b.conv(x, width, kernel, name=f"conv_{before}-{after[-1]}")
        x = b.relu(x, in_place=True, name=f"relu_{after}")
    return x
