"""What onnxruntime writes when it profiles: a time for every operator of every run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from layerscope.engines.onnx_nodes import Operator

END = "_kernel_time"
HOLDERS = ("If", "Loop", "Scan")  # what runs inside them is in their time


class Event(Struct, frozen=True):
    """One operator that ran; its time goes on until the next one starts.

    What the executor does between two kernels (handing out buffers, letting go of inputs) is for
    the first of them, and so is what profiling does.
    """

    node: str
    kind: str
    time_s: float
    bytes_in_use: int
    bytes_added: int
    output_bytes: int
    shapes: tuple[tuple[int, ...], ...] = ()  # of the outputs
    output_types: tuple[str, ...] = ()


class Profile(Struct, frozen=True):
    """The operators of each run, in order."""

    runs: tuple[tuple[Event, ...], ...]


class _Raw(Struct):
    name: str
    ts: int
    dur: int
    cat: str = ""
    args: dict[str, Any] = {}


def read_profile(path: str) -> Profile:
    """The profile of that file, which is removed."""
    return profile_of(_read(path))


def read_order(path: str) -> list[str]:
    """Names of all operators of that file in the order they ran; it is removed."""
    nodes = [e for e in _read(path) if e.cat == "Node" and e.name.endswith(END)]
    return [e.name.removesuffix(END) for e in nodes]


def _read(path: str) -> list[_Raw]:
    try:
        with open(path, "rb") as file:
            text = file.read()
    finally:
        if os.path.exists(path):
            os.unlink(path)
    raw = msgspec.json.decode(text, type=list[dict[str, Any]])
    return [msgspec.convert(each, _Raw) for each in raw if each.get("cat") in ("Node", "Session")]


def profile_of(events: list[_Raw]) -> Profile:
    """Operators by the run within which they started."""
    spans = sorted((e.ts, e.ts + e.dur) for e in events if e.name == "model_run")
    nodes = [e for e in events if e.cat == "Node" and e.name.endswith(END)]
    nodes.sort(key=lambda e: (e.ts, -e.dur))
    last = spans[-1][1] if spans else -1
    rest = [e for e in nodes if e.ts > last]  # of a run that failed
    if rest:
        spans.append((last + 1, rest[-1].ts + rest[-1].dur))
    runs: list[list[tuple[_Raw, str]]] = [[] for _ in spans]
    at, holder = 0, -1
    for each in nodes:
        while at < len(spans) and each.ts > spans[at][1]:
            at += 1
        if at == len(spans):
            break
        if each.ts < spans[at][0] or each.ts + each.dur <= holder:
            continue
        kind = str(each.args.get("op_name", ""))
        holder = each.ts + each.dur if kind in HOLDERS else -1
        runs[at].append((each, kind))
    return Profile(tuple(tuple(_events(run)) for run in runs))


def _events(run: list[tuple[_Raw, str]]) -> Iterator[Event]:
    for n, (each, kind) in enumerate(run):
        following = run[n + 1][0].ts if n + 1 < len(run) else each.ts + each.dur
        yield Event(
            each.name.removesuffix(END),
            kind,
            max(following - each.ts, each.dur) / 1e6,
            int(each.args.get("mem_bytes_requested_in_use", 0)),
            int(each.args.get("mem_requested_in_use_delta", 0)),
            int(each.args.get("output_size", 0) or 0),
            tuple(
                tuple(next(iter(t.values()))) for t in each.args.get("output_type_shape", ()) if t
            ),
            tuple(next(iter(t)) for t in each.args.get("output_type_shape", ()) if t),
        )


def located(events: Sequence[Event], operators: Sequence[Operator]) -> list[int | None]:
    """Which operator each event is of: by its name, else the next one of its kind without a name.

    onnxruntime calls an operator without a name by its kind and a number that no file tells.
    """
    named = {op.name: n for n, op in enumerate(operators) if op.name}
    rest: dict[str, list[int]] = {}
    for n, op in enumerate(operators):
        if not op.name:
            rest.setdefault(op.kind, []).append(n)
    found: list[int | None] = []
    for event in events:
        at = named.get(event.node)
        if at is None and rest.get(event.kind):
            at = rest[event.kind].pop(0)
        found.append(at)
    return found
