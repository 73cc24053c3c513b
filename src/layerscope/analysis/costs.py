"""Costs per node: operations by kind, parameters, bytes, GEMM. Exact, or marked as not."""

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
    real_ops: Ops | None = None  # as of real numbers, of a node with complex ones


class _Work(NamedTuple):
    """What nodes of one call and the same number types have in common."""

    ops: Ops
    read: int
    write: int
    gemm: Gemm | None
    stored_read: int | None  # elements read of its arrays; None: all of them
    real_ops: Ops | None = None  # before complex numbers are counted as such
    estimate: str = ""


def costs(graph: Graph, shapes: Shapes) -> dict[str, Cost]:
    """Cost of every node, by name. Nodes that share a call and no stored array share a cost."""
    stored = {param.name: param for param in graph.params}
    sharing = _sharing(graph)
    seen: set[str] = set()
    found: dict[str, Cost] = {}
    calls, ends = shapes.calls, shapes.ends
    inner = inner_tensors(graph)
    for node in graph.nodes:
        name = node.name
        call = calls.get(name)
        if call is None:
            params = _stored(node, node.params or (), stored)
            found[name] = _cost(node, None, shapes, params, seen, stored)
            continue
        inputs, outputs = ends[name]
        if name not in sharing and not node.note and not node.estimate:  # most nodes
            if len(inputs) == len(outputs) == 1:
                key: Any = (call, node.times, inputs[0].dtype, outputs[0].dtype)
            else:
                key = (call, node.times, *[tensor.dtype for tensor in (*inputs, *outputs)])
            known = COSTS.get(key)
            if known is None:
                if len(COSTS) >= MOST_WORKS:
                    COSTS.clear()
                params = params_of(node.op, call, outputs[0].dtype)
                work = _known_work(node, call, shapes, key[2:])
                known = COSTS[key] = _cost(node, work, shapes, params, None, {})
            found[name] = known
            continue
        dtypes = tuple([tensor.dtype for tensor in (*inputs, *outputs)])
        if name not in sharing:
            params = params_of(node.op, call, outputs[0].dtype)
            work = _known_work(node, call, shapes, dtypes)
            found[name] = _cost(node, work, shapes, params, None, {})
            continue
        params = node.params or ()
        if node.params is None:
            params = params_of(node.op, call, outputs[0].dtype)
        params = _stored(node, params, stored)
        if inner and (node.inner or not inner.isdisjoint(node.inputs)):
            work = _work(node, call, shapes, inner)
        else:
            work = _known_work(node, call, shapes, dtypes)
        found[name] = _cost(node, work, shapes, params, seen, stored)
    return found


def _sharing(graph: Graph) -> set[str]:
    """Nodes whose arrays are not theirs alone, or not those that a rule has for them."""
    given = {param.name: param.storage or param.name for param in graph.params}
    found: set[str] = set()
    storages = {*given.values()}
    for node in graph.nodes:
        reads = given and not given.keys().isdisjoint(node.inputs)
        if reads or node.ties or node.params is not None:
            found.add(node.name)
            storages.update((node.ties or {}).values())
            storages.update([param.storage for param in node.params or ()])
    # `features.0.weight` may be an array of `features.0`: rules name theirs without a dot.
    found.update([storage.rpartition(".")[0] for storage in storages])
    return found


# Caches for the whole process, as `ops.calls.CALLS`; threads may share them. A table that reaches
# MOST_WORKS entries is cleared. WORKS is by call and dtypes; COSTS, of nodes whose parameters are
# their own, by call, times and dtypes.
WORKS: dict[tuple[Call, tuple[str, ...]], _Work] = {}
COSTS: dict[Any, Cost] = {}
MOST_WORKS = 50_000


def _known_work(node: Node, call: Call, shapes: Shapes, dtypes: tuple[str, ...]) -> _Work:
    found = WORKS.get((call, dtypes))
    if found is None:
        if len(WORKS) >= MOST_WORKS:
            WORKS.clear()
        found = WORKS[call, dtypes] = _work(node, call, shapes)
    return found


def _work(node: Node, call: Call, shapes: Shapes, inner: frozenset[str] = frozenset()) -> _Work:
    """What a node does; values inside an operator are not read from memory nor written to it."""
    rule = SPECS[node.op]
    inputs, outputs = shapes.ends[node.name]
    counts = rule.input_elements(call)
    kept = tuple([name in inner for name in node.inputs]) if inner else ()
    if inner:
        counts = tuple([0 if no else n for n, no in zip(counts, kept, strict=True)])
    read = _bytes(counts, inputs)
    stored = None if rule.param_elements is None else rule.param_elements(call)
    made = tuple(map(prod, call.outputs))
    writes = not rule.view or any(kept[:1])
    write = _bytes(made, outputs) if writes and not (rule.folded or node.inner) else 0
    if not any(made):  # what makes nothing does nothing; rules may divide by its sizes
        return _Work(FREE, read, write, None, stored)
    ops = rule.ops(call)
    given = [tensor.dtype for tensor in inputs]
    if not any(map(is_complex, (*given, outputs[0].dtype))):
        return _Work(ops, read, write, rule.gemm(call), stored)
    counted, estimate = complex_ops(node.op, call, ops, given)
    return _Work(counted, read, write, rule.gemm(call), stored, ops, estimate)


def _bytes(counts: tuple[int, ...], tensors: Tensors) -> int:
    """Bytes of so many numbers of each tensor."""
    if len(tensors) == 1:
        return storage_bytes(counts[0], tensors[0].dtype)
    kinds = {tensor.dtype for tensor in tensors}
    if len(kinds) == 1:
        [kind] = kinds
        if not DTYPE_BITS.get(kind, 1) % 8:  # whole bytes can be added up
            return storage_bytes(sum(counts), kind)
    return sum([storage_bytes(n, t.dtype) for n, t in zip(counts, tensors, strict=True)])


def _cost(
    node: Node,
    work: _Work | None,
    shapes: Shapes,
    params: tuple[Param, ...],
    seen: set[str] | None,
    stored: Mapping[str, Param],
) -> Cost:
    """One node's cost; with `seen`, arrays stored under a name met before are not counted again."""
    first = params
    shared = ""
    if seen is not None and params:
        storages = {param.storage for param in params}
        if len(storages) < len(params) or not seen.isdisjoint(storages):
            new = {param.storage: param for param in reversed(params) if param.storage not in seen}
            first = tuple(reversed(new.values()))
            shared = next((param.storage for param in params if param.storage in seen), "")
        seen |= storages
    learned, buffered, held = _sums(first)
    if work is None:
        note = shapes.notes[node.name]
        return Cost(FREE, params, first, learned, buffered, held, 0, 0, None, "unknown", note)
    if work.stored_read is not None:
        own = storage_bytes(work.stored_read, _array_dtype(shapes.ends[node.name], params))
    elif seen is None:
        own = held
    else:  # what is an input is read as such
        given = stored.keys() & node.inputs
        own = sum([param.bytes for param in params if param.name not in given])
    rule, times = SPECS[node.op], node.times
    declared = rule.sized and isinstance(node.attributes, DeclaredOutputs)
    bound = work.estimate if declared else rule.estimate or work.estimate
    if isinstance(node.attributes, CustomCost):
        bound = node.attributes.estimate
    status: Status = "estimate" if bound or node.estimate else "exact"
    note = _note(node, bound, f"shares {shared}" if shared else "")
    ops = work.ops if times == 1 else work.ops * times
    read, write = (work.read + own) * times, work.write * times
    real = work.real_ops
    if real is not None:
        real = real * times
    return Cost(
        ops, params, first, learned, buffered, held, read, write, work.gemm, status, note, real
    )  # by place: by name takes twice as long


def _array_dtype(ends: tuple[Tensors, Tensors], params: tuple[Param, ...]) -> str:
    """Dtype of a table or cache that is read in part: of the second input, else of the array."""
    inputs, outputs = ends
    if len(inputs) > 1:  # a table that is an input; keys, as those in the cache
        return inputs[1].dtype
    return params[0].dtype if params else outputs[0].dtype


def _sums(params: tuple[Param, ...]) -> tuple[int, int, int]:
    """Numbers that are learned, numbers that are kept besides, bytes of all."""
    learned = buffered = held = 0
    for param in params:
        held += param.bytes
        if param.learnable:
            learned += param.elements
        elif param.role == "statistic":
            buffered += param.elements
    return learned, buffered, held


def _note(node: Node, estimate: str, shared: str) -> str:
    """What is to be said of a node: why it is a bound first, how often it runs last."""
    told = node.note if node.estimate else ""
    note = told or estimate or shared or node.note
    if note or node.times == 1:
        return note
    return f"× {node.times} in a loop" if node.times else "not counted: the other branch is"


def _stored(node: Node, own: tuple[Param, ...], stored: dict[str, Param]) -> tuple[Param, ...]:
    """The arrays a node uses, its own and those it reads, with the names they are stored under."""
    if not node.inputs and not node.ties and all(p.storage for p in own):
        return own
    ties = node.ties or {}
    named = [
        p if p.storage and not ties else replace(p, storage=storage_of(node, p, ties)) for p in own
    ]
    given = [replace(p, storage=p.storage or p.name) for n in node.inputs if (p := stored.get(n))]
    return (*named, *given)


def storage_of(node: Node, param: Param, ties: Mapping[str, str] | None = None) -> str:
    """The name an array is stored under: as tied, as stated, else the node's and its own."""
    return (ties or {}).get(param.name) or param.storage or f"{node.name}.{param.name}"
