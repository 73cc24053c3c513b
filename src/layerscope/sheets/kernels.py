"""Kernels that a table does not print, from the parameters and operations of their rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, islice
from math import log

from msgspec.structs import replace

from layerscope.documents.figures import RULES, whole_ranges
from layerscope.sheets.attach import few, first_lost, take_sibling
from layerscope.sheets.kinds import POOLS
from layerscope.sheets.open_ends import KERNELS, LINES, USUAL
from layerscope.sheets.sheet import Claim
from layerscope.sheets.sizes import NOWHERE
from layerscope.sheets.structure import Cells, RowLayer, SizeFact, outputs_of, refill
from layerscope.sheets.windows import any_window

UPSAMPLING = (2, 4, 3, 1, 8, 16)  # kernels of transposed convolutions
JOINED = 12  # earlier rows that may be joined without a row of their own
SHAPES = 24  # of earlier rows that are tried
FIRST_CHANNELS = (3, 1, 4, 2)  # of an input that the table does not have
EITHER = ((False, True),)
WITHOUT_FIRST = ((False,), (False, True))  # biases, of a convolution before a norm
GROUPED = (3, 5, 7)  # kernels of convolutions with any number of groups
WITH_KERNEL = ("conv", "deconv", "depthwise")


def infer(layers: Sequence[RowLayer], batch: int = 1, *, branched: bool = False) -> None:
    """Add kernels, and the channels of the first input, where one size explains the row's figures.

    In a network with branches a row may take an earlier row's output instead of the last one.
    """
    for layer in layers:
        _use_unlisted(layer)
    shallow = any(map(_forgets_depth, layers))
    seen: dict[tuple[int, ...], RowLayer] = {}
    lost: list[tuple[RowLayer, RowLayer | None]] = []
    open_: dict[int, tuple[RowLayer, ...]] = {}  # rows that may be the input of a lost one
    for layer in layers:
        if "kh" not in layer.sizes and layer.kind in WITH_KERNEL and "cout" in layer.sizes:
            before, earlier = layer.before, list(islice(reversed(seen.values()), SHAPES))
            if branched and seen and "cin" not in layer.printed and not layer.connected:
                if not _branch(layer, batch, earlier) and not _is_joined(layer, batch, earlier):
                    lost.append((layer, before))
                    open_[layer.row.at] = tuple(earlier)
            elif not _in_chain(layer, batch):
                _nearest(layer, batch)
        elif "groups" not in layer.sizes and layer.kind == "conv":
            if "cin" not in layer.sizes and layer.before is None:
                _use_first_channels(layer, batch)
            _groups(layer, shallow=shallow)
        elif "kh" not in layer.sizes and layer.kind in POOLS:
            _pool(layer, batch)
        for shape, each in outputs_of(layer):
            seen.pop(shape, None)
            seen[shape] = each
    if few(first_lost(lost), layers):
        for layer, before in lost:
            layer.before, layer.maybe = before, open_[layer.row.at]
            refill(layer)
            _nearest(layer, batch)
    if not branched:
        for number, layer in enumerate(layers):
            take_sibling(layer, layers[max(number - SHAPES, 0) : number])


def _use_first_channels(layer: RowLayer, batch: int) -> None:
    """The channels of an input that has no row, if they explain a figure of the first layer."""
    kernel, claims = layer.get("kh", "kw"), _figures(layer)
    if kernel is None or "cout" not in layer.sizes:
        return
    for channels in FIRST_CHANNELS:
        explained = [
            c for c in claims if _explained(layer, c, (channels, (kernel[0], kernel[1]), 1), batch)
        ]
        if explained:
            layer.sizes["cin"] = SizeFact(channels, frozenset({explained[0].cell_part}))
            return


def _in_chain(layer: RowLayer, batch: int) -> bool:
    """A kernel for the output of the row above, or of the one before it for a second head."""
    above = layer.before
    second = above.before if above is not None and above.kind == layer.kind else None
    for kernels in (USUAL, KERNELS):
        for before in (above, *([second] if second is not None else ())):
            layer.before = before
            refill(layer)
            if _convolution(layer, batch, kernels) and any_window(layer):
                return True
    layer.before = above
    refill(layer)
    return _convolution(layer, batch, KERNELS)


def _use_unlisted(layer: RowLayer) -> None:
    """A smaller input of a fully connected layer, where its figures show one.

    What a forward does without a module has no row: a pool, one position of a sequence, or
    attention, which has a third of the outputs that are queries, keys and values.
    """
    got = layer.get("cin", "hin", "win", "cout")
    claim = next((c for c in _figures(layer) if c.meaning in ("params", "weights")), None)
    if layer.kind != "fc" or got is None or claim is None or claim.figure is None:
        return
    channels, high, wide, out = got
    at: Cells = frozenset({claim.cell_part})
    if "cin" not in layer.printed and layer.before is not None and layer.before.kind == "fc":
        third, fed = channels // 3, layer.before.get("cin")
        is_third = channels % 3 == 0 and fed in (None, (out,)) and _is_linear(claim, third, out)
        same_area = layer.get("hout", "wout") == (high, wide)
        if is_third and same_area and not _is_linear(claim, channels, out):
            layer.sizes["cin"] = SizeFact(third, at)
            return
    if high * wide < 2 or "hin" in layer.printed or layer.get("hout", "wout") == (high, wide):
        return
    sides = range(2, min(high, KERNELS[-2])) if high == wide and not claim.figure.power else ()
    for side in (1, *sides):  # of a rounded figure, only a pool over all positions is sure
        if _is_linear(claim, channels * side * side, out):
            layer.sizes["hin"] = layer.sizes["win"] = SizeFact(side, at)
            return


def _is_linear(claim: Claim, inputs: int, outputs: int) -> bool:
    """Whether parameters are those of so many inputs and outputs, with biases or without."""
    counts = (
        inputs * outputs // claim.heading.scale,
        (inputs + 1) * outputs // claim.heading.scale,
    )
    if claim.figure is None:
        return False
    if not claim.figure.power:
        return claim.figure.value() in counts
    return any(low <= n <= high for n in counts for low, high in whole_ranges(claim.figure))


def _is_joined(layer: RowLayer, batch: int, earlier: Sequence[RowLayer]) -> bool:
    """Whether two earlier outputs of one size, joined without a row of their own, are the input."""
    shapes = [s for row in earlier[:JOINED] if (s := row.get("cout", "hout", "wout"))]
    was = layer.sizes
    for one, two in combinations(shapes, 2):
        if one[1:] != two[1:]:
            continue
        sizes = (one[0] + two[0], *one[1:])
        layer.sizes = {**was, **{f"{a}in": SizeFact(n) for a, n in zip("chw", sizes, strict=True)}}
        found = _convolution(layer, batch, USUAL)
        layer.sizes = was
        if found:
            return True
    return False


def _nearest(layer: RowLayer, batch: int) -> None:
    """Where no kernel explains all figures of a row: the one that explains most, or is nearest."""
    claims = _figures(layer)
    got = layer.get("cin", "cout")
    if not claims or got is None or not got[0] * got[1]:
        return
    best = max(
        KERNELS,
        key=lambda k: (
            sum(_explained(layer, c, (got[0], _kernel(layer, k), 1), batch) for c in claims),
            any_output(layer, k),
            -_distance(claims[0], k * k * got[0] * got[1]),
        ),
    )
    _set_kernel(layer, _kernel(layer, best))


def _figures(layer: RowLayer) -> list[Claim]:
    """The figures that show a kernel."""
    meanings = ("params", "weights", "macs", "flops")
    return [c for c in layer.row.claims if c.figure and c.meaning in meanings]


def _is_line(layer: RowLayer) -> bool:
    """Whether a row has one spatial axis, so that its kernel is k x 1."""
    return layer.get("win", "wout") == (1, 1) and (layer.get("hin") or (1,)) != (1,)


def _set_kernel(layer: RowLayer, kernel: tuple[int, int], at: Cells = NOWHERE) -> None:
    layer.sizes["kh"], layer.sizes["kw"] = (SizeFact(size, at) for size in kernel)


def with_inputs(layer: RowLayer) -> Iterator[RowLayer]:
    """The layer with each output that may be its input, if no row explains it."""
    for before in layer.maybe:
        given = {f"{a}in": before.sizes[f"{a}out"] for a in "chw" if f"{a}out" in before.sizes}
        yield replace(layer, sizes={**layer.sizes, **given})


def with_open_kernels(layer: RowLayer) -> Iterator[RowLayer]:
    """The layer as it is, without inferred groups, and with usual kernels if it prints none."""
    yield layer
    if "groups" in layer.sizes and "groups" not in layer.printed:
        yield replace(layer, sizes={n: s for n, s in layer.sizes.items() if n != "groups"})
    if layer.kind in WITH_KERNEL and "kh" not in layer.printed:
        for size in USUAL:
            kernel = zip(("kh", "kw"), _kernel(layer, size), strict=True)
            yield replace(layer, sizes={**layer.sizes, **{n: SizeFact(k) for n, k in kernel}})


def _kernel(layer: RowLayer, size: int) -> tuple[int, int]:
    return (size, 1) if _is_line(layer) else (size, size)


def _distance(claim: Claim, weights: int) -> float:
    """How far the parameters of a row are from some weights, as a factor."""
    figure = claim.figure
    if figure is None or claim.meaning not in ("params", "weights") or not figure.value():
        return 0.0
    return abs(log(float(figure.value() * claim.heading.scale) / weights))


def any_output(layer: RowLayer, kernel: int) -> bool:
    """Whether a kernel can give the output size of a row."""
    before = layer.sizes
    layer.sizes = {**before, "kh": SizeFact(kernel), "kw": SizeFact(kernel)}
    fits = any_window(layer)
    layer.sizes = before
    return fits


def _branch(layer: RowLayer, batch: int, earlier: Sequence[RowLayer]) -> bool:
    """Take the last row whose output gives a usual kernel; without one the input is left open."""
    own = [layer.before] if layer.before is not None else []
    for candidate in (*own, *earlier):
        layer.before = candidate
        refill(layer)
        usual = UPSAMPLING if layer.kind == "deconv" else USUAL
        if _convolution(layer, batch, usual) and any_window(layer):
            return True
    layer.before = None
    refill(layer)
    return not _figures(layer)  # without a figure nothing is contradicted


def _convolution(layer: RowLayer, batch: int, kernels: Iterable[int]) -> bool:
    claims = _figures(layer)
    if not claims:
        return False
    fact = layer.sizes.get("cin")
    for channels in (fact.value,) if fact else FIRST_CHANNELS:
        for kernel, groups, biases in _likely_kernels(layer, channels, kernels):
            sizes = (channels, kernel, groups)
            if all(_explained(layer, claim, sizes, batch, biases) for claim in claims):
                at: Cells = frozenset({claims[0].cell_part})
                _set_kernel(layer, kernel, at)
                layer.sizes.setdefault("cin", SizeFact(channels, at))
                if groups > 1:
                    layer.sizes["groups"] = SizeFact(groups, at)
                return True
    return False


def _likely_kernels(
    layer: RowLayer, channels: int, kernels: Iterable[int]
) -> Iterator[tuple[tuple[int, int], int, Sequence[bool]]]:
    """Kernels, groups and biases in the order in which they are likely.

    The few channels of an image are seldom in groups: any kernel without them is likelier.
    """
    rounds = WITHOUT_FIRST if layer.normed else EITHER
    first = layer.before is None or layer.before.kind == "input"
    of_image = first and layer.kind != "depthwise" and channels in FIRST_CHANNELS
    for biases in rounds:
        for kernel, groups in _candidates(layer, channels, kernels):
            if groups == 1 or not of_image:
                yield kernel, groups, biases
    if not of_image:
        return
    yield from ((_kernel(layer, size), 1, EITHER[0]) for size in KERNELS)
    for biases in rounds:
        for kernel, groups in _candidates(layer, channels, kernels):
            if groups > 1:
                yield kernel, groups, biases


def _forgets_depth(layer: RowLayer) -> bool:
    """Whether the parameters of a first row are those of filters of depth 1, which it cannot have.

    Where a document leaves the depth out in one row, it may do so in others.
    """
    got = layer.get("kh", "kw", "cin", "cout")
    first = layer.before is not None and layer.before.kind == "input"
    if layer.kind != "conv" or not first or got is None or got[2] < 2 or got[3] % got[2] == 0:
        return False
    claims = [c for c in _figures(layer) if c.meaning in ("params", "weights")]
    shallow = got[0] * got[1] * got[3]
    return any(c.figure and c.figure.value() in (shallow, shallow + got[3]) for c in claims)


def _groups(layer: RowLayer, *, shallow: bool = False) -> None:
    """Groups that are not printed, where they and nothing else explain the parameters.

    `shallow`: filters of depth 1 are a mistake of the document, and no groups.
    """
    got = layer.get("kh", "kw", "cin", "cout")
    claim = next(
        (c for c in layer.row.claims if c.figure and c.meaning in ("params", "weights")), None
    )
    if got is None or claim is None or claim.figure is None or claim.figure.unit == "%":
        return
    weights, out = got[0] * got[1] * got[2] * got[3], got[3]
    for groups in dict.fromkeys((1, got[2], 2, 4, 8, 16, 32, 64)):
        if not groups or got[2] % groups or out % groups or (shallow and groups == got[2] > 1):
            continue
        counts = (weights // groups, weights // groups + out)
        if any(
            claim.figure.stands_for(n, base, how)
            for n in counts
            for base in (1000, 1024)
            for how in RULES[:2]
        ):
            if groups > 1:
                layer.sizes["groups"] = SizeFact(groups, frozenset({claim.cell_part}))
            return


def _candidates(
    layer: RowLayer, channels: int, kernels: Iterable[int]
) -> Iterator[tuple[tuple[int, int], int]]:
    """Kernels and groups, plain ones first."""
    out = layer.sizes["cout"].value
    usual = (channels,) if layer.kind == "depthwise" else (1, channels, 2, 4, 8, 16, 32)
    for groups in dict.fromkeys(usual):
        if groups and channels % groups == 0 and out % groups == 0:
            for kernel in kernels:
                yield _kernel(layer, kernel), groups
    if layer.kind == "depthwise":
        return
    if not _is_line(layer):
        for kernel in LINES:
            yield (1, kernel), 1
    for groups in range(3, min(channels, out) // 2 + 1):  # of a width that divides the channels
        if channels % groups == 0 and out % groups == 0 and groups not in usual:
            yield from ((_kernel(layer, kernel), groups) for kernel in GROUPED)


def _explained(
    layer: RowLayer,
    claim: Claim,
    sizes: tuple[int, tuple[int, int], int],
    batch: int,
    biases: Sequence[bool] = (False, True),
) -> bool:
    """Whether a figure can be that of a convolution of this kernel, with biases or without."""
    channels, (high, wide), groups = sizes
    out = layer.sizes["cout"].value
    weights = high * wide * channels // groups * out
    times: tuple[int, ...] = (1,)
    if claim.meaning in ("macs", "flops"):
        area = layer.get(*(("hin", "win") if layer.kind == "deconv" else ("hout", "wout")))
        if area is None:
            return True
        plain = area[0] * area[1]
        twice = (2 * plain, plain) if claim.meaning == "flops" else (plain,)
        times = tuple(n * images for n in twice for images in dict.fromkeys((1, batch)))
    figure, scale = claim.figure, claim.heading.scale
    if figure is None:
        return False
    ranges = whole_ranges(figure)
    for n in times:
        for biased in biases:
            for count in {(weights + out * biased) * n, weights * n + out * biased}:
                if any(low <= count // scale <= last for low, last in ranges):
                    return True
    return False


def _pool(layer: RowLayer, batch: int) -> None:
    """The kernel of a pool that halves its input, or from its comparisons."""
    counted = [
        c for c in layer.row.claims if c.figure and c.meaning in ("comparisons", "additions")
    ]
    out, size = layer.get("cout", "hout", "wout"), layer.get("hin")
    if out is None or size is None or not all(out):
        return
    for claim in counted:
        for kernel in KERNELS:
            figure = claim.figure
            if figure and figure.stands_for(batch * kernel * kernel * out[0] * out[1] * out[2]):
                at: Cells = frozenset({claim.cell_part})
                layer.sizes["kh"] = layer.sizes["kw"] = SizeFact(kernel, at)
                return
