"""The messages of an ONNX file, skimmed: structure is read, numbers stay where they are."""

from __future__ import annotations

from struct import unpack_from
from typing import Any

from msgspec import Struct

from layerscope.codecs.protobuf import FIXED32, LEN, SMALL, VARINT, Wire, signed
from layerscope.errors import FormatError
from layerscope.formats.onnx.numbers import DTYPES
from layerscope.formats.onnx.tensors import (
    MOST_AXES,
    MOST_VALUES,
    Span,
    Stored,
    sparse_of,
    stored_of,
)


class Dim(Struct, frozen=True, gc=False):
    """A size of an input: a number, a name, or neither."""

    size: int | None = None
    name: str = ""


class Value(Struct, frozen=True, gc=False):
    """What a graph declares of a tensor: its type, and its shape as far as it is told."""

    name: str
    dtype: str = ""
    dims: tuple[Dim, ...] | None = None
    kind: str = "tensor"
    metadata: tuple[Span, ...] = ()


class Operator(Struct, gc=False):
    """One node; its attributes are spans until they are asked for."""

    op: str
    domain: str
    name: str
    inputs: list[str]
    outputs: list[str]
    attributes: list[Span]
    metadata: list[Span]
    at: int
    overload: str = ""


class GraphPart(Struct):
    """A graph or the body of a control operator."""

    name: str
    nodes: list[Operator]
    stored: list[Stored]
    inputs: list[Value]
    outputs: list[Value]
    values: dict[str, Value]
    at: int = 0


class Function(Struct):
    """An operator that the file itself defines by others."""

    name: str
    domain: str
    inputs: list[str]
    outputs: list[str]
    nodes: list[Operator]
    defaults: list[Span]  # attributes with values
    opsets: dict[str, int]
    overload: str = ""


class Model(Struct):
    """A whole file."""

    graph: GraphPart
    opsets: dict[str, int]
    functions: dict[tuple[str, str, str], Function]
    producer: str = ""
    ir: int = 0


def model_of(wire: Wire) -> Model:
    """The model in a file."""
    span: Span | None = None
    opsets: dict[str, int] = {}
    functions: dict[tuple[str, str, str], Function] = {}
    producer, ir = "", 0
    for number, kind, start, end in wire.fields():
        if number == 7 and kind == LEN:
            span = (start, end)
        elif number == 8 and kind == LEN:
            _opset(wire, start, end, opsets)
        elif number == 25 and kind == LEN:
            function = _function(wire, start, end)
            functions[function.domain, function.name, function.overload] = function
        elif number == 2 and kind == LEN:
            producer = wire.text(start, end)
        elif number == 1 and kind == VARINT:
            ir = start
    if span is None:
        raise FormatError(f"{wire.name}: no graph in it, this is no ONNX model")
    return Model(graph_of(wire, *span), opsets, functions, producer, ir)


def _opset(wire: Wire, start: int, end: int, opsets: dict[str, int]) -> None:
    domain, version = "", 1
    for number, kind, begin, stop in wire.fields(start, end):
        if number == 1 and kind == LEN:
            domain = wire.text(begin, stop)
        elif number == 2 and kind == VARINT:
            version = begin
    opsets["" if domain == "ai.onnx" else domain] = version


def graph_of(wire: Wire, start: int, end: int) -> GraphPart:
    """A graph, its nodes in the order of the file."""
    part = GraphPart("", [], [], [], [], {}, start)
    for number, kind, begin, stop in wire.fields(start, end):
        if kind != LEN:
            continue
        if number == 1:
            part.nodes.append(operator_of(wire, begin, stop))
        elif number == 5:
            part.stored.append(stored_of(wire, begin, stop))
        elif number == 15:
            part.stored.append(sparse_of(wire, begin, stop))
        elif number == 11:
            part.inputs.append(_value(wire, begin, stop))
        elif number == 12:
            part.outputs.append(_value(wire, begin, stop))
        elif number == 13:
            value = _value(wire, begin, stop)
            part.values[value.name] = value
        elif number == 2:
            part.name = wire.text(begin, stop)
    return part


def operator_of(wire: Wire, start: int, end: int) -> Operator:
    """A node."""
    quick = _small_operator(wire, start, end) if end - start <= SMALL else None
    if quick is not None:
        return quick
    inputs: list[str] = []
    outputs: list[str] = []
    attributes: list[Span] = []
    metadata: list[Span] = []
    name = op = domain = overload = ""
    for number, kind, begin, stop in wire.fields(start, end):
        if kind != LEN:
            continue
        if number == 1:
            inputs.append(wire.text(begin, stop))
        elif number == 2:
            outputs.append(wire.text(begin, stop))
        elif number == 5:
            attributes.append((begin, stop))
        elif number == 4:
            op = wire.text(begin, stop)
        elif number == 3:
            name = wire.text(begin, stop)
        elif number == 7:
            domain = wire.text(begin, stop)
        elif number == 9:
            metadata.append((begin, stop))
        elif number == 8:
            overload = wire.text(begin, stop)
    domain = "" if domain == "ai.onnx" else domain
    return Operator(op, domain, name, inputs, outputs, attributes, metadata, start, overload)


def _small_operator(wire: Wire, start: int, end: int) -> Operator | None:
    """A node of few bytes, which nearly all are, in one go; None where anything is unusual."""
    data = wire.data[start:end]
    texts = ["", "", "", "", "", "", "", "", ""]  # by the number of their field
    inputs: list[str] = []
    outputs: list[str] = []
    attributes: list[Span] = []
    metadata: list[Span] = []
    at, size, count = 0, end - start, 0
    try:
        while at < size:
            tag, length = data[at], data[at + 1]
            at += 2
            if length > 127:
                length += (data[at] << 7) - 128
                at += 1
                if length > 16383:
                    return None
            stop = at + length
            if stop > size:
                return None
            if tag == 10:
                inputs.append(str(data[at:stop], "utf-8"))
            elif tag == 18:
                outputs.append(str(data[at:stop], "utf-8"))
            elif tag == 42:
                attributes.append((start + at, start + stop))
            elif tag == 74:
                metadata.append((start + at, start + stop))
            elif tag in TEXTS:
                texts[tag >> 3] = str(data[at:stop], "utf-8")
            else:
                return None
            at = stop
            count += 1
    except (IndexError, UnicodeDecodeError):
        return None
    wire.spend(start, count)
    domain = "" if texts[7] == "ai.onnx" else texts[7]
    return Operator(
        texts[4], domain, texts[3], inputs, outputs, attributes, metadata, start, texts[8]
    )


TEXTS = (26, 34, 50, 58, 66)  # tags of name, operator, doc string, domain, overload


def _function(wire: Wire, start: int, end: int) -> Function:
    made = Function("", "", [], [], [], [], {})
    for number, kind, begin, stop in wire.fields(start, end):
        if kind != LEN:
            continue
        if number == 1:
            made.name = wire.text(begin, stop)
        elif number == 4:
            made.inputs.append(wire.text(begin, stop))
        elif number == 5:
            made.outputs.append(wire.text(begin, stop))
        elif number == 7:
            made.nodes.append(operator_of(wire, begin, stop))
        elif number == 9:
            _opset(wire, begin, stop, made.opsets)
        elif number == 10:
            made.domain = wire.text(begin, stop)
        elif number == 11:
            made.defaults.append((begin, stop))
        elif number == 13:
            made.overload = wire.text(begin, stop)
    return made


def _value(wire: Wire, start: int, end: int) -> Value:
    name, dtype, dims, what = "", "", None, "tensor"
    metadata: tuple[Span, ...] = ()
    for number, kind, begin, stop in wire.fields(start, end):
        if number == 1 and kind == LEN:
            name = wire.text(begin, stop)
        elif number == 2 and kind == LEN:
            dtype, dims, what = _type(wire, begin, stop)
        elif number == 4 and kind == LEN:
            metadata = (*metadata, (begin, stop))
    return Value(name, dtype, dims, what, metadata)


KINDS = {1: "tensor", 4: "sequence", 5: "map", 8: "sparse tensor", 9: "optional"}
MOST_TYPES = 4  # of types in types, such as an optional sequence


def _type(
    wire: Wire, start: int, end: int, depth: int = 0
) -> tuple[str, tuple[Dim, ...] | None, str]:
    """Dtype and sizes of a tensor, or of an element of a sequence or optional; and what it is."""
    if depth > MOST_TYPES:
        raise wire.error(start, f"types nested more than {MOST_TYPES} deep")
    for number, kind, begin, stop in wire.fields(start, end):
        if number not in KINDS or kind != LEN:
            continue
        if number == 5:
            return "", None, "map"
        if number in (4, 9):
            spans = [(a, b) for n, k, a, b in wire.fields(begin, stop) if n == 1 and k == LEN]
            dtype, dims, what = _type(wire, *spans[0], depth + 1) if spans else ("", None, "tensor")
            return dtype, dims, KINDS[number] if what == "tensor" else f"{KINDS[number]} {what}"
        dtype, dims = "", None
        for inner, wired, first, last in wire.fields(begin, stop):
            if inner == 1 and wired == VARINT:
                dtype = DTYPES.get(first, "")
            elif inner == 2 and wired == LEN:
                dims = tuple(_dim(wire, a, b) for n, k, a, b in wire.fields(first, last) if n == 1)
                if len(dims) > MOST_AXES:
                    raise wire.error(first, f"a shape of {len(dims)} axes, expected at most 64")
        return dtype, dims, KINDS[number]
    return "", None, "tensor"


NAMELESS = ("?", "-1", "None")  # what exporters write for a size of its own


def _dim(wire: Wire, start: int, end: int) -> Dim:
    size, name = None, ""
    for number, kind, begin, stop in wire.fields(start, end):
        if number == 1 and kind == VARINT:
            size = signed(begin)
        elif number == 2 and kind == LEN:
            name = wire.text(begin, stop)
    return Dim(size if size is not None and size >= 0 else None, "" if name in NAMELESS else name)


class Attribute(Struct, frozen=True, gc=False):
    """An attribute, read: a number, a text, numbers, a tensor, or spans of graphs."""

    name: str
    value: Any = None
    graph: Span | None = None
    refers: str = ""  # the attribute of the function around that it stands for
    count: int = 0  # of numbers or texts in a list, read or too many to be


def attribute_of(wire: Wire, start: int, end: int) -> Attribute:
    """One attribute of a node."""
    name, refers = "", ""
    value: Any = None
    graph: Span | None = None
    many: list[Any] = []
    kind_told = 0
    listed = False
    unread = 0
    for number, kind, begin, stop in wire.fields(start, end):
        if number == 1 and kind == LEN:
            name = wire.text(begin, stop)
        elif number == 3 and kind == VARINT:
            value = signed(begin)
        elif number == 2 and kind == FIXED32:
            value = unpack_from("<f", wire.data, begin)[0]
        elif number == 4 and kind == LEN:
            value = wire.text(begin, stop)
        elif number == 5 and kind == LEN:
            value = stored_of(wire, begin, stop)
        elif number == 22 and kind == LEN:
            value = sparse_of(wire, begin, stop)
        elif number == 6 and kind == LEN:
            graph = (begin, stop)
        elif number == 7:
            listed = True
            if len(many) + (stop - begin) // 4 <= MOST_VALUES:
                many.extend(wire.floats(begin, stop))
            else:
                unread += (stop - begin) // 4
                wire.spend(begin, 1)
        elif number == 8:
            listed = True
            if kind == VARINT:
                many.append(signed(begin))
            else:
                many.extend(map(signed, wire.varints(begin, stop)))
        elif number == 9 and kind == LEN:
            listed = True
            many.append(wire.text(begin, stop))
        elif number == 20 and kind == VARINT:
            kind_told = begin
        elif number == 21 and kind == LEN:
            refers = wire.text(begin, stop)
    if listed or kind_told in (6, 7, 8):
        value = () if unread else tuple(many)
    return Attribute(name, value, graph, refers, len(many) + unread)
