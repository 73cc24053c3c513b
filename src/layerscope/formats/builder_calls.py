"""Statements of a text replayed on a Builder: values checked, variables, scopes, positions."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn

import msgspec
from msgspec.structs import replace

from layerscope.builder import Builder
from layerscope.builder.calls import CallParameter, TensorName, blocks, calls
from layerscope.errors import FormatError, GraphError, ShapeError, UnknownName
from layerscope.formats.builder_text import CallText, close_word
from layerscope.graph import attributes as at
from layerscope.graph.dtype_names import known_dtype
from layerscope.graph.types import Graph
from layerscope.limits import NAME_CHARACTERS
from layerscope.ops import SPECS

Argument = tuple[object, ast.expr]  # a value and its expression
LINE = "expected a call on each line, such as x = conv(data, 64, 3, padding=1)"


class Replay:
    """The network of a text while its statements are replayed."""

    def __init__(self, source: CallText) -> None:
        self.source = source
        stem = os.path.splitext(os.path.basename(source.name))[0]
        self.builder = Builder(stem or "network")
        self.dtype = "fp32"
        self.tensors: dict[str, TensorName] = {}  # by variable
        self.outputs: tuple[str, ...] | None = None
        self.lines: dict[str, int] = {}
        self.begun = False
        self.path = 0  # characters in the names of the scopes around the current call

    def graph(self) -> tuple[Graph, Mapping[str, int]]:
        """The network, and the line of each node and input."""
        try:
            graph = self.builder.build(*(self.outputs or ()))
        except GraphError as error:
            raise FormatError(f"{self.source.name}: {error}") from None
        return (graph if self.dtype == "fp32" else replace(graph, dtype=self.dtype)), self.lines

    def run(self, statements: Iterable[ast.stmt]) -> None:
        """Replay statements in their order."""
        for statement in statements:
            if self.outputs is not None:
                raise self.source.error(statement, "a call after build, which is the last")
            match statement:
                case ast.Assign(targets=[target], value=ast.Call() as call):
                    self._assign(target, call)
                case ast.Expr(value=ast.Call(func=ast.Name(id="network" | "build")) as call):
                    self._frame(call)
                case ast.Expr(value=ast.Call(func=ast.Name(id=name)) as call) if name in calls():
                    raise self.source.error(call, f"the result of {name} has no variable; {LINE}")
                case ast.With(
                    items=[ast.withitem(context_expr=ast.Call() as call, optional_vars=None)],
                    body=body,
                ):
                    self._within(call, body)
                case ast.Pass():
                    pass
                case _:
                    raise self.source.error(statement, LINE)
            self.begun = True

    def _frame(self, call: ast.Call) -> None:
        """Replay `network`, which is the first call, or `build`, which is the last."""
        name = _called(call)
        given = self._arguments(call, name, blocks()[name])
        if name == "build":
            listed = given.get("xs", ())
            assert isinstance(listed, list)
            self.outputs = tuple(str(value) for value, _ in listed)
            return
        if self.begun:
            raise self.source.error(call, "network after another call, expected on the first line")
        values = {key: each[0] for key, each in given.items() if isinstance(each, tuple)}
        dtype = values.pop("dtype", "fp32")
        try:
            self.dtype = known_dtype(dtype)
        except UnknownName as error:
            raise self._located(call, given, error) from None
        title = str(values.pop("name"))
        separator = str(values.get("separator", "."))
        if not separator:
            raise self.source.error(call, "an empty separator, expected a character")
        self._check_name(call, title)
        self.builder = Builder(title, **values)  # type: ignore[arg-type]

    def _within(self, call: ast.Call, body: Sequence[ast.stmt]) -> None:
        if _called(call) != "scope":
            raise self.source.error(call, 'expected with scope("name", "Class"):')
        given = self._arguments(call, "scope", blocks()["scope"])
        values = {key: each[0] for key, each in given.items() if isinstance(each, tuple)}
        name = str(values.pop("name"))
        self._check_name(call, name)
        self.begun = True
        self.path += len(name) + 1
        with self.builder.scope(name, **values):  # type: ignore[arg-type]
            self.run(body)
        self.path -= len(name) + 1

    def _assign(self, target: ast.expr, call: ast.Call) -> None:
        """Replay a call, and keep its tensors under the variables of its line."""
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        for each in names:
            if not isinstance(each, ast.Name):
                raise self.source.error(each, f"no variable; {LINE}")
        name = _called(call)
        if name not in calls():
            self._refuse_call(call, name)
        given = self._arguments(call, name, calls()[name])
        for key in ("name", "tied"):
            if key in given:
                self._check_name(call, str(_value(given, key)))
        if name == "add_node" and _value(given, "outputs", 1) != len(names):
            raise self.source.error(target, f"{len(names)} variables, expected outputs of them")
        several = given.pop("xs", [])
        assert isinstance(several, list)
        values = {key: _plain(each) for key, each in given.items() if isinstance(each, tuple)}
        before = [values.pop("equation")] if name == "einsum" else []
        try:
            found = getattr(self.builder, name)(*before, *map(_plain, several), **values)
        except (ShapeError, GraphError) as error:
            raise self._located(call, given, error) from None
        tensors = (found,) if isinstance(found, str) else found
        if len(tensors) != len(names):
            what = f"{name} has {len(tensors)} results, and the line {len(names)} variables"
            raise self.source.error(target, what)
        self._keep(name, call, tensors)
        for each, tensor in zip(names, tensors, strict=True):
            assert isinstance(each, ast.Name)
            self.tensors[each.id] = TensorName(tensor)

    def _keep(self, name: str, call: ast.Call, tensors: Sequence[str]) -> None:
        """Note the line of a node, whose op must exist unless it is given by `add_node`."""
        if name in ("input", "stored"):
            self.lines[tensors[0]] = call.lineno
            return
        node = self.builder.last_node
        self.lines[node.name] = call.lineno
        if node.op not in SPECS and name != "add_node":
            raise self.source.error(call, f"no op {node.op!r:.80}")

    def _refuse_call(self, call: ast.Call, name: str) -> NoReturn:
        near = close_word(name, calls())
        meant = f"; did you mean {near}?" if near else ""
        raise self.source.error(call.func, f"unknown call {name!r:.80}{meant}", near)

    def _check_name(self, call: ast.Call, name: str) -> None:
        count = len(name) + self.path
        if count > NAME_CHARACTERS.most:
            raise self.source.error(call, NAME_CHARACTERS.refusal(count))

    # -- arguments

    def _arguments(
        self, call: ast.Call, name: str, parameters: Sequence[CallParameter]
    ) -> dict[str, Argument | list[Argument]]:
        """The arguments of a call by parameter, each of the right type."""
        found: dict[str, Argument | list[Argument]] = {}
        waiting = [each for each in parameters if not each.keyword]
        for expression in call.args:
            if not waiting:
                raise self.source.error(expression, f"too many arguments of {name}")
            parameter = waiting[0] if waiting[0].several else waiting.pop(0)
            argument = self._checked(parameter, expression)
            if parameter.several:
                listed = found.setdefault(parameter.name, [])
                assert isinstance(listed, list)
                listed.append(argument)
            else:
                found[parameter.name] = argument
        by_name = {each.name: each for each in parameters if not each.several}
        for keyword in call.keywords:
            given = keyword.arg or "**"
            if given not in by_name:
                near = close_word(given, by_name)
                meant = f"did you mean {near}?" if near else f"it has {', '.join(by_name)}"
                fix = f"{near}={ast.unparse(keyword.value)}" if near else None
                raise self.source.error(keyword, f"{name} has no {given!r:.80}; {meant}", fix)
            if given in found:
                raise self.source.error(keyword, f"{given} is given twice")
            found[given] = self._checked(by_name[given], keyword.value)
        missing = [each.name for each in parameters if each.needed and each.name not in found]
        if missing:
            raise self.source.error(call, f"{name} needs {missing[0]}")
        return found

    def _checked(self, parameter: CallParameter, expression: ast.expr) -> Argument:
        value = self._literal(expression)
        if not parameter.accepts(value):
            shown = ast.unparse(expression)[:80]
            raise self.source.error(
                expression, f"{parameter.name} {shown}, expected {parameter.wanted}"
            )
        return value, expression

    def _literal(self, expression: ast.expr) -> object:
        """The value of an expression: a literal, a variable, or attributes of an op."""
        match expression:
            case ast.Constant(value=bool() | int() | float() | str() | None as value):
                return value
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return -value
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return tuple([self._literal(each) for each in parts])
            case ast.Dict(keys=keys, values=values):
                return self._mapping(expression, keys, values)
            case ast.Name(id=name):
                return self._tensor(expression, name)
            case ast.Call(func=ast.Name(id=name)) if name in at.__all__:
                return self._attributes(expression, getattr(at, name))
        raise self.source.error(expression, "no value, expected a number, a word or a variable")

    def _mapping(
        self, expression: ast.expr, keys: Sequence[ast.expr | None], values: Sequence[ast.expr]
    ) -> dict[str, str]:
        found: dict[str, str] = {}
        for key, value in zip(keys, values, strict=True):
            match key, value:
                case ast.Constant(value=str() as name), ast.Constant(value=str() as word):
                    found[name] = word
                case _:
                    raise self.source.error(expression, "a mapping, expected one of strings")
        return found

    def _tensor(self, expression: ast.expr, name: str) -> TensorName:
        found = self.tensors.get(name)
        if found is None:
            near = close_word(name, self.tensors)
            meant = f"; did you mean {near}?" if near else ", expected one of a line above"
            raise self.source.error(expression, f"no variable {name!r:.80}{meant}", near)
        return found

    def _attributes(self, call: ast.Call, kind: type) -> msgspec.Struct:
        """Attributes of an op, whose fields are given by name."""
        if not issubclass(kind, msgspec.Struct) or call.args:
            raise self.source.error(call, "expected attributes with fields by name")
        given = {each.arg or "**": self._literal(each.value) for each in call.keywords}
        names = kind.__struct_fields__
        for keyword in call.keywords:
            if keyword.arg not in names:
                what = f"{kind.__name__} has no {keyword.arg!r:.80}; it has {', '.join(names)}"
                raise self.source.error(keyword, what)
        try:
            found: msgspec.Struct = msgspec.convert(given, kind)
        except (msgspec.ValidationError, ShapeError) as error:
            what = str(error)
            raise self.source.error(call, what[:1].lower() + what[1:]) from None
        return found

    def _located(
        self, call: ast.Call, given: Mapping[str, Argument | list[Argument]], error: Exception
    ) -> FormatError:
        """An error of the Builder at the argument that it names, else at the call."""
        words = re.findall(r"[a-z_]+", re.sub(r"\bout_|pads", _argument, str(error)))
        for name, argument in given.items():
            if name in words and name != "name" and isinstance(argument, tuple):
                return self.source.error(argument[1], str(error))
        return self.source.error(call, str(error))


def _argument(found: re.Match[str]) -> str:
    """The parameter of a field: channels of out_channels, padding of pads."""
    return "padding" if found[0] == "pads" else ""


def _called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _plain(argument: Argument) -> object:
    """The value of an argument, with names of tensors as plain strings."""
    value = argument[0]
    if isinstance(value, tuple):
        return tuple([str(each) if isinstance(each, TensorName) else each for each in value])
    return str(value) if isinstance(value, TensorName) else value


def _value(
    given: Mapping[str, Argument | list[Argument]], name: str, default: object = ""
) -> object:
    found = given.get(name)
    return found[0] if isinstance(found, tuple) else default
