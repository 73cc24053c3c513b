"""If, and the subgraphs of all control operators, which become scopes of the flat graph."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from layerscope.errors import FormatError
from layerscope.formats.onnx.import_state import ImportState
from layerscope.formats.onnx.node import Converter, ConverterTable, OnnxNode
from layerscope.formats.onnx.node_view import GraphContext
from layerscope.formats.onnx.skim import GraphProto
from layerscope.formats.onnx.tensor_info import BodyEnv, Env, TensorInfo
from layerscope.graph import attributes as at
from layerscope.graph.types import Node, Shape
from layerscope.ops import SPECS, Call

UNTAKEN = "the branch that is not counted"
VARIES = "the shape differs between branches or iterations"
UNKNOWN_TRIPS = "one of an unknown number of iterations (× ?)"


class _Table(Sized, Protocol):
    """A dict whose latest entries can be removed."""

    def popitem(self) -> object: ...


def _tables(reader: ImportState) -> tuple[_Table, ...]:
    return (
        reader.names, reader.tensors, reader.params, reader.derived, reader.derived_read,
        reader.declared, reader.trace.causes,
    )  # fmt: skip


class _List(Sized, Protocol):
    """A list whose latest items can be removed."""

    def __delitem__(self, index: slice, /) -> None: ...


def _lists(reader: ImportState) -> tuple[_List, ...]:
    return (
        reader.nodes, reader.initializers, reader.notes, reader.contradicted, reader.renamed
    )  # fmt: skip


class StateMark:
    """A position in the import, to return to or to look at the nodes emitted since."""

    def __init__(self, reader: ImportState) -> None:
        self.reader, self.start = reader, len(reader.nodes)
        self.sizes = [len(table) for table in _tables(reader)]
        self.lengths = [len(items) for items in _lists(reader)]

    def undo(self) -> None:
        """Remove everything that was added since; all tables keep the order of insertion."""
        reader = self.reader
        for items, length in zip(_lists(reader), self.lengths, strict=True):
            del items[length:]
        reader.counts.clear()
        reader.trace.reset()
        for table, size in zip(_tables(reader), self.sizes, strict=True):
            while len(table) > size:
                table.popitem()

    def repeat(self, times: int | None, note: str = "") -> None:
        """Set how often every node since runs; None: unknown."""
        nodes = self.reader.nodes
        for n in range(self.start, len(nodes)):
            emitted = nodes[n]
            if times is None:
                nodes[n] = replace(emitted, note=emitted.note or UNKNOWN_TRIPS, estimate=True)
            else:
                times_all, said = emitted.times * times, emitted.note or note
                nodes[n] = replace(emitted, times=times_all, note=said)

    def count_ops(self) -> tuple[int, int]:
        """Multiply-adds and FLOPs of all nodes since, in all runs of inner loops."""
        macs = flops = 0
        for emitted in self.reader.nodes[self.start :]:
            ops = _ops(self.reader, emitted)
            if ops is not None:
                macs += ops[0] * emitted.times
                flops += ops[1] * emitted.times
        return macs, flops


def _ops(reader: ImportState, emitted: Node) -> tuple[int, int] | None:
    rule = SPECS.get(emitted.op)
    if rule is None:
        return None
    shapes = [reader.tensors[name][0] for name in emitted.inputs]
    out_shapes = [reader.tensors[name][0] for name in emitted.outputs]
    inputs = [shape for shape in shapes if shape is not None]
    outputs = [shape for shape in out_shapes if shape is not None]
    if len(inputs) != len(shapes) or len(outputs) != len(out_shapes):
        return None
    ops = rule.ops(Call(emitted.attributes, tuple(inputs), tuple(outputs)))
    return ops.mac, ops.flops


def body(
    node: OnnxNode, part: GraphProto, scope: tuple[str, ...], inputs: dict[str, TensorInfo]
) -> Env:
    """Convert a subgraph and return its tensors; it also sees those of the graph around it."""
    reader, outer = node.reader, node.context
    env: Env = BodyEnv(node.env, inputs)
    for stored in part.stored:
        env[stored.name] = reader.store(stored.name, stored, scope)
    context = GraphContext(
        env, outer.opsets, scope, outer.function_attrs, part.values, outer.depth + 1
    )
    reader.walk(part.nodes, context)
    for output in part.outputs:
        if output.name not in env:
            raise FormatError(f"{node.where}: its body does not compute its output {output.name!r}")
    return env


def if_(node: OnnxNode) -> None:
    """If: both branches are listed. Counted is the one taken if that is known, else the larger.

    A branch may be for inputs of other shapes and be impossible for these.
    """
    reader = node.reader
    condition = node.value("cond")
    results: list[list[TensorInfo]] = []
    marks: list[tuple[StateMark, int]] = []
    ops, failures, noted = [], [], [len(reader.notes)]
    for branch in ("then", "else"):
        part = node.graph(f"{branch}_branch")
        mark = StateMark(reader)
        around, reader.failures = reader.failures, []
        env = body(node, part, (*node.inner_scope, branch), {})
        failures.append(reader.failures)
        reader.failures = around
        noted.append(len(reader.notes))
        marks.append((mark, len(reader.nodes)))
        ops.append(mark.count_ops())
        results.append([env[output.name] for output in part.outputs])
    if condition is not None:
        taken = 0 if condition.item else 1
        why = "the condition is known before the run"
    elif bool(failures[0]) != bool(failures[1]):
        taken = 1 if failures[0] else 0
        why = "the other cannot run on these shapes"
    else:
        taken = 0 if ops[0] >= ops[1] else 1
        why = "the larger"
    if failures[taken]:
        raise failures[taken][0]
    mark, end = marks[1 - taken]
    _untaken(reader, mark.start, end)
    del reader.notes[noted[1 - taken] : noted[2 - taken]]
    certain = condition is not None or bool(failures[1 - taken])
    unknown = {} if certain else _unknown_ops(reader, mark, end)
    if unknown:
        why += f", though of {', '.join(unknown)} in the other nothing is known"
    branch = ("then", "else")[taken]
    reader.notes.append(f"{node.label}: its {branch} branch is counted ({why})")
    _branch_outputs(node, results[taken], None if certain else results[1 - taken])
    if condition is not None:
        for name, info in zip(node.outputs, results[taken], strict=False):
            if name and info.items is None:
                node.env[name].lazy_value = info.lazy_value


def _unknown_ops(reader: ImportState, mark: StateMark, end: int) -> dict[str, None]:
    """Operators without a rule among the nodes of a branch."""
    nodes = reader.nodes[mark.start : end]
    return {emitted.op: None for emitted in nodes if emitted.op not in SPECS}


def _untaken(reader: ImportState, start: int, end: int) -> None:
    for n in range(start, end):
        emitted = reader.nodes[n]
        reader.nodes[n] = replace(emitted, times=0, note=emitted.note or UNTAKEN)


def _branch_outputs(
    node: OnnxNode, results: Sequence[TensorInfo], other: Sequence[TensorInfo] | None
) -> None:
    """Outputs of an If; a shape is unknown if it differs between branches."""
    for n, name in enumerate(node.outputs):
        if not name:
            continue
        if n >= len(results):
            raise FormatError(f"{node.where}: its body has {len(results)} outputs")
        info = results[n]
        shape = info.shape
        if other is not None and n < len(other) and other[n].shape != shape:
            shape = None
        leave(node, name, f"output{n}", info, shape)


def leave(node: OnnxNode, name: str, part: str, info: TensorInfo, shape: Shape | None) -> None:
    """Make a tensor of a subgraph an output of the node, under another name and not constant."""
    reader = node.reader
    if not info.tensor:
        node.env[name] = info
        return
    label = reader.node_name(f"{node.label}/{part}")
    tensor = reader.tensor_name(name, node.scope)
    has_shape = shape is not None and info.shape is not None
    why = VARIES if info.shape is not None else reader.trace.shape(info.name)
    emitted = Node(
        name=label,
        op="select" if has_shape else node.op,
        inputs=(reader.input_name(info),),
        outputs=(tensor,),
        attributes=_declared(shape, info.dtype, why),
        params=(),
        scope=node.inner_scope,
        source=reader.source(node.op, node.proto.name),
    )
    reader.append(emitted, [(shape, info.dtype)])
    if shape is None:
        cause = reader.trace.causes.get(info.name)
        reader.trace.causes[tensor] = cause or f"{node.label} ({node.op}): {why}"
    node.env[name] = TensorInfo(tensor, shape, info.dtype)


class BodyInput(NamedTuple):
    """An input of a loop body."""

    name: str
    source: TensorInfo | None  # the tensor outside; None: the loop generates it
    shape: Shape | None
    dtype: str


def enter(node: OnnxNode, scope: tuple[str, ...], given: BodyInput) -> TensorInfo:
    """Add a tensor that a loop body reads anew in every round."""
    reader = node.reader
    name, source, shape, dtype = given
    label = reader.node_name("/".join((*scope, name)))
    tensor = reader.tensor_name(name, scope)
    has_shape = shape is not None and (source is None or source.shape is not None)
    op = "constant" if source is None else "select"
    unknown = source is not None and source.shape is None
    why = reader.trace.shape(source.name) if source is not None and unknown else VARIES
    emitted = Node(
        name=label,
        op=op if has_shape else node.op,
        inputs=(reader.input_name(source),) if source is not None else (),
        outputs=(tensor,),
        attributes=_declared(shape, dtype, why),
        params=(),
        scope=scope,
        source=reader.source(node.op, node.proto.name),
    )
    reader.append(emitted, [(shape, dtype)])
    if shape is None:
        reader.trace.causes[tensor] = f"{node.label} ({node.op}): {why}"
    return TensorInfo(tensor, shape, dtype)


def _declared(shape: Shape | None, dtype: str, why: str) -> at.DeclaredOutputs | at.Opaque:
    """Attributes of a node with one output; `why` is the reason if its shape is unknown."""
    if shape is None:
        return at.Opaque((None,), (dtype,), (), why)
    return at.DeclaredOutputs((shape,), (dtype,))


OPERATORS: ConverterTable = {("", "If"): Converter(if_, "cond")}
