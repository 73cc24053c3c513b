"""Read the profile that onnxruntime writes: a time for every node of every run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from layerscope.engines.onnx_nodes import EngineNode

END = "_kernel_time"
CONTAINERS = ("If", "Loop", "Scan")  # their time includes the nodes of their bodies


class Event(Struct, frozen=True):
    """One node that ran; its time lasts until the next node starts.

    Time between two kernels (allocating buffers, freeing inputs, profiling) counts for the first.
    """

    node: str
    op_type: str
    time_s: float
    bytes_in_use: int
    bytes_added: int
    output_bytes: int
    shapes: tuple[tuple[int, ...], ...] = ()  # of the outputs
    output_types: tuple[str, ...] = ()


class Profile(Struct, frozen=True):
    """Nodes of each run in order of execution."""

    runs: tuple[tuple[Event, ...], ...]


class TraceEvent(Struct):
    """One entry of the JSON file."""

    name: str
    ts: int
    dur: int
    cat: str = ""
    args: dict[str, Any] = {}


def read_profile(path: str) -> Profile:
    """Read the profile in a file and remove the file."""
    return profile_of(_read(path))


def read_order(path: str) -> list[str]:
    """Names of all nodes in the order they ran; the file is removed."""
    nodes = [e for e in _read(path) if e.cat == "Node" and e.name.endswith(END)]
    return [e.name.removesuffix(END) for e in nodes]


def _read(path: str) -> list[TraceEvent]:
    try:
        with open(path, "rb") as file:
            text = file.read()
    finally:
        if os.path.exists(path):
            os.unlink(path)
    raw = msgspec.json.decode(text, type=list[dict[str, Any]])
    return [
        msgspec.convert(each, TraceEvent) for each in raw if each.get("cat") in ("Node", "Session")
    ]


def profile_of(events: list[TraceEvent]) -> Profile:
    """Split events into runs, by the run within which they started."""
    spans = sorted((e.ts, e.ts + e.dur) for e in events if e.name == "model_run")
    nodes = [e for e in events if e.cat == "Node" and e.name.endswith(END)]
    nodes.sort(key=lambda e: (e.ts, -e.dur))
    last = spans[-1][1] if spans else -1
    rest = [e for e in nodes if e.ts > last]  # a run that failed
    if rest:
        spans.append((last + 1, rest[-1].ts + rest[-1].dur))
    runs: list[list[tuple[TraceEvent, str]]] = [[] for _ in spans]
    at, container_end = 0, -1
    for each in nodes:
        while at < len(spans) and each.ts > spans[at][1]:
            at += 1
        if at == len(spans):
            break
        if each.ts < spans[at][0] or each.ts + each.dur <= container_end:
            continue
        op_type = str(each.args.get("op_name", ""))
        container_end = each.ts + each.dur if op_type in CONTAINERS else -1
        runs[at].append((each, op_type))
    return Profile(tuple(tuple(_events(run)) for run in runs))


def _events(run: list[tuple[TraceEvent, str]]) -> Iterator[Event]:
    for n, (each, op_type) in enumerate(run):
        following = run[n + 1][0].ts if n + 1 < len(run) else each.ts + each.dur
        yield Event(
            each.name.removesuffix(END),
            op_type,
            max(following - each.ts, each.dur) / 1e6,
            int(each.args.get("mem_bytes_requested_in_use", 0)),
            int(each.args.get("mem_requested_in_use_delta", 0)),
            int(each.args.get("output_size", 0) or 0),
            tuple(
                tuple(next(iter(t.values()))) for t in each.args.get("output_type_shape", ()) if t
            ),
            tuple(next(iter(t)) for t in each.args.get("output_type_shape", ()) if t),
        )


def node_indices(events: Sequence[Event], nodes: Sequence[EngineNode]) -> list[int | None]:
    """Index of the node of each event: by name, else the next unnamed node of its op type.

    onnxruntime reports an unnamed node by its op type and a number that the file does not have.
    """
    named = {op.name: n for n, op in enumerate(nodes) if op.name}
    rest: dict[str, list[int]] = {}
    for n, op in enumerate(nodes):
        if not op.name:
            rest.setdefault(op.op_type, []).append(n)
    found: list[int | None] = []
    for event in events:
        at = named.get(event.node)
        if at is None and rest.get(event.op_type):
            at = rest[event.op_type].pop(0)
        found.append(at)
    return found
