"""Times of a network on a report page: those of a kept run, or predicted ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import fsum

from msgspec import Struct

from layerscope.export.json_types import CellsJson, ColumnJson
from layerscope.export.page_types import PageMachine, PageRoof, PageRun, PageTime
from layerscope.export.predicted import headline as predicted_headline
from layerscope.export.predicted import lines_of as predicted_lines
from layerscope.export.run_json import giga
from layerscope.export.run_lines import lines_of, rate_text, stamp_of
from layerscope.report.compare import NetworkTime
from layerscope.report.measurement import Machine, Measurement
from layerscope.report.numbers import at_least, time_text
from layerscope.report.numbers import rate_text as per_second
from layerscope.report.outline import Outline
from layerscope.report.prediction import Prediction
from layerscope.report.timed import TimedRow, timed
from layerscope.report.types import Report

UNKNOWN = "?"
DIGITS = 6  # of a share or a rate, whose texts have fewer
COLUMNS = (
    ColumnJson("time", "time", "time", "s", True, True, "seconds, with the layers fused into it"),
    ColumnJson("time%", "%", "percent", "%", True, True, "share of the whole time"),
    ColumnJson("gflops_s", "GFLOP/s", "ratio", "GFLOP/s", False, False, "FLOPs per second"),
    ColumnJson("gb_s", "GB/s", "ratio", "GB/s", False, False, "bytes moved per second"),
    ColumnJson("roof", "roof", "text", "", False, False, "what bounds it on this machine"),
    ColumnJson("roof%", "of roof", "percent", "%", False, False, "share of that bound it attains"),
)


class RowTime(Struct, frozen=True):
    """The time of layers that run as one."""

    name: str
    kind: str
    layers: tuple[int, ...]
    main: int | None  # the layer that the time stands at
    time_s: float | None
    rates: TimedRow | None = None  # of a measured row


def times_of(found: Measurement | Prediction, report: Report, outlined: Outline) -> PageRun:
    """Times that were measured or predicted."""
    if isinstance(found, Prediction):
        return _prediction(found, report, outlined)
    return _run(found, report, outlined)


def _run(found: Measurement, report: Report, outlined: Outline) -> PageRun:
    """The times of the first run of a measurement."""
    run = found.runs[0]
    rows = timed(report, run, found.machine)
    numbers = {layer.name: n for n, layer in enumerate(report.layers)}
    times = [
        RowTime(
            each.row.name,
            each.row.kind,
            tuple([numbers[name] for name in each.row.layers if name in numbers]),
            numbers.get(each.main) if each.row.kind == "layer" else None,
            each.row.time_s,
            each,
        )
        for each in rows
    ]
    whole = NetworkTime.of_measurement(found)
    return PageRun(
        kind="run",
        title=whole.source,
        stamp=stamp_of(found),
        lines=[*lines_of(run, rows, report, found.machine), *found.failures],
        total_s=whole.total_s,
        total=at_least(time_text(whole.total_s), whole.is_lower_bound),
        contention=run.timing.contention,
        machine=found.machine.cpu if found.machine else "",
        dtype=found.dtype,
        error=None,
        columns=list(COLUMNS),
        cells=_cells(times, outlined, run.timing.end_to_end_s, whole),
        fused=_fused(times),
        rows=_rows(times),
    )


def _prediction(found: Prediction, report: Report, outlined: Outline) -> PageRun:
    """Predicted times."""
    numbers = {layer.name: n for n, layer in enumerate(report.layers)}
    times = []
    for row in found.rows:
        layers = tuple([numbers[name] for name in row.layers if name in numbers])
        times.append(RowTime(row.name, "layer", layers, next(iter(layers), None), row.time_s))
    whole = NetworkTime.of_prediction(found)
    return PageRun(
        kind="prediction",
        title=whole.source,
        stamp=f"Prediction {predicted_headline(found)}",
        lines=predicted_lines(found),
        total_s=found.total_s,
        total=at_least(time_text(found.total_s), found.is_lower_bound),
        contention=None,
        machine=found.machine,
        dtype=found.dtype,
        error=found.error,
        columns=list(COLUMNS[:2]),
        cells=_cells(times, outlined, found.total_s, whole),
        fused=_fused(times),
        rows=_rows(times),
    )


def _fused(times: Sequence[RowTime]) -> list[tuple[int, int]]:
    """Layers without a time of their own, and the layer whose time includes theirs."""
    return [
        (layer, each.main)
        for each in times
        if each.main is not None
        for layer in each.layers
        if layer != each.main
    ]


def _rows(times: Sequence[RowTime]) -> list[PageTime]:
    return [
        PageTime(each.name, each.kind, list(each.layers), each.time_s, time_text(each.time_s))
        for each in times
    ]


def _cells(
    times: Sequence[RowTime], outlined: Outline, whole: float | None, total: NetworkTime
) -> dict[str, CellsJson]:
    """Columns by the numbers of rows: a layer has the time of what it runs with, a group sums."""
    at = {each.main: each for each in times if each.main is not None}
    layers = [at.get(n) for n in range(len(outlined.layers))]
    spent = [_Spent.of([] if each is None else [each]) for each in layers]
    spent += [_Spent.of([at[n] for n in g.layers if n in at]) for g in outlined.groups]
    spent.append(_Spent(total.total_s, total.is_lower_bound))
    shares = [each.share(whole) for each in spent[:-1]] + [1.0 if whole else None]
    cells = {
        "time": CellsJson([_rounded(each.time_s) for each in spent], [each.text for each in spent]),
        "time%": CellsJson(
            [_rounded(share) for share in shares],
            [_share(share, each.bound) for share, each in zip(shares, spent, strict=True)],
        ),
    }
    if any(each.rates is not None for each in times):
        cells |= _rates(layers, len(spent) - len(layers))
    return cells


class _Spent(Struct, frozen=True):
    """The time of some rows; None if they have none, a lower bound if one is unknown."""

    time_s: float | None
    bound: bool = False

    @classmethod
    def of(cls, rows: Sequence[RowTime]) -> _Spent:
        """The sum of the times of rows."""
        if not rows:
            return cls(None)
        found = [each.time_s for each in rows if each.time_s is not None]
        return cls(fsum(found), len(found) < len(rows))

    @property
    def text(self) -> str:
        """As the table prints it; blank without a time."""
        if self.time_s is None:
            return ""
        if self.bound and not self.time_s:
            return UNKNOWN
        return at_least(time_text(self.time_s), self.bound)

    def share(self, whole: float | None) -> float | None:
        """The share of the whole time."""
        return self.time_s / whole if whole and self.time_s is not None else None


def _rates(layers: Sequence[RowTime | None], others: int) -> dict[str, CellsJson]:
    """Rates and roofs of layers; blank in the `others` rows after them."""
    rates = [None if each is None else each.rates for each in layers]
    cells = {}
    for name, (value, text) in RATES.items():
        values = [None if each is None else _rounded(value(each)) for each in rates]
        texts = ["" if each is None else text(each) for each in rates]
        cells[name] = CellsJson(
            None if name == "roof" else values + [None] * others, texts + [""] * others
        )
    return cells


# column -> its value and its text
RATES: dict[str, tuple[Callable[[TimedRow], float | None], Callable[[TimedRow], str]]] = {
    "gflops_s": (lambda each: giga(each.flops_s), lambda each: rate_text(each.flops_s)),
    "gb_s": (lambda each: giga(each.bytes_s), lambda each: rate_text(each.bytes_s)),
    "roof": (
        lambda each: None,
        lambda each: each.roof.name if each.roof else UNKNOWN * each.lacks_roof,
    ),
    "roof%": (
        lambda each: each.roof.share if each.roof else None,
        lambda each: f"{each.roof.share:.0%}" if each.roof else UNKNOWN * each.lacks_roof,
    ),
}


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")


def _share(share: float | None, bound: bool) -> str:
    return "" if share is None else at_least(f"{share * 100:.1f}", bound)


def machine_roofs(machine: Machine, dtype: str, threads: int) -> PageMachine:
    """The peak of a machine in a dtype and the bandwidths of its memory levels."""
    peak = machine.peak(dtype, threads)
    names = dict.fromkeys(level.name for level in machine.levels)
    levels = [level for name in names if (level := machine.level(name, threads)) is not None]
    return PageMachine(
        machine.cpu,
        machine.source,
        dtype,
        threads,
        peak.flops.best if peak else None,
        per_second(peak.flops.best, "FLOP/s") if peak else UNKNOWN,
        [
            PageRoof(x.name, x.rate.best, per_second(x.rate.best, "B/s"), x.size_bytes)
            for x in levels
        ],
    )
