"""Boda's profile of the convolutions: sizes, FLOPs, bytes, intensity and matrix product of each.

With a measured run: the time of each, layout changes (`__inxp`), PROFILE and TIMERS.

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
from layerscope.graph.types import Shape
from layerscope.ops import SPECS
from layerscope.report import Layer, Report
from layerscope.report.measurement import LayerTime, Run

PARTS = ("layers", "info", "totals")
MEASURED = ("profile", "timers")
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


def write(report: Report, parts: Sequence[str] | str | None = None, run: Run | None = None) -> str:
    """The chosen parts: `info` and `layers` side by side for each convolution, then `totals`."""
    chosen = _check(parts, run)
    rows = [_row(layer, report) for layer in report.layers if layer.op in OPS]
    times = _times(run, report) if run is not None else {}
    lines = _timers(run) if run is not None and "timers" in chosen else []
    for row in rows:
        if "info" in chosen:
            lines.append(_info(row))
        if "layers" in chosen:
            lines.append(_forward(row) + _took(row, times))
    if "totals" in chosen:
        lines += _totals(rows, report, run)
    if run is not None and "profile" in chosen:
        lines += _profile(run, report)
    return "\n".join(lines) + "\n"


def _check(parts: Sequence[str] | str | None, run: Run | None) -> tuple[str, ...]:
    if parts is None:
        return PARTS if run is None else (*PARTS, *MEASURED)
    chosen = tuple(parts.split(",")) if isinstance(parts, str) else tuple(parts)
    for part in chosen:
        if part in MEASURED and run is not None:
            continue
        if part in MEASURED:
            raise UsageError(f"part {part!r} needs a measured run; without one: {', '.join(PARTS)}")
        if part not in PARTS:
            raise UnknownName("part", part, PARTS, f"; choose from {', '.join(PARTS)}")
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


def _forward(row: ConvRow | Layer) -> str:
    """FLOPs, bytes, intensity and, last, the matrix product: the time is appended to it."""
    if isinstance(row, Layer):
        return f"{visible(row.name)} FWD ? ?  FWD_AI ?  MxNxK=?"
    layer, gemm = row.layer, row.layer.gemm
    assert gemm is not None
    times = f" x{gemm.count}" if gemm.count > 1 else ""
    flops, moved = layer.convention_kinds.flops, layer.moved_bytes
    intensity = Fraction(flops, moved) if moved else 0
    return (
        f"{visible(layer.name)} FWD {si_text(flops)}F {si_text(moved)}B  "
        f"FWD_AI {si_text(intensity)}F/B  MxNxK={gemm.m}x{gemm.n}x{gemm.k}{times}"
    )


def _times(run: Run, report: Report) -> dict[str, float]:
    """Seconds of each convolution, including the layers fused into it."""
    return {_main(row, report): row.time_s for row in run.rows if row.kind == "layer"}


def _main(row: LayerTime, report: Report) -> str:
    """Boda's name of a row: its convolution, else its first layer; `__inxp` for layout changes."""
    first = row.layers[0] if row.layers else row.name
    if row.kind == "layout":
        return f"{first}__inxp"
    found = [n for n in row.layers if n in report.by_name and report.by_name[n].op in OPS]
    return found[0] if found else first


def _took(row: ConvRow | Layer, times: dict[str, float]) -> str:
    """The end of a line: time and rate, with the trailing space that Boda prints."""
    layer = row if isinstance(row, Layer) else row.layer
    if not times:
        return ""
    seconds = times.get(layer.name, 0.0)
    if not seconds:
        return "  ---  ? "
    return f"  ---  {si_text(seconds)}s {si_text(layer.convention_kinds.flops / seconds)}F/s "


def _timers(run: Run) -> list[str]:
    lines = ["TIMERS:  CNT     TOT_DUR      AVG_DUR    TAG  "]
    for timer in run.timers:
        mean = timer.total_s / timer.count if timer.count else 0.0
        spent = f"{_duration(timer.total_s):>13}{_duration(mean):>13}"
        lines.append(f"{timer.count:>12}{spent}    {visible(timer.tag)}")
    return lines


def _duration(seconds: float) -> str:
    return f"{seconds:.3f}s" if seconds >= 1 else f"{seconds * 1000:.3f}ms"


def _profile(run: Run, report: Report) -> list[str]:
    """Rows, longest first; shares are relative to the end-to-end time."""
    whole = run.timing.end_to_end_s
    lines = ["PROFILE:", _columns("time", "time%", "cum_time", "cum_time%", "func_name")]
    passed = 0.0
    for row in sorted(run.rows, key=lambda row: -row.time_s):
        passed += row.time_s
        lines.append(
            _columns(
                f"{si_text(row.time_s)}s",
                f"{row.time_s / whole * 100:.1f}%",
                f"{si_text(passed)}s",
                f"{passed / whole * 100:.1f}%",
                visible(_main(row, report)),
            )
        )
    return lines


def _columns(*cells: str) -> str:
    return "".join(cell.ljust(10) for cell in cells)


def _totals(rows: Sequence[ConvRow | Layer], report: Report, run: Run | None) -> list[str]:
    complete = [row for row in rows if isinstance(row, ConvRow)]
    missing = any(layer.lacks_figures and layer.op not in SPECS for layer in report.layers)
    rest = "+?" if missing or len(complete) < len(rows) else ""
    sums = [
        f"fwd_{name}_bytes={si_text(sum(sizes))}B{rest}"
        for name, sizes in (
            ("input", [row.input_bytes for row in complete]),
            ("filt", [row.filter_bytes for row in complete]),
            ("output", [row.output_bytes for row in complete]),
        )
    ]
    flops = sum(row.layer.convention_kinds.flops for row in complete)
    moved = sum(row.layer.moved_bytes for row in complete)
    intensity = "?" if rest else si_text(Fraction(flops, moved)) if moved else "0"
    head: list[str] = []
    rate = byte_rate = ""
    tail: list[str] = []
    if run is not None:
        whole = run.timing.end_to_end_s
        head = [
            f"total _inxp time:  {si_text(run.timing.layout_s)}s",
            f"-- INPUT: RUNTIME={whole:.6g}s --",
        ]
        rate, byte_rate = f" {si_text(flops / whole)}F/s", f" {si_text(moved / whole)}B/s"
        if run.energy is not None:
            watts, joules = run.energy.watts, run.energy.joules
            head.append(f"-- INPUT: POWER={watts:g}W --")
            tail = [f"{si_text(joules)}J {si_text(flops / whole / watts)}F/s/W"]
    return [
        *head,
        *(f'-- "{visible(t.name)}" node dims:  {_dims(t.shape, t.bytes)}' for t in report.inputs),
        f"- SUM-OVER-FWD-LAYERS-TOTALS: {' '.join(sums)}",
        "--- FWD TOTALS ---",
        f"{si_text(flops)}F{rest}{rate}",
        f"{si_text(moved)}B{rest}{byte_rate} AI={intensity}F/B",
        *tail,
    ]


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
