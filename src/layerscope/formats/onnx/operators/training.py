"""Optimizers of ai.onnx.preview.training: a step for every tensor that is learned."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.site import Convert, Site
from layerscope.graph import attributes as at
from layerscope.graph.types import Shape, elements
from layerscope.ops.spec import FREE, Ops

REGULAR = Ops(mul=1, add=1)  # gradient + norm_coefficient · parameter
# Tensors that a parameter has beside its gradient, and operations per element as documented.
STEPS = {
    "Momentum": (1, REGULAR + Ops(mul=3, add=2)),
    "Adagrad": (1, REGULAR + Ops(mul=2, add=3, exp=1, div=1)),
    "Adam": (2, REGULAR + Ops(mul=7, add=4, exp=1, div=1)),
}
NESTEROV = Ops(mul=1, add=1)


def step(s: Site) -> None:
    """Adam, Adagrad or Momentum: inputs are rate, step, then parameters, gradients, states."""
    states, each = STEPS[s.op]
    tensors = len(s.inputs) - 2
    kinds = 2 + states
    if tensors < kinds or tensors % kinds:
        raise ShapeError(f"{tensors} tensors, expected a multiple of {kinds}")
    count = tensors // kinds
    if s.op == "Momentum" and s.text("mode") == "nesterov":
        each += NESTEROV
    shapes: list[Shape] = []
    dtypes: list[str] = []
    for kind in (0, *range(2, kinds)):  # the gradient is not handed out
        for n in range(count):
            place = 2 + kind * count + n
            if s.shape(place) != s.shape(2 + n):
                raise ShapeError(f"a state of {s.shape(place)} for a tensor of {s.shape(2 + n)}")
            shapes.append(s.shape(place))
            dtypes.append(s.dtype(place))
    ops = FREE
    for n in range(count):
        ops += each * elements(s.shape(2 + n))
    told = at.CustomCost(
        tuple(shapes), tuple(dtypes), add=ops.add, mul=ops.mul, div=ops.div, exp=ops.exp
    )
    s.counted([known for known in s.inputs if known is not None], told)


OPERATORS: dict[tuple[str, str], Convert] = {
    ("ai.onnx.preview.training", op): step for op in STEPS
}  # fmt: skip
