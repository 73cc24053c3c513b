"""A report read back from the JSON that it was written to."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from layerscope.errors import FormatError
from layerscope.export.json_types import OLDEST, SCHEMA, OptionsJson
from layerscope.export.run_json import reading
from layerscope.graph.serialize import from_plain
from layerscope.report.quantities import check_stored
from layerscope.report.types import Report

# Totals that a report in a file is compared by when it is read.
COMPARED = ("params", "macs", "flops", "activations", "peak_activation_bytes", "param_bytes")


class ReportFile(Struct):
    """What is read of a report in a file."""

    kind: str = ""
    schema: int = SCHEMA
    network: str = ""
    totals: dict[str, Any] = {}
    options: OptionsJson | None = None
    graph: dict[str, Any] = {}


def read_file(path: str) -> Report:
    """The report in a file that `write` wrote, counted again from its graph."""
    from layerscope.formats.documents import contents

    return read_bytes(contents(path), path)


def read_bytes(data: bytes | str, path: str) -> Report:
    """The report in the JSON that `write` wrote; `path` begins error messages."""
    from layerscope.report.build import report_of, with_needed_pairs

    try:
        found = msgspec.json.decode(data, type=ReportFile)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FormatError(f"{path}: not a report of layerscope: {error}") from None
    except RecursionError:
        raise FormatError(f"{path}: JSON that is nested too deeply") from None
    if not OLDEST <= found.schema <= SCHEMA:
        raise FormatError(
            f"{path}: a report in schema {found.schema}, and this version reads schemas "
            f"{OLDEST} to {SCHEMA}"
        )
    if not found.graph or found.options is None:
        raise FormatError(
            f"{path}: a report without its graph (of layerscope 0.1, or only totals); "
            "write it again with `layerscope show NET -o FILE.json`"
        )
    with reading(path):
        check_stored(found.graph, path)
        graph = from_plain(found.graph)
        report = report_of(graph, like=found.options.like, in_place=found.options.in_place)
        if found.options.attention == "needed":
            report = with_needed_pairs(report)
        note = _changed(found.totals, report)
        return (
            report
            if not note
            else replace(report, graph=replace(graph, notes=(*graph.notes, note)))
        )


def _changed(stored: dict[str, Any], report: Report) -> str:
    """A note if the file has other totals than this version counts."""
    now = {name: getattr(report.totals, name) for name in COMPARED}
    other = [
        f"{name} {stored[name]:,}"
        for name, value in now.items()
        if isinstance(stored.get(name), int) and stored[name] != value
    ]
    return f"counted again by this version; the file has {', '.join(other)}" if other else ""
