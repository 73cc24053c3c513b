"""Netscope's counting, its approximations included: macc, comp, add, div, exp per Caffe layer."""

from __future__ import annotations

from layerscope.conventions.convention import Convention
from layerscope.conventions.counted_nodes import CountedNode
from layerscope.conventions.functions import Rule, free, one, products
from layerscope.graph.attributes import Power, TransposedConv
from layerscope.graph.types import Tensor, elements
from layerscope.ops import Ops


def _per_element(**kinds: int) -> Rule:
    unit = Ops(**kinds)
    return lambda node: unit * elements(node.call.outputs[0])


def _deconvolution(node: CountedNode) -> Ops:
    """An approximation: the output's positions times (k/stride)², groups and dilation ignored."""
    call = node.call
    w = call.attributes.window
    macs = call.x[1] * elements(call.y)
    for kernel in w.kernel:
        macs *= kernel
    for stride in w.stride:
        macs //= stride
    return Ops(mac=macs)


def _pool(kind: str) -> Rule:
    """Output elements times kernel positions, as comparisons or additions."""
    return lambda node: Ops(
        **{kind: elements(node.call.outputs[0]) * node.call.attributes.window.positions}
    )


def _global_pool(kind: str) -> Rule:
    return lambda node: Ops(**{kind: elements(node.call.inputs[0])})


def _lrn(node: CountedNode) -> Ops:
    size = elements(node.call.outputs[0])
    return Ops(mac=size * node.call.attributes.size, add=size, exp=size, div=2 * size)


def _l2_norm(node: CountedNode) -> Ops:
    """As LRN over one neighbour."""
    return Ops(mac=1, add=1, exp=1, div=2) * elements(node.call.outputs[0])


def _softmax(node: CountedNode) -> Ops:
    return Ops(add=1, div=1, exp=1) * elements(node.call.inputs[0])


def _roi_pool(node: CountedNode) -> Ops:
    """One of each per region for its edges, and the whole map compared for every region."""
    regions = node.call.y[0]
    return Ops(mac=regions, add=regions, div=regions, comp=regions * elements(node.call.x[1:]))


def _power(node: CountedNode) -> Ops:
    """A product for a scale, an addition for a shift, a power; of one image of the batch."""
    a: Power = node.call.attributes
    unit = Ops(mac=a.scale != 1, add=a.shift != 0, exp=a.power != 1)
    return unit * elements(node.call.y[1:])


def _proposals(node: CountedNode) -> Ops:
    """Nine anchors at every position of the map, and all pairs of proposals compared."""
    count, positions = node.call.attributes.count, 9 * elements(node.call.x[2:])
    pairs = count * (count - 1) // 2
    anchors = node.call.x[0] * positions
    return Ops(
        mac=8 * anchors + 2 * pairs,
        add=10 * anchors + 6 * pairs,
        comp=6 * anchors + positions**2 + 7 * pairs,
        exp=2 * anchors,
        div=pairs,
    )


def _params(node: CountedNode) -> int:
    """PReLU and Scale not counted; batch norm two per channel; LRN two; tied arrays every time."""
    call = node.inferred_call
    if node.op in ("lrn", "l2_norm"):
        return 2
    if node.op == "batch_norm" and call is not None:
        return 2 * call.x[1]
    if node.op == "conv_transpose" and call is not None:  # bias and groups ignored
        a: TransposedConv = call.attributes
        return call.x[1] * a.out_channels * a.window.positions
    if node.op in ("conv", "linear"):
        return sum(param.elements for param in node.cost.params if param.learnable)
    return 0


def _activations(node: CountedNode) -> int:
    """Elements of every output, also of layers in place; a loss has as many as its input."""
    call = node.call
    if node.op in ("permute", "reshape", "accuracy", "prior_box"):
        return 0
    if node.op == "power":
        return elements(call.y[1:])
    return sum(map(elements, call.inputs[:1] if node.op == "softmax_loss" else call.outputs))


def has_sizes(tensor: Tensor) -> bool:
    """Whether Netscope has the sizes of an input: one before all layers needs four of them."""
    source = tensor.source
    before_layers = source is not None and source.line > 0 and not source.op
    return not before_layers or tensor.shape is None or len(tensor.shape) == 4


def _input_activations(tensor: Tensor) -> int:
    return tensor.elements if has_sizes(tensor) else 0


COMPARED = ("relu", "relu6", "elu", "prelu", "leaky_relu", "dropout")

RULES: dict[str, Rule] = {
    **one(("conv", "linear"), products),  # the bias addition is not counted
    "conv_transpose": _deconvolution,
    "max_pool": _pool("comp"),
    "avg_pool": _pool("add"),
    "global_max_pool": _global_pool("comp"),
    "global_avg_pool": _global_pool("add"),
    "adaptive_max_pool": _global_pool("comp"),
    "adaptive_avg_pool": _global_pool("add"),
    **one(COMPARED, _per_element(comp=1)),
    "batch_norm": _per_element(add=1, div=1),
    "scale": _per_element(mac=1),
    "lrn": _lrn,
    "softmax": _softmax,
    "softmax_loss": _softmax,
    **one(("add", "sub"), _per_element(add=1)),
    "mul": _per_element(mac=1),
    "max": _per_element(comp=1),
    "l2_norm": _l2_norm,
    "roi_pool": _roi_pool,
    "power": _power,
    "proposals": _proposals,
}


def _count(node: CountedNode) -> Ops:
    return RULES.get(node.op, free)(node)


CONVENTION = Convention(
    name="netscope",
    says="macc without bias, one comp per element and position, no PReLU or Scale parameters",
    figure="macc",
    headline=lambda ops: ops.mac,
    count=_count,
    params=_params,
    activations=_activations,
    counts_inputs=True,
    input_activations=_input_activations,
)
