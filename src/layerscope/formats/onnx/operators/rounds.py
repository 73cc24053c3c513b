"""How often a loop goes round, followed on the few numbers that its condition depends on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layerscope.errors import ShapeError
from layerscope.formats.onnx.arrays import Array, TooLarge
from layerscope.formats.onnx.known import Known
from layerscope.formats.onnx.site import LAST_OPSET, Site
from layerscope.formats.onnx.skim import GraphPart, Operator
from layerscope.formats.onnx.tensors import numbers_of
from layerscope.formats.onnx.values import EVALUATE

MOST_ROUNDS = 1 << 40


def passed_on(part: GraphPart, output: str) -> str:
    """The name that comes out of a body as this one: itself, or what Identity hands on."""
    makers = {made: node for node in part.nodes for made in node.outputs}
    for _ in part.nodes:  # a circle is no news here
        if output not in makers or makers[output].op != "Identity" or not makers[output].inputs:
            break
        output = makers[output].inputs[0]
    return output


def rounds(s: Site, part: GraphPart, given: Sequence[Known]) -> int | None:
    """Rounds of a Loop; None where data decides."""
    count, going = s.value(0), s.value(1)
    if s.has(0) and count is None:
        return None
    if s.has(1) and going is None:
        return None
    most = int(count.item) if count is not None else None
    if going is not None and not going.item:
        return 0
    if most is not None and most <= 0:
        return 0
    condition = part.outputs[0].name
    if passed_on(part, condition) == part.inputs[1].name:
        return most if most is not None and most < MOST_ROUNDS else None
    return _followed(s, part, given, most)


def _followed(s: Site, part: GraphPart, given: Sequence[Known], most: int | None) -> int | None:
    """Work the condition out round by round."""
    names = [value.name for value in part.inputs]
    carried = dict(zip(names[2:], part.outputs[1:], strict=False))
    wanted, nodes = _needed(part, [part.outputs[0].name], carried)
    values: dict[str, Array] = {}
    for stored in part.stored:
        numbers = numbers_of(s.reader.wire, stored) if stored.name in wanted else None
        if numbers is not None:
            values[stored.name] = Array(stored.shape, numbers, stored.dtype)
    made = {name for node in nodes for name in node.outputs}
    for name in wanted - made - set(values) - set(names):
        known = s.env.get(name)
        if known is None or known.value is None:
            return None
        values[name] = known.value
    state: dict[str, Array] = {}
    for name, known in zip(names[2:], given, strict=True):
        if name in wanted:
            if known.value is None:
                return None
            state[name] = known.value
    told = [
        {
            **s.reader.vocabulary.words(node.attributes, s.bound).told,
            "outputs": len(node.outputs),
            "opset": s.opsets.get("", LAST_OPSET),
        }
        for node in nodes
    ]
    done = 0
    while most is None or done < most:
        now = {**values, **state, names[0]: Array((), [done], "int64")}
        now[names[1]] = Array((), [True], "bool")
        if not _worked_out(s, nodes, told, now):
            return None
        done += 1
        answer = now.get(part.outputs[0].name)
        if answer is None or not answer.values:
            return None
        if not answer.values[0]:
            return done
        if most is not None and not state and names[0] not in wanted:
            return most  # it depends on nothing that changes
        state = {name: now[carried[name].name] for name in state}
    return done


def _needed(
    part: GraphPart, outputs: list[str], carried: dict[str, Any]
) -> tuple[set[str], list[Operator]]:
    """Names that outputs depend on, through what is carried on as well, and their nodes."""
    makers = {made: node for node in part.nodes for made in node.outputs}
    wanted: set[str] = set()
    ahead = list(outputs)
    while ahead:
        name = ahead.pop()
        if not name or name in wanted:
            continue
        wanted.add(name)
        if name in makers:
            ahead.extend(makers[name].inputs)
        elif name in carried:
            ahead.append(carried[name].name)
    return wanted, [node for node in part.nodes if wanted.intersection(node.outputs)]


def _worked_out(
    s: Site, nodes: Sequence[Operator], told: Sequence[dict[str, Any]], now: dict[str, Array]
) -> bool:
    """Whether every node could be worked out; `now` takes what they make."""
    s.reader.numbers -= 16 * (len(nodes) + 1)
    if s.reader.numbers < 0:
        return False
    for node, attributes in zip(nodes, told, strict=True):
        if node.op == "Constant":
            value = attributes.get("value")
            if not isinstance(value, Array):
                return False
            now[node.outputs[0]] = value
            continue
        evaluate = None if node.domain else EVALUATE.get(node.op)
        if evaluate is None or any(name and name not in now for name in node.inputs):
            return False
        try:
            made = evaluate(attributes, [now[name] if name else None for name in node.inputs])
        except (TooLarge, ShapeError):
            return False
        s.reader.numbers -= sum([len(array.values) for array in made])
        now.update(zip(node.outputs, made, strict=False))
    return True
