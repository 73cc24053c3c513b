"""Which earlier row a layer takes as its input, in tables of networks that are no chain."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import islice
from math import prod

from layerscope.documents.headings import Meaning
from layerscope.sheets.kinds import POOLS, SAME_SHAPE, Kind
from layerscope.sheets.open_ends import Ends, has_kernel
from layerscope.sheets.sizes import NOWHERE
from layerscope.sheets.structure import RowLayer, given_sizes, outputs_of, refill
from layerscope.sheets.windows import fits_depth, fits_window, span_of
from layerscope.sheets.writing import Writing, writing_of

SHARE = 10  # of a hundred rows that a chain does not explain, for branches to be looked for
LEAST = 3
WEIGHTED: tuple[Kind, ...] = ("conv", "depthwise", "deconv", "fc")
FOUND = 70  # of a hundred strange rows that must fit an earlier row
SHAPES = 24  # of earlier rows that are tried
EXACT = 100  # a figure from which on it is no chance that it fits
JOINS = ("add", "concat", "unknown")
POOLED: tuple[Kind, ...] = (*POOLS, "global_pool")
SHORTCUT = re.compile(r"(?:^|[\W_])(?:proj(?:ection)?|shortcut|downsample|skip)(?:$|[\W_])")
LOOSE = Writing()
LOST = 5  # of a hundred rows that may be wrong themselves


def attach(layers: Sequence[RowLayer]) -> bool:
    """Find the inputs of the rows that the row above does not explain; False if it is a chain.

    A chain with a few wrong cells has no branches: most strange rows must find an input.
    """
    writing = writing_of(layers)
    sought = WEIGHTED if _prints_kernels(layers) else (*WEIGHTED, *POOLED)
    strange = [layer for layer in layers if layer.kind in sought and _is_strange(layer, writing)]
    joined = any(map(_joins, layers))
    if not joined and len(strange) < max(LEAST, SHARE * len(layers) // 100):
        _take_same([layer for layer in strange if layer.kind in WEIGHTED], writing)
        return False
    before = {layer.row.at: (layer.before, layer.sizes) for layer in layers}
    lost = list(_attach_all(layers, writing, () if joined else sought))
    if not joined and (len(strange) - len(lost)) * 100 < FOUND * len(strange):
        for layer in layers:
            layer.before, layer.sizes = before[layer.row.at]
        return False
    if few(first_lost([(layer, before[layer.row.at][0]) for layer in lost]), layers):
        at = {layer.row.at: number for number, layer in enumerate(layers)}
        for layer in lost:
            number = at[layer.row.at]
            earlier = layers[max(number - SHAPES, 0) : number][::-1]
            if any(each.kind == "flatten" and "hout" not in each.sizes for each in earlier):
                continue  # it may take a shape of more axes than are read
            sized = [each for each in earlier if "cout" in each.sizes]
            layer.maybe = tuple(sized)
            _take_nearest(layer, [before[layer.row.at][0], *sized], writing)
    return True


def _prints_kernels(layers: Sequence[RowLayer]) -> bool:
    """Whether convolutions have kernels, so that the channels of pools show no branch alone."""
    return any(layer.kind == "conv" and "kh" in layer.printed for layer in layers)


def _is_strange(layer: RowLayer, writing: Writing) -> bool:
    """Whether a row with parameters, or a pool, does not fit the row above."""
    if layer.kind in POOLED:
        return layer.before is not None and layer.get("cin") != layer.get("cout")
    return not (_fits(layer, writing) and has_kernel(layer))


def _joins(layer: RowLayer) -> bool:
    """Whether a row, or the forward of a module, may have several inputs, or is a shortcut."""
    if layer.last is None:
        return layer.kind in JOINS or SHORTCUT.search(layer.row.label.lower()) is not None
    shapes = [each.get("cout", "hout", "wout") for each in (layer, layer.last)]
    return None not in shapes and shapes[0] != shapes[1]


def _take_same(strange: Iterable[RowLayer], writing: Writing) -> None:
    """Give layers the input of the layer above, if their figures are those of further heads."""
    heads: list[tuple[RowLayer, RowLayer]] = []  # one below the other, and what is above each
    for layer in strange:
        above = layer.before
        if above is None or above.kind != layer.kind or above.before is None:
            continue
        if heads and heads[-1][0] is not above:
            _keep_sure(heads)
            heads = []
        layer.before = above.before
        refill(layer)
        if _fits(layer, writing):
            heads.append((layer, above))
        else:
            layer.before = above
            refill(layer)
    _keep_sure(heads)


def _keep_sure(heads: Sequence[tuple[RowLayer, RowLayer]]) -> None:
    """Give heads the row above again, unless a figure of one of them fits by no chance."""
    if not any(_is_sure(layer) for layer, _ in heads):
        for layer, above in heads:
            layer.before = above
            refill(layer)


def _is_sure(layer: RowLayer) -> bool:
    """Whether a row says how many channels its input has, or has a figure of many digits."""
    if "cin" in layer.printed:
        return layer.printed["cin"].value > 1
    given = [c.figure for c in layer.row.claims if c.figure and c.meaning in ("params", "weights")]
    return bool(given) and all(
        sum(map(str.isdigit, figure.text)) > 1 if figure.power else figure.value() >= EXACT
        for figure in given
    )


def take_sibling(layer: RowLayer, earlier: Sequence[RowLayer]) -> None:
    """Give a layer behind one of several heads the output of another, if only that fits."""
    above = layer.before
    if layer.kind not in SAME_SHAPE or above is None or above.before is None or _fits(layer):
        return
    heads = [row for row in earlier if row.before is above.before and row is not above]
    if above.kind == above.before.kind and not _fits(above):
        heads.append(above.before)  # a further head with a wrong figure
    for head in heads[::-1]:
        layer.before = head
        refill(layer)
        if _fits(layer):
            return
    layer.before = above
    refill(layer)


def first_lost(lost: Sequence[tuple[RowLayer, RowLayer | None]]) -> list[RowLayer]:
    """Rows without an input, but those whose row above, the second, has a size of another of them.

    One wrong cell takes the input from its own row and from the rows that follow from it.
    """
    rows, found = {layer.row.at for layer, _ in lost}, []
    for layer, above in lost:
        cells = above.cells("cout", "hout", "wout") if above is not None else NOWHERE
        if not any(cell[0] in rows and cell[0] != layer.row.at for cell in cells):
            found.append(layer)
    return found


def few(lost: Sequence[RowLayer], layers: Sequence[RowLayer]) -> bool:
    """Whether so few rows have no input that they, and not our view of the table, are wrong."""
    return len(lost) == 1 or len(lost) * 100 <= LOST * len(layers)


def _attach_all(
    layers: Sequence[RowLayer], writing: Writing, kinds: Collection[Kind]
) -> Iterator[RowLayer]:
    """Attach each row, of all or some kinds, that does not fit; those that no earlier row fits."""
    seen: dict[tuple[tuple[int, ...], Fraction | None], RowLayer] = {}
    ends = Ends()
    for layer in layers:
        sure = layer.connected or all(f"{axis}in" in layer.printed for axis in "chw")
        if layer.before is not None and not sure and (not kinds or layer.kind in kinds):
            refill(layer)
            earlier = list(islice(reversed(seen.values()), SHAPES))
            if not _place(layer, earlier, ends, writing):
                yield layer
            elif (whole := ends.taken_by(layer)) is not None:
                seen[whole.get("cout", "hout", "wout") or (), None] = whole
        ends.add(layer)
        for shape, each in outputs_of(layer):
            seen.pop((shape, _field(each)), None)
            seen[shape, _field(each)] = each


def _place(layer: RowLayer, earlier: Sequence[RowLayer], ends: Ends, writing: Writing) -> bool:
    """Take the row above, another row, or the open ends: with a usual kernel, else with any."""
    above = layer.before
    fits = _fits(layer, writing)
    if fits and has_kernel(layer, usual=True):
        return True
    area = layer.get("hout", "wout")
    near = [row for row in earlier if row.get("hout", "wout") == area]
    joined = ends.joined()
    if any(_find(layer, rows, writing, usual=True) for rows in (near, joined, earlier)):
        return True
    layer.before = above
    refill(layer)
    if fits and has_kernel(layer):
        return True
    return any(_find(layer, rows, writing) for rows in (near, joined, earlier))


def _find(
    layer: RowLayer, earlier: Sequence[RowLayer], writing: Writing, *, usual: bool = False
) -> bool:
    """Take the last row whose output fits; without one the input of the layer is left open.

    Of several that fit, the receptive field tells which.
    """
    fitting: list[RowLayer] = []
    for candidate in earlier:
        layer.before = candidate
        refill(layer)
        if _fits(layer, writing) and has_kernel(layer, usual=usual):
            fitting.append(candidate)
            if _field(layer) is None or _grows(layer, candidate):
                return True
    layer.before = fitting[0] if fitting else None
    refill(layer)
    return bool(fitting)


def _grows(layer: RowLayer, before: RowLayer) -> bool:
    """Whether the receptive field of a row follows from that of another."""
    size, jump = _field(before), _field(before, "jump")
    if size is None or jump is None:
        return False
    span = span_of(layer, "h") if "kh" in layer.sizes else 1
    return _field(layer) == size + (span - 1) * jump


def _take_nearest(layer: RowLayer, candidates: Iterable[RowLayer | None], writing: Writing) -> None:
    """Take the row that contradicts the least, the first of several."""
    best, least = layer.before, -1
    for candidate in candidates:
        layer.before = candidate
        refill(layer)
        count = sum(_misfits(layer, writing))
        if least < 0 or count < least:
            best, least = candidate, count
    layer.before = best
    refill(layer)


def _fits(layer: RowLayer, writing: Writing = LOOSE) -> bool:
    """Whether the sizes and parameters of a row fit its input."""
    return not any(_misfits(layer, writing))


def _misfits(layer: RowLayer, writing: Writing) -> Iterator[bool]:
    """What may contradict the input of a row, and whether it does."""
    if layer.before is None or layer.kind in ("input", "unknown", "concat", "add"):
        return
    for axis, given in given_sizes(layer, layer.before):
        if given is not None and (fact := layer.printed.get(f"{axis}in")) is not None:
            yield given.value != fact.value
    if layer.kind in SAME_SHAPE:
        got, out = layer.get("cin", "hin", "win"), layer.get("cout", "hout", "wout")
        yield got != out and (got is None or out is None or prod(got) != prod(out))
        fields = [_field(each) for each in (layer, layer.before)]
        yield None not in fields and fields[0] != fields[1]
    if layer.kind in POOLED:
        yield layer.get("cin") != layer.get("cout")
    if layer.kind in ("conv", *POOLS):
        yield from (not fits_window(layer, axis) for axis in "hw")
    yield fits_depth(layer) is False
    weighed = any(c.figure and c.meaning in ("params", "weights") for c in layer.row.claims)
    for claim in layer.row.claims:
        if claim.figure is None or claim.figure.unit == "%":
            continue
        if claim.meaning in ("macs", "flops") and not weighed:
            yield not writing.has_operations(layer, claim)
        if claim.meaning in ("params", "weights"):
            yield not writing.has_params(layer, claim)
        elif claim.meaning in ("memory", "activations") and "hout" not in layer.printed:
            yield not writing.has_elements(layer, claim)


def _field(layer: RowLayer, meaning: Meaning = "field") -> Fraction | None:
    """The receptive field that a row prints, or its jump."""
    found = (c.figure for c in layer.row.claims if c.meaning == meaning and c.figure)
    return next((figure.value() for figure in found), None)
