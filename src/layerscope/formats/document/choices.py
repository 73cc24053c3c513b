"""The op and attributes of a row for an input: of all that its text allows, what explains most."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import islice, product
from math import isqrt, prod
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from layerscope.documents.headings import Meaning
from layerscope.errors import LayerscopeError
from layerscope.formats.document.rows import LayerRow
from layerscope.formats.document.windows import DILATIONS, transposed, windows
from layerscope.graph import attributes as at
from layerscope.graph.types import Shape, elements
from layerscope.ops import SPECS, Call, Ops
from layerscope.ops.access_map import Bins
from layerscope.ops.calls import infer_call, params_of
from layerscope.sheets.kinds import Kind

LARGEST = 15  # kernel that is looked for
MOST_KERNEL = 4096
LRN_SIZE = 5
TRIED = 2_000  # candidates of a row
GROUPS = (2, 3, 4, 8, 16, 32, 64)
Candidates = Iterator[tuple[str, Struct | None]]
PARAMS: tuple[Meaning, ...] = ("params", "weights")
COUNTS: Mapping[Meaning, Callable[[Ops], int]] = {
    "macs": lambda ops: ops.mac,
    "flops": lambda ops: 2 * ops.mac,
}


class Choice(Struct, frozen=True):
    """An op for a row: its attributes and output, and how many printed facts it explains."""

    op: str
    attributes: Struct | None
    output: Shape
    explained: int
    of: int

    @property
    def is_full(self) -> bool:
        """Whether it explains all that is printed."""
        return self.explained == self.of


class Chooser:
    """`choose` for the rows of one network, of which most are like another."""

    def __init__(self) -> None:
        self._found: dict[tuple[object, ...], Choice | None] = {}

    def choose(self, row: LayerRow, shapes: tuple[Shape, ...], bias: bool) -> Choice | None:
        """The op of a row for inputs of these shapes."""
        counted = tuple((m, a.figure.text, a.scale, a.bases) for m, a in row.amounts.items())
        key = (
            row.kind, row.op, row.given, row.output, row.filters, row.kernel, row.stride, row.pads,
            row.dilation, row.rounding, row.groups, row.group_channels, row.bias, row.attributes,
            row.rounded, row.bins, row.uneven_bins, row.same, row.changes, row.upsampled,
            counted, shapes, bias,
        )  # fmt: skip
        if key not in self._found:
            self._found[key] = choose(row, shapes, bias=bias)
        return self._found[key]


def choose(row: LayerRow, shapes: tuple[Shape, ...], *, bias: bool = True) -> Choice | None:
    """The first op that explains all that the row prints, else the one that explains most.

    `bias` is tried first where the row does not say whether it has biases.
    """
    found = _best(row, _candidates(row, shapes, bias), shapes)
    if row.output is None:
        return found
    if found is not None:
        sizes = found.output[2:]
        moved = bool(shapes) and sizes != shapes[0][2:]  # by a window, which keeps the channels
        if same_shape(found.output, row.output) or (moved and sizes == row.output[2:]):
            return found
    without = _candidates(replace(row, output=None), shapes, bias)  # a printed size may be wrong
    return _best(row, without, shapes) or found


def _best(row: LayerRow, candidates: Candidates, shapes: tuple[Shape, ...]) -> Choice | None:
    best: Choice | None = None
    for op, attributes in islice(candidates, TRIED):
        found = _judged(row, op, attributes, shapes)
        if found is not None and (best is None or found.explained > best.explained):
            best = found
            if best.is_full:
                break
    return best


def explains(row: LayerRow, choice: Choice, shapes: tuple[Shape, ...], *, bias: bool) -> bool:
    """Whether a choice with a bias, or without, also explains all that the row prints."""
    attributes = cast("at.Conv", choice.attributes)
    found = _judged(row, choice.op, replace(attributes, bias=bias), shapes)
    return found is not None and found.is_full


def same_shape(shape: Shape, printed: Shape) -> bool:
    """Whether two shapes are equal, where a vector is a map of one position."""
    rank = max(len(shape), len(printed))
    return (*shape, *(1,) * (rank - len(shape))) == (*printed, *(1,) * (rank - len(printed)))


def _judged(
    row: LayerRow, op: str, attributes: Struct | None, shapes: tuple[Shape, ...]
) -> Choice | None:
    try:
        call = infer_call(op, attributes, shapes)
        if len(call.outputs) != 1:
            return None
        facts = list(_facts(row, op, call))
    except LayerscopeError:
        return None
    return Choice(op, attributes, call.y, sum(facts), len(facts))


def _facts(row: LayerRow, op: str, call: Call) -> Iterator[bool]:
    """Whether the call has each figure that the row prints."""
    if row.output is not None:
        yield same_shape(call.y, row.output)
    yield from _count_facts(row, op, call)
    if op == "conv_transpose":
        yield from _transposed_facts(row, call)
    if SPECS[op].family == "pooling":
        yield from _pool_facts(row, op, call)
    if row.rounded:
        sizes = (*call.y, *(1,) * (len(row.rounded) - len(call.y)))  # a vector is a map of one
        yield len(row.rounded) == len(sizes) and all(
            size.stands_for(count) for size, count in zip(row.rounded, sizes, strict=True)
        )
    if row.filters is not None and op in COUNTED:
        yield row.filters == call.y[1]


def _count_facts(row: LayerRow, op: str, call: Call) -> Iterator[bool]:
    """Whether the parameters, operations and activations are those that are printed."""
    for meaning in PARAMS:
        if meaning in row.amounts and op in (*COUNTED, "scale", "prelu", "layer_norm"):
            params = sum(p.elements for p in params_of(op, call) if p.learnable)
            yield row.amounts[meaning].stands_for(params)
    for meaning, count in COUNTS.items():
        if meaning in row.amounts and op in COUNTED:
            yield row.amounts[meaning].stands_for(count(SPECS[op].ops(call)))
    for meaning, pool in POOLED.items():
        if meaning in row.amounts and op == pool:
            under = call.attributes.window.positions * elements(call.y)
            yield row.amounts[meaning].stands_for(under)
    if "activations" in row.amounts and SPECS[op].family != "loss":
        yield row.amounts["activations"].stands_for(elements(call.y))


def _transposed_facts(row: LayerRow, call: Call) -> Iterator[bool]:
    """Whether the groups and products of a transposed convolution are those that are printed."""
    if row.group_channels is not None:
        groups = call.attributes.groups
        yield row.group_channels in (call.x[1] // groups, call.y[1] // groups)
    if row.upsampled is not None:
        yield row.upsampled.stands_for(_upsampled(call))


def _pool_facts(row: LayerRow, op: str, call: Call) -> Iterator[bool]:
    """Whether a pool has the printed kernel or bins, and changes its input if the row says so."""
    if row.kernel is not None and op.startswith("global_"):
        yield row.kernel == call.x[2:]
    if row.changes:
        window = getattr(call.attributes, "window", None)
        yield call.y != call.x or (window is not None and window.positions > 1)
    if op.startswith("adaptive_"):
        yield from _bin_facts(row, call)


def _upsampled(call: Call) -> int:
    """Products of a transposed convolution, of which each stride leaves out a part."""
    window = call.attributes.window
    products = call.x[1] * elements(call.y) * window.positions
    for stride in window.stride:
        products //= stride
    return int(products)


def _bin_facts(row: LayerRow, call: Call) -> Iterator[bool]:
    """Whether the bins of an adaptive pool have the printed sizes, or are uneven if that is said.

    The largest bin on an axis is the kernel, and the axis divided by the bins the stride.
    """
    sizes = [Bins(size, count) for size, count in zip(call.x[2:], call.y[2:], strict=True)]
    if row.uneven_bins:
        yield any(each.size % each.count for each in sizes)
    if row.kernel is not None:
        largest = [max(len(each.at(n)) for n in range(each.count)) for each in sizes]
        yield list(row.kernel) == largest
    if row.bins:
        yield len(row.bins) == len(sizes) and all(
            step.stands_for(Fraction(each.size, each.count))
            for step, each in zip(row.bins, sizes, strict=True)
        )


POOLED: Mapping[Meaning, str] = {"comparisons": "max_pool", "additions": "avg_pool"}
COUNTED = ("conv", "conv_transpose", "linear")  # ops that all documents count in one way


# -- candidates


def _candidates(row: LayerRow, shapes: tuple[Shape, ...], bias: bool) -> Candidates:
    """Ops and attributes that the text allows, the likeliest first."""
    if row.attributes is not None or (row.op and row.op in SPECS and _has_no_attributes(row.op)):
        yield row.op, row.attributes
        return
    op = row.op or KINDS.get(row.kind, "")
    maker = MAKERS.get(op)
    if maker is None or not shapes:
        return
    yield from maker(row, shapes, bias)


def _has_no_attributes(op: str) -> bool:
    """Whether an op has no attributes."""
    return SPECS[op].attributes is None


def _filters(row: LayerRow) -> list[int]:
    found = [row.filters, row.output[1] if row.output is not None and len(row.output) > 1 else None]
    return list(dict.fromkeys(size for size in found if size))


def _biases(row: LayerRow, first: bool) -> tuple[bool, ...]:
    return (first, not first) if row.bias is None else (row.bias,)


def _groups(row: LayerRow, channels: int, filters: int) -> Iterator[int]:
    if row.groups is not None:
        yield row.groups
        return
    if row.group_channels is not None:
        if row.group_channels and channels % row.group_channels == 0:
            yield channels // row.group_channels
        if row.op != "conv_transpose":
            return  # of a transposed convolution some print the outputs of a group
    if row.kind == "depthwise":
        yield channels
    for groups in dict.fromkeys((1, channels, *GROUPS)):
        if row.depthwise is False and groups == channels > 1:
            continue
        if groups and channels % groups == 0 and filters % groups == 0:
            yield groups


def _kernels(row: LayerRow, rank: int, each: int = 0) -> Iterator[tuple[int, ...]]:
    """Kernels that fit: as printed, else square ones, then lines.

    `each` are the weights of one position, by which a large kernel follows from the parameters.
    """
    if row.kernel is not None:
        if len(row.kernel) == rank:
            yield row.kernel
        elif len(row.kernel) == 1:
            yield row.kernel * rank
        return
    for size in range(1, LARGEST + 1):
        yield (size,) * rank
    counted = next((row.amounts[m] for m in PARAMS if m in row.amounts), None)
    if counted is not None and each and rank == 2:
        side = isqrt(max(int(counted.figure.value() * counted.scale / each), 0))
        yield from ((size, size) for size in (side, side + 1) if LARGEST < size < MOST_KERNEL)
        yield from _oblong(int(counted.figure.value() * counted.scale / each))
    if rank == 2:
        for size in range(2, LARGEST + 1):
            yield 1, size
            yield size, 1


def _oblong(positions: int) -> Iterator[tuple[int, int]]:
    """Kernels of so many positions that are not square."""
    for height in range(1, min(positions, LARGEST) + 1):
        if positions % height == 0 and height * height != positions < MOST_KERNEL:
            yield height, positions // height


def _conv(row: LayerRow, shapes: tuple[Shape, ...], bias: bool) -> Candidates:
    x = shapes[0]
    if len(x) < 3:
        x = (*x, *(1,) * (4 - len(x)))
    for filters, has_bias in product(_filters(row), _biases(row, bias)):
        for groups in _groups(row, x[1], filters):
            each = x[1] // max(groups, 1) * filters
            for kernel in _kernels(row, len(x) - 2, each):
                if row.kernel is None and not _has_weights(
                    row, prod(kernel) * each, filters * has_bias
                ):
                    continue
                for window in windows(row, kernel, x[2:], pool=False):
                    yield "conv", at.Conv(window, filters, groups, has_bias)


def _has_weights(row: LayerRow, weights: int, biases: int) -> bool:
    """Whether the parameters, or the products of each position, can be these."""
    params = [row.amounts[meaning] for meaning in PARAMS if meaning in row.amounts]
    if params:
        return any(each.stands_for(weights + biases) for each in params)
    area = elements(row.output[2:]) * row.output[0] if row.output is not None else 0
    for meaning, times in (("macs", 1), ("flops", 2)):
        each = row.amounts.get(cast("Meaning", meaning))
        if each is not None and area:
            return each.stands_for(times * weights * area)
    return True


def _conv_transpose(row: LayerRow, shapes: tuple[Shape, ...], bias: bool) -> Candidates:
    x = shapes[0]
    if len(x) < 3 or row.output is None or len(row.output) != len(x):
        return
    for filters, has_bias in product(_filters(row), _biases(row, bias)):
        for groups in _groups(row, x[1], filters):
            each = x[1] // max(groups, 1) * filters
            for kernel in _kernels(row, len(x) - 2, each):
                if row.kernel is None and not _has_weights(
                    row, prod(kernel) * each, filters * has_bias
                ):
                    continue
                for window, extra in transposed(row, kernel, x[2:]):
                    yield (
                        "conv_transpose",
                        at.TransposedConv(window, filters, groups, has_bias, extra),
                    )


def _linear(row: LayerRow, shapes: tuple[Shape, ...], bias: bool) -> Candidates:
    for filters in _filters(row):
        for has_bias in _biases(row, bias):
            yield "linear", at.Linear(filters, has_bias, len(shapes[0]) > 2)


def _pool(op: str) -> Callable[[LayerRow, tuple[Shape, ...], bool], Candidates]:
    def candidates(row: LayerRow, shapes: tuple[Shape, ...], bias: bool) -> Candidates:
        x = shapes[0]
        if len(x) < 3:
            return
        is_judged = row.kernel or any(meaning in row.amounts for meaning in POOLED)
        steps = DILATIONS if is_judged else DILATIONS[:1]
        for dilation in [row.dilation] if row.dilation else [(n,) * (len(x) - 2) for n in steps]:
            dilated = replace(row, dilation=dilation)
            for kernel in _pool_kernels(row, x):
                for window in windows(dilated, kernel, x[2:], pool=True):
                    yield op, at.Pool(window)

    return candidates


def _pool_kernels(row: LayerRow, x: Shape) -> Iterator[tuple[int, ...]]:
    """The kernel of a pool: as printed, from what it counts, else as large as its stride."""
    rank = len(x) - 2
    if row.kernel is not None:
        yield from _kernels(row, rank)
        return
    out = row.output
    counted = row.amounts.get("comparisons") or row.amounts.get("additions")
    if counted is not None and out is not None and elements(out):
        near = counted.figure.value() * counted.scale / elements(out)
        side = isqrt(max(round(near), 0)) if rank == 2 else round(near)
        for size in (side, side + 1, side - 1):
            if size > 0:
                yield (size,) * rank
        if rank == 2:
            yield from _oblong(round(near))
    if out is not None and len(out) == len(x) and all(out[2:]):
        yield tuple(max(1, round(a / b)) for a, b in zip(x[2:], out[2:], strict=True))
    for size in (2, 3, *range(4, LARGEST + 1)):
        yield (size,) * rank


def _global(op: str) -> Callable[[LayerRow, tuple[Shape, ...], bool], Candidates]:
    def candidates(row: LayerRow, shapes: tuple[Shape, ...], bias: bool) -> Candidates:
        yield op, at.GlobalPool()
        out = row.output
        if out is not None and len(out) == len(shapes[0]):
            yield op.replace("global", "adaptive"), at.AdaptivePool(out[2:])

    return candidates


def _plain(
    op: str, *attributes: Struct | None
) -> Callable[[LayerRow, tuple[Shape, ...], bool], Candidates]:
    def candidates(row: LayerRow, shapes: tuple[Shape, ...], bias: bool) -> Candidates:
        for each in attributes:
            yield op, each

    return candidates


def _resize(row: LayerRow, shapes: tuple[Shape, ...], bias: bool) -> Candidates:
    out, x = row.output, shapes[0]
    if out is None or len(out) != len(x):
        return
    factors = {Fraction(b, a) for a, b in zip(x[2:], out[2:], strict=True) if a}
    if len(factors) == 1 and (factor := factors.pop()).denominator == 1:
        yield "resize", at.Resize("nearest", scale=((factor.numerator, 1),))
    elif out[2:]:
        yield "resize", at.Resize("nearest", size=out[2:])


def _concat(row: LayerRow, shapes: tuple[Shape, ...], bias: bool) -> Candidates:
    yield "concat", at.Concat(1)
    for axis in range(2, min(map(len, shapes), default=0)):
        yield "concat", at.Concat(axis)


JOINED = ("add", "sub", "mul", "div", "max", "min", "concat")  # ops of several inputs
ACTIVATIONS = tuple(op for op, spec in SPECS.items() if spec.attributes is at.Activation)
MAKERS: Mapping[str, Callable[[LayerRow, tuple[Shape, ...], bool], Candidates]] = {
    "conv": _conv,
    "conv_transpose": _conv_transpose,
    "linear": _linear,
    **{op: _pool(op) for op in ("max_pool", "avg_pool", "lp_pool")},
    **{op: _global(op) for op in ("global_avg_pool", "global_max_pool")},
    **{op: _plain(op, at.Activation()) for op in ACTIVATIONS},
    "prelu": _plain("prelu", at.PReLU(), at.PReLU(shared=True)),
    "batch_norm": _plain("batch_norm", at.BatchNorm(), at.BatchNorm(affine=False)),
    "layer_norm": _plain(
        "layer_norm", at.LayerNorm(), at.LayerNorm(affine=False), at.LayerNorm(bias=False)
    ),
    "lrn": _plain("lrn", at.LocalResponseNorm(LRN_SIZE)),
    "scale": _plain("scale", at.Scale(bias=True), at.Scale()),
    "dropout": _plain("dropout", at.Dropout()),
    "softmax": _plain("softmax", at.Softmax()),
    "log_softmax": _plain("log_softmax", at.Softmax()),
    "softmax_loss": _plain("softmax_loss", at.Softmax()),
    "flatten": _plain("flatten", at.Flatten()),
    "concat": _concat,
    **{op: _plain(op, None) for op in JOINED if op != "concat"},
    "resize": _resize,
}
# the op of a kind, where the text says no more; a kind that may be several ops is left out
KINDS: Mapping[Kind, str] = {
    "conv": "conv", "depthwise": "conv", "deconv": "conv_transpose", "max_pool": "max_pool",
    "avg_pool": "avg_pool", "pool": "max_pool", "global_pool": "global_avg_pool", "fc": "linear",
    "activation": "relu", "prelu": "prelu", "batch_norm": "batch_norm", "norm": "layer_norm",
    "lrn": "lrn", "scale": "scale", "dropout": "dropout", "softmax": "softmax",
    "flatten": "flatten", "concat": "concat", "add": "add", "upsample": "resize",
    "loss": "softmax_loss",
}  # fmt: skip
