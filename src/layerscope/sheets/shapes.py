"""Sizes in cells: 224x224x64, [-1, 64, 112, 112], (None, 28, 28, 1), 3x3/2, 7,0,2."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from msgspec import Struct

from layerscope.sheets.kinds import plain

NUMBER = r"(?:\d{1,3}(?:,\d{3}){1,12}|\d{1,40})"
LONG = re.compile(r"\d{41}")  # no size
AXES = re.compile(r"([bnchw])\s*:\s*(\d{1,40})")
UNKNOWN = re.compile(r"none|-1|\?|\bn\b|\bbatch(?:_size)?\b")
MAPS = re.compile(r"(\d{1,9})\s*@\s*(\d{1,9})\s*[x×*]\s*(\d{1,9})")  # 64 @ 32x32
SQUARED = re.compile(r"(\d{1,9})(?:\^2|²)")  # 224^2 x 3
TIMES = re.compile(r"\s*(?:times|cdot|[x×*·✕])\s*")
PRODUCT = re.compile(r"(?<=\d)\s*\\?\*\s*(?=\d)")  # other asterisks are emphasis
NUMBERS = re.compile(r"\d+")
# a split over devices: 55x55x48(x2 GPU), 13x13x128x2_GPU; (x2) alone may be a block that repeats
COPIES = re.compile(
    r"(?P<one>.*?)\s*(?P<open>\()?\s*(?:times|[x×*·✕])\s*(?P<copies>\d{1,3})[\s_]*"
    r"(?:gpu|device|tower)s?\s*(?(open)\))\s*"
)
KERNEL = re.compile(
    r"\(?\s*(?P<kernel>\d+(?:\s*[x×*,]\s*\d+)*)\s*\)?(?:\s*[x×*,]\s*(?P<many>\d+))?"
    r"(?:\s*(?:/|s\s*=?|stride)\s*(?P<stride>\d+))?(?:\s*,\s*(?P<filters>\d+))?"
)


class Size(Struct, frozen=True):
    """Channels and spatial size; None where the document does not say."""

    c: int | None = None
    h: int | None = None
    w: int | None = None

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing."""
        return None not in (self.c, self.h, self.w)


@lru_cache(maxsize=1 << 14)
def axes(text: str) -> tuple[int | None, ...]:
    """The sizes of a shape as it is printed, without a batch that is left open."""
    words = SQUARED.sub(r"\1x\1", plain(PRODUCT.sub("x", text)))
    words, copies = _without_copies(words)
    if copies > 1:
        return _with_copies(axes(words), copies)
    maps = MAPS.fullmatch(words)
    if maps:
        return tuple(map(int, maps.groups()))
    named = dict(AXES.findall(words))
    if named:
        return tuple(int(named[axis]) for axis in "chw" if axis in named)
    bracket = re.fullmatch(r"[\[(]+([^\])]*)[\])]+", words)
    if bracket:
        parts = [part.strip() for part in bracket[1].split(",") if part.strip()]
        if len(parts) == 1:
            parts = TIMES.split(parts[0])
    else:
        parts = TIMES.split(words)
        if len(parts) == 1:
            parts = words.split()
    sizes = [_size(part) for part in parts]
    if any(size is NotImplemented for size in sizes):
        return ()
    if sizes and sizes[0] is None:
        sizes = sizes[1:]
    return tuple(size if isinstance(size, int) else None for size in sizes)


def _without_copies(words: str) -> tuple[str, int]:
    """A size without the number of devices that each have such a part, and this number."""
    match = COPIES.fullmatch(words)
    return (match["one"], int(match["copies"])) if match else (words, 1)


def _with_copies(shape: tuple[int | None, ...], copies: int) -> tuple[int | None, ...]:
    """The shape of all parts together: they split the channels."""
    if not shape:
        return shape
    at = -1 if channels_last([shape]) else 0
    parts = [*shape]
    size = parts[at]
    parts[at] = None if size is None else size * copies
    return tuple(parts)


def _size(text: str) -> int | object | None:
    if UNKNOWN.fullmatch(text):
        return None
    return int(text.replace(",", "")) if re.fullmatch(NUMBER, text) else NotImplemented


def channels_last(shapes: Iterable[Sequence[int | None]]) -> bool:
    """Whether shapes of three axes are height, width, channels: which two axes are equal."""
    first, last = orders(shapes)
    return last >= first


def orders(shapes: Iterable[Sequence[int | None]]) -> tuple[int, int]:
    """How many shapes show their channels first, and how many last."""
    first = last = 0
    for whole_shape in shapes:
        shape = whole_shape[1:] if len(whole_shape) == 4 else whole_shape
        if len(shape) == 3 and None not in shape:
            last += shape[0] == shape[1] != shape[2]
            first += shape[1] == shape[2] != shape[0]
    return first, last


def last_axis_of(shape: Sequence[int | None], usual: bool) -> bool:
    """Whether one shape has its channels last; the usual order if it does not show one."""
    first, last = orders([shape])
    return bool(last) if first != last else usual


def sized(shape: Sequence[int | None], last: bool) -> Size:
    """Channels, height and width of a shape."""
    if len(shape) == 3:
        return Size(shape[2], shape[0], shape[1]) if last else Size(*shape)
    if len(shape) == 1:
        return Size(shape[0], 1, 1)
    return Size()


def spatial(text: str) -> tuple[int, int] | None:
    """Height and width of a cell that has no channels: 55x55, or 55 for both."""
    found = axes(text)
    if len(found) == 1 and found[0] is not None:
        return found[0], found[0]
    if len(found) == 2 and found[0] is not None and found[1] is not None:
        return found[0], found[1]
    return None


class KernelCell(Struct, frozen=True):
    """Kernel, stride and filters of one cell."""

    kernel: tuple[int, ...] = ()
    stride: int | None = None
    filters: int | None = None


def window(text: str) -> KernelCell | None:
    """A kernel cell: 3, 3x3, 3 x 3 / 2, 5x5x1/1,6."""
    words, copies = _without_copies(plain(PRODUCT.sub("x", text)))
    words = re.sub(r"times|cdot", "x", words)
    match = KERNEL.fullmatch(words.strip())
    if match is None or LONG.search(words):
        return None
    kernel = tuple(int(n) for n in NUMBERS.findall(match["kernel"]))
    if copies > 1 and len(kernel) == 2 and kernel[0] != kernel[1]:
        kernel = (kernel[0], kernel[1] * copies)  # a matrix, whose outputs are split
    filters = match["filters"] or match["many"]
    return KernelCell(
        kernel,
        int(match["stride"]) if match["stride"] else None,
        int(filters) * copies if filters else None,
    )


def whole(text: str) -> int | None:
    """A cell that is one whole number, with commas or not."""
    words = plain(text)
    return int(words.replace(",", "")) if re.fullmatch(NUMBER, words) else None


def steps(room: int, step: int) -> tuple[int, ...]:
    """Positions of a window that has so much room: by floor, then by ceil."""
    if room < 0 or step < 1:
        return ()
    return (room // step + 1, -(-room // step) + 1)
