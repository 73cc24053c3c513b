"""One case of an op: what it is told, the shapes it is given, and numbers to run it on."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from layerscope.graph import attributes as at
from layerscope.graph.types import Param, Shape
from layerscope.ops import SPECS, Call, OpSpec
from tests.brute.arrays import Array, Run, fill, places
from tests.brute.domains import DOMAINS, FILLERS, WHOLE
from tests.brute.scalar import Scalar, Tally


@dataclass(frozen=True)
class Case:
    """One op told something, on inputs of these shapes."""

    op: str
    attributes: Any
    inputs: tuple[Shape, ...]
    note: str = ""

    def __str__(self) -> str:
        shapes = ",".join("x".join(map(str, shape)) for shape in self.inputs)
        return f"{self.op}-{shapes}" + (f"-{self.note}" if self.note else "")

    @property
    def call(self) -> Call:
        """The op's use, with the outputs its rule says."""
        given = Call(self.attributes, self.inputs)
        return Call(self.attributes, self.inputs, SPECS[self.op].shape(given))

    def domain(self, n: int) -> str:
        if n == 3 and getattr(self.attributes, "mask", "") == "bool":
            return "allowed"
        domains = DOMAINS.get(self.op, ())
        return domains[n] if n < len(domains) else "any"

    @property
    def whole(self) -> frozenset[int]:
        """Which inputs are whole numbers."""
        return frozenset(n for n in range(len(self.inputs)) if self.domain(n) in WHOLE)

    def run(self) -> Run:
        """Inputs and params of random numbers, the same for every call."""
        tally = Tally()
        luck = random.Random(str(self))
        inputs = [self._input(n, luck, tally) for n in range(len(self.inputs))]
        rule = SPECS[self.op]
        params = {p.name: _param(p, luck, tally) for p in rule.params(self.call)}
        params = {**given_arrays(self.op, self.call, inputs), **params}
        return Run(self.attributes, inputs, params, tally)

    def _input(self, n: int, luck: random.Random, tally: Tally) -> Array:
        domain = self.domain(n)
        if domain not in FILLERS:
            return _random(self.inputs[n], luck, tally, positive=domain == "positive")
        values = FILLERS[domain](self.attributes, self.inputs, n, luck)
        cells = zip(places(self.inputs[n]), values, strict=True)
        return Array(self.inputs[n], {index: Scalar(value, tally) for index, value in cells})


def given_arrays(op: str, call: Call, inputs: list[Array]) -> dict[str, Array]:
    """Further inputs by the names of the arrays they stand for."""
    arrays = SPECS[op].arrays
    names = [p.name for p in arrays(call)] if arrays else []
    return dict(zip(names, inputs[1:], strict=False))


def _param(param: Param, luck: random.Random, tally: Tally) -> Array:
    if param.name == "zero_point":
        return fill(param.shape, lambda index: Scalar(luck.randint(0, 9), tally))
    return _random(param.shape, luck, tally, positive=param.role == "statistic")


def _random(shape: Shape, luck: random.Random, tally: Tally, *, positive: bool) -> Array:
    """Multiples of 1/64, which every float holds exactly, none of them nought."""

    def cell(index: tuple[int, ...]) -> Scalar:
        size = luck.randint(1, 128) / 64
        return Scalar(size if positive or luck.random() < 0.5 else -size, tally)

    return fill(shape, cell)


MAP = (2, 3, 5, 4)  # shape of a small batch of feature maps


def declared(*shapes: Shape) -> at.DeclaredOutputs:
    """Attributes of an op whose output shapes are declared."""
    return at.DeclaredOutputs(shapes, ("fp32",) * len(shapes))


def window(
    kernel: Sequence[int],
    stride: Sequence[int] | int = 1,
    pads: Any = 0,
    dilation: Sequence[int] | int = 1,
    rounding: at.Rounding = "floor",
) -> at.Window:
    """A window; one number stands for every axis, and a number for both ends of an axis."""
    rank = len(kernel)

    def each(value: Any) -> tuple[Any, ...]:
        return (value,) * rank if isinstance(value, int) else tuple(value)

    if not isinstance(pads, str):
        pads = tuple((p, p) if isinstance(p, int) else p for p in each(pads))
    return at.Window(tuple(kernel), each(stride), pads, each(dilation), rounding)


def moved(call: Call, rule: OpSpec) -> tuple[int, int]:
    """Elements read of inputs, arrays aside, and written."""
    stored = rule.param_elements(call) if rule.param_elements is not None else 0
    return sum(
        rule.input_elements(call)
    ) + stored, 0 if rule.view or rule.folded else call.out_elements
