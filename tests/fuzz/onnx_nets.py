"""Random ONNX models that are nearly right: known operators with any attributes that they have."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import onnx  # noqa: TID251
from onnx import TensorProto, defs, helper  # noqa: TID251

from layerscope.formats.onnx.converters.table import CONVERTERS
from layerscope.formats.onnx.folding import EVALUATE

SIZES = (0, 1, 1, 1, 2, 2, 3, 4, 8, -1, -2, -3, 5, 7, 100, 2**31, 2**62, -(2**63))
REALS = (0.0, 1.0, -1.0, 0.5, 2.0, 1e-5, 1e30, float("inf"), float("nan"))
WORDS = (
    b"", b"x", b"constant", b"SAME_UPPER", b"SAME_LOWER", b"VALID", b"NOTSET", b"nearest",
    b"linear", b"bidirectional", b"reverse", b"none", b"tanh", b"Relu", b"ij,jk->ik", b"...i->i",
    b"ii->", b"i,j", b"\xff\xfe",
)  # fmt: skip
SHAPES = (
    (1, 4, 8, 8), (4, 4), (2, 3), (4,), (1,), (), (1, 2, 4, 4, 4), (4, 1, 6), (4, 4, 3, 3), (8, 4),
    (1, 8, 4), (1, 0, 3),
)  # fmt: skip
OPERATORS = sorted({*CONVERTERS, *(("", op) for op in EVALUATE), ("", "Constant"), ("", "Shape")})
VERSIONS = (1, 5, 6, 7, 9, 11, 13, 17, 18, 21, 23)


def _attribute(source: Random, name: str, kind: Any, depth: int) -> Any:
    words: dict[str, Callable[[], Any]] = {
        "INT": lambda: source.choice(SIZES),
        "FLOAT": lambda: source.choice(REALS),
        "STRING": lambda: source.choice(WORDS),
        "INTS": lambda: [source.choice(SIZES) for _ in range(source.choice((1, 2, 2, 3, 4)))],
        "FLOATS": lambda: [source.choice(REALS) for _ in range(source.choice((1, 2, 4)))],
        "STRINGS": lambda: [source.choice(WORDS) for _ in range(source.choice((1, 2)))],
        "TENSOR": lambda: _tensor(source, "t"),
        "GRAPH": lambda: _graph(source, depth + 1),
    }
    make = words.get(kind.name)
    return None if make is None else helper.make_attribute(name, make())


def _tensor(source: Random, name: str) -> Any:
    if source.random() < 0.6:  # sizes, axes, places
        numbers = [source.choice(SIZES) for _ in range(source.choice((0, 1, 1, 2, 3, 4, 8)))]
        shape: tuple[int, ...] = (len(numbers),)
        if len(numbers) == 1 and source.random() < 0.5:
            shape = ()
        kind = source.choice((TensorProto.INT64, TensorProto.INT64, TensorProto.BOOL))
        return helper.make_tensor(name, kind, shape, [bool(n) if kind == 9 else n for n in numbers])
    shape = source.choice(SHAPES)
    count = 1
    for size in shape:
        count *= size
    code = source.choice((1, 1, 2, 3))  # float, or of 8 bits
    number: float = source.choice(REALS if code == 1 else (0, 1, 2, 3))
    return helper.make_tensor(name, code, shape, [number] * count)


def _node(source: Random, known: list[str], n: int, depth: int) -> Any:
    domain, op = source.choice(OPERATORS)
    arity, attributes = (1, 4), {}
    try:
        schema = defs.get_schema(op, source.choice((9, 13, 21, 23)), domain)
        arity = (schema.min_input, min(schema.max_input, 9))
        attributes = schema.attributes
    except defs.SchemaError:
        pass
    count = source.randint(min(arity), max(arity)) if source.random() < 0.9 else source.randrange(6)
    inputs = [source.choice(known) if source.random() < 0.95 else "" for _ in range(count)]
    outputs = [f"t{depth}_{n}_{k}" for k in range(source.choice((1, 1, 1, 2, 3)))]
    made = helper.make_node(op, inputs, outputs, domain=domain)
    for name, told in sorted(attributes.items()):
        if told.required or source.random() < 0.4:
            attribute = _attribute(source, name, told.type, depth)
            if attribute is not None:
                made.attribute.append(attribute)
    known += outputs
    return made


def _graph(source: Random, depth: int = 0, outer: tuple[str, ...] = ()) -> Any:
    inputs = [
        helper.make_tensor_value_info(
            f"x{depth}_{n}", source.choice((1, 1, 1, 7, 9, 2)),
            [source.choice((size, size, size, None, "n", -1)) for size in source.choice(SHAPES)],
        )
        for n in range(source.choice((1, 2, 3)))
    ]  # fmt: skip
    stored = [_tensor(source, f"w{depth}_{n}") for n in range(source.choice((2, 4, 6)))]
    known = [*outer, *(v.name for v in inputs), *(t.name for t in stored)]
    nodes = []
    if depth < 3:
        nodes = [_node(source, known, n, depth) for n in range(source.randrange(1, 5))]
    outputs = [
        helper.make_tensor_value_info(source.choice(known), 1, None)
        for _ in range(source.choice((1, 1, 2, 3)))
    ]
    return helper.make_graph(nodes, "g", inputs, outputs, stored)


def net(seed: int) -> bytes:
    """A model of a few nodes."""
    source = Random(seed)
    version = helper.make_opsetid("", source.choice(VERSIONS))
    made = onnx.ModelProto(ir_version=8, graph=_graph(source), opset_import=[version])
    if source.random() < 0.1:
        function = made.functions.add(name="Whirl", domain="own", input=["a"], output=["b"])
        function.node.append(_node(source, ["a", "b"], 0, 1))
        made.graph.node.append(helper.make_node("Whirl", ["x0_0"], ["whirled"], domain="own"))
    data: bytes = made.SerializeToString()
    return data
