"""Functions of several tensors, broadcast together."""

from __future__ import annotations

from math import pi

from layerscope.graph.attributes import Power, Sum
from layerscope.lower.builder import FLOATS, INTEGERS, NO_OPERATOR, Emitter, NodeEmitter

# Second operands of nodes with one input: the graph does not have the values of constants.
CONSTANT = 1.5
BITS = 5  # for bitwise operators
EXPONENT = 2.0  # for powers; whole, since inputs may be negative


def elementwise(op: str, many: str = "") -> Emitter:
    """Emitter for two or more operands: one operator `many` if given, else a chain of `op`."""

    def emit(node: NodeEmitter) -> str:
        names = [node.operand(n, node.dtype) for n in range(len(node.inputs))]
        if isinstance(node.attributes, Sum):
            for n in range(node.attributes.scaled):
                names[n] = node.add("Mul", names[n], node.number(CONSTANT), part="scaled")
        if len(names) == 1:
            names.append(node.number(EXPONENT if op == "Pow" else CONSTANT))
        if many and (many == op or len(names) > 2):
            return node.add(many, *names)
        result = names[0]
        for name in names[1:]:
            result = node.add(op, result, name)
        return result

    return emit


def compare(node: NodeEmitter) -> str:
    kind = node.dtype_of(0)
    other = node.operand(1, kind) if len(node.inputs) == 2 else node.number(CONSTANT, kind)
    return node.add("Greater", node.x, other)


def power(node: NodeEmitter) -> str:
    a: Power = node.attributes
    y = node.x
    for op, value, neutral in (("Mul", a.scale, 1), ("Add", a.shift, 0), ("Pow", a.power, 1)):
        y = node.add(op, y, node.number(value)) if value != neutral else y
    return y


def axpy(node: NodeEmitter) -> str:
    """Multiply the channels of the second input by the first, then add the third."""
    shape = node.call.inputs[1]
    scale = node.reshape(node.x, (*shape[:2], *[1] * (len(shape) - 2)))
    return node.add("Add", node.add("Mul", scale, node.inputs[1]), node.inputs[2])


def logical(op: str) -> Emitter:
    """Emitter for an operator of booleans; a missing second operand is True."""

    def emit(node: NodeEmitter) -> str:
        names = [node.operand(n, "bool") for n in range(len(node.inputs))]
        return node.add(op, *names, *[node.number(1, "bool")] * (2 - len(names)))

    return emit


def bitwise(node: NodeEmitter) -> str:
    kind = node.dtype if node.dtype in INTEGERS else "int64"
    names = [node.operand(n, kind) for n in range(len(node.inputs))]
    y = node.add("BitwiseAnd", *names, *[node.number(BITS, kind)] * (2 - len(names)))
    return y if kind == node.dtype else node.cast(y, node.dtype)


def mod(node: NodeEmitter) -> str:
    other = node.operand(1, node.dtype) if len(node.inputs) == 2 else node.number(CONSTANT)
    return node.add("Mod", node.x, other, fmod=int(node.dtype in FLOATS))


def floor_div(node: NodeEmitter) -> str:
    y = str(elementwise("Div")(node))
    return node.add("Floor", y) if node.dtype in FLOATS else y


def atan2(node: NodeEmitter) -> str:
    """atan(y / x), plus or minus pi where x is negative."""
    y = node.add("Atan", str(elementwise("Div")(node)))
    if len(node.inputs) == 1:
        return y
    x = node.operand(1, node.dtype)
    half_turn = node.add(
        "Where", node.add("Less", node.x, node.number(0.0)), node.number(-pi), node.number(pi)
    )
    turn = node.add("Where", node.add("Less", x, node.number(0.0)), half_turn, node.number(0.0))
    return node.add("Add", y, turn)


def mean(node: NodeEmitter) -> str:
    return node.add("Mean", *(node.operand(n, node.dtype) for n in range(len(node.inputs))))


EMITTERS: dict[str, Emitter] = {
    "add": elementwise("Add", "Sum"),
    "sub": elementwise("Sub"),
    "mul": elementwise("Mul"),
    "div": elementwise("Div"),
    "pow": elementwise("Pow"),
    "max": elementwise("Max", "Max"),
    "min": elementwise("Min", "Min"),
    "compare": compare,
    "logical": logical("And"),
    "bitwise": bitwise,
    "mod": mod,
    "floor_div": floor_div,
    "atan2": atan2,
    "mean": mean,
    "power": power,
    "axpy": axpy,
}

REFUSED = {"special": NO_OPERATOR}
