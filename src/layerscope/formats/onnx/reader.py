"""The walk over an ONNX graph: every tensor's shape, small numbers carried along, nodes of ours."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from layerscope.codecs.protobuf import Wire
from layerscope.errors import FormatError, LayerscopeError, ShapeError
from layerscope.formats.onnx.numbers import FLOATS
from layerscope.formats.onnx.skim import (
    Attribute,
    Function,
    GraphPart,
    Model,
    Operator,
    Span,
    Stored,
    Value,
    attribute_of,
    graph_of,
    numbers_of,
)
from layerscope.formats.onnx.values import EVALUATE, Array, TooLarge
from layerscope.graph import attributes as at
from layerscope.graph.types import Graph, Node, Param, Role, Shape, Source, Tensor, elements
from layerscope.ops import RULES, Call

MOST_NODES = 500_000  # with functions put in: they could double without end
MOST_DEPTH = 40  # of graphs in graphs
FEW = 8  # numbers of a float constant that is worked with rather than learned


class Entry:
    """An array that the file stores, and what it turns out to be."""

    __slots__ = ("dtype", "fill", "name", "role", "shape", "source")

    def __init__(self, name: str, shape: Shape, dtype: str, source: Stored | None) -> None:
        self.name, self.shape, self.dtype, self.source = name, shape, dtype, source
        self.role: Role | None = None
        self.fill: Any = None  # the number it is full of, if it is made by a ConstantOfShape

    @property
    def param(self) -> Param:
        """The array as it is stored."""
        return Param(self.name, self.shape, self.role or "unused", self.dtype, self.name)


class Known:
    """What is known of a tensor where the walk stands."""

    __slots__ = ("_value", "dtype", "entry", "items", "name", "shape")

    def __init__(
        self,
        name: str,
        shape: Shape | None,
        dtype: str,
        value: Array | Callable[[], Array | None] | None = None,
        entry: Entry | None = None,
        items: list[Known] | None = None,
    ) -> None:
        self.name, self.shape, self.dtype, self.entry = name, shape, dtype, entry
        self._value = value
        self.items = items  # of a sequence

    @property
    def value(self) -> Array | None:
        """Its numbers, if they are few and known before the run."""
        if callable(self._value):
            self._value = self._value()
        return self._value

    @property
    def constant(self) -> bool:
        """Whether it is known before the run, small or large."""
        return self.entry is not None or self._value is not None


class NeedsValue(Exception):
    """A shape depends on numbers that only the run knows."""


Env = dict[str, Known]
Convert = Callable[["Site"], None]


class Reader:
    """Collects the nodes of a graph while it walks a file."""

    def __init__(self, wire: Wire, model: Model, converters: Mapping[Any, Convert]) -> None:
        self.wire, self.model, self.converters = wire, model, converters
        self.file = wire.name
        self.nodes: list[Node] = []
        self.params: dict[str, Param] = {}  # taken as inputs, by name
        self.entries: list[Entry] = []
        self.tensors: dict[str, tuple[Shape | None, str]] = {}  # of the graph made
        self.derived: dict[str, Entry] = {}  # arrays in another shape or type, by tensor
        self.derived_read: set[str] = set()
        self.notes: list[str] = []
        self.dtype = ""  # of floats
        self.assumed = ""  # input shapes that nobody told
        self._names: set[str] = set()
        self._same: dict[Any, Any] = {}
        self._sources: dict[str, Source] = {}
        self.budget = MOST_NODES
        self.modules: dict[str, str] = {}

    # -- names ---------------------------------------------------------------------------------

    def fresh(self, name: str, taken: set[str] | dict[str, Any]) -> str:
        """A name that nothing else has."""
        found, count = name, 1
        while found in taken:
            count += 1
            found = f"{name}_{count}"
        return found

    def tensor_name(self, name: str, scope: tuple[str, ...]) -> str:
        """The name of a tensor in the flat graph: its own, or with its scope where it is taken."""
        if name in self.tensors or name in self.params:
            name = "/".join((*scope, name))
        return self.fresh(name, self.tensors | self.params if name in self.params else self.tensors)

    def same(self, attributes: Any) -> Any:
        """One value for all that are equal."""
        return attributes if attributes is None else self._same.setdefault(attributes, attributes)

    # -- stored arrays -------------------------------------------------------------------------

    def store(self, name: str, stored: Stored, scope: tuple[str, ...]) -> Known:
        """An initializer or a Constant."""
        entry = Entry(self.tensor_name(name, scope), stored.shape, stored.dtype, stored)
        self.entries.append(entry)
        self.tensors[entry.name] = (entry.shape, entry.dtype)

        def value() -> Array | None:
            numbers = numbers_of(self.wire, stored)
            return None if numbers is None else Array(stored.shape, numbers, stored.dtype)

        return Known(entry.name, stored.shape, stored.dtype, value, entry)

    def literal(self, name: str, array: Array, scope: tuple[str, ...]) -> Known:
        """Numbers written as attributes of a Constant."""
        entry = Entry(self.tensor_name(name, scope), array.shape, array.dtype, None)
        self.entries.append(entry)
        self.tensors[entry.name] = (entry.shape, entry.dtype)
        return Known(entry.name, array.shape, array.dtype, array, entry)

    def input_name(self, known: Known, role: Role = "weight") -> str:
        """The tensor's name as an ordinary input of a node; a stored array becomes a param."""
        entry = known.entry
        if entry is None:
            return known.name
        if entry.dtype not in FLOATS or elements(entry.shape) <= 1:
            role = "constant"
        if entry.role in (None, "constant"):
            entry.role = role
        if known.name != entry.name:
            self.derived_read.add(known.name)
        else:
            self.params[entry.name] = entry.param
        return known.name

    def absorb(self, known: Known, name: str, role: Role) -> Param:
        """A stored array as one of a node's own."""
        entry = known.entry
        if entry is None:
            raise NeedsValue
        if entry.role in (None, "constant") or role == "statistic":
            entry.role = role
        assert known.shape is not None
        return Param(name, known.shape, role, entry.dtype, entry.name)

    def uses(self, known: Known | None) -> None:
        """An array that only tells how: neither parameter nor buffer."""
        if known is not None and known.entry is not None and known.entry.role is None:
            known.entry.role = "constant"

    # -- emission ------------------------------------------------------------------------------

    def source(self, op: str, name: str) -> Source:
        """Where a node comes from."""
        if name:
            return Source(self.file, 0, op, name)
        found = self._sources.get(op)
        if found is None:
            found = self._sources[op] = Source(self.file, 0, op)
        return found

    def append(self, node: Node, shapes: Sequence[Shape | None], dtypes: Sequence[str]) -> None:
        """Take a node in."""
        self.budget -= 1
        if self.budget < 0:
            raise FormatError(f"{self.file}: more than {MOST_NODES:,} nodes, functions put in")
        self.nodes.append(node)
        for name, shape, dtype in zip(node.outputs, shapes, dtypes, strict=True):
            self.tensors[name] = (shape, dtype)

    def node_name(self, wanted: str) -> str:
        """A name for a node that no other has."""
        found, count = wanted, 1
        while found in self._names:
            count += 1
            found = f"{wanted}_{count}"
        self._names.add(found)
        return found

    # -- the walk ------------------------------------------------------------------------------

    def walk(
        self,
        operators: Iterable[Operator],
        env: Env,
        scope: tuple[str, ...] = (),
        *,
        opsets: dict[str, int] | None = None,
        bound: Mapping[str, Attribute] | None = None,
        values: Mapping[str, Value] | None = None,
        depth: int = 0,
    ) -> None:
        """Every operator in order; `env` has what is known by name and takes what is made."""
        if depth > MOST_DEPTH:
            raise FormatError(f"{self.file}: graphs nested more than {MOST_DEPTH} deep")
        opsets = self.model.opsets if opsets is None else opsets
        for operator in operators:
            site = Site(self, operator, env, scope, opsets, bound or {}, values or {}, depth)
            try:
                self._visit(site)
            except ShapeError as error:
                hint = f"; {self.assumed}" if self.assumed else ""
                text = str(error)
                told = text if text.startswith(self.file) else f"{site.where}: {text}"
                raise ShapeError(told + (hint if hint not in told else "")) from None
            except RecursionError:
                raise FormatError(f"{site.where}: nested too deep") from None

    def _visit(self, site: Site) -> None:
        operator = site.operator
        if not operator.outputs and not operator.op:
            raise FormatError(f"{self.file}: byte {operator.at}: a node without an operator")
        if operator.op == "Constant" and not operator.domain:
            site.constant()
            return
        if site.fold():
            return
        key = operator.domain, operator.op
        converter = self.converters.get(key)
        if converter is None:
            function = self.model.functions.get((*key, operator.overload))
            if function is not None:
                self.inline(site, function)
                return
            site.unknown()
            return
        if site.blank and key not in WITHOUT_SHAPES:
            site.unknown()
            return
        try:
            converter(site)
        except NeedsValue:
            site.unknown()

    def inline(self, site: Site, function: Function) -> None:
        """Put the body of a function in, as a scope of its own."""
        env: Env = {}
        for n, name in enumerate(function.inputs):
            known = site.inputs[n] if n < len(site.inputs) else None
            if known is not None:
                env[name] = known
        given: dict[str, Attribute] = {}
        for span in function.defaults:
            attribute = attribute_of(self.wire, *span)
            given[attribute.name] = attribute
        given.update(site.attributes)
        scope = (*site.scope, site.label)
        opsets = {**self.model.opsets, **function.opsets}
        self.walk(function.nodes, env, scope, opsets=opsets, bound=given, depth=site.depth + 1)
        for name, inner in zip(site.operator.outputs, function.outputs, strict=False):
            if name:
                if inner not in env:
                    raise FormatError(f"{site.where}: the function makes no {inner!r}")
                site.env[name] = env[inner]


# Operators that can be told something of even where the shape of an input is not known.
WITHOUT_SHAPES = {
    ("", "If"), ("", "Loop"), ("", "Scan"), ("", "SequenceConstruct"), ("", "SequenceAt"),
    ("", "SequenceEmpty"), ("", "SequenceInsert"), ("", "ConcatFromSequence"),
    ("", "SequenceLength"), ("", "SequenceErase"), ("", "Optional"), ("", "OptionalGetElement"),
    ("", "OptionalHasElement"),
}  # fmt: skip

# These leave the numbers of an array as they are, so that a weight is still one behind them.
KEEP_NUMBERS = (
    "Identity", "Cast", "CastLike", "Transpose", "Reshape", "Squeeze", "Unsqueeze", "Flatten",
    "DequantizeLinear",
)  # fmt: skip


class Site:
    """One operator where the walk stands: its inputs, what it is told, and how to answer."""

    def __init__(
        self,
        reader: Reader,
        operator: Operator,
        env: Env,
        scope: tuple[str, ...],
        opsets: dict[str, int],
        bound: Mapping[str, Attribute],
        values: Mapping[str, Value],
        depth: int,
    ) -> None:
        self.reader, self.operator, self.env = reader, operator, env
        self.scope, self.opsets, self.bound, self.values = scope, opsets, bound, values
        self.depth = depth
        self.op = operator.op
        self._attributes: dict[str, Attribute] | None = None
        self._told: dict[str, Any] | None = None
        self._label = ""
        inputs: list[Known | None] = []
        for name in operator.inputs:
            if not name:
                inputs.append(None)
                continue
            known = env.get(name)
            if known is None:
                raise FormatError(
                    f"{reader.file}: {operator.name or operator.op} reads {name!r}, which nothing "
                    "before it makes: the file is not in order, goes in a circle or is not whole"
                )
            inputs.append(known)
        while inputs and inputs[-1] is None:
            inputs.pop()
        self.inputs = inputs

    # -- what it is ----------------------------------------------------------------------------

    @property
    def opset(self) -> int:
        """Version of its domain's operators."""
        return self.opsets.get(self.operator.domain, 1 if self.operator.domain else LAST_OPSET)

    @property
    def where(self) -> str:
        """File, node and operator, for errors."""
        return f"{self.reader.file}: {self.own_name} ({self.op})"

    @property
    def own_name(self) -> str:
        """Its name in the file, else that of its first output."""
        named = self.operator.name.strip("/")
        return named or next((name for name in self.operator.outputs if name), self.op)

    @property
    def label(self) -> str:
        """Its name here, unique."""
        if not self._label:
            prefix = "/".join(self.scope) + "/" if self.scope and self.depth else ""
            name = self.own_name
            self._label = self.reader.node_name(
                name if name.startswith(prefix) else f"{prefix}{name}"
            )
        return self._label

    @property
    def attributes(self) -> dict[str, Attribute]:
        """Its attributes, by name; those that stand for a function's are looked up."""
        if self._attributes is None:
            found: dict[str, Attribute] = {}
            for span in self.operator.attributes:
                attribute = attribute_of(self.reader.wire, *span)
                if attribute.refers:
                    given = self.bound.get(attribute.refers)
                    if given is None:
                        continue
                    attribute = replace(given, name=attribute.name)
                found[attribute.name] = attribute
            self._attributes = found
        return self._attributes

    @property
    def told(self) -> dict[str, Any]:
        """Values of its attributes; tensors as arrays where they are small."""
        if self._told is None:
            self._told = {}
            for name, attribute in self.attributes.items():
                value = attribute.value
                if isinstance(value, Stored):
                    numbers = numbers_of(self.reader.wire, value)
                    value = None if numbers is None else Array(value.shape, numbers, value.dtype)
                self._told[name] = value
        return self._told

    def graph(self, name: str) -> GraphPart:
        """The graph in an attribute."""
        attribute = self.attributes.get(name)
        if attribute is None or attribute.graph is None:
            raise FormatError(f"{self.where}: no graph {name!r} in it")
        span: Span = attribute.graph
        if self.depth >= MOST_DEPTH:
            raise FormatError(f"{self.reader.file}: graphs nested more than {MOST_DEPTH} deep")
        return graph_of(self.reader.wire, *span)

    def int(self, name: str, default: int = 0) -> int:
        """A whole number it is told."""
        value = self.told.get(name)
        return default if value is None else int(value)

    def ints(self, name: str, default: Sequence[int] = ()) -> tuple[int, ...]:
        """Whole numbers it is told."""
        value = self.told.get(name)
        return tuple(default) if value is None else tuple(int(v) for v in value)

    def float(self, name: str, default: float = 0.0) -> float:
        """A number it is told."""
        value = self.told.get(name)
        return default if value is None else float(value)

    def text(self, name: str, default: str = "") -> str:
        """A word it is told."""
        value = self.told.get(name)
        return value if isinstance(value, str) else default

    @property
    def blank(self) -> bool:
        """Whether the shape of an input is not known."""
        return any(known is not None and known.shape is None for known in self.inputs)

    def has(self, n: int) -> bool:
        """Whether it has an n-th input."""
        return n < len(self.inputs) and self.inputs[n] is not None

    def given(self, n: int) -> Known:
        """The n-th input."""
        known = self.inputs[n] if n < len(self.inputs) else None
        if known is None:
            raise FormatError(f"{self.where}: input {n} is missing")
        return known

    def shape(self, n: int = 0) -> Shape:
        """Shape of the n-th input."""
        shape = self.given(n).shape
        if shape is None:
            raise NeedsValue
        return shape

    def dtype(self, n: int = 0) -> str:
        """Number type of the n-th input."""
        return self.given(n).dtype

    def value(self, n: int) -> Array | None:
        """Numbers of the n-th input where they are known before the run; it only tells how."""
        if not self.has(n):
            return None
        self.reader.uses(self.given(n))
        return self.given(n).value

    def need(self, n: int) -> Array:
        """Numbers of the n-th input, which the shape depends on."""
        value = self.value(n)
        if value is None:
            raise NeedsValue
        return value

    # -- answers -------------------------------------------------------------------------------

    def emit(
        self,
        op: str,
        inputs: Sequence[Known],
        attributes: Any = None,
        *,
        params: Sequence[Param] = (),
        part: str = "",
        roles: Role = "weight",
        outputs: Sequence[str] | None = None,
        estimate: bool = False,
        note: str = "",
    ) -> list[Known]:
        """A node of ours; without `part` it makes the operator's outputs."""
        reader = self.reader
        attributes = reader.same(attributes)
        names = tuple([reader.input_name(known, roles) for known in inputs])
        shapes: list[Shape] = []
        for known in inputs:
            if known.shape is None:
                raise NeedsValue
            shapes.append(known.shape)
        rule = RULES[op]
        made = rule.shape(Call(attributes, tuple(shapes)))
        dtypes = made_dtypes(rule.makes, attributes, [k.dtype for k in inputs], reader, len(made))
        if part:
            scope = (*self.scope, self.label)
            label = reader.node_name(f"{self.label}/{part}")
        else:
            scope, label = self.scope, self.label
        wanted = list(outputs) if outputs is not None else ([] if part else self.operator.outputs)
        results: list[Known] = []
        for n, (shape, dtype) in enumerate(zip(made, dtypes, strict=True)):
            name = wanted[n] if n < len(wanted) else ""
            own = name or (label if part and len(made) == 1 else f"{label}:{n}")
            found = reader.tensor_name(own, self.scope)
            results.append(Known(found, shape, dtype))
            if name:
                self.env[name] = results[-1]
        original = self.operator.name if self.operator.name != label else ""
        node = Node(
            name=label,
            op=op,
            inputs=names,
            outputs=tuple([known.name for known in results]),
            attributes=attributes,
            params=tuple(params),
            scope=scope,
            source=reader.source(self.op, original),
            note=note,
            estimate=estimate,
        )
        reader.append(node, made, dtypes)
        return results

    def told_node(
        self,
        op: str,
        inputs: Sequence[Known],
        shapes: Sequence[Shape],
        dtypes: Sequence[str],
        **more: Any,
    ) -> list[Known]:
        """A node whose output shapes are worked out here."""
        return self.emit(op, inputs, at.Told(tuple(shapes), tuple(dtypes)), **more)

    def param(self, n: int, name: str, role: Role) -> Param:
        """The n-th input as an array of the node's own."""
        return self.reader.absorb(self.given(n), name, role)

    def stored(self, n: int) -> bool:
        """Whether the n-th input is an array of the file."""
        return self.has(n) and self.given(n).entry is not None

    def alias(self, known: Known, n: int = 0) -> None:
        """The n-th output is an input as it is, under a name of its own."""
        self.emit("identity", (known,), outputs=self.operator.outputs[n : n + 1])

    def extra(self, n: int, shape: Shape, dtype: str) -> None:
        """An output beside the first that costs nothing of its own, if anybody wants it."""
        names = self.operator.outputs
        if n < len(names) and names[n]:
            told = at.Told((shape,), (dtype,))
            part = f"output{n}"
            self.emit("constant", (), told, part=part, outputs=names[n : n + 1])

    def constant(self) -> None:
        """A Constant: an array of the file, whatever it is written as."""
        name = next((name for name in self.operator.outputs if name), "")
        if not name:
            return
        reader = self.reader
        for key, attribute in self.attributes.items():
            value = attribute.value
            if isinstance(value, Stored):
                self.env[name] = reader.store(name, value, self.scope)
                return
            if key in ("value_int", "value_ints"):
                array = _literal(value, "int64")
            elif key in ("value_float", "value_floats"):
                array = _literal(value, "fp32")
            else:
                array = Array(() if isinstance(value, str) else (len(value or ()),), [], "string")
                self.env[name] = Known(
                    reader.literal(name, array, self.scope).name, array.shape, "string"
                )
                return
            self.env[name] = reader.literal(name, array, self.scope)
            return
        raise FormatError(f"{self.where}: a constant without a value")

    def fold(self) -> bool:
        """Answer before the run what depends on shapes and constants alone."""
        op, inputs, domain = self.op, self.inputs, self.operator.domain
        if domain:
            return False
        if op in ("Shape", "Size"):
            shape = inputs[0].shape if inputs and inputs[0] is not None else None
            if shape is None:
                return False
            if op == "Size":
                array = Array((), [elements(shape)], "int64")
            else:
                cut = shape[self.int("start") : self.told.get("end", len(shape))]
                array = Array((len(cut),), list(cut), "int64")
            self._known([array])
            return True
        if not inputs or not all(known is None or known.constant for known in inputs):
            return False
        first = inputs[0]
        if op == "ConstantOfShape":
            return self._filled()
        if op in KEEP_NUMBERS and first is not None and first.entry is not None:
            return self._derive(first)
        evaluate = EVALUATE.get(op)
        if evaluate is None or any(_learned(known) for known in inputs):
            return False
        arrays = []
        for known in inputs:
            value = known.value if known is not None else None
            if value is None:
                return False
            arrays.append(value)
        told = {**self.told, "outputs": len(self.operator.outputs)} if op == "Split" else self.told
        try:
            made = evaluate(told, arrays)
        except TooLarge:
            return False
        for known in inputs:
            self.reader.uses(known)
        self._known(made)
        return True

    def _known(self, arrays: Sequence[Array]) -> None:
        """Outputs whose numbers are known: the node has nothing left to do."""
        told = at.Told(tuple(a.shape for a in arrays), tuple(a.dtype for a in arrays))
        for known, array in zip(self.emit("constant", (), told), arrays, strict=True):
            known._value = array

    def _filled(self) -> bool:
        """A ConstantOfShape: an array of the file if its shape is written there."""
        sizes = self.given(0)
        shape = sizes.value
        if shape is None:
            return False
        self.reader.uses(sizes)
        value: Array | None = self.told.get("value")
        dtype = value.dtype if value is not None else "fp32"
        fill = value.values[0] if value is not None and value.values else 0.0
        made = shape.ints()
        if any(size < 0 for size in made):
            raise ShapeError(f"a shape of {made}")
        name = self.operator.outputs[0]

        def numbers() -> Array | None:
            try:
                return EVALUATE["ConstantOfShape"]({"value": value}, [shape])[0]
            except TooLarge:
                return None

        if sizes.entry is None or dtype not in FLOATS:  # worked out, not written
            known = self.told_node("constant", (), (made,), (dtype,))[0]
            known._value = numbers
            return True
        entry = Entry(self.reader.tensor_name(name, self.scope), made, dtype, None)
        entry.fill = fill
        self.reader.entries.append(entry)
        self.reader.tensors[entry.name] = (made, dtype)
        self.env[name] = Known(entry.name, made, dtype, numbers, entry)
        return True

    def _derive(self, first: Known) -> bool:
        """An array of the file in another shape or type, which is done once."""
        try:
            shape, dtype = self._derived_shape(first)
        except NeedsValue:
            return False
        known = self.told_node("constant", (), (shape,), (dtype,))[0]
        known.entry = first.entry
        assert first.entry is not None
        self.reader.derived[known.name] = first.entry
        evaluate = EVALUATE.get(self.op)
        if evaluate is not None:
            inputs, told = [k for k in self.inputs if k is not None], self.told

            def value() -> Array | None:
                arrays = [k.value for k in inputs]
                if any(array is None for array in arrays):
                    return None
                try:
                    return evaluate(told, [a for a in arrays if a is not None])[0]
                except TooLarge:
                    return None

            known._value = value
        return True

    def _derived_shape(self, first: Known) -> tuple[Shape, str]:
        from layerscope.formats.onnx.operators.moving import moved_shape

        if self.op == "DequantizeLinear":
            for n in (1, 2):
                if self.has(n):
                    entry = self.given(n).entry
                    if entry is not None:
                        entry.role = "statistic"
            return self.shape(0), self.dtype(1)
        return moved_shape(self)

    def unknown(self) -> None:
        """An operator without figures: its outputs as far as the file or onnx tells them."""
        reader, operator = self.reader, self.operator
        outputs = [name for name in operator.outputs if name]
        if not outputs:
            return
        shapes: list[Shape | None] = []
        dtypes: list[str] = []
        for name in outputs:
            shape, dtype = self._declared(name)
            shapes.append(shape)
            dtypes.append(dtype)
        if any(shape is None for shape in shapes) and not self.blank:
            from layerscope.formats.onnx.fallback import inferred

            found = inferred(self)
            for n, name in enumerate(outputs):
                if shapes[n] is None and name in found:
                    shapes[n], dtypes[n] = found[name]
        names = tuple(
            reader.input_name(k) for k in self.inputs if k is not None and k.items is None
        )
        made = tuple(reader.tensor_name(name, self.scope) for name in outputs)
        op = f"{operator.domain}::{self.op}" if operator.domain else self.op
        node = Node(
            name=self.label,
            op=op,
            inputs=names,
            outputs=made,
            attributes=at.Opaque(tuple(shapes)),
            params=(),
            scope=self.scope,
            source=reader.source(self.op, operator.name if operator.name != self.label else ""),
        )
        reader.append(node, shapes, dtypes)
        for name, tensor, shape, dtype in zip(outputs, made, shapes, dtypes, strict=True):
            self.env[name] = Known(tensor, shape, dtype)

    def _declared(self, name: str) -> tuple[Shape | None, str]:
        """What the file says of a tensor."""
        value = self.values.get(name)
        dtype = value.dtype if value is not None else ""
        if not dtype:
            dtype = next((k.dtype for k in self.inputs if k is not None), "fp32")
        if value is None or value.dims is None:
            return None, dtype
        sizes = [dim.size for dim in value.dims]
        if any(size is None for size in sizes):
            return None, dtype
        return tuple([size for size in sizes if size is not None]), dtype


LAST_OPSET = 26


def _literal(value: Any, dtype: str) -> Array:
    many = isinstance(value, tuple)
    values = list(value) if many else [value]
    return Array((len(values),) if many else (), values, dtype)


def _learned(known: Known | None) -> bool:
    """Whether an array looks like a parameter rather than a number to reckon with."""
    if known is None or known.entry is None or known.dtype not in FLOATS:
        return False
    return elements(known.entry.shape) > FEW


def made_dtypes(
    makes: Sequence[str], attributes: Any, given: Sequence[str], reader: Reader, count: int
) -> list[str]:
    """Number types of a rule's outputs, as the analysis will have them."""
    first = given[0] if given else reader.dtype
    made = []
    for n in range(count):
        kind = makes[n] if n < len(makes) else "input"
        if kind == "input":
            made.append(first)
        elif kind == "second":
            made.append(given[1])
        elif kind == "float":
            made.append(reader.dtype or "fp32")
        elif kind == "told":
            told = getattr(attributes, "dtypes", None)
            made.append(told[n] if told is not None else attributes.dtype)
        else:
            made.append(kind)
    return made


def graph_from(
    reader: Reader, name: str, inputs: Sequence[Tensor], outputs: Sequence[str]
) -> Graph:
    """The graph of all that was walked: arrays by what they turned out to be."""
    nodes = []
    for node in reader.nodes:
        if node.op == "constant" and node.outputs[0] in reader.derived_read:
            tensor = node.outputs[0]
            entry = reader.derived[tensor]
            shape, _ = reader.tensors[tensor]
            assert shape is not None
            param = Param("value", shape, entry.role or "weight", entry.dtype, entry.name)
            node = replace(node, params=(param,))
        nodes.append(node)
    params = dict(reader.params)
    absorbed = {p.storage for node in nodes for p in node.params or ()}
    for entry in reader.entries:
        if entry.name in params:
            params[entry.name] = entry.param
        elif entry.name not in absorbed:
            params[entry.name] = entry.param
    return Graph(
        name=name,
        inputs=tuple(inputs),
        nodes=tuple(nodes),
        outputs=tuple(outputs),
        params=tuple(params.values()),
        modules=reader.modules,
        dtype=reader.dtype or "fp32",
        notes=tuple(reader.notes),
        own_layout=True,
    )


ParseError = LayerscopeError
SYMBOL = re.compile(r"[A-Za-z_][\w.:/]*")
