"""What the numbers of an input have to be like, where any will not do."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from layerscope.graph import attributes as at
from layerscope.graph.types import Shape, elements
from tests.brute.arrays import places, split_axes

DOMAINS: dict[str, tuple[str, ...]] = {
    "log": ("positive",),
    "sqrt": ("positive",),
    "div": ("any", "positive"),
    "pow": ("positive", "any"),
    "softmax_loss": ("any", "labels"),
    "nll_loss": ("any", "labels"),
    "accuracy": ("any", "labels"),
    "log_loss": ("positive", "labels"),
    "infogain_loss": ("any", "labels"),
    "power": ("positive",),
    "stochastic_pool": ("positive",),
    "global_stochastic_pool": ("positive",),
    "pyramid_stochastic_pool": ("positive",),
    "unpool": ("any", "spots"),
    "psroi_pool": ("any", "regions"),
    "roi_pool": ("any", "regions"),
    "roi_align": ("any", "boxes", "images"),
    "nms": ("apart", "positive"),
    "grid_sample": ("any", "grid"),
    "batch_norm": ("any", "any", "any", "any", "positive"),
    "deform_conv": ("any", "small", "any"),
    "compress": ("any", "ones"),
    "unique": ("distinct",),
    "reverse_sequence": ("any", "lengths"),
    "rsqrt": ("positive",),
    "log1p": ("positive",),
    "asin": ("small",),
    "acos": ("small",),
    "atanh": ("small",),
    "acosh": ("large",),
    "not": ("flags",),
    "bitwise_not": ("bits",),
    "logical": ("flags", "flags"),
    "bitwise": ("bits", "bits"),
    "mod": ("any", "positive"),
    "floor_div": ("any", "positive"),
    "atan2": ("any", "positive"),
    "reduce_log_sum": ("positive",),
    "reduce_any": ("flags",),
    "reduce_all": ("flags",),
    "gather_nd": ("any", "spread"),
    "scatter_nd": ("any", "spread", "any"),
    "one_hot": ("depths",),
    "gather": ("any", "indices"),
    "scatter": ("any", "indices", "any"),
    "where": ("flags", "any", "any"),
    "embedding": ("rows",),
    "positions": ("rows",),
    "dequantize": ("narrow",),
    "masked_scatter": ("any", "flags", "any"),
    "embedding_bag": ("rows", "any", "any"),
}
WHOLE = ("labels", "indices", "rows", "images", "bits", "spread", "depths", "lengths")  # int64
RANGES = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-(2**15), 2**15 - 1)}

# Numbers of the n-th input, row by row, from what the op was told and the shapes of all inputs.
Filler = Callable[[Any, tuple[Shape, ...], int, random.Random], list[float]]


def labels(told: Any, inputs: tuple[Shape, ...], n: int, luck: random.Random) -> list[float]:
    classes = inputs[0][(told or at.Softmax()).axis]
    return [luck.randrange(classes) for _ in range(elements(inputs[n]))]


def regions(told: Any, inputs: tuple[Shape, ...], n: int, luck: random.Random) -> list[float]:
    """Each as large as the map of its image."""
    images, _, height, width = inputs[0]
    corners = [0, 0, (width - 1) / told.scale, (height - 1) / told.scale]
    return [number for i in range(inputs[n][0]) for number in (i % images, *corners)]


def boxes(told: Any, inputs: tuple[Shape, ...], n: int, luck: random.Random) -> list[float]:
    """Some reach over the edge of the map; in front of five columns, the image."""
    images, _, *sizes = inputs[0]
    made: list[float] = []
    for i in range(inputs[n][0]):
        made += [i % images] * (inputs[n][1] == 5)
        first = [luck.randint(-16, 16 * size) / 16 for size in reversed(sizes)]
        last = [start + luck.randint(16, 64) / 16 for start in first]
        made += [corner / told.scale for corner in (*first, *last)]
    return made


def images(told: Any, inputs: tuple[Shape, ...], n: int, luck: random.Random) -> list[float]:
    return [luck.randrange(inputs[0][0]) for _ in range(elements(inputs[n]))]


def apart(told: Any, inputs: tuple[Shape, ...], n: int, luck: random.Random) -> list[float]:
    """Boxes of which no two overlap, so that as many are kept as may be."""
    count, each, _ = inputs[n]
    return [
        number for _ in range(count) for i in range(each) for number in (i, i, i + 0.75, i + 0.5)
    ]


def grid(told: Any, inputs: tuple[Shape, ...], n: int, luck: random.Random) -> list[float]:
    """From −1 at one edge of the map to 1 at the other, and a little past them."""
    return [luck.randint(-80, 80) / 64 for _ in range(elements(inputs[n]))]


def indices(told: Any, inputs: tuple[Shape, ...], n: int, luck: random.Random) -> list[float]:
    """Along the axis, none twice where that may be: which of two writes wins is not defined."""
    axis = told.axis if told else 0
    size, shape = inputs[0][axis], inputs[n]
    if len(shape) != len(inputs[0]):
        return [luck.randrange(size) for _ in range(elements(shape))]
    made: dict[tuple[int, ...], float] = {}
    for group in split_axes(shape, [axis % len(shape)]):
        several = len(group) > size
        chosen = luck.choices(range(size), k=len(group)) if several else None
        made.update(zip(group, chosen or luck.sample(range(size), len(group)), strict=True))
    return [made[index] for index in places(shape)]


def spots(told: Any, inputs: tuple[Shape, ...], n: int, luck: random.Random) -> list[float]:
    """Places in a plane twice as wide and high, none twice, nor outside a shorter one."""
    images, channels, height, width = inputs[n]
    room = range(4 * height * width - 2 * width)
    planes = (luck.sample(room, height * width) for _ in range(images * channels))
    return [spot for plane in planes for spot in plane]


def rows(told: Any, inputs: tuple[Shape, ...], n: int, luck: random.Random) -> list[float]:
    return [luck.randrange(told.rows if told else 9) for _ in range(elements(inputs[n]))]


def flags(told: Any, inputs: tuple[Shape, ...], n: int, luck: random.Random) -> list[float]:
    return [luck.randrange(2) for _ in range(elements(inputs[n]))]


def allowed(told: Any, inputs: tuple[Shape, ...], n: int, luck: random.Random) -> list[float]:
    """Of every row at least the first."""
    return [float(i[-1] == 0 or luck.random() < 0.5) for i in places(inputs[n])]


def distinct(told: Any, inputs: tuple[Shape, ...], n: int, luck: random.Random) -> list[float]:
    return [value / 64 for value in luck.sample(range(-500, 500), elements(inputs[n]))]


def ones(told: Any, inputs: tuple[Shape, ...], n: int, luck: random.Random) -> list[float]:
    return [1.0] * elements(inputs[n])


def lengths(told: Any, inputs: tuple[Shape, ...], n: int, luck: random.Random) -> list[float]:
    return [luck.randint(1, inputs[0][told.time_axis]) for _ in range(elements(inputs[n]))]


def narrow(told: Any, inputs: tuple[Shape, ...], n: int, luck: random.Random) -> list[float]:
    low, high = RANGES[told.dtype if told else "int8"]
    return [luck.randint(low, high) for _ in range(elements(inputs[n]))]


def small(told: Any, inputs: tuple[Shape, ...], n: int, luck: random.Random) -> list[float]:
    return [luck.randint(-48, 48) / 64 for _ in range(elements(inputs[n]))]


def large(told: Any, inputs: tuple[Shape, ...], n: int, luck: random.Random) -> list[float]:
    return [luck.randint(72, 192) / 64 for _ in range(elements(inputs[n]))]


def bits(told: Any, inputs: tuple[Shape, ...], n: int, luck: random.Random) -> list[float]:
    return [luck.randrange(16) for _ in range(elements(inputs[n]))]


def depths(told: Any, inputs: tuple[Shape, ...], n: int, luck: random.Random) -> list[float]:
    return [luck.randrange(told.depth) for _ in range(elements(inputs[n]))]


def spread(told: Any, inputs: tuple[Shape, ...], n: int, luck: random.Random) -> list[float]:
    """Places in the axes of the data that follow the batch, none twice where that may be."""
    batch = getattr(told, "batch", 0)
    shape = inputs[n]
    room = list(places(inputs[0][batch : batch + shape[-1]]))
    count = elements(shape[:-1])
    chosen = luck.sample(room, count) if count <= len(room) else luck.choices(room, k=count)
    return [number for place in chosen for number in place]


FILLERS: dict[str, Filler] = {
    "labels": labels,
    "regions": regions,
    "boxes": boxes,
    "images": images,
    "apart": apart,
    "grid": grid,
    "indices": indices,
    "rows": rows,
    "spots": spots,
    "flags": flags,
    "narrow": narrow,
    "allowed": allowed,
    "distinct": distinct,
    "ones": ones,
    "lengths": lengths,
    "small": small,
    "large": large,
    "bits": bits,
    "depths": depths,
    "spread": spread,
}
