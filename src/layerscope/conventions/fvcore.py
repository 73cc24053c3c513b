"""fvcore 0.1.5: one flop per multiply-add, norms and average pools added, fused attention skipped.

As it traces a model on a processor without gradients.
"""

from __future__ import annotations

from collections.abc import Iterable

from layerscope.conventions.convention import Convention
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
from layerscope.conventions.sites import Site
from layerscope.graph.types import elements
from layerscope.ops import FREE, Ops
from layerscope.ops.attention import Sizes

PRODUCTS = (*CONV, *CONV_TRANSPOSE, *MATMUL, "linear", "addmm")
MADE = tuple(each for each in PRODUCTS if each != "mm")  # whose results it counts
EXACT = ("abc,abd->acd", "abc,adc->adb")  # the two it has formulas for


def _einsum(site: Site) -> Ops:
    return products(site) if _letters(site) in EXACT else Ops(mac=numpy_flops(site.call) // 2)


def _matmul(site: Site) -> Ops:
    """All of the first tensor with the columns of the second, whose batch it does not look at."""
    if len(site.call.inputs[1]) < 2:  # see caveats
        return products(site)
    return Ops(mac=elements(site.call.inputs[0]) * site.call.inputs[1][-1])


def _letters(site: Site) -> str:
    """The equation with letters in the order of the alphabet."""
    equation: str = site.call.attributes.equation
    seen = dict.fromkeys(letter for letter in equation if letter.isalpha())
    return equation.translate({ord(letter): 97 + n for n, letter in enumerate(seen)})


def _in_words(site: Site) -> bool:
    """Whether a convolution was told to pad to the same size: it has no formula for that one."""
    return site.node.source is not None and site.node.source.op.endswith(".padding")


def _conv(site: Site) -> Ops:
    return FREE if _in_words(site) else products(site)


def _fails(site: Site) -> bool:
    """Whether its formula for a function raises, as it does not take the shapes."""
    if site.function in NORMS:
        return site.node.op != "scale" and not 2 <= len(site.call.x) <= 5
    return site.function == "matmul" and len(site.call.inputs[1]) < 2


def caveats(sites: Iterable[Site]) -> tuple[str, ...]:
    """What it gives no figure for at all."""
    found: dict[str, list[str]] = {}
    for site in sites:
        if not site.fused and _fails(site):
            found.setdefault(site.function, []).append(site.node.name)
    return tuple([
        f"fvcore raises an error here: its formula for {function} does not take the shapes of "
        f"{', '.join(names[:3])}{f' and {len(names) - 3} more' if len(names) > 3 else ''}"
        for function, names in found.items()
    ])  # fmt: skip


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


def activations(site: Site) -> int:
    """Elements that convolutions and matrix products make."""
    if site.function == TWO_PRODUCTS:
        return Sizes(site.call).scores + elements(site.call.y)
    if site.function in CELLS:
        return 2 * GATES[cell(site)] * elements(site.call.y)
    counted = site.function in (*MADE, "einsum") and not _in_words(site)
    return elements(site.call.y) if counted else 0


CONVENTION = Convention(
    name="fvcore",
    says="one flop per multiply-add, norms and 2-D adaptive pools added, fused attention skipped",
    figure="flops",
    headline=lambda ops: ops.mac + ops.add,
    seen=by_function(RULES),
    seen_activations=lambda site: 0 if site.fused else activations(site),
    learned="all",
    caveats=caveats,
    why={
        "attention modules": "without gradients PyTorch runs them as one kernel it does not know",
        "fused attention": "it has no formula for it",
        "recurrent layers": "it has no formula for them",
    },
)
