"""ONNX models of elementwise ops of several tensors."""

from __future__ import annotations

from layerscope.graph import attributes as at
from layerscope.graph.attributes import Sum
from tests.brute.elementwise import CONSTANT, MARK
from tests.brute.engine import Model, Writer


def elementwise(op: str, many: bool = False) -> Writer:
    """Sum, Max and Min take any number; the others are chained. A lone operand meets a constant."""

    def write(m: Model) -> str:
        names = [m.of(n) for n in range(len(m.inputs))]
        if isinstance(m.attributes, Sum):
            for n in range(m.attributes.scaled):
                names[n] = m.node("Mul", names[n], m.number(CONSTANT))
        if len(names) == 1:
            names.append(m.number(CONSTANT))
        if many:
            return m.node(op, *names)
        result = names[0]
        for name in names[1:]:
            result = m.node(op, result, name)
        return result

    return write


def compare(m: Model) -> str:
    other = m.of(1) if len(m.inputs) == 2 else m.number(CONSTANT)
    return m.node("Cast", m.node("Greater", m.x, other), to=1)


def power(m: Model) -> str:
    a: at.Power = m.attributes
    y = m.node("Add", m.node("Mul", m.x, m.number(a.scale)), m.number(a.shift))
    return m.node("Pow", y, m.number(a.power))


def axpy(m: Model) -> str:
    shape = m.inputs[1].shape
    scale = m.node("Reshape", m.x, m.ints(*shape[:2], *(1 for _ in shape[2:])))
    return m.node("Add", m.node("Mul", m.of(1), scale), m.of(2))


def logical(m: Model) -> str:
    names = [m.cast(m.of(n), "bool") for n in range(len(m.inputs))]
    return m.node("And", *names, *[m.cast(m.number(CONSTANT), "bool")] * (2 - len(names)))


def bitwise(m: Model) -> str:
    names = [m.of(n) for n in range(len(m.inputs))]
    return m.node("BitwiseAnd", *names, *[m.ints(MARK)] * (2 - len(names)))


def mod(m: Model) -> str:
    return m.node("Mod", m.x, m.of(1) if len(m.inputs) == 2 else m.number(CONSTANT), fmod=1)


MODELS: dict[str, Writer] = {
    "add": elementwise("Sum", many=True),
    "sub": elementwise("Sub"),
    "mul": elementwise("Mul"),
    "div": elementwise("Div"),
    "pow": elementwise("Pow"),
    "max": elementwise("Max", many=True),
    "min": elementwise("Min", many=True),
    "compare": compare,
    "power": power,
    "axpy": axpy,
    "logical": logical,
    "bitwise": bitwise,
    "mod": mod,
    "floor_div": lambda m: m.node("Floor", str(elementwise("Div")(m))),
    "atan2": lambda m: m.node("Atan", str(elementwise("Div")(m))),
    "mean": lambda m: m.node("Mean", *(m.of(n) for n in range(len(m.inputs)))),
}
