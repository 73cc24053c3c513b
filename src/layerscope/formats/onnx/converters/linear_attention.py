"""Linear attention and causal convolutions, whose state is an input and an output."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.converters.normalization import arrays
from layerscope.formats.onnx.node import Converter, ConverterTable, OnnxNode
from layerscope.graph import attributes as at
from layerscope.graph.types import Shape, elements

AS_WRITTEN = "a bound: step by step as the recurrence is defined; kernels may work in chunks"


def linear_attention(node: OnnxNode) -> None:
    """LinearAttention: a state of keys x values, updated and read at every step."""
    q, k, v = node.shape("query"), node.shape("key"), node.shape("value")
    heads, kv_heads = node.int_attr("q_num_heads"), node.int_attr("kv_num_heads")
    rule = node.str_attr("update_rule", "gated_delta")
    if len(q) != 3 or len(k) != 3 or len(v) != 3 or min(heads, kv_heads) < 1:
        raise ShapeError(f"linear attention of {q}, {k} and {v} with {heads} heads")
    if q[-1] % heads or v[-1] % kv_heads or rule not in RULES:
        raise ShapeError(f"linear attention of {q} and {v}, rule {rule!r}")
    batch, steps = q[:2]
    size, width = q[-1] // heads, v[-1] // kv_heads
    read = max(heads, kv_heads)  # with fewer queries than states, each state is read once
    cells = batch * steps * kv_heads * size * width
    rows = batch * steps * kv_heads * width
    gated, delta = "gated" in rule, "delta" in rule
    decays = elements(node.shape("decay")) if gated and node.has("decay") else 0
    attrs = at.CustomCost(
        ((batch, steps, read * width), _state(node, (batch, kv_heads, size, width))),
        (
            node.dtype("query"),
            node.dtype("past_state") if node.has("past_state") else node.dtype("query"),
        ),
        mac=cells * (2 if delta else 1) + batch * steps * read * size * width,
        mul=(cells if gated else 0) + (rows if delta else 0) + batch * steps * read * width,
        add=rows if delta else 0,
        exp=decays,
        estimate=AS_WRITTEN,
    )
    node.emit_custom(node.given(), attrs)


RULES = ("linear", "gated", "delta", "gated_delta")


def _state(node: OnnxNode, shape: Shape) -> Shape:
    """Shape of the state after the last step, or after the last `state_window` steps."""
    window = node.int_attr("state_window")
    return (window, *shape) if window > 0 else shape


def causal_conv(node: OnnxNode) -> None:
    """CausalConvWithState: a depthwise convolution over the current and past steps."""
    x, kernel = node.shape("input"), node.shape("weight")
    last = bool(node.int_attr("channels_last"))
    channels = x[-1] if last else x[1]
    if len(x) < 3 or len(kernel) < 3 or kernel[0] != channels:
        raise ShapeError(f"a kernel of {kernel} for {x}")
    params, computed = arrays(node, (("weight", "weight", "weight"), ("bias", "bias", "bias")))
    inputs = [node.input("input"), *computed, *node.given("past_state")]
    biased = node.has("bias")
    length = (kernel[-1] - 1) * node.int_attr("dilation", 1)
    state = _state(node, (x[0], channels, *(() if last else x[2:-1]), length))
    dtype = node.dtype("past_state") if node.has("past_state") else node.dtype("input")
    named = node.str_attr("activation", "none").lower()
    active = named in ("silu", "swish")
    if not active and named != "none":
        raise ShapeError(f"activation {named!r}, expected none, silu or swish")
    count = elements(x)
    attrs = at.CustomCost(
        (x, state),
        (node.dtype("input"), dtype),
        mac=count * elements(kernel[2:]),
        add=count * (biased + active),
        mul=count * active,
        exp=count * active,
        div=count * active,
    )
    node.emit_custom(inputs, attrs, params=params)


def gates(node: OnnxNode) -> None:
    """LinearAttentionGate: a decay by softplus and an update rate by sigmoid."""
    names = node.outputs
    y = node.emit("add", (node.input("a"), node.input("dt_bias")), part="bias", roles="bias")[0]
    y = node.emit("softplus", (y,), part="softplus")[0]
    node.emit("mul", (y, node.input("decay_scale")), roles="scale", outputs=names[:1])
    if len(names) > 1 and names[1]:
        node.emit("sigmoid", (node.input("b"),), part="beta", outputs=names[1:2])


OPERATORS: ConverterTable = {
    ("", "LinearAttention"): Converter(linear_attention, "query key value past_state decay beta"),
    ("com.microsoft", "LinearAttention"): Converter(
        linear_attention, "query key value past_state decay beta"
    ),
    ("", "CausalConvWithState"): Converter(causal_conv, "input weight bias past_state"),
    ("com.microsoft", "CausalConvWithState"): Converter(
        causal_conv, "input weight bias past_state"
    ),
    ("com.microsoft", "LinearAttentionGate"): Converter(gates, "a dt_bias decay_scale b"),
}
