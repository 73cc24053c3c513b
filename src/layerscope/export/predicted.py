"""A prediction (`predict`): a row per layer with its share and error, and the total."""

from __future__ import annotations

from math import inf
from typing import Any

import msgspec
from msgspec import Struct

from layerscope.errors import FormatError
from layerscope.escaping import json_text
from layerscope.export.grid import Blocks, Cell, Grid, Lines, named
from layerscope.export.json import plain_graph
from layerscope.export.run_json import reading
from layerscope.export.run_lines import AT_LEAST, AT_MOST, UNKNOWN, energy_lines
from layerscope.graph.serialize import from_plain
from layerscope.report.measurement import Energy
from layerscope.report.numbers import at_least, bytes_text, time_text
from layerscope.report.prediction import Item, LayerGuess, Prediction
from layerscope.report.quantities import check_stored

SCHEMA = 1


class IntervalJson(Struct, frozen=True):
    """The 68 % interval of the total; `high_s` is null if the total is a lower bound."""

    low_s: float
    high_s: float | None
    relative: float


class PredictionJson(Struct, frozen=True):
    """The JSON of a prediction; `time_s` of a layer is null if it is unknown."""

    kind: str
    schema: int
    network: str
    machine: str
    engine: str
    batch: int
    dtype: str
    total_s: float
    total_is: str  # "≥" if operators without a time are missing from the sum, else "="
    unknown: dict[str, int]  # rows without a time, by operator
    floor_s: float  # lower bound from the peak FLOP/s and bandwidth of the machine
    images_per_s: float | None  # an upper bound if total_s is a lower bound; null for no images
    items_per_s: float | None  # of the tokens, images or inputs that one pass reads
    item: Item
    peak_bytes: int
    band: IntervalJson
    layers: tuple[LayerGuess, ...]
    source: str
    notes: tuple[str, ...]
    version: str
    energy: Energy | None  # an upper bound, by the watts of the machine's data sheet
    items: int = 0  # that one pass reads; 0: the batch
    graph: dict[str, Any] = {}  # the network, which `report` and `compare` read


def headline(found: Prediction) -> str:
    """Network, machine and time in one line."""
    return f"of {found.network}, batch {found.batch}, on {found.machine}: {_total(found)}"


def blocks(
    found: Prediction, *, sort: bool = False, top: int | None = None, stamp: bool = True
) -> Blocks:
    """One row per layer, then the total, and what the prediction rests on."""
    rows = _ordered(found, sort)
    head = [
        named("layer"), named("kind", 3), Cell("time"), Cell("%"), Cell("cum %", drop=2),
        Cell("±", drop=1),
    ]  # fmt: skip
    table = [head]
    passed = 0.0
    for row in rows[:top]:
        passed += row.time_s or 0.0
        table.append([named(row.name), named(row.kind), *_figures(found, row, passed)])
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
    return [Grid(table, totals=1, in_csv=False), Lines(lines_of(found, stamp=stamp))]


def _ordered(found: Prediction, sort: bool) -> list[LayerGuess]:
    """The rows, with `sort` the longest first; an unknown time may be the longest."""
    if not sort:
        return list(found.rows)
    return sorted(found.rows, key=lambda row: -inf if row.time_s is None else -row.time_s)


def csv_blocks(
    found: Prediction, *, sort: bool = False, top: int | None = None, stamp: bool = True
) -> Blocks:
    """One row per layer with exact times, then the total of all layers."""
    rows = [[named(name) for name in ("layer", "kind", "time_s", "error")]]
    for row in _ordered(found, sort)[:top]:
        figures = [Cell(UNKNOWN), Cell(UNKNOWN)]
        if row.time_s is not None and row.error is not None:
            figures = [Cell("", value=row.time_s), Cell("", value=round(row.error, 4))]
        rows.append([named(row.name), named(row.kind), *figures])
    sign = AT_LEAST.strip() if found.is_lower_bound else ""
    total = Cell("", value=f"{sign}{found.total_s!r}" if sign else found.total_s)
    rows.append([named("total"), named(""), total, Cell("", value=round(found.error, 4))])
    return [Grid(rows, totals=1), Lines(lines_of(found, stamp=stamp))]


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


def lines_of(found: Prediction, *, stamp: bool = True) -> list[str]:
    """Lines under the table: total with its interval, peak memory, notes, machine and engine."""
    name = f"{found.network}, batch {found.batch}"
    per_s = found.items_per_s
    rate = f"{UNKNOWN if per_s is None else _rate_text(per_s)} {found.item}/s"
    if found.high_s is None:
        ops = ", ".join(f"{op} ×{count}" for op, count in found.unknown.items())
        lines = [
            f"{name}: {_total(found)}; {AT_MOST if per_s else ''}{rate}.",
            f"Unknown operators have no time: {ops}. The total is a lower bound.",
        ]
    else:
        lines = [
            f"{name}: {_total(found)}, {time_text(found.low_s)} to {time_text(found.high_s)} "
            f"(68 % interval); {rate}."
        ]
    last = (
        f"layerscope {found.version} · {found.machine} · {found.engine} · fitted on {found.source}"
    )
    return [
        *lines,
        f"Peak activation memory {at_least(bytes_text(found.peak_bytes), found.peak_is_bound)} "
        "without fusion.",
        *energy_lines(found.energy),
        *found.notes,
        *([last] if stamp else []),
    ]


def _rate_text(rate: float) -> str:
    """Four digits, without an exponent."""
    text = f"{rate:.4g}"
    return f"{float(text):,.0f}" if "e+" in text else text


def write_json(found: Prediction) -> str:
    """The prediction as JSON."""
    document = PredictionJson(
        kind="prediction",
        schema=SCHEMA,
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
        items_per_s=found.items_per_s,
        item=found.item,
        peak_bytes=found.peak_bytes,
        band=IntervalJson(found.low_s, found.high_s, found.error),
        layers=found.rows,
        source=found.source,
        notes=found.notes,
        version=found.version,
        energy=found.energy,
        items=found.items,
        graph={} if found.graph is None else plain_graph(found.graph),
    )
    return json_text(document)


def read_file(path: str) -> Prediction:
    """The prediction in a file that `predict NET -o FILE.json` wrote."""
    from layerscope.formats.documents import contents

    try:
        found = msgspec.json.decode(contents(path), type=PredictionJson)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FormatError(f"{path}: not a prediction of layerscope: {error}") from None
    except RecursionError:
        raise FormatError(f"{path}: JSON that is nested too deeply") from None
    if found.schema != SCHEMA or not found.graph:
        raise FormatError(
            f"{path}: a prediction without its network; write it again with `layerscope predict "
            "NET -o FILE.json`"
        )
    with reading(path):
        check_stored(msgspec.to_builtins(found), path)
        return Prediction(
            network=found.network,
            machine=found.machine,
            engine=found.engine,
            batch=found.batch,
            dtype=found.dtype,
            rows=found.layers,
            total_s=found.total_s,
            error=found.band.relative,
            source=found.source,
            version=found.version,
            peak_bytes=found.peak_bytes,
            notes=found.notes,
            power_w=None if found.energy is None else found.energy.watts,
            floor_s=found.floor_s,
            graph=from_plain(found.graph),
            items=found.items,
            item=found.item,
        )
