"""A prediction as text, Markdown, csv or JSON."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO

from msgspec import Struct

from layerscope.errors import UnknownName
from layerscope.escaping import csv_cell, json_text
from layerscope.export.footer import stamps
from layerscope.export.grid import Cell, TimeView, lay_out, markdown, named
from layerscope.export.run_lines import AT_LEAST, AT_MOST, UNKNOWN, energy_lines, time_text
from layerscope.report.measurement import Energy
from layerscope.report.numbers import bytes_text
from layerscope.report.prediction import LayerGuess, Prediction

FORMS = ("text", "markdown", "csv", "json")


class IntervalJson(Struct, frozen=True):
    """The 68 % interval of the total; `high_s` is null if the total is a lower bound."""

    low_s: float
    high_s: float | None
    relative: float


class PredictionJson(Struct, frozen=True):
    """The JSON of a prediction; `time_s` of a layer is null if it is unknown."""

    network: str
    machine: str
    engine: str
    batch: int
    dtype: str
    total_s: float
    total_is: str  # "≥" if operators without a time are missing from the sum, else "="
    unknown: dict[str, int]  # rows without a time, by operator
    floor_s: float  # lower bound from the peak FLOP/s and bandwidth of the machine
    images_per_s: float | None  # an upper bound if total_s is a lower bound
    band: IntervalJson
    layers: tuple[LayerGuess, ...]
    source: str
    notes: tuple[str, ...]
    version: str
    energy: Energy | None  # an upper bound, by the watts of the machine's data sheet


def write(
    found: Prediction,
    form: str = "text",
    view: TimeView | None = None,
) -> str:
    """The prediction in that form."""
    view = view or TimeView()
    if form not in FORMS:
        raise UnknownName("form", form, FORMS, f"; choose from {', '.join(FORMS)}")
    if form == "json":
        return _json(found)
    rows = list(found.rows)
    if view.sort:  # unknown times first: they may be the longest
        rows.sort(key=lambda row: -row.time_s if row.time_s is not None else float("-inf"))
    if form == "csv":
        return _csv(found, rows)
    table = [[named("layer"), named("kind"), Cell("time"), Cell("%"), Cell("cum %"), Cell("±")]]
    passed = 0.0
    for row in rows[: view.top]:
        passed += row.time_s or 0.0
        table.append([named(row.name), named(row.kind), *_figures(found, row, passed)])
    top = view.top
    if top is not None and top < len(rows):
        rest = sum(row.time_s or 0.0 for row in rows[top:])
        sign = AT_LEAST if any(row.time_s is None for row in rows[top:]) else ""
        table.append(
            [named(f"{len(rows) - top} more rows"), named(""), Cell(sign + time_text(rest)),
             Cell(_share(found, rest)), Cell(""), Cell("")]
        )  # fmt: skip
    table.append(
        [named("total"), named(""), Cell(_total(found)), Cell(_share(found, found.total_s)),
         Cell(""), Cell(f"{found.error:.0%}")]
    )  # fmt: skip
    text = markdown(table) if form == "markdown" else lay_out(table, view.width, view.style)
    return text + "\n" + stamps(lines_of(found), form)


def _figures(found: Prediction, row: LayerGuess, passed: float) -> list[Cell]:
    """Time, share, cumulative share and error of a row."""
    if row.time_s is None or row.error is None:
        return [Cell(UNKNOWN)] * 4
    shares = (_share(found, row.time_s), _share(found, passed))
    return [Cell(time_text(row.time_s)), *map(Cell, shares), Cell(f"{row.error:.0%}")]


def _share(found: Prediction, seconds: float) -> str:
    """Percent of the total; "?" if the total is a lower bound."""
    if found.is_lower_bound or not found.total_s:
        return UNKNOWN
    return f"{seconds / found.total_s * 100:.1f}"


def _total(found: Prediction) -> str:
    return (AT_LEAST if found.is_lower_bound else "") + time_text(found.total_s)


def _csv(found: Prediction, rows: Sequence[LayerGuess]) -> str:
    """One line per row, then the total."""
    import csv

    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["layer", "kind", "time_s", "error"])
    for row in rows:
        figures = [UNKNOWN, UNKNOWN]
        if row.time_s is not None and row.error is not None:
            figures = [repr(row.time_s), f"{row.error:.4f}"]
        writer.writerow([csv_cell(row.name), csv_cell(row.kind), *figures])
    sign = AT_LEAST.strip() if found.is_lower_bound else ""
    writer.writerow(["total", "", f"{sign}{found.total_s!r}", f"{found.error:.4f}"])
    return out.getvalue()


def lines_of(found: Prediction) -> list[str]:
    """Lines under the table: total with its interval, peak memory, notes, machine and engine."""
    name = f"{found.network}, batch {found.batch}"
    rate = f"{found.images_per_s:.4g}" if found.images_per_s is not None else UNKNOWN
    if found.high_s is None:
        ops = ", ".join(f"{op} ×{count}" for op, count in found.unknown.items())
        lines = [
            f"{name}: {_total(found)}; {AT_MOST if found.images_per_s else ''}{rate} images/s.",
            f"Unknown operators have no time: {ops}. The total is a lower bound.",
        ]
    else:
        lines = [
            f"{name}: {_total(found)}, {time_text(found.low_s)} to {time_text(found.high_s)} "
            f"(68 % interval); {rate} images/s."
        ]
    return [
        *lines,
        f"Peak activation memory {bytes_text(found.peak_bytes)} without fusion.",
        *energy_lines(found.energy),
        *found.notes,
        f"layerscope {found.version} · {found.machine} · {found.engine} · fitted on {found.source}",
    ]


def _json(found: Prediction) -> str:
    document = PredictionJson(
        network=found.network,
        machine=found.machine,
        engine=found.engine,
        batch=found.batch,
        dtype=found.dtype,
        total_s=found.total_s,
        total_is=AT_LEAST.strip() if found.is_lower_bound else "=",
        unknown=found.unknown,
        floor_s=found.floor_s,
        images_per_s=found.images_per_s,
        band=IntervalJson(found.low_s, found.high_s, found.error),
        layers=found.rows,
        source=found.source,
        notes=found.notes,
        version=found.version,
        energy=found.energy,
    )
    return json_text(document)
