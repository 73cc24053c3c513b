"""Loops: their bodies are scopes of the flat graph, run so many times or followed by rounds."""

from __future__ import annotations

from collections.abc import Sequence

from layerscope.errors import FormatError, ShapeError
from layerscope.formats.onnx.arrays import Array
from layerscope.formats.onnx.known import Env, Known, NeedsValue
from layerscope.formats.onnx.ledger import MOST_AGAIN
from layerscope.formats.onnx.operators.control import VARIES, Mark, body, enter, give
from layerscope.formats.onnx.operators.rounds import passed_on, rounds
from layerscope.formats.onnx.site import Convert, Site
from layerscope.formats.onnx.skim import GraphPart
from layerscope.graph import attributes as at
from layerscope.graph.types import Shape

MOST_UNROLLED = 4096  # nodes of a loop that is followed round by round
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
        inputs = {n: enter(s, scope, n, k, shape, dtype) for n, k, shape, dtype in (*lead, *tail)}
        for name, known, shape in zip(names, given, shapes, strict=True):
            if passed_on(part, outer[names.index(name)]) == name:  # it stays what it is
                inputs[name] = known
            elif not known.tensor:
                inputs[name] = Known(name, None, known.dtype, tensor=False)
            else:
                inputs[name] = enter(s, scope, name, known, shape, known.dtype)
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
            known = inputs[name] = enter(s, scope, name, None, (), dtype)
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
            give(s, name, f"output{n}", state[n], state[n].shape)
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
        told = at.CustomCost((shape,), (row[0].dtype,))
        s.counted(row, told, part=f"output{n}", outputs=[name])


def _hand_all(s: Site, inner: Sequence[Known], shapes: Sequence[Shape | None]) -> None:
    for n, name in enumerate(s.operator.outputs):
        if name:
            if n >= len(inner):
                raise FormatError(f"{s.where}: its body makes {len(inner)} tensors")
            give(s, name, f"output{n}", inner[n], shapes[n])


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
    ("", "Loop"): loop,
    ("", "Scan"): scan,
    ("", "SequenceMap"): sequence_map,
}
