"""Branches and loops: their bodies are scopes of the flat graph, run so many times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from layerscope.errors import FormatError, ShapeError
from layerscope.formats.onnx.arrays import Array
from layerscope.formats.onnx.known import Env, Inner, Known, NeedsValue
from layerscope.formats.onnx.ledger import MOST_AGAIN, Ledger
from layerscope.formats.onnx.operators.rounds import passed_on, rounds
from layerscope.formats.onnx.site import Convert, Site
from layerscope.formats.onnx.skim import GraphPart
from layerscope.graph import attributes as at
from layerscope.graph.types import Node, Shape
from layerscope.ops import RULES, Call

MOST_UNROLLED = 4096  # nodes of a loop that is followed round by round
UNTAKEN = "the branch that is not counted"
VARIES = "the shape differs between branches, or from round to round"
UNTOLD = "one of an unknown number of rounds (× ?)"


def _tables(reader: Ledger) -> tuple[dict[str, Any], ...]:
    return (
        reader.names, reader.tensors, reader.params, reader.derived, reader.derived_read,
    )  # fmt: skip


class Mark:
    """Where a reader stood, to go back to or to look at what came since."""

    def __init__(self, reader: Ledger) -> None:
        self.reader, self.start = reader, len(reader.nodes)
        self.entries, self.notes = len(reader.entries), len(reader.notes)
        self.sizes = [len(table) for table in _tables(reader)]

    def undo(self) -> None:
        """Forget all nodes since; all that a reader keeps it keeps in order."""
        reader = self.reader
        del reader.nodes[self.start :]
        del reader.entries[self.entries :]
        del reader.notes[self.notes :]
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
    rule = RULES.get(node.op)
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
    return {node.op: None for node in reader.nodes[mark.start : end] if node.op not in RULES}


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
        _give(s, name, f"output{n}", known, shape)


def _give(s: Site, name: str, part: str, known: Known, shape: Shape | None) -> None:
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
        attributes=at.Told((shape,), (known.dtype,))
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


def _enter(
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
        attributes=at.Told((shape,), (dtype,)) if shape is not None else _open(dtype, why),
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


Entering = tuple[str, Known | None, Shape | None, str]  # name inside, from where, what


def _carry(
    s: Site,
    part: GraphPart,
    given: Sequence[Known],
    lead: Sequence[Entering],
    tail: Sequence[Entering],
    skip: int,
) -> tuple[Mark, Env, list[Shape | None]]:
    """Walk a body until the shapes it carries from round to round no longer change."""
    shapes: list[Shape | None] = [known.shape for known in given]
    names = [value.name for value in part.inputs[len(lead) : len(lead) + len(given)]]
    outer = [value.name for value in part.outputs[skip : skip + len(given)]]
    scope = (*s.inner, "body")
    for n in range(3):
        if n or s.depth > 1:
            _spend(s, len(part.nodes))
        mark = Mark(s.reader)
        inputs = {n: _enter(s, scope, n, k, shape, dtype) for n, k, shape, dtype in (*lead, *tail)}
        for name, known, shape in zip(names, given, shapes, strict=True):
            if passed_on(part, outer[names.index(name)]) == name:  # it stays what it is
                inputs[name] = known
            elif not known.tensor:
                inputs[name] = Known(name, None, known.dtype, tensor=False)
            else:
                inputs[name] = _enter(s, scope, name, known, shape, known.dtype)
        env = body(s, part, scope, inputs)
        made = [env[value.name].shape for value in part.outputs[skip : skip + len(given)]]
        if all(a == b or b is None for a, b in zip(made, shapes, strict=True)):
            return mark, env, shapes
        shapes = [b if a == b else None for a, b in zip(made, shapes, strict=True)]
        mark.undo()
    raise ShapeError("the shapes that a loop carries do not settle")


def loop(s: Site) -> None:
    """Loop: the body as often as is told, or as its condition lets it if that can be followed."""
    part = s.graph("body")
    given = [known for known in s.inputs[2:] if known is not None]
    if len(part.inputs) != len(given) + 2 or len(part.outputs) < len(given) + 1:
        raise FormatError(f"{s.where}: a body of {len(part.inputs)} inputs for {len(given) + 2}")
    lead: list[Entering] = [
        (part.inputs[0].name, None, (), "int64"),
        (part.inputs[1].name, None, (), "bool"),
    ]
    times = rounds(s, part, given)
    start = Mark(s.reader)
    mark, env, shapes = _carry(s, part, given, lead, (), 1)
    size = (times or 0) * (len(part.nodes) + 1)
    if times is not None and size <= MOST_UNROLLED and not s.reader.unrolling:
        ends = [env[value.name] for value in part.outputs[1:]]
        if None in shapes or any(known.shape is None for known in ends):
            start.undo()
            s.reader.unrolling = True
            _unrolled(s, part, given, times)
            s.reader.unrolling = False
            return
    mark.again(times, f"× {times} in a loop" if times not in (None, 1) else "")
    if times is None:
        s.reader.notes.append(f"{s.label}: how often it runs is not known; one round is counted")
    inner = [env[value.name] for value in part.outputs[1:]]
    made: list[Shape | None] = list(shapes)
    made += [
        None if times is None or known.shape is None else (times, *known.shape)
        for known in inner[len(given) :]
    ]
    _hand_all(s, inner, made)


def _spend(s: Site, nodes: int) -> None:
    """Take nodes of a body off those that may yet be walked again: nested loops multiply them."""
    s.reader.again -= nodes + 1
    if s.reader.again < 0:
        raise FormatError(
            f"{s.where}: more than {MOST_AGAIN:,} nodes of nested loops, whose shapes change from "
            "round to round"
        )


def _unrolled(s: Site, part: GraphPart, given: Sequence[Known], times: int) -> None:
    """A loop whose shapes change, or that carries sequences: round by round."""
    reader = s.reader
    names = [value.name for value in part.inputs]
    state = list(given)
    rows: list[list[Known]] = [[] for _ in part.outputs[1 + len(given) :]]
    for n in range(times):
        _spend(s, len(part.nodes))
        scope = (*s.inner, f"round{n}")
        inputs: dict[str, Known] = dict(zip(names[2:], state, strict=True))
        for name, number, dtype in ((names[0], n, "int64"), (names[1], True, "bool")):
            known = inputs[name] = _enter(s, scope, name, None, (), dtype)
            known._value = Array((), [number], dtype)
        env = body(s, part, scope, inputs)
        ends = [env[value.name] for value in part.outputs[1:]]
        state = ends[: len(given)]
        for row, known in zip(rows, ends[len(given) :], strict=True):
            row.append(known)
    for n, name in enumerate(s.operator.outputs):
        if not name:
            continue
        if n >= len(state) + len(rows):
            raise FormatError(f"{s.where}: its body makes {len(state) + len(rows)} tensors")
        if n < len(state):
            _give(s, name, f"output{n}", state[n], state[n].shape)
            continue
        row = rows[n - len(state)]
        shapes = {known.shape for known in row}
        if len(shapes) != 1 or None in shapes:
            declared = part.outputs[1 + n].dtype or "fp32"
            empty = Known("", None, declared, tensor=False)
            s.env[name] = empty
            reader.trace.causes[""] = f"{s.label} ({s.op}): {VARIES}"
            continue
        shape = (times, *(row[0].shape or ()))
        told = at.Counted((shape,), (row[0].dtype,))
        s.counted(row, told, part=f"output{n}", outputs=[name])


def _hand_all(s: Site, inner: Sequence[Known], shapes: Sequence[Shape | None]) -> None:
    for n, name in enumerate(s.operator.outputs):
        if name:
            if n >= len(inner):
                raise FormatError(f"{s.where}: its body makes {len(inner)} tensors")
            _give(s, name, f"output{n}", inner[n], shapes[n])


def scan(s: Site) -> None:
    """Scan: the body for every slice along the axes that are scanned."""
    part = s.graph("body")
    scanned = s.whole("num_scan_inputs", 1)
    known = [k for k in s.inputs[1 if s.opset < 9 else 0 :] if k is not None]
    if not 1 <= scanned <= len(known) or len(part.inputs) != len(known):
        raise FormatError(f"{s.where}: {scanned} of {len(known)} inputs are scanned")
    carried, sequences = known[: len(known) - scanned], known[len(known) - scanned :]
    if len(part.outputs) < len(carried):
        raise FormatError(f"{s.where}: its body makes {len(part.outputs)} tensors")
    axes = s.wholes("scan_input_axes") or ((1 if s.opset < 9 else 0),) * scanned
    times: int | None = None
    tail: list[Entering] = []
    for n, (sequence, axis) in enumerate(zip(sequences, axes, strict=True)):
        shape = sequence.shape
        inner: Shape | None = None
        if shape is not None:
            axis %= len(shape)
            times = shape[axis]
            inner = (*shape[:axis], *shape[axis + 1 :])
        tail.append((part.inputs[len(carried) + n].name, sequence, inner, sequence.dtype))
    mark, env, shapes = _carry(s, part, carried, (), tail, 0)
    mark.again(times, f"× {times} in a scan" if times not in (None, 1) else "")
    made: list[Shape | None] = []
    out_axes = s.wholes("scan_output_axes")
    for n, value in enumerate(part.outputs):
        one = env[value.name]
        if n < len(carried):
            made.append(shapes[n])
            continue
        axis = out_axes[n - len(carried)] if out_axes else (1 if s.opset < 9 else 0)
        shape = None
        if times is not None and one.shape is not None:
            axis %= len(one.shape) + 1
            shape = (*one.shape[:axis], times, *one.shape[axis:])
        made.append(shape)
    _hand_all(s, [env[value.name] for value in part.outputs], made)


def sequence_map(s: Site) -> None:
    """SequenceMap: the body for every tensor of a sequence; other sequences go along with it."""
    part = s.graph("body")
    given = [known for known in s.inputs if known is not None]
    items = given[0].items if given else None
    if items is None:
        raise NeedsValue("the length of the sequence is unknown")
    if len(part.inputs) != len(given) or len(items) * len(part.nodes) > MOST_UNROLLED:
        raise NeedsValue(f"{len(items)} x {len(part.nodes)} nodes, more than {MOST_UNROLLED:,}")
    made: list[list[Known]] = [[] for _ in part.outputs]
    for n in range(len(items)):
        inputs = {}
        for value, known in zip(part.inputs, given, strict=True):
            if known.items is not None and n >= len(known.items):
                raise ShapeError(f"sequences of {len(items)} and {len(known.items)} tensors")
            inputs[value.name] = known.items[n] if known.items is not None else known
        env = body(s, part, (*s.inner, f"item{n}"), inputs)
        for row, output in zip(made, part.outputs, strict=True):
            row.append(env[output.name])
    for name, row in zip(s.operator.outputs, made, strict=False):
        if name:
            s.env[name] = Known(name, None, row[0].dtype if row else "fp32", items=row)


OPERATORS: dict[tuple[str, str], Convert] = {
    ("", "SequenceMap"): sequence_map,
    ("", "If"): if_,
    ("", "Loop"): loop,
    ("", "Scan"): scan,
}
