"""Complex numbers: real operations of a scalar implementation, one by one; bytes; dtypes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest

import layerscope
from layerscope.ops import Ops
from layerscope.ops.calls import infer_call
from layerscope.ops.complex_arithmetic import complex_ops
from tests.formats.torch.torch_nets import Doing, nn, torch

pytestmark = pytest.mark.filterwarnings("ignore")
C64, C128, F32, F64 = torch.complex64, torch.complex128, torch.float32, torch.float64


class Tally:
    """Real operations, as they are done."""

    def __init__(self) -> None:
        self.add = self.mul = self.div = self.exp = 0

    def ops(self) -> Ops:
        return Ops(add=self.add, mul=self.mul, div=self.div, exp=self.exp)


class Number:
    """A number of symbols: real, or with an imaginary part; every operation is counted."""

    def __init__(self, tally: Tally, imaginary: bool) -> None:
        self.tally, self.imaginary = tally, imaginary

    def _made(self, imaginary: bool) -> Number:
        return Number(self.tally, imaginary)

    def __add__(self, other: Number) -> Number:
        self.tally.add += 1  # of real parts
        self.tally.add += self.imaginary and other.imaginary
        return self._made(self.imaginary or other.imaginary)

    __sub__ = __add__

    def __mul__(self, other: Number) -> Number:
        if self.imaginary and other.imaginary:  # (ac − bd) + (ad + bc)i
            self.tally.mul += 4
            self.tally.add += 2
        else:
            self.tally.mul += 2 if self.imaginary or other.imaginary else 1
        return self._made(self.imaginary or other.imaginary)

    def __truediv__(self, other: Number) -> Number:
        if not other.imaginary:
            self.tally.div += 2 if self.imaginary else 1
            return self._made(self.imaginary)
        self * other  # by the conjugate
        other.norm()
        self.tally.div += 2
        return self._made(True)

    def norm(self) -> Number:
        """a² + b²"""
        self.tally.mul += 2
        self.tally.add += 1
        return self._made(False)

    def __neg__(self) -> Number:
        self.tally.mul += 2
        return self

    def __abs__(self) -> Number:
        self.norm()
        self.tally.exp += 1
        return self._made(False)

    def inverse(self) -> Number:
        """(a − bi) / (a² + b²)"""
        self.norm()
        self.tally.mul += 1
        self.tally.div += 2
        return self

    def exponential(self) -> Number:
        self.tally.exp += 3
        self.tally.mul += 2
        return self


def places(*sizes: int) -> Iterator[tuple[int, ...]]:
    return product(*map(range, sizes))


def dot(tally: Tally, count: int) -> None:
    """A sum of products, from zero: what multiply-adds are."""
    total = Number(tally, True)
    for _ in range(count):
        total = total + Number(tally, True) * Number(tally, True)


def linear(t: Tally) -> None:
    for _ in places(2, 4):
        dot(t, 3)
        Number(t, True) + Number(t, True)


def conv(t: Tally) -> None:
    for _ in places(4, 3, 3):
        dot(t, 3 * 9)
        Number(t, True) + Number(t, True)


def transposed(t: Tally) -> None:
    for _ in places(5, 5, 3, 4, 9):
        dot(t, 1)
    for _ in places(4, 7, 7):
        Number(t, True) + Number(t, True)


def matmul(t: Tally) -> None:
    for _ in places(2, 4):
        dot(t, 3)


def outer(t: Tally) -> None:
    for _ in places(3, 4):
        Number(t, True) * Number(t, True)


def each(count: int, function: Callable[[Tally], Any]) -> Callable[[Tally], None]:
    def run(t: Tally) -> None:
        for _ in range(count):
            function(t)

    return run


def pair(name: str, *imaginary: bool) -> Callable[[Tally], None]:
    return each(6, lambda t: getattr(Number, name)(*[Number(t, each) for each in imaginary]))


def alone(name: str) -> Callable[[Tally], None]:
    return each(6, lambda t: getattr(Number(t, True), name)())


def folded(name: str) -> Callable[[Tally], None]:
    """Rows of three into one, twice."""

    def run(t: Tally) -> None:
        for _ in range(2):
            total = Number(t, True)
            for _ in range(2):
                total = getattr(total, name)(Number(t, True))

    return run


def mean(t: Tally) -> None:
    folded("__add__")(t)
    for _ in range(2):
        Number(t, True) / Number(t, False)


def norm(order: int) -> Callable[[Tally], None]:
    def run(t: Tally) -> None:
        for _ in range(2):
            parts = [
                Number(t, True).norm() if order == 2 else abs(Number(t, True)) for _ in range(3)
            ]
            total = parts[0]
            for part in parts[1:]:
                total = total + part
            t.exp += order == 2

    return run


X, R = (C64, (2, 3)), (F32, (2, 3))
Case = tuple[Callable[[], Any], list[tuple[Any, tuple[int, ...]]], Callable[[Tally], None]]


def doing(function: Callable[..., Any]) -> Callable[[], Any]:
    return lambda: Doing(function)


CASES: dict[str, Case] = {
    "linear": (lambda: nn.Linear(3, 4, dtype=C64), [X], linear),
    "conv": (lambda: nn.Conv2d(3, 4, 3, dtype=C64), [(C64, (1, 3, 5, 5))], conv),
    "transposed": (
        lambda: nn.ConvTranspose2d(3, 4, 3, dtype=C64), [(C64, (1, 3, 5, 5))], transposed,
    ),
    "matmul": (doing(torch.matmul), [X, (C64, (3, 4))], matmul),
    "einsum": (doing(lambda a, b: torch.einsum("ij,jk->ik", a, b)), [X, (C64, (3, 4))], matmul),
    "outer": (doing(lambda a, b: torch.einsum("i,j->ij", a, b)), [(C64, (3,)), (C64, (4,))], outer),
    "add": (doing(torch.add), [X, X], pair("__add__", True, True)),
    "sub": (doing(torch.sub), [X, X], pair("__sub__", True, True)),
    "mul": (doing(torch.mul), [X, X], pair("__mul__", True, True)),
    "div": (doing(torch.div), [X, X], pair("__truediv__", True, True)),
    "add real": (doing(torch.add), [X, R], pair("__add__", True, False)),
    "real + complex": (doing(torch.add), [R, X], pair("__add__", False, True)),
    "mul real": (doing(torch.mul), [X, R], pair("__mul__", True, False)),
    "div by real": (doing(torch.div), [X, R], pair("__truediv__", True, False)),
    "mul 2.0": (doing(lambda x: x * 2.0), [X], pair("__mul__", True, False)),
    "mul 2j": (doing(lambda x: x * 2j), [X], pair("__mul__", True, True)),
    "real · 2j": (doing(lambda x: x * 2j), [R], pair("__mul__", False, True)),
    "add 1.5": (doing(lambda x: x + 1.5), [X], pair("__add__", True, False)),
    "div 2": (doing(lambda x: x / 2), [X], pair("__truediv__", True, False)),
    "in place": (doing(lambda x, y: x.mul_(y)), [X, X], pair("__mul__", True, True)),
    "neg": (doing(torch.neg), [X], alone("__neg__")),
    "abs": (doing(torch.abs), [X], alone("__abs__")),
    "reciprocal": (doing(torch.reciprocal), [X], alone("inverse")),
    "exp": (doing(torch.exp), [X], alone("exponential")),
    "square": (doing(torch.square), [X], pair("__mul__", True, True)),
    "sum": (doing(lambda x: x.sum(1)), [X], folded("__add__")),
    "mean": (doing(lambda x: x.mean(1)), [X], mean),
    "prod": (doing(lambda x: x.prod(1)), [X], folded("__mul__")),
    "cumsum": (doing(lambda x: x.cumsum(1)), [X], folded("__add__")),
    "cumprod": (doing(lambda x: x.cumprod(1)), [X], folded("__mul__")),
    "norm": (doing(lambda x: torch.linalg.vector_norm(x, dim=1)), [X], norm(2)),
    "norm 1": (doing(lambda x: torch.linalg.vector_norm(x, 1, dim=1)), [X], norm(1)),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_operations_are_those_of_a_scalar_implementation(case: str) -> None:
    make, given, run = CASES[case]
    tally = Tally()
    run(tally)
    model = make()
    data = [torch.zeros(shape, dtype=dtype) for dtype, shape in given]
    with torch.no_grad():
        expected = model(*[each.clone() for each in data])
    for shortcuts in (True, False):
        report = layerscope.summary(model, input_data=data, shortcuts=shortcuts, verbose=0)
        ops = report.totals.ops
        counted = Ops(add=ops.add + ops.mac, mul=ops.mul + ops.mac, div=ops.div, exp=ops.exp)
        assert counted == tally.ops()
        assert (ops.comp, report.coverage.unknown, report.coverage.estimated) == (0, {}, 0)
        made = report.tensors[report.graph.outputs[0]]
        names = {C64: "complex64", F32: "fp32"}
        assert (made.shape, made.dtype) == (tuple(expected.shape), names[expected.dtype])


@pytest.mark.parametrize("dtype, size", [(C64, 8), (C128, 16)])
def test_bytes(dtype: Any, size: int) -> None:
    report = layerscope.summary(
        nn.Linear(3, 4, dtype=dtype), input_data=torch.zeros(2, 3, dtype=dtype), verbose=0
    )
    [cost] = report.costs.values()
    assert cost.read_bytes == (2 * 3 + 3 * 4 + 4) * size
    assert cost.write_bytes == 2 * 4 * size
    assert cost.stored_bytes == (3 * 4 + 4) * size


def test_real_networks_are_untouched() -> None:
    report = layerscope.summary(nn.Linear(3, 4), (2, 3), verbose=0)
    [cost] = report.costs.values()
    assert (cost.ops, cost.real_ops) == (Ops(mac=24, add=8), None)


def test_what_has_no_count_of_its_own_is_an_estimate() -> None:
    report = layerscope.summary(
        Doing(torch.tanh), input_data=torch.zeros(2, 3, dtype=C64), verbose=0
    )
    [cost] = report.costs.values()
    assert (cost.status, cost.ops.exp) == ("estimate", 12)
    assert "complex" in cost.note


def test_double_with_complex() -> None:
    given = [torch.zeros(2, 3, dtype=C64), torch.zeros(2, 3, dtype=F64)]
    report = layerscope.summary(Doing(torch.mul), input_data=given, verbose=0)
    assert report.tensors[report.graph.outputs[0]].dtype == "complex128"


def test_other_counters_look_at_shapes_alone() -> None:
    """As PyTorch's own counter, and fvcore's formulas, do."""
    from torch.utils.flop_counter import FlopCounterMode  # noqa: TID251

    model = nn.Linear(3, 4, bias=False, dtype=C64)
    x = torch.zeros(2, 3, dtype=C64)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(x)
    for like, expected in (
        ("flop_counter", counter.get_total_flops()), ("fvcore", 24), ("torchvision", 24),
        ("exact", 2 * 4 * 24),
    ):  # fmt: skip
        report = layerscope.analyze(model, input_data=x, like=like)
        assert report.totals.convention_ops == expected, like


def test_the_backward_pass() -> None:
    model = nn.Sequential(nn.Linear(3, 4, dtype=C64), nn.Linear(4, 5, dtype=C64))
    report = layerscope.summary(model, input_data=torch.zeros(2, 3, dtype=C64), verbose=0)
    assert sum(ops.mac for ops in report.backward.values()) == 4 * (24 + 2 * 40)


def test_several_operands() -> None:
    call = infer_call("mul", None, ((2, 3), (2, 3), (2, 3)))
    two, _ = complex_ops("mul", call, Ops(mul=12), ["complex64", "fp32", "fp32"])
    assert two == Ops(mul=6 * 3)  # one real product, then both parts
    three, _ = complex_ops(
        "add", infer_call("add", None, ((2,), (2,), (2,))), Ops(add=4), ["complex64"] * 3
    )
    assert three == Ops(add=2 * 4)
