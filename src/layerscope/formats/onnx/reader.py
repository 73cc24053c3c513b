"""The walk over an ONNX graph: every tensor's shape, small numbers carried along, nodes of ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from layerscope.codecs.protobuf import Wire
from layerscope.errors import FormatError, ShapeError
from layerscope.formats.onnx.folding import constant, fold
from layerscope.formats.onnx.known import Env, NeedsValue
from layerscope.formats.onnx.ledger import Ledger
from layerscope.formats.onnx.reasons import NO_RULES
from layerscope.formats.onnx.roles import origin_of
from layerscope.formats.onnx.site import MOST_DEPTH, Convert, Site
from layerscope.formats.onnx.skim import Attribute, Function, Model, Operator, Value, attribute_of

# Operators that can be told something of even where the shape of an input is not known.
WITHOUT_SHAPES = {
    ("", "If"), ("", "Loop"), ("", "Scan"), ("", "SequenceConstruct"), ("", "SequenceAt"),
    ("", "SequenceEmpty"), ("", "SequenceInsert"), ("", "ConcatFromSequence"),
    ("", "SequenceLength"), ("", "SequenceErase"), ("", "Optional"), ("", "OptionalGetElement"),
    ("", "OptionalHasElement"), ("", "Identity"), ("", "SequenceMap"),
    ("ai.onnx.ml", "DictVectorizer"), ("ai.onnx.ml", "CastMap"),
}  # fmt: skip


UNFIT = (
    IndexError, KeyError, ValueError, TypeError, AttributeError, ArithmeticError, AssertionError,
)  # fmt: skip


MOST_PUT_IN = 200_000  # nodes of functions, which could double without end


class Assumed(ShapeError):
    """Shapes that do not agree, where some of them were assumed."""


class Reader(Ledger):
    """Walks a file, one operator after the other."""

    def __init__(self, wire: Wire, model: Model, converters: Mapping[Any, Convert]) -> None:
        super().__init__(wire)
        self.model, self.converters = model, converters
        self.origin = origin_of(wire, model)
        self.put_in = 0  # nodes of functions
        self.failures: list[ShapeError] | None = None  # of a branch, which may be for other shapes

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
        outside: Mapping[str, str] | None = None,
    ) -> None:
        """Every operator in order; `env` has what is known by name and takes what is made.

        Tensors that are handed out have another name outside.
        """
        if depth > MOST_DEPTH:
            raise FormatError(f"{self.file}: graphs nested more than {MOST_DEPTH} deep")
        opsets = self.model.opsets if opsets is None else opsets
        bound, values, outside = bound or {}, values or {}, outside or {}
        for operator in operators:
            around = scope if depth else self.scope_of(operator)
            site = Site(self, operator, env, around, opsets, bound, values, depth, outside)
            try:
                self._visit(site)
            except ShapeError as error:
                self._fails(site, error)
            except UNFIT as error:  # numbers and kinds of inputs that no such operator has
                self._fails(site, f"inputs or attributes that do not go with it ({error})")
            except RecursionError:
                raise FormatError(f"{site.where}: nested too deep") from None

    def _fails(self, site: Site, what: object) -> None:
        """Raise what is wrong with an operator, or note it and go on."""
        text = str(what)
        told = text if text.startswith(self.file) else f"{site.where}: {text}"
        error = ShapeError(told)
        if self.assumed:
            error = Assumed(told if self.assumed in told else f"{told}; {self.assumed}")
        if self.failures is None:
            raise error from None
        self.failures.append(error)
        site.unknown(text)

    def _visit(self, site: Site) -> None:
        operator = site.operator
        if not operator.outputs and not operator.op:
            raise FormatError(f"{self.file}: byte {operator.at}: a node without an operator")
        if operator.op == "Constant" and not operator.domain:
            constant(site)
            return
        if fold(site):
            return
        key = operator.domain, operator.op
        converter = self.converters.get(key)
        if converter is None:
            function = self.model.functions.get((*key, operator.overload))
            if function is not None:
                self.inline(site, function)
                return
            site.unknown(NO_RULES.get(key, ""))
            return
        if site.blank and key not in WITHOUT_SHAPES:
            open_ = next(each for each in site.inputs if each is not None and each.shape is None)
            site.unknown(self.trace.shape(open_.name))
            return
        try:
            converter(site)
        except NeedsValue as error:
            from layerscope.formats.onnx.declared import by_declared

            try:
                found = by_declared(site)
            except (NeedsValue, ShapeError, *UNFIT):  # what is declared does not go with it
                found = False
            if not found:
                site.unknown(str(error))

    def inline(self, site: Site, function: Function) -> None:
        """Put the body of a function in, as a scope of its own."""
        self.put_in += len(function.nodes)
        if self.put_in > MOST_PUT_IN:
            raise FormatError(
                f"{self.file}: more than {MOST_PUT_IN:,} nodes of functions, all calls put in"
            )
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
        scope = site.inner
        opsets = {**self.model.opsets, **function.opsets}
        names = zip(function.outputs, site.operator.outputs, strict=False)
        outside = {inner: site.outside.get(name, name) for inner, name in names if name}
        self.walk(
            function.nodes, env, scope, opsets=opsets, bound=given, depth=site.depth + 1,
            outside=outside,
        )  # fmt: skip
        for name, inner in zip(site.operator.outputs, function.outputs, strict=False):
            if name:
                if inner not in env:
                    raise FormatError(f"{site.where}: the function makes no {inner!r}")
                site.env[name] = env[inner]
