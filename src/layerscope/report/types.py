"""The account of a network: one Layer a node, totals, and what they were counted by."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from layerscope.analysis.backward import backward
from layerscope.analysis.costs import Cost, Status, storage_of
from layerscope.analysis.fields import Field, Fields
from layerscope.analysis.memory import Memory
from layerscope.analysis.shapes import Shapes
from layerscope.conventions.convention import Convention
from layerscope.graph.types import (
    Graph,
    Node,
    Shape,
    Tensor,
    elements,
    is_floating,
    storage_bytes,
)
from layerscope.ops import FREE, SPECS, Call, Gemm, Ops

if TYPE_CHECKING:
    from layerscope.conventions.sites import Site


class Layer(Struct, frozen=True, gc=False):
    """One node's account: exact, and as the report's convention counts it."""

    node: Node
    call: Call | None  # None: shapes or rule unknown
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    convention: Convention
    convention_kinds: Ops  # operations by kind, as the convention counts them
    params: int  # as the convention counts them
    activations: int  # elements of new storage
    activation_bytes: int  # of that storage, each tensor in its own dtype
    convention_activations: int  # elements, as the convention counts them
    cost: Cost
    fields: Fields  # of all tensors

    @property
    def ops(self) -> Ops:
        """Operations by kind, exact whatever the convention."""
        return self.cost.ops

    @property
    def convention_ops(self) -> int | None:
        """The figure that the convention's system prints for it, None if that prints none."""
        return self.convention.headline(self.convention_kinds)

    @property
    def field(self) -> Field | None:
        """What its first output sees of the first input that reaches it."""
        found = self.fields.get(self.node.outputs[0])
        return found[0] if found else None

    @property
    def name(self) -> str:
        """Unique name."""
        return self.node.name

    @property
    def op(self) -> str:
        """Kind of operation."""
        return self.node.op

    @property
    def scope(self) -> tuple[str, ...]:
        """Modules around it, outermost first."""
        return self.node.scope

    @property
    def status(self) -> Status:
        """Whether its figures are exact, a bound or unknown."""
        return self.cost.status

    @property
    def lacks_figures(self) -> bool:
        """Whether its figures are missing from sums; what never runs lacks nothing."""
        return self.cost.status == "unknown" and bool(self.node.times)

    @property
    def output(self) -> Shape | None:
        """Shape of its first output."""
        return self.outputs[0].shape

    @property
    def gemm(self) -> Gemm | None:
        """The matrix product it amounts to."""
        return self.cost.gemm

    @property
    def moved_bytes(self) -> int:
        """Bytes read and written, parameters included."""
        return self.cost.read_bytes + self.cost.write_bytes

    @property
    def param_bytes(self) -> int:
        """Bytes of the stored arrays first used here."""
        return self.cost.stored_bytes

    @property
    def precision(self) -> str:
        """Number type it multiplies in: that of its weights, else of its first input."""
        for param in self.cost.params:
            if param.role == "weight":
                return param.dtype
        return self.inputs[0].dtype if self.inputs else self.outputs[0].dtype

    @property
    def arithmetic_dtype(self) -> str:
        """Dtype of its arithmetic: of a floating-point output, else of a floating-point input."""
        for tensor in (*self.outputs[:1], *self.inputs):
            if is_floating(tensor.dtype):
                return tensor.dtype
        return self.inputs[0].dtype if self.inputs else self.outputs[0].dtype

    @property
    def convention_activation_bytes(self) -> int:
        """Bytes of the activations that the convention counts, each tensor in its own dtype."""
        count = self.convention_activations
        if count == self.activations:
            return self.activation_bytes
        if count == sum(tensor.elements for tensor in self.outputs):
            return sum(tensor.bytes for tensor in self.outputs)
        return storage_bytes(count, self.outputs[0].dtype)

    @property
    def intensity(self) -> Fraction | None:
        """FLOPs per byte moved."""
        return Fraction(self.ops.flops, self.moved_bytes) if self.moved_bytes else None


class Dtypes(Struct, frozen=True):
    """Elements by dtype, most first: of the network's inputs, and of what arithmetic computes."""

    inputs: dict[str, int]
    arithmetic: dict[str, int]

    @property
    def name(self) -> str:
        """The one dtype there is, else `mixed`."""
        names = {*self.inputs, *self.arithmetic}
        return names.pop() if len(names) == 1 else "mixed"

    def __str__(self) -> str:
        parts = [
            f"{what} {' and '.join(counts)}"
            for what, counts in (("inputs", self.inputs), ("arithmetic", self.arithmetic))
            if counts
        ]
        return f"mixed ({', '.join(parts)})" if self.name == "mixed" else self.name


class Totals(Struct, frozen=True):
    """Sums over all layers, and the peak.

    `macs`, `flops` and `ops` are exact under every convention; `convention_ops` is the one figure
    that the convention's system prints, None where it prints none.
    """

    params: int  # as the convention counts them
    buffers: int
    ops: Ops
    convention_kinds: Ops  # by kind, as the convention counts them
    convention_ops: int | None
    activations: int
    activation_bytes: int
    convention_activations: int
    read_bytes: int
    write_bytes: int
    param_bytes: int
    peak_activation_bytes: int

    @property
    def macs(self) -> int:
        """Multiply-adds."""
        return self.ops.mac

    @property
    def flops(self) -> int:
        """2 per multiply-add, 1 per everything else."""
        return self.ops.flops

    @property
    def intensity(self) -> Fraction | None:
        """FLOPs per byte moved."""
        moved = self.read_bytes + self.write_bytes
        return Fraction(self.flops, moved) if moved else None


# Totals that lack whatever an unknown layer does.
SUMS = (
    "macs", "flops", "ops", "convention_ops", "activations", "activation_bytes",
    "convention_activations", "read_bytes", "write_bytes", "peak_activation_bytes",
)  # fmt: skip


class Coverage(Struct, frozen=True):
    """How much of the network is known."""

    known: int
    total: int
    unknown: dict[str, int]  # op -> how many nodes of it have no figures
    estimated: int

    def __str__(self) -> str:
        line = f"ops known: {self.known} of {self.total}"
        if self.unknown:
            told = ", ".join(f"{op} ×{count}" for op, count in self.unknown.items())
            line += f"; unknown: {told}"
        if self.estimated:
            line += f"; bounds: {self.estimated}"
        return line


class Report(Struct, frozen=True, dict=True):
    """Everything known about a network on given inputs, under one convention."""

    graph: Graph
    shapes: Shapes
    costs: dict[str, Cost]
    fields: Fields
    memory: Memory
    convention: Convention
    version: str

    @property
    def name(self) -> str:
        """The network's name."""
        return self.graph.name

    @property
    def tensors(self) -> dict[str, Tensor]:
        """Every tensor by name, shapes inferred."""
        return self.shapes.tensors

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The network's inputs, without a cache of past tokens."""
        cache = self.graph.cache
        if not cache:
            return self.graph.inputs
        return tuple([tensor for tensor in self.graph.inputs if tensor.name not in cache])

    @property
    def batch(self) -> int:
        """Size of the first axis of the first input, unless the graph says otherwise."""
        if self.graph.batch:
            return self.graph.batch
        shape = self.graph.inputs[0].shape if self.graph.inputs else None
        return shape[0] if shape else 1

    @cached_property
    def dtypes(self) -> Dtypes:
        """Dtypes of the inputs and of the arithmetic, with the number of elements of each."""
        inputs: dict[str, int] = {}
        for tensor in self.inputs:
            inputs[tensor.dtype] = inputs.get(tensor.dtype, 0) + tensor.elements
        arithmetic: dict[str, int] = {}
        for layer in self.layers:
            if layer.ops != FREE:
                count = sum([tensor.elements for tensor in layer.outputs])
                dtype = layer.arithmetic_dtype
                arithmetic[dtype] = arithmetic.get(dtype, 0) + count
        return Dtypes(_most_first(inputs), _most_first(arithmetic))

    @property
    def dtype(self) -> str:
        """The one dtype of inputs and arithmetic, `mixed` if there are several."""
        return self.dtypes.name

    @property
    def float_dtype(self) -> str:
        """Floating-point dtype that the network is run in: of its first floating-point input."""
        kinds = [tensor.dtype for tensor in self.inputs if is_floating(tensor.dtype)]
        return kinds[0] if kinds else self.graph.dtype

    @cached_property
    def past(self) -> int:
        """Length of the cache of keys and values put in, 0 without one."""
        if self.graph.past:
            return self.graph.past
        return max([getattr(n.attributes, "past", 0) for n in self.graph.nodes], default=0)

    @property
    def cache_bytes(self) -> int:
        """Bytes of the cache of keys and values put in, in the dtypes of keys and values."""
        cache = self.graph.cache
        kept = sum([tensor.bytes for tensor in self.graph.inputs if tensor.name in cache])
        for name, call in self.shapes.calls.items() if self.past else ():
            past = getattr(call.attributes, "past", 0)
            for tensor in self.shapes.ends[name][0][1:3] if past else ():
                shape = tensor.shape or (0, 1)
                kept += storage_bytes(elements(shape) // shape[-2] * past, tensor.dtype)
        return kept

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """One a node, in execution order."""
        calls, ends, rules = self.shapes.calls, self.shapes.ends, self.convention
        sites: dict[str, Site] = {}
        if rules.seen is not None:
            from layerscope.conventions.sites import survey

            found = survey(self.graph, self.shapes, self.costs)
            sites = {site.node.name: site for site in found}
        costs, fields = self.costs, self.fields
        written, written_bytes = self.memory.written, self.memory.written_bytes
        recounted = bool(rules.ops) or rules.other is not None
        counted = rules.learned != "trainable" or not self.graph.frozen
        rows = []
        for node in self.graph.nodes:
            name = node.name
            call, cost = calls.get(name), costs[name]
            stored, stored_bytes = written[name], written_bytes[name]
            if sites or not counted or call is None or node.times != 1:
                site = sites.get(name)
                ops = FREE if call is None else _recounted(rules, node, call, cost, site)
                params = _params(rules, self.graph, node, call, cost, site)
                kept = 0 if call is None else _activations(rules, node, call, stored, site)
            else:  # most nodes
                ops, params, kept = cost.ops, cost.param_count, stored
                if recounted:
                    ops = rules.recount(node.op, call, cost.real_ops or ops)
                if rules.params is not None:
                    params = rules.params(node, call, cost)
                if rules.activations is not None:
                    kept = rules.activations(node, call, stored)
            inputs, outputs = ends[name]
            rows.append(
                Layer(
                    node, call, inputs, outputs, rules, ops, params, stored, stored_bytes, kept,
                    cost, fields,
                )
            )  # fmt: skip
        return tuple(rows)

    def params_known(self, node: Node) -> bool:
        """Whether a node's parameters are known, as they can be of an unknown op."""
        if self.graph.all_params or node.name in self.shapes.calls or node.params is not None:
            return True
        return node.op in SPECS and not SPECS[node.op].has_params

    @cached_property
    def params_complete(self) -> bool:
        """Whether all layers' parameters are known: if not, their total is a lower bound."""
        return all(self.params_known(node) for node in self.graph.nodes)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What there is to say of the graph, and of where the convention's own tool differs."""
        notes = self.graph.notes
        if self.graph.windows:
            from layerscope.report.attention_windows import lines

            notes = (*notes, *lines(self))
        if self.convention.caveats is None:
            return notes
        from layerscope.conventions.sites import survey

        found = survey(self.graph, self.shapes, self.costs)
        return (*notes, *self.convention.caveats(found))

    @cached_property
    def backward(self) -> dict[str, Ops]:
        """Operations of the backward pass, by node."""
        return backward(self.graph, self.shapes, self.costs)

    @cached_property
    def by_name(self) -> dict[str, Layer]:
        """Layers by their unique names."""
        return {layer.name: layer for layer in self.layers}

    @cached_property
    def totals(self) -> Totals:
        """Sums over all layers; tied parameters once, the peak by liveness."""
        layers = self.layers
        costs = [layer.cost for layer in layers]
        ops = counted = sum_ops([cost.ops for cost in costs])
        activations = counted_activations = sum([layer.activations for layer in layers])
        if self.convention.name != "exact":
            counted = sum_ops([layer.convention_kinds for layer in layers])
            counted_activations = sum([layer.convention_activations for layer in layers])
        if self.convention.counts_inputs:
            counted_activations += sum(map(self.convention.input_activations, self.inputs))
        return Totals(
            params=sum([layer.params for layer in layers]) + self._unused,
            buffers=sum([cost.buffer_count for cost in costs]),
            ops=ops,
            convention_kinds=counted,
            convention_ops=self.convention.headline(counted),
            activations=activations,
            activation_bytes=sum([layer.activation_bytes for layer in layers]),
            convention_activations=counted_activations,
            read_bytes=sum([cost.read_bytes for cost in costs]),
            write_bytes=sum([cost.write_bytes for cost in costs]),
            param_bytes=sum([cost.stored_bytes for cost in costs]),
            peak_activation_bytes=self.memory.peak_bytes,
        )

    @property
    def _unused(self) -> int:
        """Parameters that no layer uses and the convention counts."""
        if self.convention.learned == "used":
            return 0
        left = self.graph.frozen if self.convention.learned == "trainable" else frozenset()
        return sum(param.elements for param in self.graph.unused if param.storage not in left)

    @cached_property
    def stored(self) -> dict[str, dict[str, int]]:
        """Numbers stored, each array once: by what they are to the network, then by number type."""
        arrays = {
            storage_of(node, p, node.ties): p
            for node in self.graph.nodes
            for p in self.costs[node.name].params
        }
        for p in self.graph.params:
            arrays.setdefault(p.storage or p.name, p)
        found: dict[str, dict[str, int]] = {}
        for p in arrays.values():
            if p.learnable:
                kind = "parameters"
            else:
                kind = {"statistic": "buffers", "constant": "constants"}.get(p.role, p.role)
            kinds = found.setdefault(kind, {})
            kinds[p.dtype] = kinds.get(p.dtype, 0) + p.elements
        return found

    @cached_property
    def macs_by_dtype(self) -> dict[str, int]:
        """Multiply-adds by the number type of their weights, most first."""
        sums: dict[str, int] = {}
        for layer in self.layers:
            if layer.ops.mac:
                sums[layer.precision] = sums.get(layer.precision, 0) + layer.ops.mac
        return _most_first(sums)

    @property
    def lower_bounds(self) -> tuple[str, ...]:
        """Names of the totals that are lower bounds, because figures of some layers are unknown."""
        if not self.coverage.unknown:
            return ()
        of_arrays = ("params", "buffers", "param_bytes")
        known = of_arrays if self.params_complete else ()
        return tuple(name for name in (*SUMS, *of_arrays) if name not in known)

    @cached_property
    def coverage(self) -> Coverage:
        """How many nodes have figures, and which ops have none."""
        unknown: dict[str, int] = {}
        estimated = 0
        for layer in self.layers:
            if layer.lacks_figures:
                unknown[layer.op] = unknown.get(layer.op, 0) + 1
            elif layer.status == "estimate":
                estimated += 1
        total = len(self.layers)
        return Coverage(total - sum(unknown.values()), total, unknown, estimated)

    @property
    def stamp(self) -> str:
        """One line that makes the figures reproducible: version, inputs, dtype, convention."""
        shapes = ", ".join(f"{tensor.name} {_sizes(tensor.shape)}" for tensor in self.inputs)
        shapes = f"input {shapes}" if shapes else "no input"
        place = " · in place" if self.memory.in_place else ""
        place += f" · cache of {self.past}" if self.past else ""
        return (
            f"layerscope {self.version} · {self.name} · {shapes} · batch {self.batch} · "
            f"{self.dtypes}{place} · convention {self.convention.name}: {self.convention.says}"
        )


def _params(
    rules: Convention, graph: Graph, node: Node, call: Call | None, cost: Cost, site: Site | None
) -> int:
    if rules.seen_params is not None and site is not None:
        return rules.seen_params(site)
    if rules.learned == "trainable" and graph.frozen:
        learned = [p for p in cost.first if p.learnable]
        return sum(
            p.elements for p in learned if storage_of(node, p, node.ties) not in graph.frozen
        )
    return cost.param_count if rules.params is None else rules.params(node, call, cost)


def _activations(rules: Convention, node: Node, call: Call, written: int, site: Site | None) -> int:
    if rules.seen_activations is not None and site is not None:
        return rules.seen_activations(site)
    return written if rules.activations is None else rules.activations(node, call, written)


def _recounted(rules: Convention, node: Node, call: Call, cost: Cost, site: Site | None) -> Ops:
    """A convention counts one run of a node, which a loop has several times."""
    if rules.seen is not None and site is not None:
        return rules.seen(site) * node.times
    if node.times == 1:
        return rules.recount(node.op, call, cost.real_ops or cost.ops)
    return rules.recount(node.op, call, SPECS[node.op].ops(call)) * node.times


def _most_first(counts: dict[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


def _sizes(shape: Shape | None) -> str:
    return "?" if shape is None else "x".join(map(str, shape)) or "scalar"


def sum_ops(many: list[Ops]) -> Ops:
    """Add up kinds one by one, which is quicker than adding values of them."""
    return Ops(
        sum([ops.mac for ops in many]),
        sum([ops.add for ops in many]),
        sum([ops.mul for ops in many]),
        sum([ops.comp for ops in many]),
        sum([ops.div for ops in many]),
        sum([ops.exp for ops in many]),
    )
