"""Windows that a row leaves open: strides, paddings and rounding that give its output size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product

from msgspec import Struct
from msgspec.structs import replace

from layerscope.formats.document.rows import LayerRow
from layerscope.graph.attributes.window import Rounding, Window
from layerscope.graph.types import Shape

DILATIONS = (1, 2, 3, 4)  # that a row may leave out
STRIDES = 32  # the largest stride that a row may leave out
OPTIONS = 6  # strides of an axis that are tried
ROUNDINGS: tuple[Rounding, ...] = ("floor", "ceil", "torch")
KERNEL = 64  # the largest kernel whose paddings are tried one by one


def windows(row: LayerRow, kernel: Sequence[int], sizes: Shape, *, pool: bool) -> Iterator[Window]:
    """Windows of this kernel over `sizes` that agree with the row, the usual one first."""
    if row.dilation is not None or pool or row.output is None:
        yield from _windows(row, kernel, sizes, pool=pool)
        return
    for step in DILATIONS:
        dilated = replace(row, dilation=(step,) * len(sizes))
        yield from _windows(dilated, kernel, sizes, pool=False)


def _windows(row: LayerRow, kernel: Sequence[int], sizes: Shape, *, pool: bool) -> Iterator[Window]:
    rank = len(sizes)
    dilation = row.dilation or (1,) * rank
    fixed = (row.stride, row.pads, dilation, kernel)
    if any(part is not None and len(part) != rank for part in fixed):
        return
    if not rank or min((*kernel, *dilation, *(row.stride or (1,)))) < 1:
        return
    if row.pads is not None and min(map(min, row.pads)) < 0:
        return
    out = row.output[2:] if row.output is not None else None
    if out is not None and len(out) != rank:
        out = (*out, *(1,) * (rank - len(out))) if len(out) < rank else None
    first = (row.rounding,) if row.rounding else ()
    roundings = dict.fromkeys((*first, *ROUNDINGS)) if pool else ROUNDINGS[:1]
    for rounding in roundings:
        axes = []
        for n in range(rank):
            extent = (kernel[n] - 1) * dilation[n] + 1
            stride = None if row.stride is None else row.stride[n]
            pads = None if row.pads is None else row.pads[n]
            axis = _Axis(sizes[n], extent, None if out is None else out[n], pool, rounding)
            found = axis.first(stride, pads)
            if found is None:
                break
            axes.append(found)
        else:
            strides, paddings = zip(*axes, strict=True) if axes else ((), ())
            if strides and min(strides) > 0:
                yield Window(tuple(kernel), strides, paddings, tuple(dilation), rounding)


def transposed(
    row: LayerRow, kernel: Sequence[int], sizes: Shape
) -> Iterator[tuple[Window, tuple[int, ...]]]:
    """Windows of a transposed convolution that give the printed output, and its output padding."""
    rank = len(sizes)
    out = (row.output or ())[2:]
    fixed = (row.stride, row.pads, row.dilation, kernel)
    if len(out) != rank or any(part is not None and len(part) != rank for part in fixed):
        return
    for dilation in [row.dilation] if row.dilation else [(step,) * rank for step in DILATIONS]:
        if min((*kernel, *dilation, *(row.stride or (1,)))) < 1:
            return
        axes = []
        for n in range(rank):
            axis = _TransposedAxis(sizes[n], kernel[n], dilation[n], out[n])
            stride = None if row.stride is None else row.stride[n]
            pads = None if row.pads is None else row.pads[n]
            axes.append(tuple(islice(axis.options(stride, pads), OPTIONS)))
        for found in product(*axes):
            strides, paddings, extra = zip(*found, strict=True)
            if row.same and any(o != n * s for o, n, s in zip(out, sizes, strides, strict=True)):
                continue
            yield Window(tuple(kernel), strides, row.same or paddings, tuple(dilation)), extra


class _TransposedAxis(Struct, frozen=True):
    """One axis of a transposed convolution, and its printed output."""

    size: int
    kernel: int
    dilation: int
    out: int

    def options(
        self, stride: int | None, pads: tuple[int, int] | None
    ) -> Iterator[tuple[int, tuple[int, int], int]]:
        """Strides with a padding and an output padding that give the output, the usual first."""
        near = max(1, round(self.out / max(self.size, 1)))
        extent = (self.kernel - 1) * self.dilation + 1
        steps = dict.fromkeys((near, *range(1, STRIDES + 1))) if stride is None else (stride,)
        unusual = []
        for step in steps:
            rest = (self.size - 1) * step + extent - self.out
            most = max(step, self.dilation)  # the output padding is below it
            if pads is not None:
                extra = sum(pads) - rest
                if min(pads) >= 0 and 0 <= extra < most:
                    yield step, pads, extra
            elif rest >= 0 or -rest < most:
                begin = max(rest, 0) // 2
                found = step, (begin, max(rest, 0) - begin), max(-rest, 0)
                if found[1][1] < extent:
                    yield found
                else:
                    unusual.append(found)
        yield from unusual


class _Axis(Struct, frozen=True):
    """One axis of a window: the input, the extent of the kernel, and the printed output."""

    size: int
    extent: int
    out: int | None
    pool: bool
    rounding: Rounding

    def first(
        self, stride: int | None, pads: tuple[int, int] | None
    ) -> tuple[int, tuple[int, int]] | None:
        """The first stride and padding that give the output; what is given stays as it is."""
        if self.out is None:
            step = stride if stride is not None else self.extent if self.pool else 1
            return step, pads if pads is not None else (0, 0)
        half = (self.extent - 1) // 2
        usual = [(0, 0), (half, half)] if self.pool else [(half, half), (0, 0)]
        for paddings in (usual, [*self._unusual()]):
            for step in self._strides() if stride is None else (stride,):
                for pad in paddings if pads is None else (pads,):
                    if self._positions(step, sum(pad)) == self.out:
                        return step, pad
        return None

    def _positions(self, step: int, padding: int) -> int:
        room = self.size + padding - self.extent
        if room < 0 or step < 1:
            return 0
        return (room if self.rounding == "floor" else room + step - 1) // step + 1

    def _strides(self) -> Iterator[int]:
        """Strides from the likeliest on: of a pool its kernel, else from 1."""
        near = max(1, round(self.size / max(self.out or 1, 1)))
        first = [self.extent, near] if self.pool and (self.out or 0) < self.size else []
        yield from dict.fromkeys(first)
        yield from (step for step in (*range(1, STRIDES + 1), near) if step not in first)

    def _unusual(self) -> Iterator[tuple[int, int]]:
        """Other paddings: any up to half a kernel, then uneven ones, then less than a kernel."""
        half, most = min(self.extent // 2, KERNEL), min(self.extent - 1, KERNEL)
        for first, last in ((0, half), (half + 1, most)):
            yield from ((pad, pad) for pad in range(max(first, 1), last + 1))
            for pad in range(first, last + 1):
                yield pad, pad + 1
                yield pad + 1, pad
