"""fvcore 0.1.5: one flop per multiply-add, norms and average pools added, fused attention skipped.

As it traces a model on a CPU without gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from layerscope.conventions.convention import Convention
from layerscope.conventions.counted_nodes import CountedNode
from layerscope.conventions.einsum_path import numpy_flops
from layerscope.conventions.functions import (
    CELLS,
    CONV,
    CONV_TRANSPOSE,
    GATES,
    MATMUL,
    NORMS,
    TWO_PRODUCTS,
    Rule,
    batch_norm,
    by_function,
    cell,
    norm,
    one,
    per_input,
    per_output,
    products,
)
from layerscope.graph.types import elements
from layerscope.ops import FREE, Ops
from layerscope.ops.attention import Sizes

PRODUCTS = (*CONV, *CONV_TRANSPOSE, *MATMUL, "linear", "addmm")
COUNTED_OUTPUTS = tuple(each for each in PRODUCTS if each != "mm")  # as activations
EXACT = ("abc,abd->acd", "abc,adc->adb")  # the two equations that it has formulas for


def _einsum(node: CountedNode) -> Ops:
    return products(node) if _letters(node) in EXACT else Ops(mac=numpy_flops(node.call) // 2)


def _matmul(node: CountedNode) -> Ops:
    """Elements of the first tensor times columns of the second; its batch axes are ignored."""
    if len(node.call.inputs[1]) < 2:  # see caveats
        return products(node)
    return Ops(mac=elements(node.call.inputs[0]) * node.call.inputs[1][-1])


def _letters(node: CountedNode) -> str:
    """The equation with letters in the order of the alphabet."""
    equation: str = node.call.attributes.equation
    seen = dict.fromkeys(letter for letter in equation if letter.isalpha())
    return equation.translate({ord(letter): 97 + n for n, letter in enumerate(seen)})


def _pads_by_name(node: CountedNode) -> bool:
    """Whether a convolution has padding="same" or "valid", an operator without a formula."""
    return node.node.source is not None and node.node.source.op.endswith(".padding")


def _conv(node: CountedNode) -> Ops:
    return FREE if _pads_by_name(node) else products(node)


def fails_on_norm(node: CountedNode) -> bool:
    """Whether its formula for a norm raises on these shapes."""
    return node.function in NORMS and node.op != "scale" and not 2 <= len(node.call.x) <= 5


def _fails(node: CountedNode) -> bool:
    """Whether its formula for the function raises on these shapes."""
    vector = node.function == "matmul" and len(node.call.inputs[1]) < 2
    return vector or fails_on_norm(node)


def notes_on_failures(
    tool: str, fails: Callable[[CountedNode], bool], nodes: Iterable[CountedNode]
) -> tuple[str, ...]:
    """One note per function on whose shapes the tool's formula raises."""
    found: dict[str, list[str]] = {}
    for node in nodes:
        if not node.fused and fails(node):
            found.setdefault(node.function, []).append(node.name)
    return tuple([
        f"{tool} raises an error here: its formula for {function} does not take the shapes of "
        f"{', '.join(names[:3])}{f' and {len(names) - 3} more' if len(names) > 3 else ''}"
        for function, names in found.items()
    ])  # fmt: skip


def caveats(nodes: Iterable[CountedNode]) -> tuple[str, ...]:
    """Functions on whose shapes its formula raises."""
    return notes_on_failures("fvcore", _fails, nodes)


RULES: dict[str, Rule] = {
    **one((*PRODUCTS, *CELLS), products),
    **one(CONV, _conv),
    "matmul": _matmul,
    TWO_PRODUCTS: products,
    "einsum": _einsum,
    "batch_norm": batch_norm,
    **one(NORMS, norm(4, 5)),
    "adaptive_avg_pool2d": per_input(1),
    "upsample_nearest2d": per_output(1),
    "upsample_bilinear2d": per_output(4),
    "grid_sampler": per_output(4),
}


def activations(node: CountedNode) -> int:
    """Output elements of convolutions and matrix products."""
    if node.function == TWO_PRODUCTS:
        return Sizes(node.call).scores + elements(node.call.y)
    if node.function in CELLS:
        return 2 * GATES[cell(node)] * elements(node.call.y)
    counted = node.function in (*COUNTED_OUTPUTS, "einsum") and not _pads_by_name(node)
    return elements(node.call.y) if counted else 0


CONVENTION = Convention(
    name="fvcore",
    says="one flop per multiply-add, norms and 2-D adaptive pools added, fused attention skipped",
    figure="flops",
    headline=lambda ops: ops.mac + ops.add,
    sees="functions",
    count=by_function(RULES),
    activations=lambda node: 0 if node.fused else activations(node),
    counted_params="all",
    caveats=caveats,
    why={
        "attention modules": "without gradients PyTorch runs them as one kernel it does not know",
        "fused attention": "it has no formula for it",
        "recurrent layers": "it has no formula for them",
    },
)
