"""One operator where the walk stands: what it is told and given, and how to answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from layerscope.errors import FormatError
from layerscope.formats.onnx.arrays import Array
from layerscope.formats.onnx.known import Env, Known, NeedsValue
from layerscope.formats.onnx.reasons import formal
from layerscope.formats.onnx.skim import Attribute, GraphPart, Operator, Value, graph_of
from layerscope.formats.onnx.tensors import Span, Stored
from layerscope.formats.onnx.words import Words
from layerscope.graph import attributes as at
from layerscope.graph.types import Node, Param, Role, Shape, elements
from layerscope.ops import SPECS, Call
from layerscope.ops.spec import out_dtype, within_limits

if TYPE_CHECKING:
    from layerscope.formats.onnx.reader import Reader

MOST_DEPTH = 40  # of graphs in graphs
LAST_OPSET = 26


class Site:
    """One operator where the walk stands: its inputs, what it is told, and how to answer."""

    __slots__ = (
        "_label", "_words", "blank", "bound", "constant", "depth", "env", "from_declared", "inputs",
        "op",
        "operator", "opsets", "outside", "reader", "scope", "values",
    )  # fmt: skip

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
        outside: Mapping[str, str],
    ) -> None:
        self.reader, self.operator, self.env = reader, operator, env
        self.scope, self.opsets, self.bound, self.values = scope, opsets, bound, values
        self.depth, self.outside = depth, outside
        self.op = operator.op
        self._words: Words | None = None
        self.from_declared = ""  # the declared shape that its outputs rest on
        self._label = ""
        inputs: list[Known | None] = []
        self.blank = False  # the shape of an input is not known
        self.constant = True  # all inputs are known before the run
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
            if known.shape is None:
                self.blank = True
            if known.entry is None and known._value is None:
                self.constant = False
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
    def inner(self) -> tuple[str, ...]:
        """The scope of what stands for it, where that is several nodes."""
        label, path = self.label, "/".join(self.scope) + "/"
        return (*self.scope, label[len(path) :] if label.startswith(path) else label)

    @property
    def words(self) -> Words:
        """What it is told."""
        if self._words is None:
            vocabulary = self.reader.vocabulary
            self._words = vocabulary.words(self.operator.attributes, self.bound)
        return self._words

    @property
    def attributes(self) -> dict[str, Attribute]:
        """Its attributes, by name."""
        return self.words.attributes

    @property
    def told(self) -> dict[str, Any]:
        """Values of its attributes; tensors as arrays where they are small."""
        return self.words.told

    def graph(self, name: str) -> GraphPart:
        """The graph in an attribute."""
        attribute = self.attributes.get(name)
        if attribute is None or attribute.graph is None:
            raise FormatError(f"{self.where}: no graph {name!r} in it")
        span: Span = attribute.graph
        if self.depth >= MOST_DEPTH:
            raise FormatError(f"{self.reader.file}: graphs nested more than {MOST_DEPTH} deep")
        return graph_of(self.reader.wire, *span)

    def whole(self, name: str, default: int = 0) -> int:
        """A whole number it is told."""
        value = self.told.get(name)
        return default if value is None else int(value)

    def wholes(self, name: str, default: Sequence[int] = ()) -> tuple[int, ...]:
        """Whole numbers it is told."""
        value = self.told.get(name)
        return tuple(default) if value is None else tuple(map(int, value))

    def count(self, name: str) -> int:
        """How many numbers an attribute holds, be they read or too many for that."""
        attribute = self.attributes.get(name)
        if attribute is None:
            return 0
        if isinstance(attribute.value, Stored):
            return elements(attribute.value.shape)
        return attribute.count

    def real(self, name: str, default: float = 0.0) -> float:
        """A number it is told."""
        value = self.told.get(name)
        return default if value is None else float(value)

    def text(self, name: str, default: str = "") -> str:
        """A word it is told."""
        value = self.told.get(name)
        return value if isinstance(value, str) else default

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
        known = self.given(n)
        if known.shape is None:
            raise NeedsValue(self.reader.trace.shape(known.name))
        return known.shape

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
            raise NeedsValue(self.unknown_value(n))
        return value

    def unknown_value(self, n: int) -> str:
        """Which value is missing, and where it would come from."""
        if not self.has(n):
            return f"{formal(self.op, n)} is missing"
        known = self.given(n)
        if known.entry is not None:
            many = f"{elements(known.entry.shape):,} numbers or in another file"
            return f"{formal(self.op, n)} is not read: {known.name!r} is stored with {many}"
        return self.reader.trace.value(known.name, self.op, n, self.reader.params)

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
        names: list[str] = []
        shapes: list[Shape] = []
        kinds: list[str] = []
        for known in inputs:
            names.append(known.name if known.entry is None else reader.input_name(known, roles))
            if known.shape is None:
                raise NeedsValue(reader.trace.shape(known.name))
            shapes.append(known.shape)
            kinds.append(known.dtype)
        made, dtypes = self._made(op, attributes, tuple(shapes), kinds)
        if part:
            scope = self.inner
            label = reader.node_name(f"{self.label}/{part}")
        else:
            scope, label = self.scope, self.label
        wanted: Sequence[str] = self.operator.outputs
        if outputs is not None or part:
            wanted = outputs or ()
        results: list[Known] = []
        for n, shape in enumerate(made):
            name = wanted[n] if n < len(wanted) else ""
            own = name or (label if part and len(made) == 1 else f"{label}:{n}")
            found = reader.tensor_name(self.outside.get(own, own), self.scope)
            known = Known(found, shape, dtypes[n])
            results.append(known)
            if name:
                self.env[name] = known
                value = self.values.get(name)
                if value is not None and reader.trusts_declared:
                    self.compare(name, value, shape)
        original = self.operator.name
        source = reader.source(self.op, "" if original == label else original)
        node = Node(
            name=label,
            op=op,
            inputs=tuple(names),
            outputs=tuple([known.name for known in results]),
            attributes=attributes,
            params=tuple(params),
            scope=scope,
            source=source,
            note=note,
            estimate=estimate,
            inner=bool(part) and outputs is None,
        )
        if reader.declared:
            read = [known.name for known in self.inputs if known is not None]
            reader.append(node, made, dtypes, read)
        else:
            reader.append(node, made, dtypes)
        if self.from_declared:
            for known in results:
                reader.declared[known.name] = self.from_declared
        return results

    def compare(self, name: str, value: Value, shape: Shape) -> None:
        """Note a declared shape that is not the inferred one."""
        dims = value.dims
        if dims is None:
            return
        if len(dims) != len(shape) or any(
            dim.size is not None and dim.size != size for dim, size in zip(dims, shape, strict=True)
        ):
            said = [dim.name or "?" if dim.size is None else dim.size for dim in dims]
            self.reader.contradict(name, said, shape)

    def _made(
        self, op: str, attributes: Any, shapes: tuple[Shape, ...], kinds: list[str]
    ) -> tuple[tuple[Shape, ...], list[str]]:
        """Shapes and number types that a rule makes; of nodes alike, asked once."""
        # the reader keeps one of equal attributes alive, so its id stands for them
        key = (op, id(attributes), shapes, *kinds)
        found = self.reader.made.get(key)
        if found is None:
            rule = SPECS[op]
            made = within_limits(rule.shape(Call(attributes, shapes)))
            makes, floating = rule.out_dtypes, self.reader.dtype
            dtypes = [out_dtype(makes, n, attributes, kinds, floating) for n in range(len(made))]
            found = self.reader.made[key] = (made, dtypes)
        return found

    def told_node(
        self,
        op: str,
        inputs: Sequence[Known],
        shapes: Sequence[Shape],
        dtypes: Sequence[str],
        **more: Any,
    ) -> list[Known]:
        """A node whose output shapes are worked out here."""
        return self.emit(op, inputs, at.DeclaredOutputs(tuple(shapes), tuple(dtypes)), **more)

    def counted(
        self, inputs: Sequence[Known], told: at.CustomCost, *, shapes: bool = True, **more: Any
    ) -> list[Known]:
        """A node whose output shapes and operations are computed here."""
        if "outputs" not in more and "part" not in more:  # those that nobody names are left out
            count = max(len(self.operator.outputs), 1)
            told = replace(told, shapes=told.shapes[:count], dtypes=told.dtypes[:count])
        read = [known for known in inputs if shapes or known.shape is not None]
        return self.emit("custom", read, told, **more)

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
            told = at.DeclaredOutputs((shape,), (dtype,))
            part = f"output{n}"
            self.emit("constant", (), told, part=part, outputs=names[n : n + 1])

    def unknown(self, why: str = "") -> None:
        """An operator without figures, and why; "" if there is no rule for it."""
        from layerscope.formats.onnx.opaque import emit_unknown

        emit_unknown(self, why)

    def declared_output(self, n: int) -> Shape | None:
        """The shape that the file declares of the n-th output, where it still holds."""
        names = self.operator.outputs
        return self.declared(names[n])[0] if n < len(names) and names[n] else None

    def declared_dtype(self, n: int) -> str:
        """The dtype that the file declares of the n-th output, else that of the first input."""
        return self.declared(self.operator.outputs[n])[1]

    def from_file(self, n: int) -> dict[str, Any]:
        """Options of `emit` for a node whose shapes the file declares: it is an estimate."""
        names = [name for name in self.operator.outputs if name]
        shape = self.declared_output(n)
        root = f"{names[n]}, {'x'.join(map(str, shape or ())) or 'scalar'}"
        self.from_declared = root
        return {"estimate": True, "note": f"from the declared shape of {root}"}

    def declared(self, name: str) -> tuple[Shape | None, str]:
        """What the file says of a tensor; no shape where its inputs are not those declared."""
        value = self.values.get(name)
        dtype = value.dtype if value is not None else ""
        if not dtype:
            dtype = next((k.dtype for k in self.inputs if k is not None), "fp32")
        binding = self.reader.binding if self.reader.trusts_declared else None
        return (binding.declared(value) if value is not None and binding else None), dtype


Convert = Callable[[Site], None]
