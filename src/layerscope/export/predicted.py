"""A prediction as a table for people, as csv, Markdown or JSON."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from layerscope.errors import UnknownName
from layerscope.export.grid import Cell, lay_out, markdown, named
from layerscope.export.measured import time_text
from layerscope.export.text import Style, plain
from layerscope.report.numbers import bytes_text
from layerscope.report.prediction import LayerGuess, Prediction

FORMS = ("text", "markdown", "csv", "json")


class Band(Struct, frozen=True):
    """Between which times the sum lies, two times of three."""

    low_s: float
    high_s: float
    relative: float


class Document(Struct, frozen=True):
    """The JSON of a prediction."""

    network: str
    machine: str
    engine: str
    batch: int
    dtype: str
    total_s: float
    images_per_s: float
    band: Band
    layers: tuple[LayerGuess, ...]
    source: str
    notes: tuple[str, ...]
    version: str


def write(
    found: Prediction,
    form: str = "text",
    *,
    width: int | None = None,
    style: Style = plain,
    sort: bool = False,
    top: int | None = None,
) -> str:
    """The prediction in that form."""
    if form not in FORMS:
        raise UnknownName("form", form, FORMS, f"; known: {', '.join(FORMS)}")
    if form == "json":
        return _json(found)
    rows = sorted(found.rows, key=lambda row: -row.time_s) if sort else list(found.rows)
    if form == "csv":
        lines = ["layer,kind,time_s,error"]
        lines += [f'"{row.name}",{row.kind},{row.time_s!r},{row.error:.4f}' for row in rows]
        return "\n".join(lines) + "\n"
    table = [[named("layer"), named("kind"), Cell("time"), Cell("%"), Cell("cum %"), Cell("±")]]
    passed = 0.0
    for row in rows[:top]:
        passed += row.time_s
        shares = (row.time_s / found.total_s, passed / found.total_s)
        table.append(
            [named(row.name), named(row.kind), Cell(time_text(row.time_s)),
             *(Cell(f"{share * 100:.1f}") for share in shares), Cell(f"{row.error:.0%}")]
        )  # fmt: skip
    if top is not None and top < len(rows):
        rest = sum(row.time_s for row in rows[top:])
        table.append(
            [named(f"{len(rows) - top} more rows"), named(""), Cell(time_text(rest)),
             Cell(f"{rest / found.total_s * 100:.1f}"), Cell(""), Cell("")]
        )  # fmt: skip
    table.append(
        [named("total"), named(""), Cell(time_text(found.total_s)), Cell("100.0"), Cell(""),
         Cell(f"{found.error:.0%}")]
    )  # fmt: skip
    text = markdown(table) if form == "markdown" else lay_out(table, width, style)
    return text + "\n" + "".join(f"{line}\n" for line in lines_of(found))


def lines_of(found: Prediction) -> list[str]:
    """The sum with its band, what it is by, and what it is of."""
    return [
        f"{found.network}, batch {found.batch}: {time_text(found.total_s)}, two times of three "
        f"between {time_text(found.low_s)} and {time_text(found.high_s)}; "
        f"{found.batch / found.total_s:.4g} a second.",
        f"Peak of activations {bytes_text(found.peak_bytes)} with nothing fused.",
        *found.notes,
        f"layerscope {found.version} · {found.machine} · {found.engine} · fitted on {found.source}",
    ]


def _json(found: Prediction) -> str:
    document = Document(
        network=found.network,
        machine=found.machine,
        engine=found.engine,
        batch=found.batch,
        dtype=found.dtype,
        total_s=found.total_s,
        images_per_s=found.batch / found.total_s if found.total_s else 0.0,
        band=Band(found.low_s, found.high_s, found.error),
        layers=found.rows,
        source=found.source,
        notes=found.notes,
        version=found.version,
    )
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"
