"""Features of a layer for fitted machines, and the rates that apply to it."""

from __future__ import annotations

from msgspec import Struct

from layerscope.graph.attributes import Window
from layerscope.graph.types import DTYPE_BITS
from layerscope.report import Layer

WIDTHS = (32, 64, 128, 256, 512)  # channels from which on products are faster
SIMPLE = frozenset({"relu", "relu6", "leaky_relu", "hard_sigmoid", "hard_swish", "clip", "prelu"})
CURVED = frozenset(
    {"silu", "gelu", "gelu_tanh", "sigmoid", "tanh", "softplus", "mish", "exp", "elu", "erf"}
)
SUMS = frozenset({"add", "mul", "sub", "div", "scale", "square", "max", "min", "neg", "bias"})
NORMS = frozenset({"layer_norm", "group_norm", "rms_norm", "instance_norm", "l2_norm", "lrn"})
FREE = frozenset(
    {"flatten", "reshape", "dropout", "identity", "constant", "expand", "table", "positions"}
)
BIG = 25  # positions of a large window
PER_BATCH = ("layers", "weights", "once")  # amounts that do not grow with the batch


class Features(Struct, frozen=True):
    """Operations and bytes of a layer, activations counted with 4 bytes."""

    op: str
    macs: int
    act_bytes: int
    weight_bytes: int
    outputs: int = 0  # of a product: output and input channels per group; window positions
    inputs: int = 0
    area: int = 1
    groups: int = 1
    flops: int = 0


def features_of(layer: Layer) -> Features:
    """Features of a layer, independent of its dtype."""
    cost, gemm = layer.cost, layer.gemm
    weights = sum(param.elements for param in cost.params) * 4
    wide = 32 / DTYPE_BITS.get(layer.outputs[0].dtype, 32)
    stored = sum(param.bytes for param in cost.params)
    moved = cost.read_bytes - min(stored, cost.read_bytes) + cost.write_bytes
    window = getattr(layer.node.attributes, "window", None)
    area = window.positions if isinstance(window, Window) else 1
    groups = getattr(layer.node.attributes, "groups", 1) or 1
    n, k = (gemm.n, gemm.k) if gemm is not None else (0, 0)
    return Features(
        layer.op, cost.ops.mac, round(moved * wide), weights, n, k // area, area, groups,
        cost.ops.flops,
    )  # fmt: skip


def amounts(features: Features) -> dict[str, float]:
    """Amounts by rate that a layer has; empty for a layer that takes no time."""
    if features.op in FREE:
        return {}
    found: dict[str, float] = {"layers": 1.0, "weights": float(features.weight_bytes)}
    product = _product(features)
    if product:
        kind, rate = product
        found[f"{kind} bytes"] = float(features.act_bytes)
        found[f"{rate} macs"] = float(features.macs)
        return found
    found[f"{_mover(features.op)} bytes"] = float(features.act_bytes)
    return found


def _product(features: Features) -> tuple[str, str] | None:
    """Kind of a product and the name of its rate; None for other layers."""
    if features.op == "attention":
        return "attention", "attention"
    if not features.outputs:  # such as recurrent layers, which are many products
        return ("matmul", "matmul") if features.macs else None
    if features.op not in ("conv", "conv_transpose", "linear"):
        return "matmul", "matmul"
    if features.groups > 1 and features.outputs == 1 and features.inputs == 1:
        return "depthwise", "depthwise large" if features.area >= BIG else "depthwise"
    width = min(features.outputs, features.inputs)
    if features.groups > 1:
        return "grouped", "grouped thin" if width < WIDTHS[0] else "grouped"
    kind = "linear" if features.op == "linear" else "conv" if features.area > 1 else "pointwise"
    if kind == "conv" and features.inputs <= 4:
        return "conv", "stem"
    size = sum(width >= each for each in WIDTHS)
    return kind, f"{kind} {size}"


def _mover(op: str) -> str:
    if op in SIMPLE:
        return "simple"
    if op in CURVED:
        return "curved"
    if op in SUMS:
        return "sum"
    if op in NORMS:
        return "norm"
    if op in ("batch_norm", "softmax"):
        return op
    if "pool" in op or op.startswith("reduce"):
        return "pool"
    return "move"
