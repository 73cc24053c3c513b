"""Costs per node: operations by kind, parameters, bytes, GEMM. Exact, or marked as not.

WORKS and COSTS are memo tables shared by all networks of the process, because calls are. Their keys
are values, or the id of a call that the entry keeps alive. They grow to MOST_WORKS entries and are
then emptied. Threads may share them: an entry is added in one step, and two threads that compute
the same one store equal values. See docs/decisions/0015-memo-tables-and-threads.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from layerscope.analysis.memory import inner_tensors
from layerscope.analysis.shapes import Shapes, Tensors
from layerscope.graph.attributes import CustomCost, DeclaredOutputs
from layerscope.graph.types import DTYPE_BITS, Graph, Node, Param, storage_bytes
from layerscope.ops import FREE, SPECS, Call, Gemm, Ops
from layerscope.ops.calls import params_of
from layerscope.ops.complex_arithmetic import complex_ops, is_complex

Status = Literal["exact", "estimate", "unknown"]


class Cost(Struct, frozen=True, gc=False):
    """Cost of one node. `params` are all arrays it uses, `first` those not used before it."""

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
    real_ops: Ops | None = (
        None  # operations as if all numbers were real, for a node with complex ones
    )


class _Work(NamedTuple):
    """What nodes of one call and the same dtypes have in common."""

    ops: Ops
    read: int
    write: int
    gemm: Gemm | None
    stored_read: int | None  # elements that it reads of its arrays; None: all of them
    real_ops: Ops | None = None  # as if complex numbers were real
    estimate: str = ""


def costs(graph: Graph, shapes: Shapes) -> dict[str, Cost]:
    """Cost of every node, by name. Nodes that share a call and no stored array share a cost."""
    stored = {param.name: param for param in graph.params}
    sharing, reads_none = _sharing(graph), frozenset(stored).isdisjoint
    seen: set[str] = set()
    found: dict[str, Cost] = {}
    calls, ends = shapes.calls, shapes.ends
    inner = inner_tensors(graph)
    for node in graph.nodes:
        name = node.name
        call = calls.get(name)
        if call is None:
            params = _stored(node, node.params or (), stored)
            found[name] = _cost(node, None, shapes, _shared_arrays(node, params, seen, stored))
            continue
        inputs, outputs = ends[name]
        shares = name in sharing
        own = node.params if shares else None
        fused = bool(inner) and (node.inner or not inner.isdisjoint(node.inputs))
        if len(inputs) == len(outputs) == 1:
            dtypes: tuple[str, ...] = (inputs[0].dtype, outputs[0].dtype)
        else:
            dtypes = tuple([tensor.dtype for tensor in (*inputs, *outputs)])
        if not node.note and not node.estimate and not fused:
            kinds = () if own is None else [(each.shape, each.role, each.dtype) for each in own]
            key: Any = (call, node.times, dtypes, own is None, *kinds)
            cached = COSTS.get(key)
            if cached is None:
                if len(COSTS) >= MOST_WORKS:
                    COSTS.clear()
                params = params_of(node.op, call, outputs[0].dtype) if own is None else own
                work = _cached_work(node, call, shapes, dtypes)
                cached = COSTS[key] = _cost(node, work, shapes, _own_arrays(params))
            if not shares:  # most nodes
                found[name] = cached
                continue
            if reads_none(node.inputs):
                renamed = _renamed(cached, node, cached.params if own is None else own, seen)
                if renamed is not None:
                    found[name] = renamed
                    continue
        if fused:
            work = _work(node, call, shapes, inner)
        else:
            work = _cached_work(node, call, shapes, dtypes)
        params = params_of(node.op, call, outputs[0].dtype) if own is None else own
        if shares:
            arrays = _shared_arrays(node, _stored(node, params, stored), seen, stored)
        else:
            arrays = _own_arrays(params)
        found[name] = _cost(node, work, shapes, arrays)
    return found


def _renamed(cost: Cost, node: Node, params: tuple[Param, ...], seen: set[str]) -> Cost | None:
    """A cost with arrays of other storage names; None if they share storage, in `seen` or not."""
    storages = {param.storage for param in params}
    if node.ties or "" in storages:
        params = _with_storage(node, params)
        storages = {param.storage for param in params}
    if len(storages) < len(params) or not seen.isdisjoint(storages):
        return None
    seen |= storages
    return Cost(
        cost.ops, params, params, cost.param_count, cost.buffer_count, cost.stored_bytes,
        cost.read_bytes, cost.write_bytes, cost.gemm, cost.status, cost.note, cost.real_ops,
    )  # fmt: skip


def _sharing(graph: Graph) -> set[str]:
    """Nodes that share arrays with others, or whose arrays are given and not derived by a rule."""
    reads_none = frozenset([param.name for param in graph.params]).isdisjoint
    found: set[str] = set()
    storages = {param.storage or param.name for param in graph.params}
    bare = {op for op in {node.op for node in graph.nodes} if not _has_params(op)}
    for node in graph.nodes:
        params = node.params
        given = params is not None and (params or node.op not in bare)
        if given or node.ties or not reads_none(node.inputs):
            found.add(node.name)
            storages.update((node.ties or {}).values())
            storages.update([param.storage for param in node.params or ()])
    # `features.0.weight` may be an array of node `features.0`: rules name arrays without a dot.
    found.update([storage.rpartition(".")[0] for storage in storages if "." in storage])
    return found


def _has_params(op: str) -> bool:
    """Whether nodes of an op can have params, as far as is known."""
    return op not in SPECS or SPECS[op].has_params


# Caches for the whole process, as `ops.calls.CALLS`; threads may share them. A table that reaches
# MOST_WORKS entries is cleared. WORKS is keyed by call and dtypes; COSTS by call, times and dtypes,
# and by shapes, roles and dtypes of arrays that are given; its arrays may have other names.
# Neither has steps inside an operator of a file.
WORKS: dict[tuple[Call, tuple[str, ...]], _Work] = {}
COSTS: dict[Any, Cost] = {}
MOST_WORKS = 50_000


def _cached_work(node: Node, call: Call, shapes: Shapes, dtypes: tuple[str, ...]) -> _Work:
    found = WORKS.get((call, dtypes))
    if found is None:
        if len(WORKS) >= MOST_WORKS:
            WORKS.clear()
        found = WORKS[call, dtypes] = _work(node, call, shapes)
    return found


def _work(node: Node, call: Call, shapes: Shapes, inner: frozenset[str] = frozenset()) -> _Work:
    """Work of a node; values inside an operator are neither read from memory nor written to it."""
    rule = SPECS[node.op]
    inputs, outputs = shapes.ends[node.name]
    counts = rule.input_elements(call)
    kept = tuple([name in inner for name in node.inputs]) if inner else ()
    if inner:
        counts = tuple([0 if no else n for n, no in zip(counts, kept, strict=True)])
    read = _bytes(counts, inputs)
    stored = None if rule.param_elements is None else rule.param_elements(call)
    counts_out = tuple(map(prod, call.outputs))
    writes = not rule.view or any(kept[:1])
    write = _bytes(counts_out, outputs) if writes and not (rule.folded or node.inner) else 0
    if not any(counts_out):  # empty outputs take no operations; rules may divide by their sizes
        return _Work(FREE, read, write, None, stored)
    ops = rule.ops(call)
    given = [tensor.dtype for tensor in inputs]
    if not any(map(is_complex, (*given, outputs[0].dtype))):
        return _Work(ops, read, write, rule.gemm(call), stored)
    counted, estimate = complex_ops(node.op, call, ops, given)
    return _Work(counted, read, write, rule.gemm(call), stored, ops, estimate)


def _bytes(counts: tuple[int, ...], tensors: Tensors) -> int:
    """Bytes of `counts` elements of each tensor."""
    if len(tensors) == 1:
        return storage_bytes(counts[0], tensors[0].dtype)
    kinds = {tensor.dtype for tensor in tensors}
    if len(kinds) == 1:
        [kind] = kinds
        if not DTYPE_BITS.get(kind, 1) % 8:  # elements of whole bytes can be summed first
            return storage_bytes(sum(counts), kind)
    return sum([storage_bytes(n, t.dtype) for n, t in zip(counts, tensors, strict=True)])


class _Arrays(NamedTuple):
    """Arrays that a node uses, and sums over them."""

    params: tuple[Param, ...]
    first: tuple[Param, ...]  # those that no node before it uses
    shared: str  # storage of one that a node before it uses, "" if there is none
    learned: int  # elements of `first`
    buffered: int
    stored_bytes: int
    read_bytes: int  # of all that are not inputs of the node


def _own_arrays(params: tuple[Param, ...]) -> _Arrays:
    """Arrays of a node that shares none."""
    learned, buffered, stored_bytes = _sums(params)
    return _Arrays(params, params, "", learned, buffered, stored_bytes, stored_bytes)


def _shared_arrays(
    node: Node, params: tuple[Param, ...], seen: set[str], stored: Mapping[str, Param]
) -> _Arrays:
    """Arrays of a node that may share some; `seen` has the storages counted before."""
    first = params
    shared = ""
    if params:
        storages = {param.storage for param in params}
        if len(storages) < len(params) or not seen.isdisjoint(storages):
            new = {param.storage: param for param in reversed(params) if param.storage not in seen}
            first = tuple(reversed(new.values()))
            shared = next((param.storage for param in params if param.storage in seen), "")
        seen |= storages
    learned, buffered, stored_bytes = _sums(first)
    inputs = stored and stored.keys() & node.inputs  # counted as inputs
    if first is params and not inputs:
        read_bytes = stored_bytes
    else:
        read_bytes = sum([param.bytes for param in params if param.name not in inputs])
    return _Arrays(params, first, shared, learned, buffered, stored_bytes, read_bytes)


def _cost(node: Node, work: _Work | None, shapes: Shapes, arrays: _Arrays) -> Cost:
    params, first, shared, learned, buffered, stored_bytes, read_bytes = arrays
    if work is None:
        return Cost(
            FREE, params, first, learned, buffered, stored_bytes, 0, 0, None, "unknown",
            shapes.notes[node.name],
        )  # fmt: skip
    if work.stored_read is not None:
        read_bytes = storage_bytes(work.stored_read, _array_dtype(shapes.ends[node.name], params))
    rule, times = SPECS[node.op], node.times
    declared = rule.sized and isinstance(node.attributes, DeclaredOutputs)
    bound = work.estimate if declared else rule.estimate or work.estimate
    if isinstance(node.attributes, CustomCost):
        bound = node.attributes.estimate
    status: Status = "estimate" if bound or node.estimate else "exact"
    note = _note(node, bound, f"shares {shared}" if shared else "")
    ops = work.ops if times == 1 else work.ops * times
    read, write = (work.read + read_bytes) * times, work.write * times
    real = work.real_ops
    if real is not None:
        real = real * times
    return Cost(
        ops, params, first, learned, buffered, stored_bytes, read, write, work.gemm, status, note,
        real,
    )  # positional: keywords take twice as long  # fmt: skip


def _array_dtype(ends: tuple[Tensors, Tensors], params: tuple[Param, ...]) -> str:
    """Dtype of a table or cache that is read in part: of the second input, else of the array."""
    inputs, outputs = ends
    if len(inputs) > 1:  # a table that is an input, or keys, which have the dtype of the cache
        return inputs[1].dtype
    return params[0].dtype if params else outputs[0].dtype


def _sums(params: tuple[Param, ...]) -> tuple[int, int, int]:
    """Learned elements, elements of running statistics, and bytes of all arrays."""
    learned = buffered = stored_bytes = 0
    for param in params:
        count = prod(param.shape)
        stored_bytes += storage_bytes(count, param.dtype)
        if param.learnable:
            learned += count
        elif param.role == "statistic":
            buffered += count
    return learned, buffered, stored_bytes


def _note(node: Node, estimate: str, shared: str) -> str:
    """The note of a node: first why its figures are a bound, last how often it runs."""
    reason = node.note if node.estimate else ""
    note = reason or estimate or shared or node.note
    if note or node.times == 1:
        return note
    return f"× {node.times} in a loop" if node.times else "not counted: the other branch is"


def _stored(node: Node, own: tuple[Param, ...], stored: dict[str, Param]) -> tuple[Param, ...]:
    """Arrays of a node and arrays among its inputs, each with the name of its storage."""
    given = [replace(p, storage=p.storage or p.name) for n in node.inputs if (p := stored.get(n))]
    named = _with_storage(node, own)
    return (*named, *given) if given else named


def _with_storage(node: Node, own: tuple[Param, ...]) -> tuple[Param, ...]:
    """Arrays of a node, each with the name of its storage."""
    ties = node.ties or {}
    if not ties and "" not in [p.storage for p in own]:
        return own
    return tuple(
        [
            p if p.storage and not ties else replace(p, storage=storage_of(node, p, ties))
            for p in own
        ]
    )


def storage_of(node: Node, param: Param, ties: Mapping[str, str] | None = None) -> str:
    """Name of the storage of an array: as tied, as given, else node and array name."""
    return (ties or {}).get(param.name) or param.storage or f"{node.name}.{param.name}"
