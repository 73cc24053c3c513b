"""Which input positions an output position looks at, axis by axis.

An access map says, for one input of an op, which output axis each of its axes corresponds to, and
which elements along it an output element reads: `{axis: (output axis, map)}`.
An axis that is absent is looked at as a whole by every output element.
"""

from __future__ import annotations

from math import gcd

from msgspec import Struct

from layerscope.graph.types import Shape


class WindowMap(Struct, frozen=True, gc=False):
    """Output i looks at `taps` inputs from i·stride − begin on, `dilation` apart."""

    taps: int = 1
    stride: int = 1
    dilation: int = 1
    begin: int = 0

    period = 1

    @property
    def advance(self) -> int:
        """Input positions moved per period of outputs."""
        return self.stride

    def at(self, i: int) -> range:
        """Input positions that output i looks at."""
        start = i * self.stride - self.begin
        return range(start, start + self.taps * self.dilation, self.dilation)


class TransposedMap(Struct, frozen=True, gc=False):
    """A slide transposed: output i looks at inputs j with j·stride − begin + t·dilation = i."""

    taps: int
    stride: int = 1
    dilation: int = 1
    begin: int = 0

    advance = 1

    @property
    def period(self) -> int:
        """Outputs after which the pattern repeats."""
        return self.stride

    def at(self, i: int) -> range:
        """Input positions that output i looks at, none where the stride leaves a hole."""
        common = gcd(self.stride, self.dilation)
        position = i + self.begin
        every = self.stride // common  # taps that land on an input are this far apart
        first = next(
            (
                t
                for t in range(min(every, self.taps))
                if (position - t * self.dilation) % self.stride == 0
            ),
            None,
        )
        if first is None:
            return range(0)
        count = (self.taps - 1 - first) // every + 1
        high = (position - first * self.dilation) // self.stride
        step = every * self.dilation // self.stride
        return range(high - (count - 1) * step, high + 1, step)


class Resample(Struct, frozen=True, gc=False):
    """Output i looks at `taps` inputs around i·down/up, as resizing by up/down does.

    `half` is the pixel-centre rule (i + ½)·down/up − ½; otherwise i·down/up. One tap is the floor
    of i·down/up, the nearest-neighbour rule of the engines.
    """

    up: int
    down: int
    taps: int = 1
    half: bool = True

    @property
    def period(self) -> int:
        """Outputs after which the pattern repeats."""
        return self.up

    @property
    def advance(self) -> int:
        """Input positions moved per period of outputs."""
        return self.down

    def at(self, i: int) -> range:
        """Input positions that output i looks at with a weight that is not zero."""
        if self.taps == 1:
            start = i * self.down // self.up
            return range(start, start + 1)
        if self.half:
            position, unit = (2 * i + 1) * self.down - self.up, 2 * self.up
        else:
            position, unit = i * self.down, self.up
        start, rest = divmod(position, unit)
        if rest == 0:
            return range(start, start + 1)
        return range(start - self.taps // 2 + 1, start + self.taps // 2 + 1)


class Bins(Struct, frozen=True, gc=False):
    """Output i looks at the i-th of `count` bins over `size` inputs; neighbours may share one."""

    size: int
    count: int

    @property
    def period(self) -> int:
        """Outputs after which the pattern repeats."""
        return self.count

    @property
    def advance(self) -> int:
        """Input positions moved per period of outputs."""
        return self.size

    def at(self, i: int) -> range:
        """Input positions that output i looks at."""
        return range(i * self.size // self.count, -(-(i + 1) * self.size // self.count))


class SliceMap(Struct, frozen=True, gc=False):
    """Output i looks at input i − start where that exists: one part of a join along this axis."""

    start: int
    length: int

    period = 0  # never repeats
    advance = 0

    def at(self, i: int) -> range:
        """Input positions that output i looks at, none outside this part."""
        j = i - self.start
        return range(j, j + 1) if 0 <= j < self.length else range(0)


Map = WindowMap | TransposedMap | Resample | Bins | SliceMap
AccessMap = dict[int, tuple[int, Map]]

SAME = WindowMap()
NOT_READ: AccessMap = {-1: (-1, SAME)}  # only the shape of this input matters


def pointwise(inputs: tuple[Shape, ...], output: Shape) -> tuple[AccessMap, ...]:
    """Each output element reads the input element at its index, broadcast along axes of size 1."""
    return tuple(
        {
            axis: (axis + len(output) - len(shape), SAME)
            for axis in range(len(shape))
            if shape[axis] == output[axis + len(output) - len(shape)]
        }
        for shape in inputs
    )


def everything(inputs: tuple[Shape, ...]) -> tuple[AccessMap, ...]:
    """Every output element looks at all of every input."""
    return tuple({} for _ in inputs)


def keep(axes: range | tuple[int, ...]) -> AccessMap:
    """These axes stay as and where they are; the others are looked at as a whole."""
    return {axis: (axis, SAME) for axis in axes}
