"""Activations and other functions of one tensor, with their cost per element; softmax."""

from __future__ import annotations

from collections.abc import Mapping

from layerscope.graph.attributes import Activation, PReLU, Softmax
from layerscope.graph.types import Param, Shape, elements
from layerscope.ops.access_map import AccessMap, keep
from layerscope.ops.autograd import FIRST, NOTHING, RESULT, Saved, SavedRule, nothing, result
from layerscope.ops.spec import (
    FREE,
    Call,
    Ops,
    OpSpec,
    axis_of,
    gradient,
    need_rank,
    param,
    passes,
    per_output,
    same,
    with_param_inputs,
)

# Functions that take one `exp`; those without a gradient; those that answer yes or no.
CURVES = (
    "erf", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh",
)  # fmt: skip
STEPS = ("floor", "ceil", "round", "sign", "bitwise_not")
TESTS = ("not", "is_nan", "is_inf")

COSTS = {
    "relu": Ops(comp=1),
    "relu6": Ops(comp=2),
    "clip": Ops(comp=2),
    "abs": Ops(comp=1),
    "threshold": Ops(comp=1),
    "leaky_relu": Ops(comp=1, mul=1),
    "elu": Ops(comp=1, exp=1, add=1, mul=1),
    "selu": Ops(comp=1, exp=1, add=1, mul=2),
    "sigmoid": Ops(exp=1, add=1, div=1),
    "tanh": Ops(exp=1, add=2, div=1),
    "silu": Ops(exp=1, add=1, div=1, mul=1),
    "hard_sigmoid": Ops(add=1, mul=1, comp=2),
    "hard_swish": Ops(add=1, mul=2, comp=2),
    "gelu": Ops(exp=1, mul=3, add=1),
    "gelu_tanh": Ops(exp=1, mul=6, add=4, div=1),
    "softplus": Ops(exp=2, add=1),
    "exp": Ops(exp=1),
    "log": Ops(exp=1),
    "sqrt": Ops(exp=1),
    "neg": Ops(mul=1),
    "reciprocal": Ops(div=1),
    "rsqrt": Ops(exp=1, div=1),
    "square": Ops(mul=1),
    "expm1": Ops(exp=1, add=1),
    "log1p": Ops(exp=1, add=1),
    "mish": Ops(exp=3, add=3, div=1, mul=1),
    "softsign": Ops(comp=1, add=1, div=1),
    "celu": Ops(comp=1, exp=1, add=1, mul=1, div=1),
    "thresholded_relu": Ops(comp=1),
    "shrink": Ops(comp=2, add=1),
    "quick_gelu": Ops(exp=1, add=1, div=1, mul=2),
    "log_sigmoid": Ops(exp=2, add=1, mul=1),
    **dict.fromkeys(CURVES, Ops(exp=1)),
    **dict.fromkeys((*STEPS, *TESTS), Ops(comp=1)),
}


# Autograd saves the output of these, because the gradient is a function of the output.
BY_RESULT = (
    "relu", "sigmoid", "tanh", "exp", "sqrt", "reciprocal", "rsqrt", "expm1", "tan",
)  # fmt: skip
# It does so for these too if they run in-place; others then save a copy of the input.
BY_RESULT_IN_PLACE = (*BY_RESULT, "leaky_relu", "elu", "selu", "celu")
# Composed of several operators, or with a buffer: as much again is saved besides the input.
WITH_MORE = ("softsign", "quick_gelu", "log_sigmoid")


def _saves(op: str) -> SavedRule:
    def saves(call: Call) -> Saved:
        if op == "neg" or op in STEPS or op in TESTS:
            return NOTHING
        if op in WITH_MORE:
            return Saved(inputs=(0,), extra=((elements(call.x), ""),))
        if op in BY_RESULT:
            return RESULT
        if not getattr(call.attributes, "in_place", False):
            return FIRST
        return RESULT if op in BY_RESULT_IN_PLACE else Saved(extra=((elements(call.x), ""),))

    return saves


def _prelu_shape(call: Call) -> tuple[Shape, ...]:
    need_rank(call, 1 if call.attributes and call.attributes.shared else 2, "PReLU")
    return same(call)


def _prelu_params(call: Call) -> tuple[Param, ...]:
    a: PReLU = call.attributes or PReLU()
    return (param("weight", (1,) if a.shared else (call.x[1],), "slope"),)


def softmax_axis(call: Call) -> int:
    """The axis of a softmax, counted from the front."""
    return axis_of((call.attributes or Softmax()).axis, len(call.x))


def softmax_rows(call: Call) -> int:
    """Number of vectors that are normalized one by one."""
    axis = softmax_axis(call)
    if (call.attributes or Softmax()).tail:
        return elements(call.x[:axis])
    return elements(call.x) // max(call.x[axis], 1)


def _softmax_access(call: Call) -> tuple[AccessMap, ...]:
    """All axes but those that are normalized together."""
    axis = softmax_axis(call)
    end = len(call.x) if (call.attributes or Softmax()).tail else axis + 1
    return (keep((*range(axis), *range(end, len(call.x)))),)


def _softmax_shape(call: Call) -> tuple[Shape, ...]:
    softmax_axis(call)
    return same(call)


def softmax_ops(call: Call) -> Ops:
    """The maximum, its subtraction, exponentials, their sum, a division."""
    return Ops(comp=1, add=2, exp=1, div=1) * elements(call.x)


def log_softmax_ops(call: Call) -> Ops:
    """As softmax, with a logarithm per row and a subtraction instead of the division."""
    return Ops(comp=1, add=3, exp=1) * elements(call.x) + Ops(exp=softmax_rows(call))


# Names of these ops in other systems; see `OpSpec.names`.
NAMES: Mapping[str, Mapping[str, str]] = {
    "relu": {
        "torch": "ReLU",
        "torch_function": "relu",
        "caffe": "ReLU",
        "dagnn": "ReLU",
        "keras": "ReLU",
    },
    "relu6": {
        "torch": "ReLU6",
        "torch_function": "hardtanh",
        "caffe": "ReLU6",
        "keras": "ReLU",
    },
    "clip": {"torch": "Hardtanh", "torch_function": "hardtanh"},
    "abs": {"caffe": "AbsVal"},
    "threshold": {"caffe": "Threshold"},
    "leaky_relu": {
        "torch": "LeakyReLU",
        "torch_function": "leaky_relu",
        "caffe": "ReLU",
        "dagnn": "ReLU",
        "keras": "LeakyReLU",
    },
    "elu": {"torch": "ELU", "torch_function": "elu", "caffe": "ELU", "keras": "ELU"},
    "sigmoid": {
        "torch": "Sigmoid",
        "torch_function": "sigmoid",
        "caffe": "Sigmoid",
        "dagnn": "Sigmoid",
        "keras": "Activation",
    },
    "tanh": {
        "torch": "Tanh",
        "torch_function": "tanh",
        "caffe": "TanH",
        "dagnn": "Tanh",
        "keras": "Activation",
    },
    "silu": {"torch": "SiLU", "torch_function": "silu", "keras": "Activation"},
    "hard_sigmoid": {
        "torch": "Hardsigmoid",
        "torch_function": "hardsigmoid",
        "keras": "Activation",
    },
    "hard_swish": {"torch": "Hardswish", "torch_function": "hardswish", "keras": "Activation"},
    "gelu": {"torch": "GELU", "torch_function": "gelu", "keras": "Activation"},
    "gelu_tanh": {"torch": "GELU", "torch_function": "gelu", "keras": "Activation"},
    "softplus": {"caffe": "BNLL", "keras": "Activation"},
    "exp": {"caffe": "Exp", "keras": "Activation"},
    "log": {"caffe": "Log"},
    "mish": {"torch": "Mish", "torch_function": "mish", "keras": "Activation"},
    "selu": {"keras": "Activation"},
    "celu": {"keras": "Activation"},
    "softsign": {"keras": "Activation"},
    "log_sigmoid": {"keras": "Activation"},
}

SPECS = {
    op: OpSpec(
        family="activation",
        attributes=Activation,
        names=NAMES.get(op, {}),
        shape=same,
        ops=per_output(
            mac=cost.mac, add=cost.add, mul=cost.mul, comp=cost.comp, div=cost.div, exp=cost.exp
        ),
        saved_for_backward=_saves(op),
        in_place=op not in TESTS,
        out_dtypes=("bool",) if op in TESTS else ("real",) if op == "abs" else (),
        backward=passes if op in STEPS or op in TESTS else gradient,
    )
    for op, cost in COSTS.items()
} | {
    "prelu": with_param_inputs(
        OpSpec(
            family="activation",
            attributes=PReLU,
            names={
                "torch": "PReLU",
                "torch_function": "prelu",
                "caffe": "PReLU",
                "keras": "PReLU",
            },
            shape=_prelu_shape,
            ops=per_output(comp=1, mul=1),
            params=_prelu_params,
            backward=lambda call: (
                Ops(mul=call.out_elements),
                Ops(mul=1, add=1) * call.out_elements,
            ),
            in_place=True,
        ),
        1,
    ),
    "softmax": OpSpec(
        family="softmax",
        attributes=Softmax,
        names={
            "torch": "Softmax",
            "torch_function": "softmax",
            "caffe": "Softmax",
            "matconvnet": "softmx",
            "dagnn": "SoftMax",
            "keras": "Softmax",
        },
        shape=_softmax_shape,
        ops=softmax_ops,
        access_map=_softmax_access,
        backward=lambda call: (Ops(mul=2, add=2) * elements(call.x), FREE),
        saved_for_backward=result,
    ),
    "log_softmax": OpSpec(
        family="softmax",
        attributes=Softmax,
        shape=_softmax_shape,
        ops=log_softmax_ops,
        access_map=_softmax_access,
        backward=lambda call: (Ops(exp=1, mul=1, add=2) * elements(call.x), FREE),
        saved_for_backward=result,
    ),
    # one for the first of the largest, zeros for the others
    "hardmax": OpSpec(
        family="softmax",
        attributes=Softmax,
        shape=_softmax_shape,
        ops=lambda call: Ops(comp=elements(call.x) - softmax_rows(call)),
        access_map=_softmax_access,
        backward=passes,
        saved_for_backward=nothing,
    ),
}
