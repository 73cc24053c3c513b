"""Loops and cases of activations, softmax and other functions of one tensor."""

from __future__ import annotations

import math
from collections.abc import Callable

from layerscope.graph import attributes as at
from layerscope.graph.attributes import Activation, PReLU, Softmax
from tests.brute.arrays import Array, Index, Run, accumulate, fill, greatest, split_axes
from tests.brute.case import Case
from tests.brute.scalar import Scalar


def softmax_axis(run: Run) -> int:
    a: Softmax = run.attributes or Softmax()
    return a.axis % len(run.x.shape)


def _together(run: Run) -> list[int]:
    """The axes that one softmax goes over."""
    tail = run.attributes is not None and run.attributes.tail
    return list(range(softmax_axis(run), len(run.x.shape))) if tail else [softmax_axis(run)]


def _shifted(run: Run, row: list[Index]) -> dict[Index, Scalar]:
    """x − max; the maximum starts at minus infinity, so it takes one comparison an element."""
    top = run.number(-math.inf)
    for index in row:
        top = top.larger(run.x[index])
    return {index: run.x[index] - top for index in row}


def softmax(run: Run) -> list[Array]:
    cells: dict[Index, Scalar] = {}
    for row in split_axes(run.x.shape, _together(run)):
        powers = {index: z.apply(math.exp) for index, z in _shifted(run, row).items()}
        norm = accumulate(run.number(0.0), powers.values())
        cells.update({index: power / norm for index, power in powers.items()})
    return [Array(run.x.shape, cells)]


def log_softmax(run: Run) -> list[Array]:
    """z − log Σ e^z with z = x − max."""
    cells: dict[Index, Scalar] = {}
    for row in split_axes(run.x.shape, _together(run)):
        shifted = _shifted(run, row)
        powers = (z.apply(math.exp) for z in shifted.values())
        norm = accumulate(run.number(0.0), powers).apply(math.log)
        cells.update({index: z - norm for index, z in shifted.items()})
    return [Array(run.x.shape, cells)]


def hardmax(run: Run) -> list[Array]:
    cells: dict[Index, Scalar] = {}
    for row in split_axes(run.x.shape, _together(run)):
        top = greatest(run.x[index] for index in row)
        first = next(index for index in row if run.x[index].value == top.value)
        cells.update({i: Scalar(float(i == first), run.tally, top.seen) for i in row})
    return [Array(run.x.shape, cells)]


SELU_ALPHA = 1.67326319217681884765625

SELU_GAMMA = 1.05070102214813232421875


def sigmoid(x: Scalar) -> Scalar:
    """1 / (1 + e^−x)."""
    return 1.0 / (x.apply(lambda v: math.exp(-v)) + 1.0)


def tanh(x: Scalar) -> Scalar:
    """(e − 1) / (e + 1) with e = e^2x."""
    e = x.apply(lambda v: math.exp(2 * v))
    return (e - 1.0) / (e + 1.0)


def elu(x: Scalar, alpha: float) -> Scalar:
    return x.above(0.0, x, (x.apply(math.exp) - 1.0) * alpha)


def gelu(x: Scalar) -> Scalar:
    """x · ½ · (1 + erf(x / √2)), the error function as one exponential."""
    return ((x * (1 / math.sqrt(2))).apply(math.erf) + 1.0) * 0.5 * x


def gelu_tanh(x: Scalar) -> Scalar:
    """x · ½ · (1 + tanh(√(2/π) · (x + 0.044715·x³)))."""
    inner = (x * x * x * 0.044715 + x) * math.sqrt(2 / math.pi)
    return (tanh(inner) + 1.0) * 0.5 * x


def hard_sigmoid(x: Scalar, alpha: float, beta: float) -> Scalar:
    return (x * alpha + beta).larger(0.0).smaller(1.0)


def softplus(x: Scalar) -> Scalar:
    return (x.apply(math.exp) + 1.0).apply(math.log)


def shrink(x: Scalar, a: Activation) -> Scalar:
    """Nearer to nought by beta on both sides of ±alpha, nought between; x > alpha is asked once."""
    moved = x + x.above(_alpha(a), -_beta(a), _beta(a))
    upper: Scalar | float = moved if x.value > _alpha(a) else 0.0
    return x.once("comp", lambda v, m, u: m if v < -_alpha(a) else u, moved, upper)


def _alpha(a: Activation) -> float:
    assert a.alpha is not None
    return a.alpha


def _beta(a: Activation) -> float:
    assert a.beta is not None
    return a.beta


FUNCTIONS: dict[str, Callable[[Scalar, Activation], Scalar]] = {
    "relu": lambda x, a: x.larger(0.0),
    "relu6": lambda x, a: x.larger(0.0).smaller(6.0),
    "clip": lambda x, a: x.larger(_alpha(a)).smaller(_beta(a)),
    "abs": lambda x, a: abs(x),
    "threshold": lambda x, a: x.above(_alpha(a), x, 0.0),
    "leaky_relu": lambda x, a: x.above(0.0, x, x * _alpha(a)),
    "elu": lambda x, a: elu(x, _alpha(a)),
    "selu": lambda x, a: elu(x, SELU_ALPHA) * SELU_GAMMA,
    "sigmoid": lambda x, a: sigmoid(x),
    "tanh": lambda x, a: tanh(x),
    "silu": lambda x, a: sigmoid(x) * x,
    "hard_sigmoid": lambda x, a: hard_sigmoid(x, _alpha(a), _beta(a)),
    "hard_swish": lambda x, a: hard_sigmoid(x, 1 / 6, 0.5) * x,
    "gelu": lambda x, a: gelu(x),
    "gelu_tanh": lambda x, a: gelu_tanh(x),
    "softplus": lambda x, a: (x.apply(math.exp) + 1.0).apply(math.log),
    "exp": lambda x, a: x.apply(math.exp),
    "log": lambda x, a: x.apply(math.log),
    "sqrt": lambda x, a: x.apply(math.sqrt),
    "neg": lambda x, a: -x,
    "reciprocal": lambda x, a: 1.0 / x,
    "rsqrt": lambda x, a: 1.0 / x.apply(math.sqrt),
    "square": lambda x, a: x * x,
    "expm1": lambda x, a: x.apply(math.exp) - 1.0,
    "log1p": lambda x, a: (x + 1.0).apply(math.log),
    "mish": lambda x, a: tanh(softplus(x)) * x,
    "softsign": lambda x, a: x / (abs(x) + 1.0),
    "celu": lambda x, a: x.above(0.0, x, ((x / _alpha(a)).apply(math.exp) - 1.0) * _alpha(a)),
    "thresholded_relu": lambda x, a: x.above(_alpha(a), x, 0.0),
    "shrink": shrink,
    "quick_gelu": lambda x, a: sigmoid(x * 1.702) * x,
    # the sign of x is part of the exponential
    "log_sigmoid": lambda x, a: -(x.apply(lambda v: math.exp(-v)) + 1.0).apply(math.log),
    "erf": lambda x, a: x.apply(math.erf),
    "sin": lambda x, a: x.apply(math.sin),
    "cos": lambda x, a: x.apply(math.cos),
    "tan": lambda x, a: x.apply(math.tan),
    "asin": lambda x, a: x.apply(math.asin),
    "acos": lambda x, a: x.apply(math.acos),
    "atan": lambda x, a: x.apply(math.atan),
    "sinh": lambda x, a: x.apply(math.sinh),
    "cosh": lambda x, a: x.apply(math.cosh),
    "asinh": lambda x, a: x.apply(math.asinh),
    "acosh": lambda x, a: x.apply(math.acosh),
    "atanh": lambda x, a: x.apply(math.atanh),
    "floor": lambda x, a: x.once("comp", math.floor),
    "ceil": lambda x, a: x.once("comp", math.ceil),
    "round": lambda x, a: x.once("comp", round),
    "sign": lambda x, a: x.once("comp", lambda v: (v > 0) - (v < 0)),
    "not": lambda x, a: x.once("comp", lambda v: not v),
    "is_nan": lambda x, a: x.once("comp", math.isnan),
    "is_inf": lambda x, a: x.once("comp", math.isinf),
    "bitwise_not": lambda x, a: x.once("comp", lambda v: ~int(v)),
}


def activation(op: str) -> Callable[[Run], list[Array]]:
    def run_it(run: Run) -> list[Array]:
        function = FUNCTIONS[op]
        return [fill(run.x.shape, lambda index: function(run.x[index], run.attributes))]

    return run_it


def prelu(run: Run) -> list[Array]:
    a: PReLU = run.attributes or PReLU()

    def cell(index: Index) -> Scalar:
        slope = run.params["weight"][(0,) if a.shared else (index[1],)]
        return run.x[index].above(0.0, run.x[index], run.x[index] * slope)

    return [fill(run.x.shape, cell)]


BRUTE: dict[str, Callable[[Run], list[Array]]] = {
    "softmax": softmax,
    "log_softmax": log_softmax,
    "hardmax": hardmax,
    **{op: activation(op) for op in FUNCTIONS},
    "prelu": prelu,
}

A = at.Activation
UNARY = (
    "erf", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh",
    "floor", "ceil", "round", "sign", "reciprocal", "not", "is_nan", "is_inf", "bitwise_not",
    "mish", "softsign", "quick_gelu", "rsqrt", "square", "log_sigmoid", "expm1", "log1p",
)  # fmt: skip
CASES: list[Case] = [
    *(Case(op, attributes, (shape,))
      for op, attributes in [
          ("relu", A()), ("relu6", A()), ("clip", A(-0.5, 1.25)), ("abs", A()),
          ("threshold", A(0.5)), ("leaky_relu", A(0.1)), ("elu", A(1.3)), ("selu", A()),
          ("sigmoid", A()), ("tanh", A()), ("silu", A()), ("hard_sigmoid", A(0.2, 0.5)),
          ("hard_swish", A()), ("gelu", A()), ("gelu_tanh", A()), ("softplus", A()),
          ("exp", A()), ("log", A()), ("sqrt", A()), ("neg", A()),
      ]
      for shape in [(2, 3, 4, 5), (7,)]),
    Case("prelu", None, ((2, 3, 4, 2),)),
    Case("prelu", at.PReLU(shared=True), ((2, 3, 4),), "shared"),
    Case("prelu", at.PReLU(), ((4, 3),), "matrix"),
    Case("prelu", at.PReLU(shared=True), ((6,),), "vector"),
    *(Case(op, attributes, (shape,))
      for op in ("softmax", "log_softmax")
      for attributes, shape in [
          (None, (3, 5)), (at.Softmax(1), (2, 4, 3)), (at.Softmax(-1), (2, 3, 4)),
      ]),
    *(Case(op, a, (shape,))
      for op, a in [
          *((op, None) for op in UNARY),
          ("celu", A(1.5)), ("thresholded_relu", A(0.5)), ("shrink", A(0.5, 0.25)),
      ]
      for shape in [(2, 3, 4), (7,)]),
    *(Case(op, a, (shape,), note)
      for op in ("softmax", "log_softmax", "hardmax")
      for a, shape, note in [
          (at.Softmax(1, tail=True), (2, 3, 2, 2), "tail"),
          (at.Softmax(0, tail=True), (2, 3), "all"),
          (at.Softmax(-2), (2, 3, 4), "one"),
      ]),
    Case("prelu", at.PReLU(), ((2, 3, 4), (3,)), "given"),
]  # fmt: skip
