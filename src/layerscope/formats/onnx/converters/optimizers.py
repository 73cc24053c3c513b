"""Optimizers of ai.onnx.preview.training: one step for every parameter."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.node import Converter, ConverterTable, OnnxNode
from layerscope.graph import attributes as at
from layerscope.graph.types import Shape, elements
from layerscope.ops.spec import FREE, Ops

REGULAR = Ops(mul=1, add=1)  # gradient + norm_coefficient · parameter
# Optimizer states of a parameter, and operations per element as documented.
STEPS = {
    "Momentum": (1, REGULAR + Ops(mul=3, add=2)),
    "Adagrad": (1, REGULAR + Ops(mul=2, add=3, exp=1, div=1)),
    "Adam": (2, REGULAR + Ops(mul=7, add=4, exp=1, div=1)),
}
NESTEROV = Ops(mul=1, add=1)


def step(node: OnnxNode) -> None:
    """Adam, Adagrad, Momentum: the inputs after R and T are parameters, gradients and states."""
    states, each = STEPS[node.op]
    first = node.index("inputs")
    tensors = len(node.inputs) - first
    kinds = 2 + states
    if tensors < kinds or tensors % kinds:
        raise ShapeError(f"{tensors} tensors, expected a multiple of {kinds}")
    count = tensors // kinds
    if node.op == "Momentum" and node.str_attr("mode") == "nesterov":
        each += NESTEROV
    shapes: list[Shape] = []
    dtypes: list[str] = []
    for kind in (0, *range(2, kinds)):  # the gradient is no output
        for n in range(count):
            shape, own = node.shape(first + kind * count + n), node.shape(first + n)
            if shape != own:
                raise ShapeError(f"a state of {shape} for a tensor of {own}")
            shapes.append(shape)
            dtypes.append(node.dtype(first + kind * count + n))
    ops = FREE
    for n in range(count):
        ops += each * elements(node.shape(first + n))
    attrs = at.CustomCost(
        tuple(shapes), tuple(dtypes), add=ops.add, mul=ops.mul, div=ops.div, exp=ops.exp
    )
    node.emit_custom(node.given(), attrs)


OPERATORS: ConverterTable = {
    ("ai.onnx.preview.training", op): Converter(step, "R T inputs") for op in STEPS
}  # fmt: skip
