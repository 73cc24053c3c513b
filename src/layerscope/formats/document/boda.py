"""Boda's profile: sizes, filters and bytes of the convolutions, inputs, times, RUNTIME and POWER.

The text has no strides and paddings, and no layers but convolutions and products. Where the input
of a line is no earlier output, a layer is missing between: a pool where it can be one, else an
unknown layer with that output. Biases follow from the bytes of a line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import prod

from msgspec import Struct
from msgspec.structs import replace

from layerscope.documents.figures import read as read_figure
from layerscope.documents.reader import BREAK, load
from layerscope.formats.document.rows import Amount, LayerRow, PrintedNetwork
from layerscope.formats.sources import split_number
from layerscope.graph.types import Shape, elements

STEM = "boda"
BYTES = 4  # of an element of fp32
FLIPPED = 1_000  # biases that are looked for one by one
LONGEST = 600  # characters of a line
DIMS = r"\d{1,19}(?:\*\d{1,19}){0,7}"
INFO = re.compile(
    rf"(?P<name>\S.*?) input (?P<input>{DIMS})=(?P<input_bytes>\S+) "
    rf"filts (?P<filts>{DIMS})=(?P<filts_bytes>\S+) out (?P<out>{DIMS})=(?P<out_bytes>\S+)\s*"
)
UNKNOWN = re.compile(r"(?P<name>\S.*?) input \? filts \? out \?\s*")
WORK = re.compile(
    r"(?P<work>(?P<name>\S.*?) FWD (?P<flops>\S+) (?P<moved>\S+)\s+FWD_AI (?P<intensity>\S+)\s+"
    r"MxNxK=(?P<m>\d{1,19})x(?P<n>\d{1,19})x(?P<k>\d{1,19})(?: x(?P<groups>\d{1,19}))?)"
    r"(?:\s+---\s+(?P<time>\S+)(?: \S+)?)?\s*"
)
INPUT = re.compile(rf'-- "(?P<name>.*)" node dims:\s+(?P<dims>{DIMS})=(?P<bytes>\S+)\s*')
RUNTIME = re.compile(r"-- INPUT: RUNTIME=(?P<seconds>\d+(?:\.\d+)?(?:e-?\d{1,3})?)s --\s*")
POWER = re.compile(r"-- INPUT: POWER=(?P<watts>\d+(?:\.\d+)?(?:e[+-]?\d{1,3})?)W --\s*")
SUMS = re.compile(r"- SUM-OVER-FWD-LAYERS-TOTALS: [\w=.+? ]+")
FLOPS = re.compile(r"[\d.?+]+[KMGTP]?F(?:\+\?)?(?: [≥\d.?]+[KMGTP]?F/s)?\s*")
MOVED = re.compile(
    r"[\d.?+]+[KMGTP]?B(?:\+\?)?(?: [≥\d.?]+[KMGTP]?B/s)? AI=[\d.?]+[KMGTPmunp]?F/B\s*"
)
PROFILE = re.compile(
    r"(?P<time>[\d.]+[munp]?s)\s+[\d.?]+%\s+[\d.]+[munp]?s\s+[\d.?]+%\s+(?P<name>\S.*?)\s*"
)
TIMER = re.compile(
    r"\s+(?P<count>\d{1,12})\s+(?P<total>[\d.]{1,20})(?P<unit>m?s)\s+[\d.]{1,20}m?s\s+(?P<tag>\S.*?)\s*"
)
INTENSITY = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<prefix>[pnumKMGTP]?)F/B")
PREFIXES = {"p": -4, "n": -3, "u": -2, "m": -1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
LAYOUT = "_inxp"
NUMBERS = re.compile(r"\d+")


class PrintedTimer(Struct, frozen=True):
    """A line of TIMERS."""

    tag: str
    count: int
    total_s: float


class PrintedTimes(Struct, frozen=True):
    """What a profile says of a run: seconds by name, of the whole, watts, and stages."""

    seconds: dict[str, float]
    runtime_s: float | None = None
    power_w: float | None = None
    timers: tuple[PrintedTimer, ...] = ()


class _Profile(Struct):
    """A profile on the way."""

    line: int
    last: int
    rows: list[LayerRow] = []
    inputs: list[LayerRow] = []
    totals: list[str] = []


def read(lines: Sequence[str]) -> Iterator[PrintedNetwork]:
    """The network of the profile in a text, if it has one."""
    found: _Profile | None = None
    for number, line in enumerate(lines, 1):
        if len(line) > LONGEST:
            continue
        sized = INFO.fullmatch(line)
        blank = None if sized else UNKNOWN.fullmatch(line)
        if found is None and (sized or blank or INPUT.fullmatch(line)):
            found = _Profile(number, number)
        if found is None:
            continue
        if sized or blank:
            found.rows.append(_row(sized, number) if sized else _blank(blank, number))
        elif match := WORK.fullmatch(line):
            _add_work(found.rows, match)
        elif match := INPUT.fullmatch(line):
            found.inputs.append(_input(match, number))
        elif any(pattern.fullmatch(line) for pattern in (SUMS, FLOPS, MOVED)):
            found.totals.append(line)
        else:
            continue
        found.last = number
    if found is not None and (found.rows or (found.inputs and found.totals)):
        yield _network(found, times_in(lines))


def _network(found: _Profile, times: PrintedTimes | None) -> PrintedNetwork:
    rows, left = _with_biases(found.rows, found.totals[2] if len(found.totals) == 3 else "")
    inputs = found.inputs or [LayerRow("data", "input", output=rows[0].given, line=rows[0].line)]
    names = [] if times is None else _others(times, rows)
    filled = [*inputs, *_with_gaps(inputs, rows, names)]
    return PrintedNetwork(
        tuple(filled),
        STEM,
        line=found.line,
        last=found.last,
        totals=tuple(found.totals) if len(found.totals) == 3 else (),
        notes=("left open: layers that are no convolution, of which the document prints no sizes: "
               "pools where the sizes of convolutions differ, and no activation", *left),
    )  # fmt: skip


def _row(match: re.Match[str] | None, number: int) -> LayerRow:
    assert match is not None
    given, filters, out = (_shape(match[part]) for part in ("input", "filts", "out"))
    row = replace(
        _blank(match, number), kind="conv", given=given, output=out, filters=filters[0],
        cells=(match[0].rstrip(),) if _agrees(match) else (),
    )  # fmt: skip
    if len(given) == 2:
        return replace(row, kind="fc")
    return replace(row, kernel=filters[2:], group_channels=filters[1] if len(filters) > 1 else None)


def _agrees(match: re.Match[str]) -> bool:
    """Whether all sizes of a line have the bytes that it prints, of one dtype."""
    parts = [(_shape(match[part]), match[f"{part}_bytes"]) for part in ("input", "filts", "out")]
    return any(
        all(
            (figure := read_figure(text)) is not None
            and Amount(figure, 1, (1000,), ("round",)).stands_for(elements(shape) * bits // 8)
            for shape, text in parts
        )
        for bits in (32, 16, 64, 8)
    )


def _has_product(row: LayerRow, match: re.Match[str]) -> bool:
    """Whether a line's FLOPs are those of its product, and the product has the row's output."""
    m, n, k = (int(match[size]) for size in "mnk")
    groups = int(match["groups"] or 1)
    figure = read_figure(match["flops"].lstrip("~").removesuffix("F"))
    if figure is None or row.output is None or row.given is None or not row.filters:
        return False
    written = elements(row.output) == m * n * groups
    read = elements(row.given) == m * k * groups and n == row.filters * prod(row.kernel or ())
    counted = Amount(figure, 1, (1000,), ("round",))
    return (written or read) and counted.stands_for(2 * m * n * k * groups)


def _blank(match: re.Match[str] | None, number: int) -> LayerRow:
    assert match is not None
    return LayerRow(match["name"], type="conv", line=number, column=match.start("name") + 1)


def _shape(text: str) -> Shape:
    return tuple(int(size) for size in text.split("*"))


def _input(match: re.Match[str], number: int) -> LayerRow:
    """An input; its bytes say whether it has floating-point numbers or indices."""
    shape = _shape(match["dims"])
    figure = read_figure(match["bytes"])
    amount = None if figure is None else Amount(figure, 1, (1000,), ("round",))
    wide = amount is not None and not amount.stands_for(BYTES * elements(shape))
    dtype = "int64" if wide and amount and amount.stands_for(8 * elements(shape)) else "fp32"
    column = match.start("name") + 1
    return LayerRow(match["name"], "input", output=shape, dtype=dtype, line=number, column=column)


def _add_work(rows: list[LayerRow], match: re.Match[str]) -> None:
    """Add what the product and the bytes of a line show: a transposed convolution, and biases."""
    if not rows or rows[-1].name != match["name"]:
        return
    groups = int(match["groups"] or 1)
    row = rows[-1]
    whole = bool(row.cells) and _has_product(row, match)
    row = replace(row, cells=(*row.cells, match["work"]) if whole else ())
    rows[-1] = row = _transposed(row, (int(match["m"]), int(match["n"])), groups)
    given, output, filters = row.given, row.output, row.filters
    figure = read_figure(match["moved"].lstrip("~"))
    if figure is None or given is None or output is None or not filters:
        return
    counted = Amount(figure, 1, (1000,), ("round",))
    plain = _moved(replace(row, bias=False))
    products = _products(row)
    fits = []
    for has in (True, False):
        moved = plain + BYTES * filters * has
        near = _is_near(match["intensity"], Fraction(products, max(moved, 1)))
        if counted.stands_for(moved) and near:
            fits.append(has)
    if len(fits) == 1:
        rows[-1] = replace(row, bias=fits[0])


def _transposed(row: LayerRow, product: tuple[int, int], groups: int) -> LayerRow:
    """The row as a transposed convolution, if the sizes of its product are those of one."""
    positions, columns = product
    if row.kernel is None or row.group_channels is None or not row.filters:
        return row
    if row.output is None or row.given is None or columns != row.filters * prod(row.kernel):
        return row
    read, written = (shape[0] * elements(shape[2:]) for shape in (row.given, row.output))
    is_whole = groups > 1 or prod(row.kernel) > 1 or row.group_channels == row.given[1]
    if not is_whole or row.output[1] != row.filters * groups:
        return row
    if _is_conv(row, groups) and not positions == read != written:
        return row
    found = replace(row, kind="deconv", filters=row.filters * groups, groups=groups)
    return replace(found, group_channels=None)


def _is_conv(row: LayerRow, groups: int) -> bool:
    """Whether filters and output of a row are those of a convolution of so many groups."""
    if row.output is None or row.given is None:
        return False
    depth = row.group_channels or 0
    plain = row.filters == row.output[1] and depth * groups == row.given[1]
    return plain and prod(row.kernel or ()) == 1


def _is_near(text: str, ratio: Fraction) -> bool:
    """Whether an intensity is printed like this."""
    match = INTENSITY.fullmatch(text)
    if match is None:
        return True
    power = PREFIXES.get(match["prefix"], 0)
    unit = Fraction(1000**power) if power >= 0 else Fraction(1, 1000**-power)
    step = unit / 10 ** len(match["number"].partition(".")[2])
    return bool(abs(Fraction(match["number"]) * unit - ratio) <= step / 2)


def _with_biases(
    rows: Sequence[LayerRow], total: str
) -> tuple[Sequence[LayerRow], tuple[str, ...]]:
    """The rows with the biases that their bytes do not show, and a note of these.

    Maps and vectors are as most others unless the total shows another number of biases.
    """
    left = [n for n, row in enumerate(rows) if row.bias is None and row.filters]
    if not left:
        return rows, ()
    shown = Counter(row.bias for row in rows if row.bias is not None)
    usual = shown[True] >= shown[False]
    guesses = [
        {n: (of_vectors if _is_vector(rows[n]) else of_maps) != (not usual) for n in left}
        for of_maps, of_vectors in ((True, True), (False, False), (False, True), (True, False))
    ]
    flops, plain = sum(map(_products, rows)), sum(map(_moved, rows))
    for guess in (*guesses, *_flipped(guesses[0])):
        moved = plain + BYTES * sum(rows[n].filters or 0 for n, has in guess.items() if has)
        if _has_total(total, flops, moved):
            break
    else:
        guess = guesses[0]
    note = (
        f"left open: the biases of {len(left)} layers, whose bytes do not show them: "
        f"{sum(guess.values())} have one, as most others and as the total counts them"
    )
    return [replace(row, bias=guess.get(n, row.bias)) for n, row in enumerate(rows)], (note,)


def _flipped(guess: Mapping[int, bool]) -> Iterator[dict[int, bool]]:
    """The guess with the first rows changed: one, then more."""
    found = dict(guess)
    for n, has in guess.items() if len(guess) <= FLIPPED else ():
        found[n] = not has
        yield found


def _is_vector(row: LayerRow) -> bool:
    """Whether the input of a row is a single position."""
    return row.given is not None and elements(row.given[2:]) == 1


def _has_total(text: str, flops: int, moved: int) -> bool:
    """Whether so many FLOPs and bytes have the printed total: bytes, rate, AI and intensity."""
    figure = read_figure(text.split(" ")[0])
    if figure is None:
        return True
    intensity = re.search(r"AI=(\S+)", text)
    near = intensity is None or _is_near(intensity[1], Fraction(flops, max(moved, 1)))
    return near and Amount(figure, 1, (1000,), ("round",)).stands_for(moved)


def _products(row: LayerRow) -> int:
    """FLOPs of a row."""
    if row.given is None or row.output is None or not row.filters:
        return 0
    weights = _weights(row)
    if row.kind == "deconv":
        return 2 * elements(row.given) * (weights // max(row.given[1], 1))
    return 2 * elements(row.output) * (weights // row.filters)


def _moved(row: LayerRow) -> int:
    """Bytes of the input, output, filters and biases of a row."""
    if row.given is None or row.output is None or not row.filters:
        return 0
    count = elements(row.given) + elements(row.output) + _weights(row)
    return BYTES * (count + row.filters * bool(row.bias))


def _weights(row: LayerRow) -> int:
    return (row.filters or 0) * prod(row.kernel or ()) * _depth(row)


def _depth(row: LayerRow) -> int:
    """Input channels of a filter."""
    channels = row.given[1] if row.given is not None and len(row.given) > 1 else 0
    return row.group_channels or channels // (row.groups or 1)


def _others(times: PrintedTimes, rows: Sequence[LayerRow]) -> list[str]:
    """Names in the profile that are neither convolutions nor layout changes, in natural order."""
    sized = {row.name for row in rows}
    names = [n for n in times.seconds if n not in sized and not n.endswith((LAYOUT, "_bck"))]
    return sorted(names, key=lambda n: ([int(d) for d in NUMBERS.findall(n)], n))


def _with_gaps(
    inputs: Sequence[LayerRow], rows: Sequence[LayerRow], names: list[str]
) -> Iterator[LayerRow]:
    """The rows, with one for each output that no line prints and a later line reads."""
    seen = {row.output for row in inputs}
    above = inputs[-1].output
    left = list(names)
    flat = False  # after a map was flattened, products of vectors follow
    for row in rows:
        if row.given is not None and row.given not in seen:
            flat = _is_flattened(above, row.given)
            name = left.pop(0) if left and not flat else f"before {row.name}"
            yield _gap(name, above, row)
            seen.add(row.given)
        vector = row.given is not None and elements(row.given[2:]) == 1
        flat = flat and vector
        yield replace(row, kind="fc", kernel=None, group_channels=None) if flat else row
        above = row.output
        seen.add(row.output)
    if left and above is not None and len(above) > 2 and elements(above[2:]) > 1:
        line = rows[-1].line if rows else 0
        output = (*above[:2], *(1 for _ in above[2:]))
        yield LayerRow(left[0], "global_pool", type="pool", output=output, line=line)


def _is_flattened(above: Shape | None, given: Shape) -> bool:
    """Whether a map and a vector have the same elements."""
    if above is None or len(above) < 3 or above == given:
        return False
    return above[0] == given[0] and elements(given[2:]) == 1 and elements(above) == elements(given)


def _gap(name: str, above: Shape | None, row: LayerRow) -> LayerRow:
    """A layer that is not printed: a pool if it only makes the map smaller."""
    given = row.given
    is_pool = (
        above is not None
        and given is not None
        and len(above) == len(given) > 2
        and above[:2] == given[:2]
        and all(a >= b for a, b in zip(above, given, strict=True))
    )
    if given is not None and _is_flattened(above, given):
        return LayerRow(name, "flatten", type="flatten", output=given, line=row.line)
    kind = "pool" if is_pool else ""
    return LayerRow(
        name,
        "pool" if is_pool else "unknown",
        type=kind or "not printed",
        output=given,
        line=row.line,
    )


# -- times


def times_of(path: str) -> PrintedTimes | None:
    """The times that a document prints; None if it prints none."""
    return times_in(BREAK.split(load(split_number(path)[0])))


def times_in(lines: Sequence[str]) -> PrintedTimes | None:
    """The times of a profile: of PROFILE, or of the lines of layers without one."""
    profile: dict[str, float] = {}
    layers: dict[str, float] = {}
    timers: list[PrintedTimer] = []
    runtime = power = None
    for line in lines:
        if len(line) > LONGEST:
            continue
        if match := PROFILE.fullmatch(line):
            profile.setdefault(match["name"], _seconds(match["time"]))
        elif (match := WORK.fullmatch(line)) and match["time"] not in (None, "?"):
            layers.setdefault(match["name"], _seconds(match["time"]))
        elif match := RUNTIME.fullmatch(line):
            runtime = float(match["seconds"])
        elif match := POWER.fullmatch(line):
            power = float(match["watts"])
        elif match := TIMER.fullmatch(line):
            total = _seconds(match["total"] + match["unit"])
            timers.append(PrintedTimer(match["tag"], int(match["count"]), total))
    if not profile and not layers:
        return None
    return PrintedTimes(profile or layers, runtime, power, tuple(timers))


def _seconds(text: str) -> float:
    figure = read_figure(text)
    return 0.0 if figure is None else float(figure.value())
