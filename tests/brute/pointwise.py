"""Functions of one element, and of elements in the same place of several tensors.

Both sides of a choice are worked out for every element, as vector code does: a leaky ReLU
multiplies everywhere. A sign or a doubling inside an exponential is part of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

from layerscope.graph.attributes import Activation, PReLU, Sum
from tests.brute.arrays import Array, Index, Run, fill
from tests.brute.scalar import Scalar

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

PAIRS: dict[str, Callable[[Scalar, Scalar], Scalar]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "pow": lambda x, y: x**y,
    "max": lambda x, y: x.larger(y),
    "min": lambda x, y: x.smaller(y),
    "compare": lambda x, y: x.above(y, 1.0, 0.0),
    "logical": lambda x, y: x.once("comp", lambda a, b: bool(a and b), y),
    "bitwise": lambda x, y: x.once("comp", lambda a, b: int(a) & int(b), y),
    "mod": lambda x, y: x.once("div", math.fmod, y),
    "floor_div": lambda x, y: x.once("div", lambda a, b: a // b, y),
    "atan2": lambda x, y: (x / y).apply(math.atan),
    "mean": lambda x, y: x + y,
}

CONSTANT = 1.5  # what a lone operand meets
MARK = 5  # and what its bits do


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


def elementwise(op: str) -> Callable[[Run], list[Array]]:
    def run_it(run: Run) -> list[Array]:
        rank = max(len(x.shape) for x in run.inputs)
        wide = [(1,) * (rank - len(x.shape)) + x.shape for x in run.inputs]
        shape = tuple(max(sizes) for sizes in zip(*wide, strict=True))

        def cell(index: Index) -> Scalar:
            operands = []
            for x in run.inputs:
                own = index[rank - len(x.shape) :]
                operands.append(x[tuple(i % n for i, n in zip(own, x.shape, strict=True))])
            if isinstance(run.attributes, Sum):
                scaled = run.attributes.scaled
                operands[:scaled] = [operand * CONSTANT for operand in operands[:scaled]]
            if len(operands) == 1 and op != "mean":
                operands.append(run.number(MARK if op == "bitwise" else CONSTANT))
            joined = reduce(PAIRS[op], operands)
            return joined / float(len(operands)) if op == "mean" else joined

        return [fill(shape, cell)]

    return run_it


BRUTE = {
    **{op: activation(op) for op in FUNCTIONS},
    "prelu": prelu,
    **{op: elementwise(op) for op in PAIRS},
}
