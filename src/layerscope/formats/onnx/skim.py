"""Parser of ONNX's protobuf messages: structure is read, tensors stay spans of the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import unpack
from typing import Any, overload

from msgspec import Struct

from layerscope.codecs.protobuf import FIXED32, LEN, SMALL, VARINT, Wire, signed
from layerscope.errors import FormatError
from layerscope.formats.onnx.dtypes import DTYPES
from layerscope.formats.onnx.tensors import (
    MOST_AXES,
    MOST_VALUES,
    Span,
    StoredTensor,
    sparse_of,
    stored_of,
    usual_tensor,
)


class Dim(Struct, frozen=True, gc=False):
    """A dimension of a declared shape: a number, a name, or neither."""

    size: int | None = None
    name: str = ""


class ValueInfo(Struct, frozen=True, gc=False):
    """Declared type and shape of a tensor."""

    name: str
    dtype: str = ""
    dims: tuple[Dim, ...] | None = None
    kind: str = "tensor"
    metadata: tuple[Span, ...] = ()


class NodeProto(Struct, gc=False):
    """A node; its attributes are spans until they are parsed."""

    op: str
    domain: str
    name: str
    inputs: list[str]
    outputs: list[str]
    attributes: Sequence[Span]
    metadata: Sequence[Span]
    at: int
    overload: str = ""


class StoredNodes(Sequence[NodeProto]):
    """Nodes of the main graph, each parsed when it is read, so that few are in memory."""

    def __init__(self, wire: Wire, ends: list[int]) -> None:
        self.wire, self.ends = wire, ends  # start and end of each

    def __len__(self) -> int:
        return len(self.ends) // 2

    def __iter__(self) -> Iterator[NodeProto]:
        wire, ends = self.wire, iter(self.ends)
        for start in ends:
            end = next(ends)
            small = _small_operator(wire, start, end) if end - start <= SMALL else None
            yield small or _operator(wire, start, end)

    @overload
    def __getitem__(self, index: int) -> NodeProto: ...
    @overload
    def __getitem__(self, index: slice) -> list[NodeProto]: ...
    def __getitem__(self, index: int | slice) -> NodeProto | list[NodeProto]:
        if isinstance(index, slice):
            return [self[n] for n in range(*index.indices(len(self)))]
        first = 2 * range(len(self))[index]
        return operator_of(self.wire, self.ends[first], self.ends[first + 1])


class GraphProto(Struct):
    """A graph or a subgraph of a control operator."""

    name: str
    nodes: Sequence[NodeProto]
    stored: list[StoredTensor]
    inputs: list[ValueInfo]
    outputs: list[ValueInfo]
    values: dict[str, ValueInfo]
    at: int = 0


class FunctionProto(Struct):
    """An operator that the file defines by a graph."""

    name: str
    domain: str
    inputs: list[str]
    outputs: list[str]
    nodes: list[NodeProto]
    defaults: list[Span]  # attributes with values
    opsets: dict[str, int]
    overload: str = ""


class ModelProto(Struct):
    """A whole file."""

    graph: GraphProto
    opsets: dict[str, int]
    functions: dict[tuple[str, str, str], FunctionProto]
    producer: str = ""
    ir: int = 0


def model_of(wire: Wire) -> ModelProto:
    """The model in a file."""
    span: Span | None = None
    opsets: dict[str, int] = {}
    functions: dict[tuple[str, str, str], FunctionProto] = {}
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
    ends: list[int] = []
    graph = graph_of(wire, *span, ends)
    graph.nodes = StoredNodes(wire, ends)
    return ModelProto(graph, opsets, functions, producer, ir)


def _opset(wire: Wire, start: int, end: int, opsets: dict[str, int]) -> None:
    domain, version = "", 1
    for number, kind, begin, stop in wire.fields(start, end):
        if number == 1 and kind == LEN:
            domain = wire.text(begin, stop)
        elif number == 2 and kind == VARINT:
            version = begin
    opsets["" if domain == "ai.onnx" else domain] = version


def graph_of(wire: Wire, start: int, end: int, ends: list[int] | None = None) -> GraphProto:
    """A graph, its nodes in the order of the file; with `ends` only start and end of each."""
    nodes: list[NodeProto] = []
    part = GraphProto("", nodes, [], [], [], {}, start)
    for number, kind, begin, stop in wire.fields(start, end):
        if kind != LEN:
            continue
        if number == 1:
            if ends is None:
                nodes.append(operator_of(wire, begin, stop))
            else:
                ends += (begin, stop)
        elif number == 5:
            part.stored.append(usual_tensor(wire, begin, stop) or stored_of(wire, begin, stop))
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


def operator_of(wire: Wire, start: int, end: int) -> NodeProto:
    """A node."""
    small = _small_operator(wire, start, end) if end - start <= SMALL else None
    return small or _operator(wire, start, end)


def _operator(wire: Wire, start: int, end: int) -> NodeProto:
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
    return NodeProto(op, domain, name, inputs, outputs, attributes, metadata, start, overload)


def _small_operator(wire: Wire, start: int, end: int) -> NodeProto | None:
    """A node of few bytes, as nearly all are, by a faster parser; None if it has other fields."""
    data = wire.data[start:end]
    texts = ["", "", "", "", "", "", "", "", ""]  # by the number of their field
    inputs: list[str] = []
    outputs: list[str] = []
    attributes: Sequence[Span] = ()
    metadata: Sequence[Span] = ()
    at, size, count = 0, end - start, 0
    try:
        while at < size:
            tag = data[at]
            length = data[at + 1]
            at += 2
            if length > 127:
                length += (data[at] << 7) - 128
                at += 1
                if length > 16383:
                    return None
            stop = at + length
            if tag == 10:
                inputs.append(data[at:stop].decode())
            elif tag == 18:
                outputs.append(data[at:stop].decode())
            elif tag == 42:
                attributes = (*attributes, (start + at, start + stop))
            elif tag in TEXTS:
                texts[tag >> 3] = data[at:stop].decode()
            elif tag == 74:
                metadata = (*metadata, (start + at, start + stop))
            else:
                return None
            at = stop
            count += 1
    except (IndexError, UnicodeDecodeError):
        return None
    if at != size:
        return None
    wire.left -= count
    if wire.left < 0:
        wire.spend(start, 0)
    domain = "" if texts[7] == "ai.onnx" else texts[7]
    return NodeProto(
        texts[4], domain, texts[3], inputs, outputs, attributes, metadata, start, texts[8]
    )


TEXTS = (26, 34, 50, 58, 66)  # tags of name, operator, doc string, domain, overload


def _function(wire: Wire, start: int, end: int) -> FunctionProto:
    function = FunctionProto("", "", [], [], [], [], {})
    for number, kind, begin, stop in wire.fields(start, end):
        if kind != LEN:
            continue
        if number == 1:
            function.name = wire.text(begin, stop)
        elif number == 4:
            function.inputs.append(wire.text(begin, stop))
        elif number == 5:
            function.outputs.append(wire.text(begin, stop))
        elif number == 7:
            function.nodes.append(operator_of(wire, begin, stop))
        elif number == 9:
            _opset(wire, begin, stop, function.opsets)
        elif number == 10:
            function.domain = wire.text(begin, stop)
        elif number == 11:
            function.defaults.append((begin, stop))
        elif number == 13:
            function.overload = wire.text(begin, stop)
    return function


def _value(wire: Wire, start: int, end: int) -> ValueInfo:
    name, dtype, dims, what = "", "", None, "tensor"
    metadata: tuple[Span, ...] = ()
    for number, kind, begin, stop in wire.fields(start, end):
        if number == 1 and kind == LEN:
            name = wire.text(begin, stop)
        elif number == 2 and kind == LEN:
            dtype, dims, what = _type(wire, begin, stop)
        elif number == 4 and kind == LEN:
            metadata = (*metadata, (begin, stop))
    return ValueInfo(name, dtype, dims, what, metadata)


KINDS = {1: "tensor", 4: "sequence", 5: "map", 8: "sparse tensor", 9: "optional"}
MOST_TYPES = 4  # of nested types, such as an optional sequence


def _type(
    wire: Wire, start: int, end: int, depth: int = 0
) -> tuple[str, tuple[Dim, ...] | None, str]:
    """Dtype and sizes of a tensor, or of an element of a sequence or optional, and the kind."""
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


NAMELESS = ("?", "-1", "None")  # names that exporters write for an unnamed dimension


def _dim(wire: Wire, start: int, end: int) -> Dim:
    size, name = None, ""
    for number, kind, begin, stop in wire.fields(start, end):
        if number == 1 and kind == VARINT:
            size = signed(begin)
        elif number == 2 and kind == LEN:
            name = wire.text(begin, stop)
    return Dim(size if size is not None and size >= 0 else None, "" if name in NAMELESS else name)


class AttributeProto(Struct, frozen=True, gc=False):
    """A parsed attribute: a number, a string, a list, a tensor, or the span of a graph."""

    name: str
    value: Any = None
    graph: Span | None = None
    refers: str = ""  # the attribute of the enclosing function that it refers to
    count: int = 0  # of elements in a list, also if they are too many to be read


def attribute_of(wire: Wire, start: int, end: int) -> AttributeProto:
    """One attribute of a node; a branch for every field of the message."""
    name, refers = "", ""
    value: Any = None
    graph: Span | None = None
    many: list[Any] = []
    declared_kind = 0
    listed = False
    unread = 0
    for number, kind, begin, stop in wire.fields(start, end):
        if number == 1 and kind == LEN:
            name = wire.text(begin, stop)
        elif number == 3 and kind == VARINT:
            value = signed(begin)
        elif number == 2 and kind == FIXED32:
            value = unpack("<f", wire.data[begin:stop])[0]
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
            declared_kind = begin
        elif number == 21 and kind == LEN:
            refers = wire.text(begin, stop)
    if listed or declared_kind in (6, 7, 8):
        value = () if unread else tuple(many)
    return AttributeProto(name, value, graph, refers, len(many) + unread)
