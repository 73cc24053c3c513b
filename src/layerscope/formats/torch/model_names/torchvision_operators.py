"""Operators of a torchvision that is installed without its compiled library.

`pip install --no-deps torchvision` beside another build of PyTorch leaves it without them, and then
no detector runs. The schemas of those that torchvision's own models call are declared, and they get
kernels in Python while a model that was built by its name is captured. So the layers are the same
as with the compiled operators.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from threading import Lock
from types import ModuleType
from typing import TYPE_CHECKING

from layerscope.formats.torch.capture import the_torch

if TYPE_CHECKING:
    from torch import Tensor
    from torch.library import Library

SCHEMAS = {
    "nms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "roi_align": (
        "(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width, "
        "int sampling_ratio, bool aligned) -> Tensor"
    ),
}
# Functions of torchvision that refuse to run without its library, by the module that calls them.
GUARDS = {
    "torchvision.ops.boxes": ("_assert_has_ops",),
    "torchvision.ops.roi_align": ("_assert_has_ops", "_has_ops"),
}

_LIBRARIES: list[Library] = []  # a schema exists as long as the library that declared it


def declare_operators(torch: ModuleType) -> None:
    """Declare the schemas that are missing: torchvision cannot be imported without that of nms."""
    for name, schema in SCHEMAS.items():
        if not hasattr(torch.ops.torchvision, name):
            library = torch.library.Library("torchvision", "FRAGMENT")
            library.define(name + schema)
            _LIBRARIES.append(library)


class _Kernels:
    """Kernels in Python for as long as captures need them; threads share them."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.captures = 0
        self.library: Library | None = None
        self.guards: list[tuple[ModuleType, str, object]] = []  # as torchvision defines them

    def enter(self) -> None:
        with self.lock:
            self.captures += 1
            if self.captures > 1:
                return
            self.library = the_torch().library.Library("torchvision", "IMPL")
            self.library.impl("nms", nms, "CPU")
            self.library.impl("roi_align", roi_align, "CPU")
            for path, names in GUARDS.items():
                module = sys.modules[path]
                for name in names:
                    self.guards.append((module, name, getattr(module, name)))
                    setattr(module, name, _has_operators)

    def leave(self) -> None:
        with self.lock:
            self.captures -= 1
            if self.captures:
                return
            for module, name, function in self.guards:
                setattr(module, name, function)
            self.guards.clear()
            if self.library is not None:
                self.library._destroy()
                self.library = None


_KERNELS = _Kernels()


def _has_operators() -> bool:
    return True


@contextmanager
def python_operators() -> Iterator[None]:
    """A context in which a torchvision without compiled operators has nms and roi_align."""
    extension = sys.modules.get("torchvision.extension")
    if extension is None or extension._has_ops() or not all(name in sys.modules for name in GUARDS):
        yield
        return
    _KERNELS.enter()
    try:
        yield
    finally:
        _KERNELS.leave()


# Kernels


def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Non-maximum suppression: indices of the boxes that no better box overlaps too much."""
    torch = the_torch()
    rest = scores.sort(stable=True, descending=True).indices
    low, high = dets[:, :2], dets[:, 2:]
    area = (high - low).prod(1)
    chosen: list[Tensor] = []
    while rest.numel():
        best, rest = rest[0], rest[1:]
        chosen.append(best)
        sides = torch.minimum(high[best], high[rest]) - torch.maximum(low[best], low[rest])
        common = sides.clamp(min=0).prod(1)
        overlap = common / (area[best] + area[rest] - common)
        rest = rest[~(overlap > iou_threshold)]  # an empty box overlaps none: NaN is not above
    return torch.stack(chosen) if chosen else rest


def roi_align(input: Tensor, rois: Tensor, spatial_scale: float, *pooling: int) -> Tensor:
    """Means of bilinear samples in each bin of each box: K x C x height x width."""
    height, width, ratio, aligned = pooling
    channels = input.shape[1]
    out = input.new_empty((len(rois), channels, height, width))
    shift = 0.5 if aligned else 0.0
    least = float("-inf") if aligned else 1.0  # the older form has no box below one element
    for n, (image, *corners) in enumerate(rois.tolist()):
        left, top, right, bottom = (corner * spatial_scale - shift for corner in corners)
        rows = _Samples(top, max(bottom - top, least), height, ratio, input.shape[2])
        columns = _Samples(left, max(right - left, least), width, ratio, input.shape[3])
        values = columns.of(rows.of(input[int(image)], 1), 2)
        bins = values.view(channels, height, rows.count, width, columns.count)
        out[n] = bins.sum((2, 4)) / max(rows.count * columns.count, 1)
    return out


class _Samples:
    """Positions along one axis at which features are interpolated: `count` in each bin."""

    def __init__(self, start: float, extent: float, bins: int, ratio: int, size: int) -> None:
        torch = the_torch()
        self.count = ratio if ratio > 0 else max(ceil(extent / bins), 0)
        steps = (torch.arange(bins * self.count) + 0.5) / max(self.count, 1)
        at = start + steps * (extent / bins)
        inside = (at >= -1) & (at <= size)  # samples further outside are zero
        at = at.clamp(0, size - 1)
        self.low = at.long()
        self.high = (self.low + 1).clamp(max=size - 1)
        self.high_weight = (at - self.low) * inside
        self.low_weight = inside * (1 - at + self.low)

    def of(self, features: Tensor, axis: int) -> Tensor:
        """Features, interpolated along an axis."""
        shape = [1] * features.dim()
        shape[axis] = -1
        low, high = (
            features.index_select(axis, index) * weight.view(shape).to(features.dtype)
            for index, weight in ((self.low, self.low_weight), (self.high, self.high_weight))
        )
        return low + high
