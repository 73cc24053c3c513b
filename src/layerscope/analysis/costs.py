"""Costs per node: operations by kind, parameters, bytes, GEMM. Exact, or marked as not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from layerscope.analysis.shapes import Shapes
from layerscope.graph.types import Graph, Node, Param, storage_bytes
from layerscope.ops import FREE, RULES, Call, Gemm, Ops

Status = Literal["exact", "estimate", "unknown"]


class Cost(Struct, frozen=True, gc=False):
    """What one node costs. `params` are all it uses, `first` those that nothing before it used."""

    ops: Ops
    params: tuple[Param, ...]
    first: tuple[Param, ...]
    param_count: int
    buffer_count: int
    stored_bytes: int
    read_bytes: int
    write_bytes: int
    gemm: Gemm | None = None
    status: Status = "exact"
    note: str = ""


def costs(graph: Graph, shapes: Shapes) -> dict[str, Cost]:
    """Cost of every node, by name. Nodes that share a call and no stored array share a cost."""
    stored = {param.name: param for param in graph.params}
    tied = bool(stored) or any(node.ties or node.params is not None for node in graph.nodes)
    seen: set[str] = set()
    made: dict[tuple[int, int, tuple[str, ...]], Cost] = {}
    found: dict[str, Cost] = {}
    for node in graph.nodes:
        call = shapes.calls.get(node.name)
        if tied or call is None:
            params = _stored(node, call, shapes, stored)
            found[node.name] = _cost(node, call, shapes, params, seen)
            continue
        tensors = [shapes.tensors[name] for name in (*node.inputs, *node.outputs)]
        key = (id(call), node.times, tuple([tensor.dtype for tensor in tensors]))
        cost = None if node.note or node.estimate else made.get(key)
        if cost is None:
            params = _typed(RULES[node.op].params(call), tensors[-1].dtype)
            cost = _cost(node, call, shapes, params, None)
            if not node.note and not node.estimate:
                made[key] = cost
        found[node.name] = cost
    return found


def _cost(
    node: Node,
    call: Call | None,
    shapes: Shapes,
    params: tuple[Param, ...],
    seen: set[str] | None,
) -> Cost:
    """One node's cost; with `seen`, arrays stored under a name met before are not counted again."""
    first = params
    shared = ""
    if seen is not None:
        first = tuple([param for param in params if param.storage not in seen])
        shared = next((param.storage for param in params if param.storage in seen), "")
        seen.update([param.storage for param in params])
    learned = buffered = 0
    for param in first:
        if param.learnable:
            learned += param.elements
        elif param.role == "statistic":
            buffered += param.elements
    held = sum([param.bytes for param in first])
    if call is None:
        note = shapes.notes[node.name]
        return Cost(FREE, params, first, learned, buffered, held, 0, 0, None, "unknown", note)
    rule = RULES[node.op]
    inputs = [shapes.tensors[name] for name in node.inputs]
    read = sum([storage_bytes(n, t.dtype) for n, t in zip(rule.reads(call), inputs, strict=True)])
    outputs = [shapes.tensors[name] for name in node.outputs]
    if rule.stored_read is not None:
        read += storage_bytes(rule.stored_read(call), outputs[0].dtype)
    else:
        read += sum([param.bytes for param in params if param.name not in node.inputs])
    moves = not (rule.view or rule.known)
    ops = rule.ops(call)
    return Cost(
        ops=ops if node.times == 1 else ops * node.times,
        params=params,
        first=first,
        param_count=learned,
        buffer_count=buffered,
        stored_bytes=held,
        read_bytes=read * node.times,
        write_bytes=sum([tensor.bytes for tensor in outputs]) * node.times if moves else 0,
        gemm=rule.gemm(call),
        status="estimate" if rule.estimate or node.estimate else "exact",
        note=_note(node, rule.estimate, f"shares {shared}" if shared else ""),
    )


def _note(node: Node, estimate: str, shared: str) -> str:
    """What is to be said of a node: why it is a bound first, how often it runs last."""
    told = node.note if node.estimate else ""
    note = told or estimate or shared or node.note
    if note or node.times == 1:
        return note
    return f"× {node.times} in a loop" if node.times else "not counted: the other branch is"


def _typed(params: tuple[Param, ...], dtype: str) -> tuple[Param, ...]:
    """Arrays in the number type around them, unless the rule says what they are in."""
    return tuple([param if param.dtype else replace(param, dtype=dtype) for param in params])


def _stored(
    node: Node, call: Call | None, shapes: Shapes, stored: dict[str, Param]
) -> tuple[Param, ...]:
    """The arrays a node uses, each with the name it is stored under."""
    if node.params is not None:
        own = node.params
    elif call is not None:
        own = _typed(RULES[node.op].params(call), shapes.tensors[node.outputs[0]].dtype)
    else:
        own = ()
    ties = node.ties or {}
    named = [
        p if p.storage and not ties else replace(p, storage=storage_of(node, p, ties)) for p in own
    ]
    given = [replace(p, storage=p.storage or p.name) for n in node.inputs if (p := stored.get(n))]
    return (*named, *given)


def storage_of(node: Node, param: Param, ties: Mapping[str, str] | None = None) -> str:
    """The name an array is stored under: as tied, as stated, else the node's and its own."""
    return (ties or {}).get(param.name) or param.storage or f"{node.name}.{param.name}"
