"""The walk over an ONNX graph: shape inference, constant folding and conversion, node by node."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from layerscope.codecs.protobuf import Wire
from layerscope.errors import FormatError, ShapeError
from layerscope.formats.onnx.folding.fold import SHAPE_OPERATORS, constant, fold
from layerscope.formats.onnx.import_state import ImportState
from layerscope.formats.onnx.node import Converter, OnnxNode
from layerscope.formats.onnx.node_view import MOST_DEPTH, GraphContext
from layerscope.formats.onnx.reasons import NO_RULES
from layerscope.formats.onnx.roles import exporter_of
from layerscope.formats.onnx.skim import (
    AttributeProto,
    FunctionProto,
    ModelProto,
    NodeProto,
    attribute_of,
)
from layerscope.formats.onnx.tensor_info import Env, NeedsValue

# Operators whose converters also handle inputs of unknown shape.
WITHOUT_SHAPES = {
    ("", "If"), ("", "Loop"), ("", "Scan"), ("", "SequenceConstruct"), ("", "SequenceAt"),
    ("", "SequenceEmpty"), ("", "SequenceInsert"), ("", "ConcatFromSequence"),
    ("", "SequenceLength"), ("", "SequenceErase"), ("", "Optional"), ("", "OptionalGetElement"),
    ("", "OptionalHasElement"), ("", "Identity"), ("", "SequenceMap"),
    ("ai.onnx.ml", "DictVectorizer"), ("ai.onnx.ml", "CastMap"),
}  # fmt: skip


# What a converter raises for inputs or attributes that the operator does not accept.
INVALID_NODE = (
    IndexError, KeyError, ValueError, TypeError, AttributeError, ArithmeticError, AssertionError,
)  # fmt: skip


ConverterLookup: TypeAlias = Callable[[tuple[str, str]], Converter | None]
MOST_INLINED = 200_000  # nodes of functions, which could double without end


class Assumed(ShapeError):
    """Shapes that do not agree, where some of them were assumed."""


class Reader(ImportState):
    """Walks the nodes of a file in order and converts each."""

    def __init__(self, wire: Wire, model: ModelProto, converter_of: ConverterLookup) -> None:
        super().__init__(wire)
        self.model, self._converter_of = model, converter_of
        self._converters: dict[tuple[str, str], Converter | None] = {}
        self.exporter = exporter_of(wire, model)
        self.inlined = 0  # nodes of functions
        self.failures: list[ShapeError] | None = None  # of a branch, which may be for other shapes

    def walk(self, protos: Iterable[NodeProto], context: GraphContext) -> None:
        """Convert nodes in order; `context.env` takes their outputs."""
        if context.depth > MOST_DEPTH:
            raise FormatError(f"{self.file}: graphs nested more than {MOST_DEPTH} deep")
        for proto in protos:
            if context.depth:
                scope = context.scope
            else:
                scope = self.scope_of(proto) if proto.metadata or "/" in proto.name else ()
            node = OnnxNode(self, proto, context, scope)
            try:
                self._visit(node)
            except ShapeError as error:
                self._fails(node, error)
            except INVALID_NODE as error:
                self._fails(node, f"inputs or attributes do not fit the operator ({error})")
            except RecursionError:
                raise FormatError(f"{node.where}: nested too deep") from None

    def _fails(self, node: OnnxNode, what: object) -> None:
        """Raise an error of a node, or record it if the node is in a branch of an If."""
        text = str(what)
        message = text if text.startswith(self.file) else f"{node.where}: {text}"
        error = ShapeError(message)
        if self.assumed:
            error = Assumed(message if self.assumed in message else f"{message}; {self.assumed}")
        if self.failures is None:
            raise error from None
        self.failures.append(error)
        node.emit_unknown(text)

    def _visit(self, node: OnnxNode) -> None:
        """Fold a node, or convert it."""
        if not node.outputs and not node.op:
            raise FormatError(f"{self.file}: byte {node.proto.at}: a node without an operator")
        if node.op == "Constant" and not node.domain:
            constant(node)
            return
        key = node.domain, node.op
        converter = self._converters.get(key)
        if converter is None:
            converter = self._converters[key] = self._converter_of(key)
        if converter is not None:
            node.schema = converter
        if (node.all_constant or node.domain or node.op in SHAPE_OPERATORS) and fold(node):
            return
        if converter is None:
            function = self.model.functions.get((*key, node.proto.overload))
            if function is not None:
                self.inline(node, function)
                return
            node.emit_unknown(NO_RULES.get(key, ""))
            return
        if node.unknown_shape and key not in WITHOUT_SHAPES:
            first = next(each for each in node.inputs if each is not None and each.shape is None)
            node.emit_unknown(self.trace.shape(first.name))
            return
        try:
            converter.convert(node)
        except NeedsValue as error:
            from layerscope.formats.onnx.declared_shapes import convert_by_declared

            try:
                found = convert_by_declared(node)
            except (NeedsValue, ShapeError, *INVALID_NODE):  # the declared shape does not fit
                found = False
            if not found:
                node.emit_unknown(str(error))

    def inline(self, node: OnnxNode, function: FunctionProto) -> None:
        """Convert the body of a function that a node calls, in a scope of its own."""
        self.inlined += len(function.nodes)
        if self.inlined > MOST_INLINED:
            raise FormatError(
                f"{self.file}: more than {MOST_INLINED:,} nodes of functions, all calls inlined"
            )
        env: Env = {}
        for n, name in enumerate(function.inputs):
            tensor = node.inputs[n] if n < len(node.inputs) else None
            if tensor is not None:
                env[name] = tensor
        attrs: dict[str, AttributeProto] = {}
        for span in function.defaults:
            attribute = attribute_of(self.wire, *span)
            attrs[attribute.name] = attribute
        attrs.update(node.attributes)
        names, outer = zip(function.outputs, node.outputs, strict=False), node.context.outer_names
        context = GraphContext(
            env,
            {**self.model.opsets, **function.opsets},
            node.inner_scope,
            function_attrs=attrs,
            depth=node.context.depth + 1,
            outer_names={inner: outer.get(name, name) for inner, name in names if name},
        )
        self.walk(function.nodes, context)
        for name, inner in zip(node.outputs, function.outputs, strict=False):
            if name:
                if inner not in env:
                    raise FormatError(
                        f"{node.where}: the function does not compute its output {inner!r}"
                    )
                node.env[name] = env[inner]
