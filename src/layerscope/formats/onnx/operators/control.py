"""Branches, and what bodies of all control operators share: scopes of the flat graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from layerscope.errors import FormatError
from layerscope.formats.onnx.known import Env, Inner, Known
from layerscope.formats.onnx.ledger import Ledger
from layerscope.formats.onnx.site import Convert, Site
from layerscope.formats.onnx.skim import GraphPart
from layerscope.graph import attributes as at
from layerscope.graph.types import Node, Shape
from layerscope.ops import SPECS, Call

UNTAKEN = "the branch that is not counted"
VARIES = "the shape differs between branches, or from round to round"
UNTOLD = "one of an unknown number of rounds (× ?)"


def _tables(reader: Ledger) -> tuple[dict[str, Any], ...]:
    return (
        reader.names, reader.tensors, reader.params, reader.derived, reader.derived_read,
        reader.declared, reader.trace.causes,
    )  # fmt: skip


def _lists(reader: Ledger) -> tuple[list[Any], ...]:
    return (
        reader.nodes, reader.entries, reader.notes, reader.contradicted, reader.renamed
    )  # fmt: skip


class Mark:
    """Where a reader stood, to go back to or to look at what came since."""

    def __init__(self, reader: Ledger) -> None:
        self.reader, self.start = reader, len(reader.nodes)
        self.sizes = [len(table) for table in _tables(reader)]
        self.lengths = [len(items) for items in _lists(reader)]

    def undo(self) -> None:
        """Forget all nodes since; all that a reader keeps it keeps in order."""
        reader = self.reader
        for items, length in zip(_lists(reader), self.lengths, strict=True):
            del items[length:]
        reader.counts.clear()
        reader.trace.forget()
        for table, size in zip(_tables(reader), self.sizes, strict=True):
            while len(table) > size:
                table.popitem()

    def again(self, times: int | None, note: str = "") -> None:
        """Say of every node since how often it runs; None is not known."""
        nodes = self.reader.nodes
        for n in range(self.start, len(nodes)):
            node = nodes[n]
            if times is None:
                nodes[n] = replace(node, note=node.note or UNTOLD, estimate=True)
            else:
                nodes[n] = replace(node, times=node.times * times, note=node.note or note)

    def work(self) -> tuple[int, int]:
        """Multiply-adds and operations of every node since, the runs of inner loops included."""
        macs = flops = 0
        for node in self.reader.nodes[self.start :]:
            ops = _ops(self.reader, node)
            if ops is not None:
                macs += ops[0] * node.times
                flops += ops[1] * node.times
        return macs, flops


def _ops(reader: Ledger, node: Node) -> tuple[int, int] | None:
    rule = SPECS.get(node.op)
    if rule is None:
        return None
    shapes = [reader.tensors[name][0] for name in node.inputs]
    made = [reader.tensors[name][0] for name in node.outputs]
    known = [shape for shape in shapes if shape is not None]
    out = [shape for shape in made if shape is not None]
    if len(known) != len(shapes) or len(out) != len(made):
        return None
    ops = rule.ops(Call(node.attributes, tuple(known), tuple(out)))
    return ops.mac, ops.flops


def body(s: Site, part: GraphPart, scope: tuple[str, ...], inputs: dict[str, Known]) -> Env:
    """Walk the graph of a body; what is around it is seen from inside."""
    reader = s.reader
    env: Env = Inner(s.env, inputs)
    for stored in part.stored:
        env[stored.name] = reader.store(stored.name, stored, scope)
    reader.walk(
        part.nodes, env, scope, opsets=s.opsets, bound=s.bound, values=part.values,
        depth=s.depth + 1,
    )  # fmt: skip
    for output in part.outputs:
        if output.name not in env:
            raise FormatError(f"{s.where}: its body makes no {output.name!r}")
    return env


def if_(s: Site) -> None:
    """If: both branches are shown; counted is the one taken if that is known, or the larger.

    A branch may be there for inputs of other shapes and be impossible on these.
    """
    condition = s.value(0)
    results: list[list[Known]] = []
    marks: list[tuple[Mark, int]] = []
    works, failures, said = [], [], [len(s.reader.notes)]
    for branch in ("then", "else"):
        part = s.graph(f"{branch}_branch")
        mark = Mark(s.reader)
        around, s.reader.failures = s.reader.failures, []
        env = body(s, part, (*s.inner, branch), {})
        failures.append(s.reader.failures)
        s.reader.failures = around
        said.append(len(s.reader.notes))
        marks.append((mark, len(s.reader.nodes)))
        works.append(mark.work())
        results.append([env[output.name] for output in part.outputs])
    if condition is not None:
        taken = 0 if condition.item else 1
        why = "the condition is known before the run"
    elif bool(failures[0]) != bool(failures[1]):
        taken = 1 if failures[0] else 0
        why = "the other cannot run on these shapes"
    else:
        taken = 0 if works[0] >= works[1] else 1
        why = "the larger"
    if failures[taken]:
        raise failures[taken][0]
    mark, end = marks[1 - taken]
    _untaken(s.reader, mark.start, end)
    del s.reader.notes[said[1 - taken] : said[2 - taken]]
    lacking = {} if condition is not None or failures[1 - taken] else _unknown(s.reader, mark, end)
    if lacking:
        why += f", though of {', '.join(lacking)} in the other nothing is known"
    branch = ("then", "else")[taken]
    s.reader.notes.append(f"{s.label}: its {branch} branch is counted ({why})")
    sure = condition is not None or failures[1 - taken]
    _hand_out(s, results[taken], None if sure else results[1 - taken])
    if condition is not None:
        for name, known in zip(s.operator.outputs, results[taken], strict=False):
            if name and known.items is None:
                s.env[name]._value = known._value


def _unknown(reader: Ledger, mark: Mark, end: int) -> dict[str, None]:
    """Operators without figures among the nodes of a branch."""
    return {node.op: None for node in reader.nodes[mark.start : end] if node.op not in SPECS}


def _untaken(reader: Ledger, start: int, end: int) -> None:
    for n in range(start, end):
        node = reader.nodes[n]
        reader.nodes[n] = replace(node, times=0, note=node.note or UNTAKEN)


def _hand_out(s: Site, made: Sequence[Known], other: Sequence[Known] | None) -> None:
    """Outputs of a control operator; a shape on which branches differ is not known."""
    for n, name in enumerate(s.operator.outputs):
        if not name:
            continue
        if n >= len(made):
            raise FormatError(f"{s.where}: its body makes {len(made)} tensors")
        known = made[n]
        shape = known.shape
        if other is not None and n < len(other) and other[n].shape != shape:
            shape = None
        give(s, name, f"output{n}", known, shape)


def give(s: Site, name: str, part: str, known: Known, shape: Shape | None) -> None:
    """One tensor handed out or in under another name, its numbers forgotten."""
    reader = s.reader
    if not known.tensor:
        s.env[name] = known
        return
    label = reader.node_name(f"{s.label}/{part}")
    tensor = reader.tensor_name(name, s.scope)
    told = shape is not None and known.shape is not None
    why = VARIES
    if known.shape is None:
        why = reader.trace.shape(known.name)
    node = Node(
        name=label,
        op="select" if told else s.op,
        inputs=(reader.input_name(known),),
        outputs=(tensor,),
        attributes=at.DeclaredOutputs((shape,), (known.dtype,))
        if shape is not None
        else _open(known.dtype, why),
        params=(),
        scope=s.inner,
        source=reader.source(s.op, s.operator.name),
    )
    reader.append(node, (shape,), (known.dtype,))
    if shape is None:
        reader.trace.causes[tensor] = (
            reader.trace.causes.get(known.name) or f"{s.label} ({s.op}): {why}"
        )
    s.env[name] = Known(tensor, shape, known.dtype)


def enter(
    s: Site, scope: tuple[str, ...], name: str, known: Known | None, shape: Shape | None, dtype: str
) -> Known:
    """A tensor that a body is given anew in every round."""
    reader = s.reader
    label = reader.node_name("/".join((*scope, name)))
    tensor = reader.tensor_name(name, scope)
    inputs = (reader.input_name(known),) if known is not None else ()
    told = shape is not None and (known is None or known.shape is not None)
    op = "constant" if known is None else "select"
    why = reader.trace.shape(known.name) if known is not None and known.shape is None else VARIES
    node = Node(
        name=label,
        op=op if told else s.op,
        inputs=inputs,
        outputs=(tensor,),
        attributes=at.DeclaredOutputs((shape,), (dtype,))
        if shape is not None
        else _open(dtype, why),
        params=(),
        scope=scope,
        source=reader.source(s.op, s.operator.name),
    )
    reader.append(node, (shape,), (dtype,))
    if shape is None:
        reader.trace.causes[tensor] = f"{s.label} ({s.op}): {why}"
    return Known(tensor, shape, dtype)


def _open(dtype: str, why: str) -> at.Opaque:
    """Of a tensor whose shape is unknown."""
    return at.Opaque((None,), (dtype,), (), why)


OPERATORS: dict[tuple[str, str], Convert] = {("", "If"): if_}
