"""Boda's profile of the convolutions: sizes, FLOPs, bytes, intensity and matrix product of each.

With a run, measured or read from a file: the time of each, layout changes (`__inxp`), PROFILE and
TIMERS. The part `backward` adds the gradients of each convolution, and totals with them.

Linear layers are printed as 1x1 filters on vectors. A grouped convolution prints the product of one
group and the number of groups (`MxNxK=3136x4x36 x32`). Numbers are scaled before they are rounded,
as in Boda: 999,600 bytes are `1000KB`, 9,996 bytes `10.00KB`. Halves round to the even digit.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from msgspec import Struct

from layerscope.errors import UnknownName, UsageError
from layerscope.escaping import visible
from layerscope.graph.types import Shape, claims_of
from layerscope.ops import SPECS
from layerscope.report import Layer, Report
from layerscope.report.measurement import LayerTime, Run
from layerscope.report.numbers import ABOUT, AT_LEAST

PARTS = ("layers", "info", "totals")
MORE = ("backward",)  # parts that are printed only if they are chosen
MEASURED = ("profile", "timers")
BACKWARD = "_bck"  # end of the names that Boda gives to backward convolutions
LAYOUT = "_inxp"  # end of the names that Boda gives to layout changes
OPS = ("conv", "conv_transpose", "linear")
PREFIXES = dict(enumerate("pnum_KMGTP", -4)) | {0: ""}


class ConvRow(Struct, frozen=True):
    """Shapes and bytes of input, filters and output of one convolution."""

    layer: Layer
    input: Shape
    filters: Shape
    output: Shape
    input_bytes: int
    filter_bytes: int
    output_bytes: int

    @property
    def flops(self) -> int:
        """FLOPs of the forward pass; each of the two gradients has as many."""
        return self.layer.convention_kinds.flops

    @property
    def sign(self) -> str:
        """The sign of its figures: `~` if they are an estimate."""
        return ABOUT if self.layer.has_estimated_count else ""

    @property
    def moved_bytes(self) -> int:
        """Bytes of input, output, filters and biases."""
        return self.layer.moved_bytes

    @property
    def backward_bytes(self) -> int:
        """Bytes that the gradients read and write: all but the output twice."""
        biases = sum(param.bytes for param in self.layer.cost.params if param.role == "bias")
        return 2 * (self.input_bytes + self.filter_bytes + biases) + self.output_bytes


def write(report: Report, parts: Sequence[str] | str | None = None, run: Run | None = None) -> str:
    """The chosen parts: `info` and `layers` side by side for each convolution, then `totals`."""
    chosen = _check(parts, run)
    claimed = claims_of(report.graph, "boda").rows
    shown = [layer for layer in report.layers if layer.op in OPS or layer.name in claimed]
    rows = [_row(layer, report) for layer in shown]
    times = _times(run, report) if run is not None else None
    lines = _timers(run) if run is not None and "timers" in chosen else []
    for row in rows:
        own = claimed.get(_name(row), ())
        if "info" in chosen:
            lines.append(own[0] if own else _info(row))
        if "layers" in chosen or "backward" in chosen:
            text = own[1] if len(own) > 1 and "backward" not in chosen else _layer(row, chosen)
            lines.append(text + (_time_and_rate(row, times) if "layers" in chosen else ""))
        if "backward" in chosen:
            lines.append(_backward(row) + _backward_took(row, times))
    if "totals" in chosen:
        lines += _totals(rows, report, run, backward="backward" in chosen)
    if run is not None and "profile" in chosen:
        lines += _profile(run, report)
    return "\n".join(lines) + "\n"


def _check(parts: Sequence[str] | str | None, run: Run | None) -> tuple[str, ...]:
    has = {
        "profile": run is not None and any(row.time_s is not None for row in run.rows),
        "timers": run is not None and bool(run.timers),
    }
    if parts is None:
        return (*PARTS, *(part for part in MEASURED if has[part]))
    chosen = tuple(parts.split(",") if isinstance(parts, str) else parts)
    chosen = tuple(part.strip() for part in chosen)
    without = (*PARTS, *MORE)
    for part in chosen:
        if part in MEASURED and not has[part]:
            lacks = "" if run is None else f"; {run.engine}: there are none"
            raise UsageError(
                f"part {part!r} needs a measured run{lacks}; without one: {', '.join(without)}"
            )
        if part not in MEASURED and part not in without:
            raise UnknownName("part", part, without, f"; choose from {', '.join(without)}")
    return chosen


def _row(layer: Layer, report: Report) -> ConvRow | Layer:
    """The row of a layer, or the layer itself if its shapes are unknown."""
    call = layer.call
    weights = [param for param in layer.cost.params if param.role == "weight"]
    if call is None or not weights:
        return layer
    given, filters, output = call.x, weights[0].shape, call.y
    if layer.op == "conv_transpose":
        filters = (filters[1], filters[0], *filters[2:])
    if layer.op == "linear":
        ones = (1,) * max(len(report.inputs[0].shape or ()) - 2, 0)
        outs, features = filters
        vectors = layer.outputs[0].elements // outs
        given, output = (vectors, features, *ones), (vectors, outs, *ones)
        filters = (outs, features, *ones)
    return ConvRow(
        layer,
        given,
        filters,
        output,
        layer.inputs[0].bytes,
        sum(param.bytes for param in weights),
        layer.outputs[0].bytes,
    )


def _info(row: ConvRow | Layer) -> str:
    if isinstance(row, Layer):
        return f"{visible(row.name)} input ? filts ? out ?"
    return (
        f"{visible(row.layer.name)} input {_dims(row.input, row.input_bytes)} "
        f"filts {_dims(row.filters, row.filter_bytes)} out {_dims(row.output, row.output_bytes)}"
    )


def _layer(row: ConvRow | Layer, chosen: Sequence[str]) -> str:
    """FLOPs, bytes, intensity and matrix product, with the gradients if they are chosen."""
    cells = [visible(_name(row))]
    flops = "?" if isinstance(row, Layer) else f"{row.sign}{si_text(row.flops)}F"
    moved = "?" if isinstance(row, Layer) else f"{row.sign}{si_text(row.moved_bytes)}B"
    if "layers" in chosen:
        cells.append(f"FWD {flops} {moved}")
    if "backward" in chosen:
        cells += [f" --- BACK_GRAD {flops}", f" --- BACK_DIFF {flops}"]
    if "layers" in chosen:
        intensity = "?" if isinstance(row, Layer) else _intensity(row.flops, row.moved_bytes)
        cells += [f" FWD_AI {intensity}", f" MxNxK={_product(row, 'mnk')}"]
    if "backward" in chosen:
        size = "?" if isinstance(row, Layer) else f"{si_text(row.backward_bytes)}B"
        cells.append(f" BACKWARD_BYTES {size}")
    return " ".join(cells)


def _backward(row: ConvRow | Layer) -> str:
    """The gradients of filters and of input together, and the matrix product of each."""
    figures = "? ?  BCK_AI ?"
    if isinstance(row, ConvRow):
        flops, moved = 2 * row.flops, row.backward_bytes
        figures = f"{si_text(flops)}F {si_text(moved)}B  BCK_AI {_intensity(flops, moved)}"
    products = f"fg-MxNxK={_product(row, 'knm')}  ig-MxNxK={_product(row, 'mkn')}"
    return f"{visible(_name(row))}{BACKWARD} BCK {figures}  {products}"


def _name(row: ConvRow | Layer) -> str:
    return row.name if isinstance(row, Layer) else row.layer.name


def _intensity(flops: int, moved: int) -> str:
    return f"{si_text(Fraction(flops, moved) if moved else 0)}F/B"


def _product(row: ConvRow | Layer, order: str) -> str:
    """Sizes of the matrix product in an order of m, n and k, and the number of groups."""
    if isinstance(row, Layer):
        return "?"
    gemm = row.layer.gemm
    assert gemm is not None
    sizes = {"m": gemm.m, "n": gemm.n, "k": gemm.k}
    count = f" x{gemm.count}" if gemm.count > 1 else ""
    return "x".join(str(sizes[axis]) for axis in order) + count


def _times(run: Run, report: Report) -> dict[str, float] | None:
    """Seconds by Boda's name of each row, including layers fused into it; None without any."""
    rates = {
        _main(row, report): row.time_s
        for row in run.rows
        if row.kind != "layout" and row.time_s is not None
    }
    return rates if any(row.time_s is not None for row in run.rows) else None


def _has_backward(times: dict[str, float] | None) -> bool:
    return times is not None and any(name.endswith(BACKWARD) for name in times)


def _main(row: LayerTime, report: Report) -> str:
    """Boda's name of a row: its convolution, else its first layer; `__inxp` for layout changes."""
    first = row.layers[0] if row.layers else row.name
    if row.kind == "layout":
        return row.name if row.name.endswith(LAYOUT) else f"{first}_{LAYOUT}"
    found = [n for n in row.layers if n in report.by_name and report.by_name[n].op in OPS]
    return found[0] if found else first


def _time_and_rate(row: ConvRow | Layer, times: dict[str, float] | None) -> str:
    """The end of a line: time and rate, with the trailing space that Boda prints."""
    if times is None:
        return ""
    seconds = times.get(_name(row))
    flops = None if isinstance(row, Layer) else row.flops
    return (
        "  ---  ? " if seconds is None else f"  ---  {si_text(seconds)}s {_rate(flops, seconds)} "
    )


def _backward_took(row: ConvRow | Layer, times: dict[str, float] | None) -> str:
    """The same for the gradients, where the times have backward convolutions."""
    if times is None or not _has_backward(times):
        return ""
    seconds = times.get(f"{_name(row)}{BACKWARD}")
    flops = None if isinstance(row, Layer) else 2 * row.flops
    return (
        "  ---  ? " if seconds is None else f"  ---  {si_text(seconds)}s {_rate(flops, seconds)} "
    )


def _rate(amount: int | None, seconds: float | None, unit: str = "F/s", *, bound: str = "") -> str:
    """An amount per second, `?` if either is unknown or no time passed.

    `bound` is the sign of an amount that is a lower bound.
    """
    if amount is None or not seconds or seconds < 0 or (bound and not amount):
        return f"?{unit}"
    return f"{bound}{si_text(amount / seconds)}{unit}"


def _timers(run: Run) -> list[str]:
    lines = ["TIMERS:  CNT     TOT_DUR      AVG_DUR    TAG  "]
    for timer in run.timers:
        mean = timer.total_s / timer.count if timer.count else 0.0
        spent = f"{_duration(timer.total_s):>13}{_duration(mean):>13}"
        lines.append(f"{timer.count:>12}{spent}    {visible(timer.tag)}")
    return lines


def _duration(seconds: float) -> str:
    """Seconds or milliseconds with three decimals, cut as in Boda."""
    nanoseconds = round(seconds * 10**9)
    if nanoseconds >= 10**9:
        return f"{nanoseconds // 10**9}.{nanoseconds // 10**6 % 1000:03d}s"
    return f"{nanoseconds // 10**6}.{nanoseconds // 1000 % 1000:03d}ms"


def _profile(run: Run, report: Report) -> list[str]:
    """Rows, longest first; shares are relative to the end-to-end time."""
    whole = run.timing.end_to_end_s
    lines = ["PROFILE:", _columns("time", "time%", "cum_time", "cum_time%", "func_name")]
    passed = 0.0
    timed_rows = [(row.time_s, _main(row, report)) for row in run.rows if row.time_s is not None]
    for seconds, name in sorted(timed_rows, reverse=True):
        passed += seconds
        lines.append(
            _columns(
                f"{si_text(seconds)}s",
                _percent(seconds, whole),
                f"{si_text(passed)}s",
                _percent(passed, whole),
                visible(name),
            )
        )
    return lines


def _percent(seconds: float, whole: float | None) -> str:
    return f"{seconds / whole * 100:.1f}%" if whole else "?%"


def _columns(*cells: str) -> str:
    return "".join(cell.ljust(10) for cell in cells)


def _totals(
    rows: Sequence[ConvRow | Layer], report: Report, run: Run | None, *, backward: bool
) -> list[str]:
    complete = [row for row in rows if isinstance(row, ConvRow)]
    missing = any(layer.lacks_figures and layer.op not in SPECS for layer in report.layers)
    rest = "+?" if missing or len(complete) < len(rows) else ""
    sums = [
        f"fwd_{name}_bytes={_sum_text(sum(sizes), 'B', rest)}"
        for name, sizes in (
            ("input", [row.input_bytes for row in complete]),
            ("filt", [row.filter_bytes for row in complete]),
            ("output", [row.output_bytes for row in complete]),
        )
    ]
    flops, moved = sum(row.flops for row in complete), sum(row.moved_bytes for row in complete)
    back = sum(row.backward_bytes for row in complete)
    # RUNTIME is that of one pass: of both if the times have backward convolutions
    both = run is not None and _has_backward(_times(run, report))
    lines = [
        *_given(run),
        *(f'-- "{visible(t.name)}" node dims:  {_dims(t.shape, t.bytes)}' for t in report.inputs),
        f"- SUM-OVER-FWD-LAYERS-TOTALS: {' '.join(sums)}",
        "--- FWD TOTALS ---",
        *_sum(flops, moved, rest, None if both else run),
    ]
    claimed = claims_of(report.graph, "boda").totals
    if claimed and run is None and not backward:
        lines = [*lines[:-4], claimed[0], lines[-3], *claimed[1:]]
    if backward:
        lines.append("--- FWD+BCK TOTALS ---")
        lines += _sum(3 * flops, moved + back, rest, run if both else None)
    return lines


def _given(run: Run | None) -> list[str]:
    """Time of layout changes, and what the rates and joules are computed from."""
    if run is None:
        return []
    layout, whole = run.timing.layout_s, run.timing.end_to_end_s
    lines = [] if layout is None else [f"total {LAYOUT} time:  {si_text(layout)}s"]
    lines.append(f"-- INPUT: RUNTIME={'?' if whole is None else f'{whole:.6g}'}s --")
    if run.energy is not None:
        sign = "≤" if run.energy.bound else "="
        lines.append(f"-- INPUT: POWER{sign}{run.energy.watts:g}W --")
    return lines


def _sum(flops: int, moved: int, rest: str, run: Run | None) -> list[str]:
    """FLOPs, bytes and intensity; rates, joules and FLOP/s per watt if the run has them."""
    intensity = "?" if rest else si_text(Fraction(flops, moved)) if moved else "0"
    rate = byte_rate = ""
    tail = []
    if run is not None:
        whole, energy = run.timing.end_to_end_s, run.energy
        bound = AT_LEAST if rest else ""
        rate = f" {_rate(flops, whole, bound=bound)}"
        byte_rate = f" {_rate(moved, whole, 'B/s', bound=bound)}"
        if energy is not None:
            most, least = ("≤", "≥") if energy.bound else ("", "")
            joules = "?" if energy.joules is None else si_text(energy.joules)
            watts = whole and whole * energy.watts
            per_watt = _rate(flops, watts, "F/s/W", bound=least or bound)
            tail = [f"{most}{joules}J {per_watt}"]
    bytes_line = f"{_sum_text(moved, 'B', rest)}{byte_rate} AI={intensity}F/B"
    return [f"{_sum_text(flops, 'F', rest)}{rate}", bytes_line, *tail]


def _sum_text(value: int, unit: str, rest: str) -> str:
    """A sum with `+?` if a part of it is unknown, `?` if all of it is."""
    return f"?{unit}" if rest and not value else f"{si_text(value)}{unit}{rest}"


def _dims(shape: Shape | None, size_bytes: int) -> str:
    return "?" if shape is None else f"{'*'.join(map(str, shape)) or 1}={si_text(size_bytes)}B"


def si_text(value: int | float | Fraction) -> str:
    """A number with an SI prefix: two decimals below 10, one below 100, else none."""
    scaled = Fraction(value)
    if not scaled:
        return "0"
    power = 0
    while scaled >= 1000 and power < 5:
        scaled, power = scaled / 1000, power + 1
    while scaled < 1 and power > -4:
        scaled, power = scaled * 1000, power - 1
    decimals = 2 if scaled < 10 else 1 if scaled < 100 else 0
    digits = f"{round(scaled * 10**decimals):0{decimals + 1}d}"
    point = len(digits) - decimals
    text = f"{digits[:point]}.{digits[point:]}" if decimals else digits
    return text + PREFIXES[power]
