"""A Graph from a program of torch.export: its calls are converted one after the other.

Shapes in the file are trusted: a call whose converter infers another shape, or that has none,
becomes an unknown node under its own name.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from layerscope.errors import FormatError
from layerscope.formats.torch.aten import CONSTANTS, RANDOM
from layerscope.formats.torch.aten.declared_outputs import declared_op
from layerscope.formats.torch.aten.table import CONVERTERS
from layerscope.formats.torch.checkpoints.stored_array import check_name
from layerscope.formats.torch.dtypes import name_of
from layerscope.formats.torch.export_arguments import (
    ArgumentReader,
    Values,
    convert_exported,
    makes_as_many,
)
from layerscope.formats.torch.export_modules import (
    ModuleStack,
    class_name,
    module_line,
    modules_in,
)
from layerscope.formats.torch.export_schema import (
    ExportedCall,
    ExportedGraph,
    ExportedTensor,
    GraphModule,
    Payload,
    SizeReader,
    names_in,
    symbol_in,
)
from layerscope.formats.torch.graph_assembly import floating_of, unused_note, unused_params
from layerscope.formats.torch.inplace_writes import write
from layerscope.formats.torch.lowering import CallPlan, Lowering, PlannedNode, TensorRef
from layerscope.formats.torch.module_table import ParamTable
from layerscope.formats.torch.tensors import TensorMeta, TracedTensor, ViewCall
from layerscope.formats.torch.tracking import Tracker
from layerscope.graph import attributes as at
from layerscope.graph.types import Graph, Source, Tensor
from layerscope.limits import CALL_NODES

# Operators whose results are views: a write into one is a write into the other.
VIEWS = frozenset((
    "view", "view_as", "unflatten", "unsqueeze", "squeeze", "permute", "transpose", "swapaxes",
    "swapdims", "t", "numpy_T", "mT", "adjoint", "mH", "matrix_H", "movedim", "moveaxis", "expand",
    "expand_as", "broadcast_to", "slice", "narrow", "select", "split", "split_with_sizes", "chunk",
    "tensor_split", "unbind", "detach", "alias", "unfold", "lift_fresh", "diagonal", "as_strided",
    "view_as_real", "view_as_complex",
))  # fmt: skip
MAYBE_VIEWS = frozenset(("reshape", "flatten", "contiguous", "reshape_as", "ravel", "to"))
# Operators whose first result is that of the layer; the others are for training.
FIRST_RESULT = tuple(
    f"torch.ops.aten.{name}."
    for name in CONVERTERS
    if name.startswith(("native_", "_native_", "_scaled_dot_product_", "max_pool"))
)
FREE_CALLS = 100  # added to the calls of a program, so that the limit spares small ones
INLINED = ("wrap_with_set_grad_enabled", "wrap_with_autocast", "hints_wrapper")


class ConvertedCall(Struct, gc=False):
    """One call of the program: the operator, its tensors, and the tensors that it makes."""

    name: str  # in the table of converters
    namespace: str
    in_place: bool
    source: Source
    given: list[TracedTensor]
    outs: list[str]  # names in the file
    tensors: list[ExportedTensor]  # the results


class ProgramReader:
    """Converts one program."""

    def __init__(self, path: str, program: GraphModule, stored: dict[str, Payload]) -> None:
        self.path, self.program, self.stored = path, program, stored
        self.sizes = SizeReader(path)
        self.arguments = ArgumentReader(path, program.graph, self.sizes)
        self.params = ParamTable()
        self.tracker = Tracker({}, self.params)
        self.modules = modules_in(path, program)
        self.stack = ModuleStack(self.modules, self.tracker)
        self.floating = "fp32"
        self.calls = 0

    def graph(self) -> Graph:
        """Convert the program."""
        graph = self.program.graph
        values = self._inputs(graph)
        self.floating = floating_of(self.params)
        self._convert_calls(graph, values)
        self.stack.leave()
        return self._assemble(self._outputs(graph, values))

    # Inputs and outputs

    def _inputs(self, graph: ExportedGraph) -> Values:
        """Inputs of the network, parameters and buffers, by their names in the file."""
        values: Values = {}
        shared: dict[Any, str] = {}
        for spec in self.program.signature.input_specs:
            kind, fields = next(iter(spec.items()), ("", {}))
            if kind in ("parameter", "buffer", "tensor_constant"):
                arg = fields.get("arg")
                name = self.arguments.name(arg, kind)
                full = fields.get(f"{kind}_name")
                if not isinstance(full, str):
                    raise FormatError(f"{self.path}: {name}: a {kind} without its name")
                check_name(self.path, full)
                tensor = self.sizes.tensor(name, graph.tensor_values)
                values[name] = self._stored(tensor, full, kind, shared)
            elif kind == "user_input":
                arg = fields.get("arg")
                for name in names_in(arg) if isinstance(arg, dict) else []:
                    tensor = self.sizes.tensor(name, graph.tensor_values)
                    values[name] = self._declare(tensor, name)
        if not self.tracker.inputs:
            raise FormatError(f"{self.path}: a program that takes no tensor")
        return values

    def _declare(self, tensor: ExportedTensor, name: str) -> TracedTensor:
        traced = self.tracker.register(tensor, name, self._meta(tensor))
        self.tracker.names.add(name)
        self.tracker.inputs.append(Tensor(name, tensor.shape, name_of(tensor.dtype)))
        return traced

    def _stored(
        self, tensor: ExportedTensor, full: str, kind: str, shared: dict[Any, str]
    ) -> TracedTensor:
        """A parameter, buffer or constant; those in one storage have the name of the first."""
        if kind == "tensor_constant":
            return self._constant(tensor)
        payload = self.stored.get(full)
        first = full
        if payload is not None:
            offset = (payload.tensor_meta or {}).get("storage_offset")
            first = shared.setdefault((payload.path_name, str(offset), tensor.shape), full)
        self.params.add_alias(tensor, first, buffer=kind == "buffer")
        self.params.tensors.setdefault(first, tensor)
        meta = self._meta(tensor, "param" if kind == "parameter" else kind)
        return self.tracker.register(tensor, first, meta, plain=False)

    def _constant(self, tensor: ExportedTensor, random: bool = False) -> TracedTensor:
        traced = self.tracker.register(tensor, "", self._meta(tensor), plain=False)
        traced.is_const = True
        traced.random = random
        return traced

    def _outputs(self, graph: ExportedGraph, values: Values) -> tuple[str, ...]:
        specs = [spec["user_output"] for spec in self.program.signature.output_specs
                 if "user_output" in spec]  # fmt: skip
        args = [spec.get("arg") for spec in specs] or graph.outputs
        found: dict[str, None] = {}
        for arg in args:
            for name in names_in(arg) if isinstance(arg, dict) else []:
                traced = self.arguments.tensor(name, values)
                if not traced.still_const:
                    found[self.tracker.read(traced)] = None
        return tuple(found)

    def _meta(self, tensor: ExportedTensor, kind: str = "") -> TensorMeta:
        return self.tracker.meta_of(tensor.shape, tensor.strides, tensor.dtype, kind)

    # Calls

    def _convert_calls(self, graph: ExportedGraph, values: Values) -> None:
        read = {name for call in graph.nodes for each in call.inputs for name in names_in(each.arg)}
        read |= {name for arg in graph.outputs for name in names_in(arg)}
        for call in graph.nodes:
            self.stack.enter(call)
            outs = [name for arg in call.outputs for name in names_in(arg)]
            while len(outs) > 1 and outs[-1] not in read and call.target.startswith(FIRST_RESULT):
                outs.pop()  # statistics and indices that no call reads
            self.calls += 1
            if outs:
                self._call(call, outs, graph, values)
            if len(self.tracker.nodes) > CALL_NODES.most * (FREE_CALLS + self.calls):
                raise FormatError(
                    f"{self.path}: {call.target}: {len(self.tracker.nodes):,} nodes of "
                    f"{self.calls:,} calls, the limit {CALL_NODES.name} for each is "
                    f"{CALL_NODES.most}"
                )
            for arg in call.outputs:
                name = symbol_in(arg)
                if name in graph.sym_int_values:
                    values[name] = self.sizes.number(graph.sym_int_values[name], name)

    def _call(
        self, call: ExportedCall, outs: list[str], graph: ExportedGraph, values: Values
    ) -> None:
        """Convert one call; its results are added to `values`."""
        full = call.target.removeprefix("torch.ops.")
        space, _, rest = full.partition(".")
        packet = rest.partition(".")[0]
        inner = [each.arg["as_graph"] for each in call.inputs if "as_graph" in each.arg]
        if space == "higher_order" and packet in INLINED and len(inner) == 1:
            self._inline(call, inner[0], outs, values)
            return
        has_converters = space in ("aten", "torchvision")
        in_place = has_converters and packet.endswith("_") and not packet.endswith("__")
        converted = ConvertedCall(
            name=packet[:-1] if in_place else packet,
            namespace=space,
            in_place=in_place,
            source=Source(op=f"{space}.{packet}" if packet else full, name=outs[0] if outs else ""),
            given=[],
            outs=outs,
            tensors=[self.sizes.tensor(out, graph.tensor_values) for out in outs],
        )
        args, kwargs = self.arguments.read_all(call.inputs, converted.given, values)
        if self._is_constant(converted, values):
            return
        name, given = converted.name, converted.given
        convert = CONVERTERS.get(name) if has_converters else None
        lowering = Lowering(converted.source, self.tracker.attr_cache, self.floating)
        lowering.in_place = in_place
        results = None
        if convert is not None and makes_as_many(name, args, kwargs, given, len(outs)):
            results = convert_exported(convert, lowering, args, kwargs)
        if in_place and given:
            self._write(converted, lowering, results, values)
        else:
            self._compute(converted, lowering, results, values)

    def _is_constant(self, call: ConvertedCall, values: Values) -> bool:
        """Whether the results are constants, which need no nodes; they are then in `values`."""
        given, random = call.given, False
        if call.namespace == "aten" and not call.in_place and call.name in CONSTANTS | RANDOM:
            random = call.name in RANDOM
        elif given and all(traced.still_const for traced in given):
            random = any(traced.random for traced in given)
        else:
            return False
        for out, tensor in zip(call.outs, call.tensors, strict=True):
            values[out] = self._constant(tensor, random)
        if call.in_place:
            values[call.outs[0]] = given[0]
        return True

    def _plan(
        self,
        lowering: Lowering,
        results: list[TensorRef] | None,
        metas: tuple[TensorMeta, ...],
        given: list[TracedTensor],
    ) -> CallPlan:
        """Nodes whose results have the shapes in the file, else one unknown node."""
        if results is not None:
            results = results[: len(metas)]
            if [ref.shape for ref in results] == [meta.shape for meta in metas]:
                pairs = zip(results, metas, strict=True)
                return lowering.plan([lowering.cast(ref, meta.name) for ref, meta in pairs], metas)
        if all(0 in meta.shape for meta in metas):
            return CallPlan((), (), metas)
        shapes, dtypes = tuple([m.shape for m in metas]), tuple([m.name for m in metas])
        space, _, name = lowering.source.op.partition(".")
        declared = None
        # a converter that refuses says that arguments are wrong, unless a tensor is one of them
        if space != "aten" or name not in CONVERTERS or len(given) > 1:
            inputs = [traced.meta.shape for traced in given]
            declared = declared_op(lowering.source.op, inputs, at.DeclaredOutputs(shapes, dtypes))
        op, attributes = declared or (lowering.source.op, at.Opaque(shapes, dtypes))
        reads = tuple(range(len(given)))
        node = PlannedNode(op, reads, attributes, (), len(metas), lowering.source)
        return CallPlan((node,), tuple([(0, n) for n in range(len(metas))]), metas)

    def _compute(
        self,
        call: ConvertedCall,
        lowering: Lowering,
        results: list[TensorRef] | None,
        values: Values,
    ) -> None:
        """Add new tensors, or views of the first tensor of the call."""
        tracker, name, given = self.tracker, call.name, call.given
        metas = tuple([self._meta(tensor) for tensor in call.tensors])
        plan = self._plan(lowering, results, metas, given)
        if not plan.results:
            for out, tensor in zip(call.outs, call.tensors, strict=True):
                values[out] = self._constant(tensor)
            return
        source: TracedTensor | None = given[0] if given else None
        is_view = source is not None and (
            name in VIEWS or (name in MAYBE_VIEWS and source.meta.contiguous)
        )
        if is_view and not plan.nodes and plan.results == (0,):
            values[call.outs[0]] = source  # the same tensor under another name
            return
        names = tracker.emit(plan, given)
        for n, (out, tensor) in enumerate(zip(call.outs, call.tensors, strict=True)):
            traced = values[out] = tracker.register(tensor, names[n], plan.outs[n])
            if is_view and source is not None:
                traced.parent, traced.view_call = source, ViewCall(plan, given, n)
                traced.module = tracker.module
                traced.version = source.root.version
                traced.plain = False

    def _write(
        self,
        call: ConvertedCall,
        lowering: Lowering,
        results: list[TensorRef] | None,
        values: Values,
    ) -> None:
        """Write into the first tensor: all views of it have the new contents."""
        target = call.given[0]
        values[call.outs[0]] = target
        if target.meta.kind == "buffer" and call.tensors[0].shape in ((), (1,)):
            return  # a counter such as num_batches_tracked
        if call.name in RANDOM:
            outputs = at.DeclaredOutputs((target.meta.shape,), (target.meta.name,))
            results = [lowering.add("random", at=outputs)]
        plan = self._plan(lowering, results, (target.meta,), call.given)
        if plan.results:
            write(self.tracker, target, self.tracker.emit(plan, call.given)[0])

    def _inline(
        self, call: ExportedCall, subgraph: dict[str, Any], outs: list[str], values: Values
    ) -> None:
        """Convert a part of the program that runs under another setting, such as no_grad."""
        try:
            graph = msgspec.convert(subgraph["graph"], ExportedGraph)
        except (msgspec.ValidationError, LookupError, TypeError) as error:
            raise FormatError(f"{self.path}: {call.target}: {error}") from None
        start = 1 + next(n for n, each in enumerate(call.inputs) if "as_graph" in each.arg)
        inner: Values = {}
        args = [each.arg for each in call.inputs[start:]]
        for own, arg in zip(graph.inputs, args, strict=False):
            for name, outer in zip(names_in(own), names_in(arg), strict=False):
                inner[name] = self.arguments.tensor(outer, values)
            symbol = symbol_in(own)
            if symbol:
                inner[symbol] = self.arguments.read(arg, [], values)
        self._convert_calls(graph, inner)
        names = [name for arg in graph.outputs for name in names_in(arg)]
        if len(names) != len(outs):
            raise FormatError(f"{self.path}: {call.target}: {len(names)} tensors for {len(outs)}")
        for out, name in zip(outs, names, strict=True):
            values[out] = self.arguments.tensor(name, inner)

    # The graph

    def _assemble(self, outputs: tuple[str, ...]) -> Graph:
        tracker, params = self.tracker, self.params
        frozen = [
            name
            for name, tensor in params.tensors.items()
            if id(tensor) not in params.buffers and not tensor.requires_grad
        ]
        unused = unused_params(params, tracker.used)
        notes = []
        if self.sizes.open:
            sizes = ", ".join(f"{name}={size}" for name, size in list(self.sizes.open.items())[:5])
            notes.append(f"sizes that the program leaves open are its example's: {sizes}")
        if unused:
            notes.append(unused_note(unused))
        return Graph(
            name=self.path.replace("\\", "/").rpartition("/")[2],
            inputs=tuple(tracker.inputs),
            nodes=tuple(tracker.nodes),
            outputs=outputs,
            params=tuple(tracker.params.values()),
            modules={path: module_line(info) for path, info in self.modules.items()},
            kinds={path: class_name(info) for path, info in self.modules.items()},
            dtype=self.floating,
            notes=tuple(notes),
            unused=tuple(unused),
            all_params=True,
            frozen=frozenset(frozen),
        )
