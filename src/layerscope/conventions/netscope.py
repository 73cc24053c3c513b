"""Netscope's counting, its approximations included: macc, comp, add, div, exp per Caffe layer."""

from __future__ import annotations

from layerscope.analysis.costs import Cost
from layerscope.conventions.convention import Convention, Recount
from layerscope.graph.attributes import Power, TransposedConv
from layerscope.graph.types import Node, Tensor, elements
from layerscope.ops import FREE, Call, Ops


def _per_element(**kinds: int) -> Recount:
    unit = Ops(**kinds)
    return lambda call, ops: unit * elements(call.outputs[0])


def _products(call: Call, ops: Ops) -> Ops:
    """Convolution and inner product: the bias addition is not counted."""
    return Ops(mac=ops.mac)


def _deconvolution(call: Call, ops: Ops) -> Ops:
    """An approximation: the output's positions times (k/stride)², groups and dilation ignored."""
    w = call.attributes.window
    macs = call.x[1] * elements(call.y)
    for kernel in w.kernel:
        macs *= kernel
    for stride in w.stride:
        macs //= stride
    return Ops(mac=macs)


def _pool(kind: str) -> Recount:
    """Output elements times kernel positions, as comparisons or additions."""
    return lambda call, ops: Ops(
        **{kind: elements(call.outputs[0]) * call.attributes.window.positions}
    )


def _global_pool(kind: str) -> Recount:
    return lambda call, ops: Ops(**{kind: elements(call.inputs[0])})


def _lrn(call: Call, ops: Ops) -> Ops:
    size = elements(call.outputs[0])
    return Ops(mac=size * call.attributes.size, add=size, exp=size, div=2 * size)


def _l2_norm(call: Call, ops: Ops) -> Ops:
    """As LRN over one neighbour."""
    return Ops(mac=1, add=1, exp=1, div=2) * elements(call.outputs[0])


def _softmax(call: Call, ops: Ops) -> Ops:
    return Ops(add=1, div=1, exp=1) * elements(call.inputs[0])


def _roi_pool(call: Call, ops: Ops) -> Ops:
    """One of each per region for its edges, and the whole map compared for every region."""
    regions = call.y[0]
    return Ops(mac=regions, add=regions, div=regions, comp=regions * elements(call.x[1:]))


def _power(call: Call, ops: Ops) -> Ops:
    """A product for a scale, an addition for a shift, a power; of one image, however many."""
    a: Power = call.attributes
    unit = Ops(mac=a.scale != 1, add=a.shift != 0, exp=a.power != 1)
    return unit * elements(call.y[1:])


def _proposals(call: Call, ops: Ops) -> Ops:
    """Nine anchors at every place of the map, and every two of the proposals compared."""
    count, places = call.attributes.count, 9 * elements(call.x[2:])
    pairs = count * (count - 1) // 2
    anchors = call.x[0] * places
    return Ops(
        mac=8 * anchors + 2 * pairs,
        add=10 * anchors + 6 * pairs,
        comp=6 * anchors + places**2 + 7 * pairs,
        exp=2 * anchors,
        div=pairs,
    )


def _params(node: Node, call: Call | None, cost: Cost) -> int:
    """Slopes and Scale layers not counted; batch norm two per channel; LRN two; ties not known."""
    if node.op in ("lrn", "l2_norm"):
        return 2
    if node.op == "batch_norm" and call is not None:
        return 2 * call.x[1]
    if node.op == "conv_transpose" and call is not None:  # bias and groups ignored
        a: TransposedConv = call.attributes
        return call.x[1] * a.out_channels * a.window.positions
    if node.op in ("conv", "linear"):
        return sum(param.elements for param in cost.params if param.learnable)
    return 0


def _activations(node: Node, call: Call, written: int) -> int:
    """Every row's output, in place or not; a loss is taken to give out what it reads."""
    if node.op in ("permute", "reshape", "accuracy", "prior_box"):
        return 0
    if node.op == "power":
        return elements(call.y[1:])
    return sum(map(elements, call.inputs[:1] if node.op == "softmax_loss" else call.outputs))


def has_sizes(tensor: Tensor) -> bool:
    """Whether Netscope knows the sizes of an input: of one ahead of the layers, all four."""
    source = tensor.source
    ahead = source is not None and source.line > 0 and not source.op
    return not ahead or tensor.shape is None or len(tensor.shape) == 4


def _input_activations(tensor: Tensor) -> int:
    return tensor.elements if has_sizes(tensor) else 0


COMPARED = ("relu", "relu6", "elu", "prelu", "leaky_relu", "dropout")

CONVENTION = Convention(
    name="netscope",
    says="macc without bias, one comp per element and position, no PReLU or Scale parameters",
    figure="macc",
    headline=lambda ops: ops.mac,
    ops={
        **dict.fromkeys(("conv", "linear"), _products),
        "conv_transpose": _deconvolution,
        "max_pool": _pool("comp"),
        "avg_pool": _pool("add"),
        "global_max_pool": _global_pool("comp"),
        "global_avg_pool": _global_pool("add"),
        "adaptive_max_pool": _global_pool("comp"),
        "adaptive_avg_pool": _global_pool("add"),
        **dict.fromkeys(COMPARED, _per_element(comp=1)),
        "batch_norm": _per_element(add=1, div=1),
        "scale": _per_element(mac=1),
        "lrn": _lrn,
        "softmax": _softmax,
        "softmax_loss": _softmax,
        **dict.fromkeys(("add", "sub"), _per_element(add=1)),
        "mul": _per_element(mac=1),
        "max": _per_element(comp=1),
        "l2_norm": _l2_norm,
        "roi_pool": _roi_pool,
        "power": _power,
        "proposals": _proposals,
    },
    other=lambda call, ops: FREE,
    params=_params,
    activations=_activations,
    counts_inputs=True,
    input_activations=_input_activations,
)
