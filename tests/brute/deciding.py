"""Where data or offsets decide, and transforms of frequencies, from their definitions."""

from __future__ import annotations

import cmath
import math
from itertools import product

from layerscope.graph.attributes import DFT, STFT, Compress, DeformConv, ReverseSequence, Unique
from tests.brute.arrays import Array, Index, Run, fill, places, split_axes, total
from tests.brute.scalar import Scalar
from tests.brute.windows import placements, taps

Complex = tuple[Scalar, Scalar]


def deform_conv(run: Run) -> list[Array]:
    """Every sample is taken once, of four neighbours, and weighted; then a convolution of them."""
    a: DeformConv = run.attributes
    x, offsets, *masks = run.inputs
    weight = run.params["weight"]
    starts = placements(x.shape[2:], a.window)
    shape = (x.shape[0], a.out_channels, *map(len, starts))
    depth = x.shape[1] // a.groups
    each = x.shape[1] // a.offset_groups
    positions = a.window.positions

    def sample(n: int, channel: int, place: Index, number: int, at: Index) -> Scalar:
        first = channel // each * positions + number
        moved = [offsets[(n, 2 * first + axis, *at)] for axis in (0, 1)]
        row, column = (p + m.value for p, m in zip(place, moved, strict=True))
        terms = []
        for i, j in product((0, 1), (0, 1)):
            top, left = math.floor(row) + i, math.floor(column) + j
            by = (1 - abs(row - top)) * (1 - abs(column - left))
            terms.append(x.get((n, channel, top, left), run.border()) * by)
        made = total(terms)
        made.seen |= moved[0].seen | moved[1].seen
        return made * masks[0][(n, first, *at)] if masks else made

    samples: dict[Index, Scalar] = {}
    for n, channel in places(x.shape[:2]):
        for at in places(shape[2:]):
            start = tuple(starts[axis][i] for axis, i in enumerate(at))
            for number, (_, place) in enumerate(taps(a.window, start)):
                samples[(n, channel, number, *at)] = sample(n, channel, place, number, at)

    def cell(index: Index) -> Scalar:
        n, filt, *at = index
        first = filt // (a.out_channels // a.groups) * depth
        result = run.number(0.0)
        for channel in range(depth):
            for number, tap in enumerate(places(a.window.kernel)):
                taken = samples[(n, first + channel, number, *at)]
                result = result.mac(taken, weight[(filt, channel, *tap)])
        return result + run.params["bias"][(filt,)] if a.bias else result

    return [fill(shape, cell)]


def affine_grid(run: Run) -> list[Array]:
    """Every place of a picture from −1 to 1, x first, and a one behind it, by the matrix."""
    a = run.attributes
    sizes = a.size[2:]

    def along(i: int, size: int) -> float:
        if a.align_corners:
            return 2 * i / (size - 1) - 1 if size > 1 else 0.0
        return (2 * i + 1) / size - 1

    def cell(index: Index) -> Scalar:
        n, *at, row = index
        place = [along(i, size) for i, size in zip(at, sizes, strict=True)][::-1]
        result = run.number(0.0)
        for k, value in enumerate((*place, 1.0)):
            result = result.mac(run.x[(n, row, k)], run.number(value))
        return result

    return [fill((a.size[0], *sizes, len(sizes)), cell)]


def _fast(numbers: list[Complex], sign: int) -> list[Complex]:
    """Halves of even and odd places, joined by butterflies; the turns are made beforehand."""
    n = len(numbers)
    if n == 1:
        return numbers
    even, odd = _fast(numbers[::2], sign), _fast(numbers[1::2], sign)
    made: list[Complex] = [*even, *odd]
    for k in range(n // 2):
        turn = cmath.exp(sign * 2j * math.pi * k / n)
        (a, b), (c, d) = even[k], odd[k]
        real, imaginary = c * turn.real - d * turn.imag, c * turn.imag + d * turn.real
        made[k] = (a + real, b + imaginary)
        made[k + n // 2] = (a - real, b - imaginary)
    return made


def _complex(run: Run, x: Array, index: Index) -> Complex:
    return x[(*index, 0)], x[(*index, 1)] if x.shape[-1] == 2 else run.number(0.0)


def dft(run: Run) -> list[Array]:
    a: DFT = run.attributes
    x = run.x
    axis = a.axis % len(x.shape)
    n = a.length or x.shape[axis]
    kept = n // 2 + 1 if a.onesided else n
    cells: dict[Index, Scalar] = {}
    for row in split_axes(x.shape[:-1], [axis]):
        numbers = [_complex(run, x, index) for index in row[:n]]
        numbers += [(run.number(0.0), run.number(0.0))] * (n - len(numbers))
        made = _fast(numbers, 1 if a.inverse else -1)
        if a.inverse:
            made = [(real / float(n), imaginary / float(n)) for real, imaginary in made]
        for k, parts in enumerate(made[:kept]):
            place = (*row[0][:axis], k, *row[0][axis + 1 :])
            cells.update({(*place, part): number for part, number in enumerate(parts)})
    return [Array((*x.shape[:axis], kept, *x.shape[axis + 1 : -1], 2), cells)]


def stft(run: Run) -> list[Array]:
    a: STFT = run.attributes
    x, *windows = run.inputs
    kept = a.frame // 2 + 1 if a.onesided else a.frame
    cells: dict[Index, Scalar] = {}
    starts = [t for t in range(0, x.shape[1], a.step) if t + a.frame <= x.shape[1]]
    for n in range(x.shape[0]):
        for f, start in enumerate(starts):
            frame = []
            for t in range(a.frame):
                parts = [x[(n, start + t, part)] for part in range(x.shape[2])]
                parts = [part * windows[0][(t,)] for part in parts] if windows else parts
                frame.append((parts[0], parts[1] if len(parts) == 2 else run.number(0.0)))
            for k, made in enumerate(_fast(frame, -1)[:kept]):
                cells.update({(n, f, k, part): number for part, number in enumerate(made)})
    return [Array((x.shape[0], len(starts), kept, 2), cells)]


def det(run: Run) -> list[Array]:
    """Every row cleared below the diagonal, then the product of what stands on it."""
    *lead, n, _ = run.x.shape

    def cell(index: Index) -> Scalar:
        rows = [[run.x[(*index, i, j)] for j in range(n)] for i in range(n)]
        for k in range(n):
            for i in range(k + 1, n):
                factor = rows[i][k] / rows[k][k]
                for j in range(k + 1, n):
                    rows[i][j] = rows[i][j] - factor * rows[k][j]
        result = rows[0][0]
        for k in range(1, n):
            result = result * rows[k][k]
        return result

    return [fill(tuple(lead), cell)]


def non_zero(run: Run) -> list[Array]:
    found = [i for i, x in run.x.cells.items() if x.once("comp", lambda v: v != 0).value]
    return [fill((len(run.x.shape), len(found)), lambda i: run.number(found[i[1]][i[0]]))]


def compress(run: Run) -> list[Array]:
    a: Compress = run.attributes or Compress()
    x, flags = run.inputs
    kept = [i for (i,), flag in flags.cells.items() if flag.once("comp", bool).value]
    if a.axis is None:
        every = [x[index] for index in places(x.shape)]
        return [fill((len(kept),), lambda i: every[kept[i[0]]])]
    axis = a.axis % len(x.shape)
    shape = (*x.shape[:axis], len(kept), *x.shape[axis + 1 :])
    return [fill(shape, lambda i: x[(*i[:axis], kept[i[axis]], *i[axis + 1 :])])]


def unique(run: Run) -> list[Array]:
    """Counted by the rule as it is stated: a sort of so many levels, then neighbours compared."""
    a: Unique = run.attributes or Unique()
    x = run.x
    rank = len(x.shape)
    axis = None if a.axis is None else a.axis % rank
    if axis is None:
        groups = [[index] for index in places(x.shape)]
    else:
        groups = list(split_axes(x.shape, [n for n in range(rank) if n != axis]))
    levels = next(n for n in range(64) if 2**n >= len(groups))
    for group in groups:
        for index in group * levels:
            x[index].larger(x[index])
    for group in groups[1:]:
        for index in group:
            x[index].larger(x[index])
    order = sorted(range(len(groups)), key=lambda n: [x[index].value for index in groups[n]])
    count = len(groups)
    if axis is None:
        first = fill((count,), lambda i: x[groups[order[i[0]]][0]])
    else:
        first = fill(x.shape, lambda i: x[(*i[:axis], order[i[axis]], *i[axis + 1 :])])
    rest = [order, [order.index(n) for n in range(count)], [1] * count]
    made = [fill((count,), lambda i, told=told: run.number(told[i[0]])) for told in rest]  # type: ignore[misc]
    return [first, *made][: a.outputs]


def reverse_sequence(run: Run) -> list[Array]:
    a: ReverseSequence = run.attributes
    x, lengths = run.inputs

    def cell(index: Index) -> Scalar:
        length = round(lengths[(index[a.batch_axis],)].value)
        t = index[a.time_axis]
        turned = length - 1 - t if t < length else t
        return x[(*index[: a.time_axis], turned, *index[a.time_axis + 1 :])]

    return [fill(x.shape, cell)]


BRUTE = {
    "deform_conv": deform_conv,
    "affine_grid": affine_grid,
    "dft": dft,
    "stft": stft,
    "det": det,
    "non_zero": non_zero,
    "compress": compress,
    "unique": unique,
    "reverse_sequence": reverse_sequence,
}
