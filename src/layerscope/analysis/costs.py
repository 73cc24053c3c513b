"""Costs per node: operations by kind, parameters, bytes, GEMM. Exact, or marked as not."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from layerscope.analysis.shapes import Shapes
from layerscope.graph.types import Graph, Node, Param, storage_bytes
from layerscope.ops import FREE, RULES, Call, Gemm, Ops

Status = Literal["exact", "estimate", "unknown"]


class Cost(Struct, frozen=True, gc=False):
    """What one node costs. `params` are all it uses; the counts are of those first used here."""

    ops: Ops
    params: tuple[Param, ...]
    param_count: int
    buffer_count: int
    read_bytes: int
    write_bytes: int
    gemm: Gemm | None = None
    status: Status = "exact"
    note: str = ""


def costs(graph: Graph, shapes: Shapes) -> dict[str, Cost]:
    """Cost of every node, by name."""
    stored = {param.name: param for param in graph.params}
    seen: set[str] = set()
    counted: dict[int, tuple[Ops, int, int, Gemm | None]] = {}
    found: dict[str, Cost] = {}
    for node in graph.nodes:
        call = shapes.calls.get(node.name)
        params = node_params(node, call, shapes)
        if stored:
            params += tuple(stored[name] for name in node.inputs if name in stored)
        param_count = buffer_count = 0
        shared = ""
        for param in params:
            key = param.storage or param.name
            if key in seen:
                shared = key
                continue
            seen.add(key)
            if param.learnable:
                param_count += param.elements
            else:
                buffer_count += param.elements
        if call is None:
            note = shapes.notes[node.name]
            found[node.name] = Cost(
                FREE, params, param_count, buffer_count, 0, 0, None, "unknown", note
            )
            continue
        facts = counted.get(id(call))
        if facts is None:
            facts = counted[id(call)] = _count(node, call, shapes)
        ops, read, written, gemm = facts
        own = sum([param.bytes for param in params if param.name not in node.inputs])
        why = RULES[node.op].estimate
        note = why or (f"shares {shared}" if shared else "")
        found[node.name] = Cost(
            ops,
            params,
            param_count,
            buffer_count,
            read + own,
            written,
            gemm,
            "estimate" if why else "exact",
            note,
        )
    return found


def _count(node: Node, call: Call, shapes: Shapes) -> tuple[Ops, int, int, Gemm | None]:
    rule = RULES[node.op]
    dtype = shapes.tensors[node.outputs[0]].dtype
    return (
        rule.ops(call),
        storage_bytes(rule.elements_read(call), dtype),
        storage_bytes(rule.elements_written(call), dtype),
        rule.gemm(call),
    )


def node_params(node: Node, call: Call | None, shapes: Shapes) -> tuple[Param, ...]:
    """The stored arrays of a node: as its format states them, else as its rule derives them."""
    if node.params is not None:
        return node.params
    if call is None:
        return ()
    made = RULES[node.op].params(call)
    if not made:
        return made
    dtype = shapes.tensors[node.outputs[0]].dtype
    ties = node.ties or {}
    return tuple(
        [replace(p, dtype=dtype, storage=ties.get(p.name) or f"{node.name}.{p.name}") for p in made]
    )
