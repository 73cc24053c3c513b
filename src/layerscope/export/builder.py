"""A network as Builder calls, one per line, which `formats/builder_text.py` reads back.

An op is written as the Builder's own method where that gives the same node, else as `add_node` with
the attributes in full. Sources and notes of a file are not written; stored arrays cannot be.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from keyword import iskeyword

import msgspec
from msgspec import Struct

from layerscope.builder import Builder
from layerscope.builder.calls import DECLARATIONS, CallParameter, TensorName, calls
from layerscope.errors import LayerscopeError, UsageError
from layerscope.graph.attributes import Activation, Crop, Resize, Slice, Window
from layerscope.graph.types import Graph, Node
from layerscope.report.types import Report

FAMILIES = {
    "global_avg_pool": ("global_pool", "avg"), "global_max_pool": ("global_pool", "max"),
    "global_lp_pool": ("global_pool", "lp"), "adaptive_avg_pool": ("adaptive_pool", "avg"),
    "adaptive_max_pool": ("adaptive_pool", "max"),
    "rnn": ("recurrent", "rnn"), "lstm": ("recurrent", "lstm"), "gru": ("recurrent", "gru"),
}  # fmt: skip
FIELDS = {"out_channels": "channels", "out_features": "features"}
# Fields of a graph and of a node that calls cannot state, and that change figures.
STATED_BY_FILES = (
    "unused",
    "autograd",
    "own_layout",
    "cache",
    "past",
    "windows",
    "causal",
    "claims",
    "batch",
)
INDENT = "    "
Arguments = dict[str, object]
Order = Mapping[str, tuple[str, ...]]  # names of children by the path of their module


class CallLine(Struct, frozen=True):
    """A call of the Builder: its name, and its arguments by parameter."""

    name: str
    given: Arguments


def write(report: Report) -> str:
    """The calls of a network; raises if they would read back as another network."""
    return calls_of(report.graph)[0]


def calls_of(graph: Graph, *, checked: bool = True) -> tuple[str, Mapping[str, int]]:
    """The calls of a network, and the line of each input and node; raises as `write` does.

    Without `checked` they are not read back, which takes most of the time.
    """
    from layerscope.formats.builder_text import parse

    _check(graph)
    if not checked:
        return _text_of(graph, _expected_order(graph, graph))
    text, again = "", graph
    lines: Mapping[str, int] = {}
    for order in (_expected_order, _no_order, _child_order, _full_order):
        text, lines = _text_of(graph, order(graph, again))
        again = parse(text, graph.name)[0]
        if list(again.modules.items()) == list(graph.modules.items()):
            break
    for node, same in zip(graph.nodes, again.nodes, strict=True):
        for field in ("name", "op", "attributes", "scope", "ties"):
            if getattr(node, field) != getattr(same, field):
                raise UsageError(_refusal(graph, f"{node.name} has {field} that no call gives"))
    return text, lines


def _refusal(graph: Graph, why: str) -> str:
    return f"{graph.name} cannot be written as Builder calls: {why}"


def _check(graph: Graph) -> None:
    """Raise for a network with parts that calls cannot state."""
    plain = Graph(graph.name, graph.inputs, (), ())
    for field in STATED_BY_FILES:
        if getattr(graph, field) != getattr(plain, field):
            raise UsageError(_refusal(graph, f"its file states {field}"))
    for tensor in graph.inputs:
        if tensor.shape is None:
            raise UsageError(_refusal(graph, f"the shape of input {tensor.name} is unknown"))
    for node in graph.nodes:
        if node.params is not None:
            raise UsageError(_refusal(graph, f"{node.name} has arrays that are stored in a file"))
        if node.times != 1 or node.estimate or node.inner:
            raise UsageError(_refusal(graph, f"{node.name} is not run once, or is a step of an op"))


def _expected_order(graph: Graph, again: Graph) -> Order:
    """The order to state, from where the calls declare the modules; they are not read back."""
    separator = _separator(graph)
    own = [path for path in graph.modules if path]
    found, natural = (_children(each, separator) for each in (own, _declared(graph, {})))
    order = {path: names for path, names in found.items() if natural.get(path) != names}
    return order if _declared(graph, order) == own else _full_order(graph, again)


def _declared(graph: Graph, order: Order) -> list[str]:
    """The modules in the order in which the calls declare them."""
    blocks = ScopeWriter(graph, _separator(graph), order)
    blocks.head()
    for node in graph.nodes:
        deque(blocks.before(node), maxlen=0)
    deque(blocks.rest(len(graph.modules)), maxlen=0)
    return [path for path in blocks.declared if path in graph.modules and path]


def _no_order(graph: Graph, again: Graph) -> Order:
    return {}


def _child_order(graph: Graph, again: Graph) -> Order:
    """The children of modules that are declared in another order than their ops run in."""
    separator = _separator(graph)
    found, natural = (_children(each.modules, separator) for each in (graph, again))
    return {path: names for path, names in found.items() if natural.get(path) != names}


def _children(modules: Iterable[str], separator: str) -> Order:
    found: dict[str, dict[str, None]] = {}
    for path in filter(None, modules):
        parent, _, name = path.rpartition(separator)
        found.setdefault(parent, {})[name] = None
    return {path: tuple(names) for path, names in found.items()}


def _full_order(graph: Graph, again: Graph) -> Order:
    return {"": tuple(filter(None, graph.modules))}


def _text_of(graph: Graph, order: Order) -> tuple[str, Mapping[str, int]]:
    """The calls, and the line of each input and node."""
    separator = _separator(graph)
    variables = _variables(graph)
    writer = NodeWriter(graph, separator, variables)
    blocks = ScopeWriter(graph, separator, order)
    lines = [blocks.head()]
    numbers: dict[str, int] = {}
    for tensor in graph.inputs:
        words = [_text(tensor.name), _text(tensor.shape), _dtype(tensor.dtype)]
        lines.append(f"{variables[tensor.name]} = input({', '.join(filter(None, words))})")
        numbers[tensor.name] = len(lines)
    for param in graph.params:
        words = [_text(param.name), _text(param.shape), _text(param.role), _dtype(param.dtype)]
        lines.append(f"{variables[param.name]} = stored({', '.join(filter(None, words))})")
        numbers[param.name] = len(lines)
    for node in graph.nodes:
        lines += blocks.before(node)
        targets = ", ".join(variables[name] for name in node.outputs)
        lines.append(f"{INDENT * len(node.scope)}{targets} = {writer.call(node)}")
        numbers[node.name] = len(lines)
    lines += blocks.rest(len(graph.modules))
    lines.append(f"build({', '.join(variables[name] for name in graph.outputs)})")
    return "\n".join(lines) + "\n", numbers


class ScopeWriter:
    """Writes the modules of a network, each with its class where it is entered first."""

    def __init__(self, graph: Graph, separator: str, order: Order) -> None:
        self.graph = graph
        self.separator = separator
        self.order = order
        self.scope: tuple[str, ...] = ()
        self.entered: set[str] = set()
        self.declared: dict[str, None] = {}  # all paths, in the order of the calls
        self.numbers = {path: n for n, path in enumerate(graph.modules)}
        scopes = {node.scope[:n] for node in graph.nodes for n in range(1, len(node.scope) + 1)}
        used = {separator.join(scope) for scope in scopes}
        used |= {node.module for node in graph.nodes if not graph.modules.get(node.module)}
        # modules without ops, and ops with a class of their own
        self.waiting = [path for path in graph.modules if path not in used and path]

    def head(self) -> str:
        """The first line."""
        kind = self.graph.modules.get("", self.graph.name)
        words = [_text(self.graph.name)]
        words += [_text(kind)] if kind != self.graph.name else []
        words += self._ordered("")
        words += [f"separator={_text(self.separator)}"] if self.separator != "." else []
        words += [f"dtype={_text(self.graph.dtype)}"] if self.graph.dtype != "fp32" else []
        return f"network({', '.join(words)})"

    def before(self, node: Node) -> Iterator[str]:
        """The lines that lead from the current scope to that of a node."""
        paths = [self.separator.join(node.scope[:n]) for n in range(1, len(node.scope) + 1)]
        new = [path for path in (*paths, node.module) if path not in self.entered]
        yield from self.rest(min((self.numbers.get(path, 0) for path in new), default=0))
        for depth in range(_common(self.scope, node.scope), len(node.scope)):
            yield INDENT * depth + self._scope(node.scope[depth], paths[depth])
            self.entered.add(paths[depth])
        self.entered.add(node.module)
        self.declared[node.module] = None
        self.scope = node.scope

    def rest(self, number: int) -> Iterator[str]:
        """The modules without ops that are declared before a number."""
        while self.waiting and self.numbers[self.waiting[0]] < number:
            path = self.waiting.pop(0)
            parts = tuple(path.split(self.separator))
            depth = _common(self.scope, parts[:-1])
            self.scope = self.scope[:depth]
            name = self.separator.join(parts[depth:])
            yield f"{INDENT * depth}{self._scope(name, path)} pass"

    def _scope(self, name: str, path: str) -> str:
        self.declared[path] = None
        kind = self.graph.modules.get(path, "")
        words = [_text(name), *([_text(kind)] if kind else []), *self._ordered(path)]
        return f"with scope({', '.join(words)}):"

    def _ordered(self, path: str) -> list[str]:
        found = self.order.get(path, ())
        if not found or path in self.entered:
            return []
        prefix = path + self.separator if path else ""
        self.declared.update(dict.fromkeys(prefix + child for child in found))
        return [f"order={_text(found)}"]


def _dtype(dtype: str) -> str:
    return "" if dtype == "fp32" else f"dtype={_text(dtype)}"


def _separator(graph: Graph) -> str:
    """What the names of nodes have between the names of their modules."""
    for node in graph.nodes:
        start = len(node.scope[0]) if node.scope else 0
        if start and node.name.startswith(node.scope[0]) and len(node.name) > start:
            return node.name[start]
    return "."


def _variables(graph: Graph) -> dict[str, str]:
    """A variable for each tensor: its name in letters, digits and underscores."""
    found: dict[str, str] = {}
    used = {"with", "True", "False", "None"}
    names = [*(each.name for each in graph.inputs), *(each.name for each in graph.params)]
    for name in (*names, *(tensor for node in graph.nodes for tensor in node.outputs)):
        word = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "x"
        word = f"x{word}" if word[0].isdigit() or iskeyword(word) else word
        count, variable = 1, word
        while variable in used:
            count += 1
            variable = f"{word}_{count}"
        used.add(variable)
        found[name] = variable
    return found


def _common(first: tuple[str, ...], second: tuple[str, ...]) -> int:
    """How many modules two paths have in common from the outside."""
    count = 0
    while count < min(len(first), len(second)) and first[count] == second[count]:
        count += 1
    return count


class NodeWriter:
    """Writes the calls of nodes; equal attributes are compared with the Builder's once."""

    def __init__(self, graph: Graph, separator: str, variables: Mapping[str, str]) -> None:
        self.graph = graph
        self.separator = separator
        self.variables = variables
        self.rank = len(graph.inputs[0].shape or ()) - 2 if graph.inputs else 2
        self.methods: set[tuple[object, ...]] = set()  # nodes that the op's own method gives

    def call(self, node: Node) -> str:
        """The call of a node."""
        line = self._method(node)
        if line is not None:
            first = tuple(node.inputs.index(tensor) for tensor in node.inputs)
            like = (node.op, node.attributes, first, len(node.outputs), bool(node.module))
            if not node.ties and like in self.methods:
                return self._line(line)
            if self._gives_node(node, line):
                if not node.ties:
                    self.methods.add(like)
                return self._line(line)
        line = self._in_full(node)
        if line is not None and self._gives_node(node, line):
            return self._line(line)
        raise UsageError(_refusal(self.graph, f"{node.name} has attributes that no call gives"))

    def _gives_node(self, node: Node, line: CallLine) -> bool:
        """Whether the call gives the node."""
        trial = Builder("trial")
        for tensor in self.graph.inputs[:1]:
            trial.input(tensor.name, tensor.shape or ())
        several = line.given.get("xs", ())
        assert isinstance(several, tuple)
        values = {key: value for key, value in line.given.items() if key != "xs"}
        before = [values.pop("equation")] if line.name == "einsum" else []
        try:
            getattr(trial, line.name)(*before, *several, **values)
        except LayerscopeError:
            return False
        found = trial.last_node
        return (
            (node.op, node.inputs, node.attributes, node.ties, len(node.outputs))
            == (found.op, found.inputs, found.attributes, found.ties, len(found.outputs))
            and bool(node.module) == bool(found.module)
        )  # fmt: skip

    def _name(self, node: Node) -> str:
        """The name inside the scope; that of its module if it is called once more."""
        prefix = "".join(each + self.separator for each in node.scope)
        name = node.module if node.module and node.name.startswith(node.module) else node.name
        return name.removeprefix(prefix)

    def _method(self, node: Node) -> CallLine | None:
        """The call of the op's own method, if it has one."""
        method, kind = FAMILIES.get(node.op, (node.op, ""))
        if node.op.startswith("reduce_"):
            method, kind = "reduce", node.op.removeprefix("reduce_")
        elif method not in calls() and isinstance(node.attributes, Activation):
            method = "activation"
        if method not in calls() or method in DECLARATIONS:
            return None
        values = self._fields(node) | {"op": node.op, "kind": kind, "module": bool(node.module)}
        values["name"] = self._name(node)
        given: Arguments = {}
        waiting = list(node.inputs)
        for parameter in calls()[method]:
            if parameter.several:
                given[parameter.name] = tuple(waiting)
                waiting = []
            elif parameter.takes_tensor:
                if waiting:
                    given[parameter.name] = TensorName(waiting.pop(0))
            elif parameter.name in values:
                if values[parameter.name] != parameter.default:
                    given[parameter.name] = values[parameter.name]
            elif parameter.needed:
                return None
        return CallLine(method, given)

    def _fields(self, node: Node) -> Arguments:
        """Fields of the attributes under the names of the Builder's parameters."""
        found: Arguments = {}
        if node.ties:
            found["tied"] = node.ties.get("weight", "")
        if node.attributes is None:
            return found
        for name in node.attributes.__struct_fields__:
            value = getattr(node.attributes, name)
            if isinstance(value, Window):
                found |= self._window(value, pooling=not node.op.startswith("conv"))
            else:
                found[FIELDS.get(name, name)] = value
        found |= _single(node.attributes)
        if "output_padding" in found:
            found["output_padding"] = self._short(found["output_padding"])
        if node.op.startswith("adaptive"):
            found["output"] = self._short(found["output"])
        return found

    def _window(self, window: Window, *, pooling: bool) -> Arguments:
        padding: object = window.pads
        if not isinstance(window.pads, str) and all(a == b for a, b in window.pads):
            padding = self._short(tuple(before for before, _ in window.pads))
        same_stride = pooling and window.stride == window.kernel
        return {
            "kernel": self._short(window.kernel),
            "stride": None if same_stride else self._short(window.stride),
            "padding": "same" if padding == "same_upper" else padding,
            "dilation": self._short(window.dilation),
            "rounding": window.rounding,
        }

    def _short(self, sizes: object) -> object:
        """One number for every spatial axis, where all are equal."""
        if isinstance(sizes, tuple) and len(sizes) == self.rank and len(set(sizes)) == 1:
            return sizes[0]
        return sizes

    def _in_full(self, node: Node) -> CallLine:
        """The call of any op, with its attributes in full."""
        given: Arguments = {"op": node.op, "inputs": tuple(map(TensorName, node.inputs))}
        if node.attributes is not None:
            given["attributes"] = node.attributes
        given["name"] = self._name(node)
        if len(node.outputs) != 1:
            given["outputs"] = len(node.outputs)
        if not node.module:
            given["module"] = False
        if node.ties:
            given["ties"] = dict(node.ties)
        return CallLine("add_node", given)

    def _line(self, line: CallLine) -> str:
        words = []
        by_name = False
        for parameter in calls()[line.name]:
            if parameter.name not in line.given:
                by_name = True
                continue
            value = line.given[parameter.name]
            if parameter.several:
                assert isinstance(value, tuple)
                words += [self.variables[each] for each in value]
                continue
            text = self._value(parameter, value)
            words.append(f"{parameter.name}={text}" if parameter.keyword or by_name else text)
        return f"{line.name}({', '.join(words)})"

    def _value(self, parameter: CallParameter, value: object) -> str:
        if isinstance(value, TensorName):
            return self.variables[value]
        if parameter.name == "inputs":
            assert isinstance(value, tuple)
            return f"[{', '.join(self.variables[each] for each in value)}]"
        return _text(value)


def _single(attributes: Struct) -> Arguments:
    """Fields that a method takes as one number."""
    if isinstance(attributes, Slice) and len(attributes.axes) == 1:
        [axis], [start], [end] = attributes.axes, attributes.starts, attributes.ends
        return {"axis": axis, "start": start, "end": end, "step": (attributes.steps or (1,))[0]}
    if isinstance(attributes, Crop) and len(attributes.offsets) == 1:
        return {"offset": attributes.offsets[0]}
    if isinstance(attributes, Resize) and len(attributes.scale) == 1:
        return {"factor": attributes.scale[0][0]}
    return {}


def _text(value: object) -> str:
    """A value as a literal; attributes as a call with the fields that differ from the defaults."""
    if isinstance(value, Struct):
        fields = msgspec.structs.fields(type(value))
        given = [(field, getattr(value, field.name)) for field in fields]
        words = [f"{f.name}={_text(v)}" for f, v in given if f.required or v != f.default]
        return f"{type(value).__name__}({', '.join(words)})"
    if isinstance(value, tuple):
        inside = ", ".join(map(_text, value))
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_text(key)}: {_text(each)}" for key, each in value.items()) + "}"
    if isinstance(value, str):
        return json.dumps(value)
    return repr(value)
