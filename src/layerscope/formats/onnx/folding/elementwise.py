"""Element-wise operators on small arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from layerscope.formats.onnx.arrays import (
    Attrs,
    Evaluate,
    Given,
    NotFoldable,
    SmallArray,
    broadcast_to,
    cast,
    fits,
)
from layerscope.formats.onnx.dtypes import INTEGER_BITS, Number, cast_dtype
from layerscope.ops.spec import broadcast

MOST_EXPONENT = 64  # of a power of integers, which is computed exactly before it is cast


def each(function: Callable[..., Number], dtype: str = "") -> Evaluate:
    """A function of one element of every input, broadcast; its dtype is that of the first input."""

    def evaluate(attrs: Attrs, given: Given) -> list[SmallArray]:
        inputs = present(given)
        if attrs.get("axis") is not None and attrs.get("broadcast"):  # before opset 7
            inputs = [inputs[0], _along(inputs[0], inputs[1], attrs["axis"])]
        shape = fits(broadcast(tuple(array.shape for array in inputs)))
        result = dtype or inputs[0].dtype
        spread = [broadcast_to(array, shape) for array in inputs]
        try:
            values = [cast(function(*numbers), result) for numbers in zip(*spread, strict=True)]
        except (ArithmeticError, ValueError):
            raise NotFoldable from None
        return [SmallArray(shape, values, result)]

    return evaluate


def present(given: Given) -> list[SmallArray]:
    """The inputs of an operator that has no optional ones."""
    return [array for array in given if array is not None]


def _along(left: SmallArray, right: SmallArray, axis: int) -> SmallArray:
    """The second operand with axes of one element appended, which opsets before 7 leave out."""
    axis = axis + len(left.shape) if axis < 0 else axis
    missing = max(len(left.shape) - axis - len(right.shape), 0)
    return SmallArray((*right.shape, *(1,) * missing), right.values, right.dtype)


def _folded(function: Callable[[Number, Number], Number]) -> Evaluate:
    """A function of two elements, applied to any number of inputs from the first on."""
    pair = each(function)

    def evaluate(attrs: Attrs, given: Given) -> list[SmallArray]:
        result, *others = present(given)
        for other in others:
            result = pair({}, (result, other))[0]
        return [result]

    return evaluate


def _unary(function: Callable[..., Number], **attributes: float) -> Evaluate:
    """A function of one element and of attributes with these defaults."""

    def evaluate(attrs: Attrs, given: Given) -> list[SmallArray]:
        values = [attrs.get(name, default) for name, default in attributes.items()]
        return each(lambda x: function(x, *values))({}, given)

    return evaluate


def divide(a: Number, b: Number) -> Number:
    """A quotient; of integers it is rounded towards zero."""
    if isinstance(a, int) and isinstance(b, int):
        quotient = abs(a) // abs(b)
        return quotient if (a < 0) == (b < 0) else -quotient
    return a / b


def _remainder(a: Number, b: Number) -> Number:
    """The remainder of C's fmod, which has the sign of the dividend."""
    if isinstance(a, int) and isinstance(b, int):
        return abs(a) % abs(b) if a >= 0 else -(abs(a) % abs(b))
    return math.fmod(a, b)


def _modulo(attrs: Attrs, given: Given) -> list[SmallArray]:
    return each(_remainder if attrs.get("fmod") else lambda a, b: a % b)(attrs, given)


def _power(a: Number, b: Number) -> Number:
    if isinstance(a, float) or isinstance(b, float):
        return math.pow(a, b)
    if abs(b) > MOST_EXPONENT and a not in (-1, 0, 1):
        raise ValueError
    return a**b if b >= 0 else int(a == 1) if a != -1 else a ** (-b)


def _clip(attrs: Attrs, given: Given) -> list[SmallArray]:
    """Clip; the bounds are attributes, or inputs since opset 11."""
    x = present(given)[0]
    low, high = attrs.get("min"), attrs.get("max")
    if len(given) > 1 and given[1] is not None:
        low = given[1].item
    if len(given) > 2 and given[2] is not None:
        high = given[2].item

    def bounded(value: Number) -> Number:
        value = value if low is None or value >= low else low
        return value if high is None or value <= high else high

    return each(bounded)({}, (x,))


def _where(attrs: Attrs, given: Given) -> list[SmallArray]:
    return each(lambda c, a, b: a if c else b, present(given)[1].dtype)(attrs, given)


def _shift(attrs: Attrs, given: Given) -> list[SmallArray]:
    left = attrs.get("direction") == "LEFT"
    bits, _ = INTEGER_BITS.get(present(given)[0].dtype, (64, False))

    def shifted(a: int, b: int) -> int:
        if not 0 <= b < bits:
            return 0
        return (a << b) & ((1 << bits) - 1) if left else a >> b

    return each(shifted)(attrs, given)


def _mean(attrs: Attrs, given: Given) -> list[SmallArray]:
    count = len(present(given))
    total = EVALUATE["Sum"](attrs, given)[0]
    return each(lambda a: divide(a, count))({}, (total,))


def _is_inf(attrs: Attrs, given: Given) -> list[SmallArray]:
    above, below = attrs.get("detect_positive", 1), attrs.get("detect_negative", 1)
    return each(
        lambda a: math.isinf(a) and bool(above if a > 0 else below), "bool"
    )(attrs, given)  # fmt: skip


def _cast(attrs: Attrs, given: Given) -> list[SmallArray]:
    return _as_type(present(given)[0], cast_dtype(attrs.get("to", 0)))


def _cast_like(attrs: Attrs, given: Given) -> list[SmallArray]:
    x, like = present(given)
    return _as_type(x, like.dtype)


def _as_type(x: SmallArray, dtype: str) -> list[SmallArray]:
    if dtype not in ("fp64", "fp32", "fp16", "bf16", "bool") and dtype not in INTEGER_BITS:
        raise NotFoldable
    return [SmallArray(x.shape, [cast(value, dtype, wraps=True) for value in x.values], dtype)]


def _identity(attrs: Attrs, given: Given) -> list[SmallArray]:
    return [present(given)[0]]


def _dropout(attrs: Attrs, given: Given) -> list[SmallArray]:
    """Dropout at inference; in training mode the result is random."""
    training = given[2] if len(given) > 2 else None
    if (training is not None and training.item) or attrs.get("is_test") == 0:
        raise NotFoldable
    x = present(given)[0]
    return [x, SmallArray(x.shape, [True] * len(x.values), "bool")]


def _prelu(x: Number, slope: Number) -> Number:
    return x if x >= 0 else x * slope


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def _softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def _gelu(attrs: Attrs, given: Given) -> list[SmallArray]:
    if attrs.get("approximate", "none") == "tanh":
        root = math.sqrt(2 / math.pi)
        return each(lambda x: 0.5 * x * (1 + math.tanh(root * (x + 0.044715 * x**3))))({}, given)
    return each(lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2))))({}, given)


def _selu(x: float, alpha: float, gamma: float) -> float:
    return gamma * (x if x > 0 else alpha * math.expm1(x))


def _shrink(x: float, bias: float, lambd: float) -> float:
    return x + bias if x < -lambd else x - bias if x > lambd else 0.0


def _hard_sigmoid(x: float, alpha: float, beta: float) -> float:
    return min(max(alpha * x + beta, 0.0), 1.0)


def _lines(x: SmallArray, axis: int, tail: bool) -> list[list[int]]:
    """Positions along an axis, or from it to the last axis; one list for every other position."""
    from layerscope.graph.types import elements
    from layerscope.ops.spec import axis_of

    axis = axis_of(axis, len(x.shape)) if x.shape else 0
    size = elements(x.shape[axis:]) if tail or not x.shape else x.shape[axis]
    inner = 1 if tail or not x.shape else elements(x.shape[axis + 1 :])
    block = size * inner
    outer = len(x.values) // block if block else 0
    return [
        [base + step * inner for step in range(size)]
        for n in range(outer)
        for base in range(n * block, n * block + inner)
    ]


def _soft(function: Callable[[Sequence[Number]], list[Number]]) -> Evaluate:
    """A function of all numbers along an axis; before opset 13 of all from that axis on."""

    def evaluate(attrs: Attrs, given: Given) -> list[SmallArray]:
        x = present(given)[0]
        old = attrs["opset"] < 13
        values = list(x.values)
        for line in _lines(x, attrs.get("axis", 1 if old else -1), old):
            for position, value in zip(line, function([x.values[n] for n in line]), strict=True):
                values[position] = cast(value, x.dtype)
        return [SmallArray(x.shape, values, x.dtype)]

    return evaluate


def _softmax(line: Sequence[float]) -> list[float]:
    top = max(line)
    powers = [math.exp(value - top) for value in line]
    total = sum(powers)
    return [power / total for power in powers]


def _log_softmax(line: Sequence[float]) -> list[float]:
    top = max(line)
    total = math.log(sum([math.exp(value - top) for value in line]))
    return [value - top - total for value in line]


def _hardmax(line: Sequence[Number]) -> list[Number]:
    best = line.index(max(line))
    return [int(n == best) for n in range(len(line))]


EVALUATE: dict[str, Evaluate] = {
    "Identity": _identity, "Cast": _cast, "CastLike": _cast_like, "Dropout": _dropout,
    "Add": each(lambda a, b: a + b), "Sub": each(lambda a, b: a - b),
    "Mul": each(lambda a, b: a * b), "Div": each(divide), "Mod": _modulo, "Pow": each(_power),
    "Sum": _folded(lambda a, b: a + b), "Max": _folded(max), "Min": _folded(min), "Mean": _mean,
    "Neg": each(lambda a: -a), "Abs": each(abs), "Floor": each(math.floor),
    "Ceil": each(math.ceil), "Round": each(round), "Sqrt": each(math.sqrt),  # half to even
    "Reciprocal": each(lambda a: 1 / a), "Sign": each(lambda a: (a > 0) - (a < 0)),
    "Exp": each(math.exp), "Log": each(math.log), "Erf": each(math.erf),
    "Sin": each(math.sin), "Cos": each(math.cos), "Tan": each(math.tan),
    "Asin": each(math.asin), "Acos": each(math.acos), "Atan": each(math.atan),
    "Sinh": each(math.sinh), "Cosh": each(math.cosh), "Asinh": each(math.asinh),
    "Acosh": each(math.acosh), "Atanh": each(math.atanh), "Tanh": each(math.tanh),
    "Equal": each(lambda a, b: a == b, "bool"), "Greater": each(lambda a, b: a > b, "bool"),
    "Less": each(lambda a, b: a < b, "bool"),
    "GreaterOrEqual": each(lambda a, b: a >= b, "bool"),
    "LessOrEqual": each(lambda a, b: a <= b, "bool"),
    "And": each(lambda a, b: a and b, "bool"), "Or": each(lambda a, b: a or b, "bool"),
    "Xor": each(lambda a, b: bool(a) != bool(b), "bool"), "Not": each(lambda a: not a, "bool"),
    "BitwiseAnd": each(lambda a, b: a & b), "BitwiseOr": each(lambda a, b: a | b),
    "BitwiseXor": each(lambda a, b: a ^ b), "BitwiseNot": each(lambda a: ~a), "BitShift": _shift,
    "IsNaN": each(math.isnan, "bool"), "IsInf": _is_inf,
    "Where": _where, "Clip": _clip, "Relu": each(lambda a: max(a, 0)), "PRelu": each(_prelu),
    "LeakyRelu": _unary(lambda x, alpha: x if x >= 0 else alpha * x, alpha=0.01),
    "ThresholdedRelu": _unary(lambda x, alpha: x if x > alpha else 0.0, alpha=1.0),
    "Elu": _unary(lambda x, alpha: x if x >= 0 else alpha * math.expm1(x), alpha=1.0),
    "Celu": _unary(lambda x, a: max(x, 0.0) + min(0.0, a * math.expm1(x / a)), alpha=1.0),
    "Selu": _unary(_selu, alpha=1.67326319217681884765625, gamma=1.05070102214813232421875),
    "Shrink": _unary(_shrink, bias=0.0, lambd=0.5),
    "HardSigmoid": _unary(_hard_sigmoid, alpha=0.2, beta=0.5),
    "HardSwish": each(lambda x: x * _hard_sigmoid(x, 1 / 6, 0.5)),
    "Swish": _unary(lambda x, alpha: x * _sigmoid(alpha * x), alpha=1.0),
    "Mish": each(lambda x: x * math.tanh(_softplus(x))), "Gelu": _gelu,
    "Sigmoid": each(_sigmoid), "Softplus": each(_softplus),
    "Softsign": each(lambda x: x / (1 + abs(x))),
    "Softmax": _soft(_softmax), "LogSoftmax": _soft(_log_softmax), "Hardmax": _soft(_hardmax),
}  # fmt: skip
