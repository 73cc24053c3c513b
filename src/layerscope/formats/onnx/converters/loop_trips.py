"""Trip count of a loop, by computing the few numbers that its condition depends on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from layerscope.errors import ShapeError
from layerscope.formats.onnx.arrays import Attrs, NotFoldable, SmallArray
from layerscope.formats.onnx.folding import EVALUATE
from layerscope.formats.onnx.node import OnnxNode
from layerscope.formats.onnx.node_view import LAST_OPSET
from layerscope.formats.onnx.skim import GraphProto, NodeProto
from layerscope.formats.onnx.tensor_info import TensorInfo
from layerscope.formats.onnx.tensors import numbers_of

MOST_TRIPS = 1 << 40


def passed_on(part: GraphProto, output: str) -> str:
    """The tensor that an output of a body is, through Identity nodes."""
    producers = {name: proto for proto in part.nodes for name in proto.outputs}
    for _ in part.nodes:  # so that a cycle ends
        proto = producers.get(output)
        if proto is None or proto.op != "Identity" or not proto.inputs:
            break
        output = proto.inputs[0]
    return output


def trip_count(node: OnnxNode, part: GraphProto, given: Sequence[TensorInfo]) -> int | None:
    """Number of iterations of a Loop; None if it depends on run-time data."""
    count, going = node.value("M"), node.value("cond")
    if node.has("M") and count is None:
        return None
    if node.has("cond") and going is None:
        return None
    most = int(count.item) if count is not None else None
    if going is not None and not going.item:
        return 0
    if most is not None and most <= 0:
        return 0
    condition = part.outputs[0].name
    if passed_on(part, condition) == part.inputs[1].name:
        return most if most is not None and most < MOST_TRIPS else None
    return _simulated(node, part, given, most)


def _simulated(
    node: OnnxNode, part: GraphProto, given: Sequence[TensorInfo], most: int | None
) -> int | None:
    """The trip count, by computing the condition in every iteration."""
    names = [value.name for value in part.inputs]
    carried = {name: value.name for name, value in zip(names[2:], part.outputs[1:], strict=False)}
    wanted, protos = _needed(part, [part.outputs[0].name], carried)
    values: dict[str, SmallArray] = {}
    for stored in part.stored:
        numbers = numbers_of(node.reader.wire, stored) if stored.name in wanted else None
        if numbers is not None:
            values[stored.name] = SmallArray(stored.shape, numbers, stored.dtype)
    computed = {name for proto in protos for name in proto.outputs}
    for name in wanted - computed - set(values) - set(names):
        info = node.env.get(name)
        if info is None or info.value is None:
            return None
        values[name] = info.value
    state: dict[str, SmallArray] = {}
    for name, info in zip(names[2:], given, strict=True):
        if name in wanted:
            if info.value is None:
                return None
            state[name] = info.value
    cache, context = node.reader.attr_cache, node.context
    attrs = [
        {
            **cache.parse(proto.attributes, context.function_attrs).attrs,
            "outputs": len(proto.outputs),
            "opset": context.opsets.get("", LAST_OPSET),
        }
        for proto in protos
    ]
    done = 0
    while most is None or done < most:
        now = {**values, **state, names[0]: SmallArray((), [done], "int64")}
        now[names[1]] = SmallArray((), [True], "bool")
        if not _evaluated(node, protos, attrs, now):
            return None
        done += 1
        answer = now.get(part.outputs[0].name)
        if answer is None or not answer.values:
            return None
        if not answer.values[0]:
            return done
        if most is not None and not state and names[0] not in wanted:
            return most  # the condition depends on nothing that changes
        state = {name: now[carried[name]] for name in state}
    return done


def _needed(
    part: GraphProto, outputs: list[str], carried: Mapping[str, str]
) -> tuple[set[str], list[NodeProto]]:
    """Names that outputs depend on, also through carried tensors, and the nodes of them."""
    producers = {name: proto for proto in part.nodes for name in proto.outputs}
    wanted: set[str] = set()
    ahead = list(outputs)
    while ahead:
        name = ahead.pop()
        if not name or name in wanted:
            continue
        wanted.add(name)
        if name in producers:
            ahead.extend(producers[name].inputs)
        elif name in carried:
            ahead.append(carried[name])
    return wanted, [proto for proto in part.nodes if wanted.intersection(proto.outputs)]


def _evaluated(
    node: OnnxNode, protos: Sequence[NodeProto], attrs: Sequence[Attrs], now: dict[str, SmallArray]
) -> bool:
    """Compute the nodes, whose outputs `now` takes; False if one cannot be computed."""
    reader = node.reader
    reader.value_budget -= 16 * (len(protos) + 1)
    if reader.value_budget < 0:
        return False
    for proto, own in zip(protos, attrs, strict=True):
        if proto.op == "Constant":
            value = own.get("value")
            if not isinstance(value, SmallArray):
                return False
            now[proto.outputs[0]] = value
            continue
        evaluate = None if proto.domain else EVALUATE.get(proto.op)
        if evaluate is None or any(name and name not in now for name in proto.inputs):
            return False
        try:
            results = evaluate(own, [now[name] if name else None for name in proto.inputs])
        except (NotFoldable, ShapeError):
            return False
        reader.value_budget -= sum([len(array.values) for array in results])
        now.update(zip(proto.outputs, results, strict=False))
    return True
