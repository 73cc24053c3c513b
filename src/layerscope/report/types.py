"""The report of a network: one Layer per node, totals, notes, and methods that print it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal, Unpack

from layerscope.analysis.backward import backward
from layerscope.analysis.costs import Cost, storage_of
from layerscope.analysis.fields import Fields
from layerscope.analysis.memory import Memory
from layerscope.analysis.shapes import Shapes
from layerscope.analysis.training import STATES, Training, TrainingSetup, training
from layerscope.conventions.convention import Convention
from layerscope.errors import UnknownName
from layerscope.graph.names import shape_text
from layerscope.graph.types import Graph, Node, Tensor, elements, is_floating, storage_bytes
from layerscope.ops import FREE, SPECS, Ops
from layerscope.report.layer import Layer
from layerscope.report.numbers import ABOUT, AT_LEAST
from layerscope.report.printing import ViewOptions, printer, table_text, view_of
from layerscope.report.results import PlottedResult
from layerscope.report.totals import BOUNDED, OF_SIZES, Coverage, Dtypes, Totals, sum_costs, sum_ops

if TYPE_CHECKING:
    from pandas import DataFrame

AttentionPairs = Literal["all", "needed"]  # all pairs, or those that masks and windows leave
__all__ = ["AttentionPairs", "Coverage", "Dtypes", "Layer", "Report", "Totals", "sum_ops"]


class Report(PlottedResult, frozen=True, dict=True):
    """All figures of a network on given inputs, under one convention."""

    printed_by: ClassVar[str] = "report"
    plotted_by: ClassVar[str] = "plot_report"

    graph: Graph
    shapes: Shapes
    costs: dict[str, Cost]
    fields: Fields
    memory: Memory
    convention: Convention
    version: str
    attention: AttentionPairs = "all"

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
        """Length of the cache of keys and values that is an input, 0 without one."""
        if self.graph.past:
            return self.graph.past
        return max([getattr(n.attributes, "past", 0) for n in self.graph.nodes], default=0)

    @property
    def cache_bytes(self) -> int:
        """Bytes of that cache, in the dtypes of keys and values."""
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
        """One per node, in execution order."""
        calls, ends, costs = self.shapes.calls, self.shapes.ends, self.costs
        written, written_bytes = self.memory.written, self.memory.written_bytes
        convention, fields = self.convention, self.fields
        counts = None
        if not convention.is_exact:
            from layerscope.conventions.counting import count_nodes

            counts = count_nodes(convention, self.graph, self.shapes, costs, written)
        layers = []
        for node in self.graph.nodes:
            name = node.name
            call, cost, stored = calls.get(name), costs[name], written[name]
            if counts is not None:
                ops, params, activations = counts[name]
            else:
                ops, params, activations = cost.ops, cost.param_count, 0 if call is None else stored
            inputs, outputs = ends[name]
            layers.append(
                Layer(
                    node, call, inputs, outputs, convention, ops, params, stored,
                    written_bytes[name], activations, cost, fields,
                )
            )  # fmt: skip
        return tuple(layers)

    def params_known(self, node: Node) -> bool:
        """Whether the parameters of a node are complete, which an unknown op may have too."""
        if self.graph.all_params or node.name in self.shapes.calls or node.params is not None:
            return True
        return node.op in SPECS and not SPECS[node.op].has_params

    @cached_property
    def params_complete(self) -> bool:
        """Whether the parameters of all layers are; if not, their total is a lower bound."""
        return all(self.params_known(node) for node in self.graph.nodes)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Notes of the reader of the model, and on where the convention's own tool differs."""
        notes = self.graph.notes
        if self.graph.windows or self.graph.causal or self.attention != "all":
            from layerscope.report.attention_windows import lines

            notes = (*notes, *lines(self))
        if self.convention.caveats is None:
            return notes
        from layerscope.conventions.counted_nodes import counted_nodes

        nodes = counted_nodes(self.graph, self.shapes, self.costs, self.convention.sees)
        return (*notes, *self.convention.caveats(nodes))

    @cached_property
    def backward(self) -> dict[str, Ops]:
        """Operations of the backward pass, by node."""
        return backward(self.graph, self.shapes, self.costs)

    @cached_property
    def alive_bytes(self) -> dict[str, int]:
        """Bytes of activations alive while each layer runs; bounds if in `memory.bounded`."""
        names = [node.name for node in self.graph.nodes]
        return dict(zip(names, self.memory.alive_bytes, strict=True))

    @cached_property
    def by_name(self) -> dict[str, Layer]:
        """Layers by their unique names."""
        return {layer.name: layer for layer in self.layers}

    @cached_property
    def totals(self) -> Totals:
        """Sums over all layers; tied parameters once, the peak by liveness."""
        costs, convention, memory = sum_costs(self.costs.values()), self.convention, self.memory
        activations = counted_activations = sum(memory.written.values())
        counted, params = costs.ops, costs.params
        if not convention.is_exact:
            layers = self.layers
            counted = sum_ops([layer.convention_kinds for layer in layers])
            counted_activations = sum([layer.convention_activations for layer in layers])
            params = sum([layer.params for layer in layers])
        if convention.counts_inputs:
            counted_activations += sum(map(convention.input_activations, self.inputs))
        return Totals(
            params=params + self.unused_params,
            buffers=costs.buffers,
            ops=costs.ops,
            convention_kinds=counted,
            convention_ops=convention.headline(counted),
            activations=activations,
            activation_bytes=sum(memory.written_bytes.values()),
            convention_activations=counted_activations,
            read_bytes=costs.read_bytes,
            write_bytes=costs.write_bytes,
            param_bytes=costs.stored_bytes + self.unused_bytes,
            peak_activation_bytes=memory.peak_bytes,
        )

    @property
    def unused_params(self) -> int:
        """Parameters that this forward pass does not use, if the convention counts them."""
        if self.convention.counted_params == "used":
            return 0
        trainable = self.convention.counted_params == "trainable"
        frozen = self.graph.frozen if trainable else frozenset[str]()
        return sum(param.elements for param in self.graph.unused if param.storage not in frozen)

    @property
    def unused_bytes(self) -> int:
        """Bytes of all parameters that this forward pass does not use."""
        return sum(param.bytes for param in self.graph.unused)

    @cached_property
    def stored(self) -> dict[str, dict[str, int]]:
        """Elements of stored arrays, each array once: by parameters, buffers …, then by dtype."""
        arrays = {
            storage_of(node, p, node.ties): p
            for node in self.graph.nodes
            for p in self.costs[node.name].params
        }
        for p in (*self.graph.params, *self.graph.unused):
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
        """Multiply-adds by the dtype of the weights, most first."""
        sums: dict[str, int] = {}
        for layer in self.layers:
            if layer.ops.mac:
                sums[layer.precision] = sums.get(layer.precision, 0) + layer.ops.mac
        return _most_first(sums)

    @cached_property
    def all_exact(self) -> bool:
        """Whether the figures of every layer are exact."""
        return all(layer.cost.status == "exact" for layer in self.layers)

    @property
    def lower_bounds(self) -> tuple[str, ...]:
        """Names of the totals that are lower bounds, because figures of some layers are unknown."""
        if not self.coverage.unknown:
            return () if self.memory.complete else ("peak_activation_bytes",)
        of_arrays = ("params", "buffers", "param_bytes")
        return BOUNDED if self.params_complete else (*BOUNDED, *of_arrays)

    @cached_property
    def estimates(self) -> tuple[str, ...]:
        """Names of the totals that are estimates, because figures of some layers are."""
        if not self.coverage.estimated:
            return ()
        layers = [layer for layer in self.layers if layer.status == "estimate"]
        sized = [layer for layer in layers if layer.has_estimated_sizes]
        ops = sum_ops([layer.ops for layer in layers])
        counted = [layer for layer in layers if layer.has_estimated_count]
        own = self.convention.headline(sum_ops([layer.convention_kinds for layer in counted]))
        found = {"macs": ops.mac, "flops": ops.flops, "ops": ops.flops, "convention_ops": own}
        found["backward_ops"] = sum([self.backward[layer.name].flops for layer in layers])
        return (*[name for name, count in found.items() if count], *(OF_SIZES if sized else ()))

    def sign(self, total: str) -> str:
        """The sign of a total: `≥` for a lower bound, `~` for an estimate, "" if it is exact."""
        bound = AT_LEAST if total in self.lower_bounds else ""
        return bound + (ABOUT if total in self.estimates else "")

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
        shapes = ", ".join(f"{tensor.name} {shape_text(tensor.shape)}" for tensor in self.inputs)
        shapes = f"input {shapes}" if shapes else "no input"
        options = " · in place" if self.memory.in_place else ""
        options += f" · cache of {self.past}" if self.past else ""
        options += " · attention of needed pairs" if self.attention == "needed" else ""
        return (
            f"layerscope {self.version} · {self.name} · {shapes} · batch {self.batch} · "
            f"{self.dtypes}{options} · convention {self.convention.name}: {self.convention.says}"
        )

    @property
    def total_params(self) -> int:
        """Parameters of the network, those included that this forward pass does not use."""
        if self.convention.counted_params != "used":  # the totals include them
            return self.totals.params
        return self.totals.params + sum([param.elements for param in self.graph.unused])

    @property
    def trainable_params(self) -> int:
        """Parameters that training changes."""
        if self.convention.counted_params == "trainable":  # the totals have no others
            return self.totals.params
        frozen = self.graph.frozen
        fixed = sum([param.elements for param in self.graph.unused if param.storage in frozen])
        for node in self.graph.nodes if frozen else ():
            for param in self.costs[node.name].first:
                if param.learnable and storage_of(node, param, node.ties) in frozen:
                    fixed += param.elements
        return self.total_params - fixed

    @property
    def total_macs(self) -> int:
        """Multiply-adds."""
        return self.totals.macs

    @property
    def total_flops(self) -> int:
        """2 per multiply-add, 1 per everything else."""
        return self.totals.flops

    def training(
        self, optimizer: str = "adam", *, mixed: bool = False, checkpoint: bool = False
    ) -> Training:
        """Memory of one training step, by use; `mixed` needs a half-precision report."""
        if optimizer not in STATES:
            raise UnknownName("optimizer", optimizer, STATES, f"; known: {', '.join(STATES)}")
        setup = TrainingSetup(optimizer, mixed, checkpoint)
        return training(self.graph, self.shapes, self.costs, setup)

    def findings(self) -> tuple[str, ...]:
        """Sentences on which layers have most of each figure, and where memory peaks."""
        from layerscope.report.findings import findings

        return findings(self)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        text: str = self._printer().notebook_html(self)
        return text

    def to_text(self, *, width: int | None = None, **view: Unpack[ViewOptions]) -> str:
        """The table that the command line prints, within `width` columns."""
        return table_text(self, "text", view, width=width)

    def to_markdown(self, **view: Unpack[ViewOptions]) -> str:
        """A Markdown table; `columns`, `depth`, `sort` and `top` as on the command line."""
        return table_text(self, "markdown", view)

    def to_csv(self, **view: Unpack[ViewOptions]) -> str:
        """One line per layer, figures in full."""
        return table_text(self, "csv", view)

    def to_latex(self, **view: Unpack[ViewOptions]) -> str:
        """A LaTeX tabular in the booktabs style."""
        return table_text(self, "latex", view)

    def to_html(self, **view: Unpack[ViewOptions]) -> str:
        """An HTML table."""
        return table_text(self, "html", view)

    def to_json(self) -> str:
        """The whole report as JSON; docs/report.schema.json describes it."""
        text: str = printer("json").write(self)
        return text

    def to_pandas(self, **view: Unpack[ViewOptions]) -> DataFrame:
        """A DataFrame with one row per layer (extra `frame`)."""
        return printer("frame").write(self, view_of(view))

    def to_notation(self, name: str, **options: object) -> str:
        """The table in the notation of another program: netscope, matconvnet, cs231n …"""
        text: str = printer("notations").write(self, name, **options)
        return text


def _most_first(counts: dict[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: -item[1]))
