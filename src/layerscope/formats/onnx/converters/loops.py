"""Loop, Scan, SequenceMap: bodies become scopes of the flat graph, repeated or unrolled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from layerscope.errors import FormatError, ShapeError
from layerscope.formats.onnx.arrays import SmallArray
from layerscope.formats.onnx.converters.control import (
    VARIES,
    BodyInput,
    StateMark,
    body,
    enter,
    leave,
)
from layerscope.formats.onnx.converters.loop_trips import passed_on, trip_count
from layerscope.formats.onnx.import_state import MOST_REPEATED
from layerscope.formats.onnx.node import Converter, ConverterTable, OnnxNode
from layerscope.formats.onnx.skim import GraphProto
from layerscope.formats.onnx.tensor_info import Env, NeedsValue, TensorInfo
from layerscope.graph import attributes as at
from layerscope.graph.types import Shape

MOST_UNROLLED = 4096  # nodes of a loop that is unrolled


class LoopBody(NamedTuple):
    """The body of a loop: its inputs are generated ones, carried tensors, and scanned slices."""

    part: GraphProto
    carried: Sequence[TensorInfo]
    lead: Sequence[BodyInput]  # generated: trip count and condition
    scanned: Sequence[BodyInput]
    first_carried: int  # index among the body's outputs


def _carry(node: OnnxNode, loop_: LoopBody) -> tuple[StateMark, Env, list[Shape | None]]:
    """Convert a body, again until the shapes of carried tensors no longer change."""
    part, carried, lead, first = loop_.part, loop_.carried, loop_.lead, loop_.first_carried
    count = len(carried)
    shapes: list[Shape | None] = [info.shape for info in carried]
    names = [value.name for value in part.inputs[len(lead) : len(lead) + count]]
    outer = [value.name for value in part.outputs[first : first + count]]
    scope = (*node.inner_scope, "body")
    for n in range(3):
        if n or node.context.depth > 1:
            _spend(node, len(part.nodes))
        mark = StateMark(node.reader)
        inputs = {each.name: enter(node, scope, each) for each in (*lead, *loop_.scanned)}
        for name, info, shape in zip(names, carried, shapes, strict=True):
            if passed_on(part, outer[names.index(name)]) == name:  # it never changes
                inputs[name] = info
            elif not info.tensor:
                inputs[name] = TensorInfo(name, None, info.dtype, virtual=True)
            else:
                inputs[name] = enter(node, scope, BodyInput(name, info, shape, info.dtype))
        env = body(node, part, scope, inputs)
        after = [env[value.name].shape for value in part.outputs[first : first + count]]
        if all(a == b or b is None for a, b in zip(after, shapes, strict=True)):
            return mark, env, shapes
        shapes = [b if a == b else None for a, b in zip(after, shapes, strict=True)]
        mark.undo()
    raise ShapeError("the shapes of carried tensors change in every iteration")


def loop(node: OnnxNode) -> None:
    """Loop: the body times the trip count, which may depend on a condition that can be folded."""
    part = node.graph("body")
    given = [info for info in node.inputs[node.index("v_initial") :] if info is not None]
    if len(part.inputs) != len(given) + 2 or len(part.outputs) < len(given) + 1:
        raise FormatError(f"{node.where}: a body of {len(part.inputs)} inputs for {len(given) + 2}")
    lead = (
        BodyInput(part.inputs[0].name, None, (), "int64"),
        BodyInput(part.inputs[1].name, None, (), "bool"),
    )
    times = trip_count(node, part, given)
    start = StateMark(node.reader)
    mark, env, shapes = _carry(node, LoopBody(part, given, lead, (), 1))
    size = (times or 0) * (len(part.nodes) + 1)
    if times is not None and size <= MOST_UNROLLED and not node.reader.unrolling:
        ends = [env[value.name] for value in part.outputs[1:]]
        if None in shapes or any(info.shape is None for info in ends):
            start.undo()
            node.reader.unrolling = True
            _unrolled(node, part, given, times)
            node.reader.unrolling = False
            return
    mark.repeat(times, f"× {times} in a loop" if times not in (None, 1) else "")
    if times is None:
        note = f"{node.label}: how often it runs is not known; one iteration is counted"
        node.reader.notes.append(note)
    inner = [env[value.name] for value in part.outputs[1:]]
    out_shapes: list[Shape | None] = list(shapes)
    out_shapes += [
        None if times is None or info.shape is None else (times, *info.shape)
        for info in inner[len(given) :]
    ]
    _loop_outputs(node, inner, out_shapes)


def _spend(node: OnnxNode, nodes: int) -> None:
    """Count nodes of a body that is walked again: nested loops multiply them."""
    node.reader.repeat_budget -= nodes + 1
    if node.reader.repeat_budget < 0:
        raise FormatError(
            f"{node.where}: more than {MOST_REPEATED:,} nodes of nested loops, whose shapes change "
            "in every iteration"
        )


def _unrolled(node: OnnxNode, part: GraphProto, given: Sequence[TensorInfo], times: int) -> None:
    """Unroll a loop whose shapes change, or that carries sequences."""
    reader = node.reader
    names = [value.name for value in part.inputs]
    state = list(given)
    rows: list[list[TensorInfo]] = [[] for _ in part.outputs[1 + len(given) :]]
    for n in range(times):
        _spend(node, len(part.nodes))
        scope = (*node.inner_scope, f"round{n}")
        inputs: dict[str, TensorInfo] = dict(zip(names[2:], state, strict=True))
        for name, number, dtype in ((names[0], n, "int64"), (names[1], True, "bool")):
            info = inputs[name] = enter(node, scope, BodyInput(name, None, (), dtype))
            info.lazy_value = SmallArray((), [number], dtype)
        env = body(node, part, scope, inputs)
        ends = [env[value.name] for value in part.outputs[1:]]
        state = ends[: len(given)]
        for row, info in zip(rows, ends[len(given) :], strict=True):
            row.append(info)
    for n, name in enumerate(node.outputs):
        if not name:
            continue
        if n >= len(state) + len(rows):
            raise FormatError(f"{node.where}: its body has {len(state) + len(rows)} outputs")
        if n < len(state):
            leave(node, name, f"output{n}", state[n], state[n].shape)
            continue
        row = rows[n - len(state)]
        shapes = {info.shape for info in row}
        if len(shapes) != 1 or None in shapes:
            declared = part.outputs[1 + n].dtype or "fp32"
            node.env[name] = TensorInfo("", None, declared, virtual=True)
            reader.trace.causes[""] = f"{node.label} ({node.op}): {VARIES}"
            continue
        shape = (times, *(row[0].shape or ()))
        cost = at.CustomCost((shape,), (row[0].dtype,))
        node.emit_custom(row, cost, part=f"output{n}", outputs=[name])


def _loop_outputs(
    node: OnnxNode, inner: Sequence[TensorInfo], shapes: Sequence[Shape | None]
) -> None:
    for n, name in enumerate(node.outputs):
        if name:
            if n >= len(inner):
                raise FormatError(f"{node.where}: its body has {len(inner)} outputs")
            leave(node, name, f"output{n}", inner[n], shapes[n])


def scan(node: OnnxNode) -> None:
    """Scan: the body for every slice along the scanned axes."""
    part = node.graph("body")
    scanned = node.int_attr("num_scan_inputs", 1)
    old = node.opset < 9  # the first input is sequence_lens, and axis 0 is the batch
    given = [info for info in node.inputs[1 if old else 0 :] if info is not None]
    if not 1 <= scanned <= len(given) or len(part.inputs) != len(given):
        raise FormatError(f"{node.where}: {scanned} of {len(given)} inputs are scanned")
    carried, sequences = given[: len(given) - scanned], given[len(given) - scanned :]
    if len(part.outputs) < len(carried):
        raise FormatError(f"{node.where}: its body has {len(part.outputs)} outputs")
    axes = node.ints_attr("scan_input_axes") or ((1 if old else 0),) * scanned
    times: int | None = None
    slices: list[BodyInput] = []
    for n, (sequence, axis) in enumerate(zip(sequences, axes, strict=True)):
        shape = sequence.shape
        inner: Shape | None = None
        if shape is not None:
            axis %= len(shape)
            times = shape[axis]
            inner = (*shape[:axis], *shape[axis + 1 :])
        name = part.inputs[len(carried) + n].name
        slices.append(BodyInput(name, sequence, inner, sequence.dtype))
    mark, env, shapes = _carry(node, LoopBody(part, carried, (), slices, 0))
    mark.repeat(times, f"× {times} in a scan" if times not in (None, 1) else "")
    out_shapes: list[Shape | None] = []
    out_axes = node.ints_attr("scan_output_axes")
    for n, value in enumerate(part.outputs):
        one = env[value.name]
        if n < len(carried):
            out_shapes.append(shapes[n])
            continue
        axis = out_axes[n - len(carried)] if out_axes else (1 if old else 0)
        shape = None
        if times is not None and one.shape is not None:
            axis %= len(one.shape) + 1
            shape = (*one.shape[:axis], times, *one.shape[axis:])
        out_shapes.append(shape)
    _loop_outputs(node, [env[value.name] for value in part.outputs], out_shapes)


def sequence_map(node: OnnxNode) -> None:
    """SequenceMap: the body for every tensor of a sequence, and of further sequences with it."""
    part = node.graph("body")
    given = node.given()
    items = given[0].items if given else None
    if items is None:
        raise NeedsValue("the length of the sequence is unknown")
    if len(part.inputs) != len(given) or len(items) * len(part.nodes) > MOST_UNROLLED:
        raise NeedsValue(f"{len(items)} x {len(part.nodes)} nodes, more than {MOST_UNROLLED:,}")
    rows: list[list[TensorInfo]] = [[] for _ in part.outputs]
    for n in range(len(items)):
        inputs = {}
        for value, info in zip(part.inputs, given, strict=True):
            if info.items is not None and n >= len(info.items):
                raise ShapeError(f"sequences of {len(items)} and {len(info.items)} tensors")
            inputs[value.name] = info.items[n] if info.items is not None else info
        env = body(node, part, (*node.inner_scope, f"item{n}"), inputs)
        for row, output in zip(rows, part.outputs, strict=True):
            row.append(env[output.name])
    for name, row in zip(node.outputs, rows, strict=False):
        if name:
            node.env[name] = TensorInfo(name, None, row[0].dtype if row else "fp32", items=row)


OPERATORS: ConverterTable = {
    ("", "Loop"): Converter(loop, "M cond v_initial"),
    ("", "Scan"): Converter(scan, "initial_state_and_scan_inputs"),
    ("", "SequenceMap"): Converter(sequence_map, "input_sequence additional_inputs"),
}
