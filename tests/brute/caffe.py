"""What only Caffe and its forks have as a layer, from its definition."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

from layerscope.graph import attributes as at
from layerscope.graph.types import Shape
from tests.brute.arrays import (
    Array,
    Index,
    Run,
    accumulate,
    fill,
    greatest,
    places,
    split_axes,
    total,
)
from tests.brute.losses import softmax
from tests.brute.pointwise import sigmoid, tanh
from tests.brute.scalar import Scalar
from tests.brute.windows import placements, taps

GAIN = 0.5  # of infogain loss, for every pair of classes
LEAST = 1e-20  # a probability is never taken to be less
MARGIN = 5.0  # of contrastive loss


def power(run: Run) -> list[Array]:
    a: at.Power = run.attributes

    def cell(index: Index) -> Scalar:
        number = run.x[index]
        number = number * a.scale if a.scale != 1 else number
        number = number + a.shift if a.shift != 0 else number
        return number**a.power if a.power != 1 else number

    return [fill(run.x.shape, cell)]


def axpy(run: Run) -> list[Array]:
    scale, x, y = run.inputs

    def cell(index: Index) -> Scalar:
        return x[index] * scale[(*index[:2], *(0 for _ in scale.shape[2:]))] + y[index]

    return [fill(x.shape, cell)]


def values_along(run: Run, name: str, index: Index) -> Scalar:
    """The value of Scale or Bias for an element: learned, or of the second input."""
    a = run.attributes or at.Scale()
    held = run.inputs[1] if name == "given" else run.params[name]
    if not held.shape:
        return held[()]
    first = a.axis % len(run.x.shape)
    return held[index[first : first + len(held.shape)]]


def scale(run: Run) -> list[Array]:
    a: at.Scale = run.attributes or at.Scale()
    by = "given" if len(run.inputs) == 2 else "weight"

    def cell(index: Index) -> Scalar:
        number = run.x[index] * values_along(run, by, index)
        return number + values_along(run, "bias", index) if a.bias else number

    return [fill(run.x.shape, cell)]


def bias(run: Run) -> list[Array]:
    by = "given" if len(run.inputs) == 2 else "bias"
    return [fill(run.x.shape, lambda index: run.x[index] + values_along(run, by, index))]


def tile(run: Run) -> list[Array]:
    a: at.Tile = run.attributes
    axis = a.axis % len(run.x.shape)
    size = run.x.shape[axis]
    shape = (*run.x.shape[:axis], size * a.times, *run.x.shape[axis + 1 :])
    return [fill(shape, lambda i: run.x[(*i[:axis], i[axis] % size, *i[axis + 1 :])])]


def channel_shuffle(run: Run) -> list[Array]:
    """Channel c of the result is the (c mod groups)-th group's next one."""
    groups = run.attributes.groups
    each = run.x.shape[1] // groups
    return [
        fill(run.x.shape, lambda i: run.x[(i[0], i[1] % groups * each + i[1] // groups, *i[2:])])
    ]


def im2col(run: Run) -> list[Array]:
    window = run.attributes.window
    starts = placements(run.x.shape[2:], window)
    kernel = list(places(window.kernel))

    def cell(index: Index) -> Scalar:
        n, row, *at_ = index
        place = tuple(starts[axis][i] for axis, i in enumerate(at_))
        where = dict(taps(window, place))[kernel[row % len(kernel)]]
        return run.x.get((n, row // len(kernel), *where), run.border())

    shape = (run.x.shape[0], run.x.shape[1] * len(kernel), *map(len, starts))
    return [fill(shape, cell)]


def _weighted(numbers: list[Scalar]) -> Scalar:
    return total(n * n for n in numbers) / total(numbers)


def _mean(numbers: list[Scalar]) -> Scalar:
    return total(numbers) / float(len(numbers))


JOINS: dict[str, Callable[[list[Scalar]], Scalar]] = {
    "max": greatest,
    "avg": _mean,
    "stochastic": _weighted,
}


def _pooled(run: Run, window: at.Window, kind: str) -> Array:
    starts = placements(run.x.shape[2:], window)

    def cell(index: Index) -> Scalar:
        place = tuple(starts[axis][i] for axis, i in enumerate(index[2:]))
        lowest = -math.inf if kind == "max" else 0.0
        under = [where for _, where in taps(window, place)]
        return JOINS[kind]([run.x.get((*index[:2], *where), run.border(lowest)) for where in under])

    return fill((*run.x.shape[:2], *map(len, starts)), cell)


def stochastic_pool(run: Run) -> list[Array]:
    return [_pooled(run, run.attributes.window, "stochastic")]


def global_stochastic_pool(run: Run) -> list[Array]:
    return [_pooled(run, whole(run.x.shape[2:]), "stochastic")]


def whole(sizes: Shape) -> at.Window:
    ones = (1,) * len(sizes)
    return at.Window(sizes, ones, ((0, 0),) * len(sizes), ones)


def level(sizes: Shape, number: int) -> at.Window:
    """2^number bins an axis: as wide as they must be, the pad shared by both ends."""
    bins = 2**number
    kernel = tuple(math.ceil(size / bins) for size in sizes)
    pads = tuple(math.ceil((k * bins - s) / 2) for k, s in zip(kernel, sizes, strict=True))
    return at.Window(kernel, kernel, tuple((p, p) for p in pads), (1, 1), "caffe")


def pyramid(kind: str) -> Callable[[Run], list[Array]]:
    def run_it(run: Run) -> list[Array]:
        levels = run.attributes.levels
        made = [_pooled(run, level(run.x.shape[2:], n), kind) for n in range(levels)]
        if levels == 1:
            return made
        rows = [
            [y[i] for y in made for i in places(y.shape) if i[0] == n]
            for n in range(run.x.shape[0])
        ]
        return [fill((len(rows), len(rows[0])), lambda i: rows[i[0]][i[1]])]

    return run_it


def interp(run: Run) -> list[Array]:
    """Corner on corner: place i is i · (in − 1) / (out − 1) of what is left after cropping."""
    a: at.Interp = run.attributes
    begin, end = a.crop
    sizes = [size - begin - end for size in run.x.shape[2:]]
    new = a.size or tuple(len(range(0, size, a.shrink)) for size in sizes)
    if not a.size:
        new = tuple(size + (size - 1) * (a.zoom - 1) for size in new)
    if len(run.inputs) == 2:
        new = run.inputs[1].shape[2:]

    def near(i: int, axis: int) -> list[tuple[int, float]]:
        place = i * (sizes[axis] - 1) / (new[axis] - 1) if new[axis] > 1 else 0.0
        low = min(int(place), sizes[axis] - 1)
        high = min(low + 1, sizes[axis] - 1)
        return [(begin + low, 1 - (place - low)), (begin + high, place - low)]

    def cell(index: Index) -> Scalar:
        if tuple(new) == tuple(sizes):
            return run.x[(*index[:2], *(begin + i for i in index[2:]))]
        rows, columns = near(index[2], 0), near(index[3], 1)
        return total(
            run.x[(*index[:2], r, c)] * (by * also) for r, by in rows for c, also in columns
        )

    return [fill((*run.x.shape[:2], *new), cell)]


def unpool(run: Run) -> list[Array]:
    a: at.Unpool = run.attributes
    x, mask = run.inputs
    sizes = a.size or tuple(
        size * by - less for size, by, less in zip(x.shape[2:], a.scale, a.less, strict=True)
    )
    y = fill((*x.shape[:2], *sizes), lambda index: run.border())
    for index in places(x.shape):
        place = round(mask[index].value)
        y.cells[(*index[:2], *divmod(place, sizes[1]))] = x[index]
    return [y]


def _rows(run: Run) -> Iterator[list[Index]]:
    a: at.Softmax = run.attributes or at.Softmax()
    return split_axes(run.x.shape, [a.axis % len(run.x.shape)])


def _labels(run: Run) -> Iterator[int]:
    given = run.inputs[1].values() if len(run.inputs) == 2 else [0.0] * len(run.x.cells)
    return map(int, given)


def _scalar(number: Scalar) -> list[Array]:
    return [Array((), {(): number})]


def accuracy(run: Run) -> list[Array]:
    """A row is right if no score but its own is as large as that of its label."""
    right = []
    for row, label in zip(_rows(run), _labels(run), strict=False):
        own = run.x[row[label]]
        above = 0
        for index in row:
            own.above(run.x[index], 0.0, 1.0)
            above += run.x[index].value >= own.value
        right.append(run.number(2.0).above(float(above), 1.0, 0.0))
    return _scalar(_mean(right))


def log_loss(run: Run) -> list[Array]:
    pairs = zip(_rows(run), _labels(run), strict=False)
    return _scalar(_mean([-run.x[row[n]].larger(LEAST).apply(math.log) for row, n in pairs]))


def infogain_loss(run: Run) -> list[Array]:
    """The gains of a row of the matrix, negated and divided by the rows, are known beforehand."""
    (chances,) = softmax(run)
    rows = list(_rows(run))
    terms = (chances[index].larger(LEAST).apply(math.log) * -GAIN for row in rows for index in row)
    return _scalar(accumulate(run.number(0.0), terms) / float(len(rows)))


def contrastive_loss(run: Run) -> list[Array]:
    """Of pairs that should be far from each other."""
    a, b = run.inputs[:2]
    terms = []
    for group in split_axes(a.shape, range(1, len(a.shape))):
        gaps = [a[index] - b[index] for index in group]
        short = (MARGIN - total(gap * gap for gap in gaps).apply(math.sqrt)).larger(0.0)
        terms.append(short * short)
    return _scalar(_mean(terms))


def _product(run: Run, weight: str, row: int, numbers: Iterable[Scalar]) -> Scalar:
    result = run.number(0.0)
    for k, number in enumerate(numbers):
        result = result.mac(number, run.params[weight][(row, k)])
    return result


def _steps(run: Run, step: Callable[[int, int, list[Scalar], Scalar], list[Scalar]]) -> list[Array]:
    """Every step of every sequence: `step(t, n, joined, mark)` from joined gates to the output."""
    a: at.Unrolled = run.attributes
    x, marks = run.inputs[:2]
    steps, batch = x.shape[:2]
    rows = run.params["bias"].shape[0]
    out: dict[Index, Scalar] = {}
    for n in range(batch):
        state = [run.number(0.0)] * a.hidden
        static: list[Scalar] = []
        if a.static:
            seen = [run.inputs[2][(n, *i)] for i in places(run.inputs[2].shape[1:])]
            static = [_product(run, "weight_static", row, seen) for row in range(rows)]
        for t in range(steps):
            mark = marks[(t, n)]
            marked = [h * mark for h in state]
            given = [x[(t, n, *i)] for i in places(x.shape[2:])]
            joined = []
            for row in range(rows):
                number = _product(run, "weight_x", row, given) + run.params["bias"][(row,)]
                number = number + _product(run, "weight_h", row, marked)
                joined.append(number + static[row] if static else number)
            made = step(t, n, joined, mark)
            state = made[: a.hidden]
            for unit, number in enumerate(made[-a.hidden :]):
                out[(t, n, unit)] = number
    return [Array((steps, batch, a.hidden), out)]


def lstm(run: Run) -> list[Array]:
    size = run.attributes.hidden
    cells: dict[int, list[Scalar]] = {}

    def step(t: int, n: int, joined: list[Scalar], mark: Scalar) -> list[Scalar]:
        before = cells.get(n, [run.number(0.0)] * size)
        made, states = [], []
        for unit in range(size):
            i, f, o = (sigmoid(joined[unit + gate * size]) for gate in range(3))
            g = tanh(joined[unit + 3 * size])
            cell = f * mark * before[unit] + i * g
            states.append(cell)
            made.append(o * tanh(cell))
        cells[n] = states
        return made

    return _steps(run, step)


def rnn(run: Run) -> list[Array]:
    def step(t: int, n: int, joined: list[Scalar], mark: Scalar) -> list[Scalar]:
        state = [tanh(number) for number in joined]
        out = [
            tanh(_product(run, "weight_o", row, state) + run.params["bias_o"][(row,)])
            for row in range(len(state))
        ]
        return [*state, *out]

    return _steps(run, step)


def psroi_pool(run: Run) -> list[Array]:
    """Means over bins of the whole map, each bin from channels of its own."""
    a: at.PSRoIPool = run.attributes
    x, regions = run.inputs

    def span(size: int, b: int) -> range:
        return range(b * size // a.group, -(-(b + 1) * size // a.group))

    def cell(index: Index) -> Scalar:
        region, channel, i, j = index
        image = round(regions[(region, 0)].value)
        source = (channel * a.group + i) * a.group + j
        rows, columns = span(x.shape[2], i), span(x.shape[3], j)
        return _mean([x[(image, source, r, c)] for r in rows for c in columns])

    return [fill((regions.shape[0], a.channels, a.group, a.group), cell)]


BRUTE: dict[str, Callable[[Run], list[Array]]] = {
    "power": power,
    "axpy": axpy,
    "scale": scale,
    "bias": bias,
    "tile": tile,
    "channel_shuffle": channel_shuffle,
    "im2col": im2col,
    "stochastic_pool": stochastic_pool,
    "global_stochastic_pool": global_stochastic_pool,
    **{f"pyramid_{kind}_pool": pyramid(kind) for kind in JOINS},
    "interp": interp,
    "unpool": unpool,
    "accuracy": accuracy,
    "log_loss": log_loss,
    "infogain_loss": infogain_loss,
    "contrastive_loss": contrastive_loss,
    "caffe_lstm": lstm,
    "caffe_rnn": rnn,
    "psroi_pool": psroi_pool,
}
