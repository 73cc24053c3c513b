"""Rooflines: FLOP/s over FLOP/B under the limits of a machine, measured or attainable."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import fsum, sqrt

from msgspec import Struct

from layerscope.errors import UsageError
from layerscope.plot.pictures import run_notes, run_title, seconds_text, share_text
from layerscope.plot.svg import COLOURS, LINES, Canvas, Header, Key, PlotAxis
from layerscope.report import Layer, Report
from layerscope.report.measurement import STORED_AS, Level, Machine, Measurement, Peak, total_s
from layerscope.report.numbers import PREFIXES, counted, rate_text
from layerscope.report.timed import threads_of, timed

DASHES = {"L2": "2 3", "L3": "8 3 2 3", "DRAM": "6 4"}
NO_ROOF = (
    "run `layerscope machine` once to measure this machine, or name another one with --on NAME "
    "(layerscope machine --list)"
)


class Dot(Struct, frozen=True):
    """A layer, or a row of a run, and its share of the time."""

    name: str
    op: str
    intensity: float
    flops_s: float
    share: float


class DrawnRoofs(Struct, frozen=True):
    """The limits of a machine that apply to one network."""

    machine: Machine
    peaks: dict[str, Peak]  # by dtype, that of the network first
    levels: tuple[Level, ...]
    dtype: str  # of the products of the network's own dtype

    @property
    def dram_bytes_s(self) -> float:
        """Bytes per second of DRAM."""
        found = [level.rate.best for level in self.levels if level.name == "DRAM"]
        if not found:
            raise UsageError(f"{self.machine.cpu}: no bandwidth of DRAM is known; {NO_ROOF}")
        return found[0]

    def peak(self, layer: Layer) -> Peak:
        """The highest peak of the dtypes of a layer's tensors; without any that of the network."""
        kinds = {tensor.dtype for tensor in (*layer.inputs, *layer.outputs)}
        kinds |= {param.dtype for param in layer.cost.params}
        if STORED_AS.get(self.dtype, self.dtype) in kinds:
            kinds = kinds - {STORED_AS.get(self.dtype, "")} | {self.dtype}
        found = [self.peaks[kind] for kind in sorted(kinds) if kind in self.peaks]
        return max(found, key=lambda peak: peak.flops.best, default=self.peaks[self.dtype])

    def attainable(self, layer: Layer) -> float:
        """FLOP/s of a layer at most, if its bytes come from DRAM."""
        intensity = float(layer.intensity or 0)
        return min(self.peak(layer).flops.best, intensity * self.dram_bytes_s)


def roofs_of(machine: Machine, dtype: str, threads: int) -> DrawnRoofs:
    """The limits of a machine for products in a dtype; raises if it has no peak for it."""
    kinds = tuple(dict.fromkeys(peak.dtype for peak in machine.peaks))
    if dtype not in kinds:
        raise UsageError(
            f"dtype {dtype}: {machine.cpu} has no peak for it; --dtype can be "
            f"{', '.join(kinds) or 'nothing: it has no peaks'}"
        )
    peaks = {kind: machine.peak(kind, threads) for kind in (dtype, *kinds)}
    levels = (machine.level(name, threads) for name in DASHES)
    kept = tuple(level for level in levels if level is not None)
    return DrawnRoofs(machine, {k: p for k, p in peaks.items() if p is not None}, kept, dtype)


def roofs_of_run(report: Report, found: Measurement) -> DrawnRoofs | None:
    """The limits of the machine of a run; None if they are unknown for its dtype."""
    machine = found.machine
    if machine is None:
        return None
    threads = threads_of(found.runs[0], machine)
    if machine.peak(report.float_dtype, threads) is None:
        return None
    return roofs_of(machine, report.float_dtype, threads)


def attainable_roofline(report: Report, roofs: DrawnRoofs) -> str:
    """Layers at their arithmetic intensity and the FLOP/s that the machine allows at most."""
    layers = [layer for layer in report.layers if layer.ops.flops and layer.moved_bytes]
    if not layers:
        raise UsageError(f"{report.name}: no layer has FLOPs, so there is no roofline")
    least = {layer.name: layer.ops.flops / roofs.attainable(layer) for layer in layers}
    whole = fsum(least.values())
    dots = [
        Dot(
            layer.name,
            layer.op,
            float(layer.intensity or 0),
            roofs.attainable(layer),
            least[layer.name] / whole,
        )
        for layer in layers
    ]
    unknown = sum(report.coverage.unknown.values())
    idle = len(report.layers) - len(layers) - unknown
    notes = [
        "Bounds, not measurements: each layer is at min(peak, FLOP/B × bandwidth of DRAM), as if "
        f"all its bytes came from DRAM. Area: share of the sum of these times, "
        f"{seconds_text(whole)}.",
        f"{_source(roofs)}.{_left_out(idle, unknown)}",
    ]
    title = f"{report.name}, batch {report.batch}, {roofs.dtype}: roofline without a run"
    header = Header(title, tuple(notes))
    return _draw(header, "attainable performance (FLOP/s)", dots, roofs, _used(report, roofs))


def measured_roofline(report: Report, found: Measurement, roofs: DrawnRoofs | None) -> str:
    """Rows of the first run at the FLOP/s that they reached; without roofs a note says so."""
    run = found.runs[0]
    rows = timed(report, run, None)
    drawn = [
        (each, each.row.time_s, each.flops_s)
        for each in rows
        if each.flops and each.moved_bytes and each.row.time_s and each.flops_s
    ]
    if not drawn:
        raise UsageError(f"{report.name}: no layer has FLOPs and a time, so there is no roofline")
    whole = run.timing.end_to_end_s or total_s(run.rows)
    dots = [
        Dot(each.row.name, each.op, each.intensity, speed, max(seconds / whole, 0.0))
        for each, seconds, speed in drawn
        if seconds is not None and speed is not None
    ]
    of_rows = "" if run.timing.end_to_end_s else " of its rows, since the whole is unknown"
    notes = [*run_notes(found), f"Area: share of the time of the run{of_rows}."]
    if roofs is None:
        notes.append(f"No roofs: {_why_no_roofs(report, found)}.")
    else:
        other = "" if roofs.machine == found.machine else ", not those of the run"
        notes.append(f"{_source(roofs)}{other}.")
    if len(drawn) < len(rows):
        rest = Fraction(max(1 - fsum(dot.share for dot in dots), 0.0))
        notes.append(
            f"Not drawn: {counted(len(rows) - len(drawn), 'row')} without FLOPs or a time, "
            f"{share_text(rest)} of the time."
        )
    used = set() if roofs is None else _used(report, roofs)
    header = Header(run_title(report, run), tuple(notes))
    return _draw(header, "performance (FLOP/s)", dots, roofs, used)


def _why_no_roofs(report: Report, found: Measurement) -> str:
    if found.machine is None:
        return (
            "the run has none; name a machine with --on NAME, or run `layerscope machine` and "
            "measure again"
        )
    kinds = ", ".join(dict.fromkeys(peak.dtype for peak in found.machine.peaks))
    return f"{found.machine.cpu} has no peak for {report.float_dtype}, only for {kinds or 'none'}"


def _used(report: Report, roofs: DrawnRoofs) -> set[str]:
    return {roofs.peak(layer).dtype for layer in report.layers if layer.ops.mac} or {roofs.dtype}


def _source(roofs: DrawnRoofs) -> str:
    machine = roofs.machine
    when = f" {machine.measured[:10]}" if machine.measured else ""
    return f"Roofs of {machine.cpu}, {machine.source}{when}"


def _left_out(idle: int, unknown: int) -> str:
    """What is not drawn, as a sentence after a space; "" if all layers are."""
    texts = [f"{counted(idle, 'layer')} without FLOPs"] if idle else []
    texts += [f"{counted(unknown, 'layer')} with unknown figures"] if unknown else []
    return f" Not drawn: {' and '.join(texts)}." if texts else ""


def _draw(
    header: Header, y_title: str, dots: Sequence[Dot], roofs: DrawnRoofs | None, used: Iterable[str]
) -> str:
    """The picture: dots by op, the peaks of the used dtypes, and the bandwidths."""
    peaks = [] if roofs is None else [peak for kind, peak in roofs.peaks.items() if kind in used]
    levels = () if roofs is None else roofs.levels
    top = max((peak.flops.best for peak in peaks), default=0.0)
    rates = [dot.flops_s for dot in dots] + [peak.flops.best for peak in peaks]
    ridges = [2 * top / level.rate.best for level in levels]
    dense = [dot.intensity for dot in dots]
    x = PlotAxis(
        min(dense) / 1.6, max(max(dense) * 1.6, *ridges, 64), "arithmetic intensity (FLOP/B)", True
    )
    y = PlotAxis(min(rates) / 1.6, max(rates) * 1.6, y_title, log=True)
    colours, keys = _colours(dots)
    lines = [
        *(Key(_peak_text(peak), LINES, "") for peak in peaks),
        *(Key(_level_text(level), LINES, DASHES[level.name]) for level in levels),
    ]
    canvas = Canvas(Header(header.title, header.notes, (*lines, *keys)), x, y)
    for peak in peaks:
        canvas.line([(x.low, peak.flops.best), (x.high, peak.flops.best)], LINES)
    for level in levels:
        rate = level.rate.best
        begin, end = max(x.low, y.low / rate), min(x.high, top / rate)
        if begin < end:
            canvas.line([(begin, begin * rate), (end, end * rate)], LINES, DASHES[level.name])
    for dot in sorted(dots, key=lambda dot: -dot.share):
        tooltip = (
            f"{dot.name}: {share_text(Fraction(dot.share))} of the time, "
            f"{rate_text(dot.flops_s, 'FLOP/s')}, {dot.intensity:.3g} FLOP/B"
        )
        radius = 3 + 22 * sqrt(dot.share)
        canvas.dot(dot.intensity, dot.flops_s, radius, colours[dot.op], tooltip)
    return canvas.render(x_text=lambda v: f"{v:g}", y_text=_prefixed)


def _colours(dots: Sequence[Dot]) -> tuple[dict[str, str], list[Key]]:
    """Colours by op and their legend, ops with most time first; the last colour may be shared."""
    spent: dict[str, float] = {}
    for dot in dots:
        spent[dot.op] = spent.get(dot.op, 0.0) + dot.share
    ordered = sorted(spent, key=lambda op: -spent[op])
    colours = {op: COLOURS[min(n, len(COLOURS) - 1)] for n, op in enumerate(ordered)}
    keys = [Key(op or "other", colours[op]) for op in ordered[: len(COLOURS)]]
    shared = len(ordered) - len(COLOURS) + 1
    if shared > 1:
        keys[-1] = Key(f"{shared} other ops", COLOURS[-1])
    return colours, keys


def _peak_text(peak: Peak) -> str:
    unit = "OP/s" if peak.dtype.startswith("int") else "FLOP/s"
    return f"{rate_text(peak.flops.best, unit)}, products in {peak.dtype}"


def _level_text(level: Level) -> str:
    return f"{level.name} {rate_text(level.rate.best, 'B/s')}"


def _prefixed(value: float) -> str:
    """A tick label such as 100G."""
    power = 0
    while value >= 999.5 and power < len(PREFIXES) - 1:
        value, power = value / 1000, power + 1
    return f"{value:.3g}{PREFIXES[power]}"
