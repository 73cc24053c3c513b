"""Recurrences with a state that is handed on: linear attention and causal convolutions."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.site import Convert, Site
from layerscope.graph import attributes as at
from layerscope.graph.types import Shape, elements

AS_WRITTEN = "a bound: step by step as the recurrence is defined; kernels may work in chunks"


def linear_attention(s: Site) -> None:
    """LinearAttention: a state of keys by values, updated and read at every step."""
    q, k, v = s.shape(0), s.shape(1), s.shape(2)
    heads, kv_heads = s.whole("q_num_heads"), s.whole("kv_num_heads")
    rule = s.text("update_rule", "gated_delta")
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
    decays = elements(s.shape(4)) if gated and s.has(4) else 0
    told = at.CustomCost(
        ((batch, steps, read * width), _state(s, (batch, kv_heads, size, width))),
        (s.dtype(0), s.dtype(3) if s.has(3) else s.dtype(0)),
        mac=cells * (2 if delta else 1) + batch * steps * read * size * width,
        mul=(cells if gated else 0) + (rows if delta else 0) + batch * steps * read * width,
        add=rows if delta else 0,
        exp=decays,
        estimate=AS_WRITTEN,
    )
    s.counted([known for known in s.inputs if known is not None], told)


RULES = ("linear", "gated", "delta", "gated_delta")


def _state(s: Site, shape: Shape) -> Shape:
    """The state after the last step, or after so many of the last ones."""
    window = s.whole("state_window")
    return (window, *shape) if window > 0 else shape


def causal_conv(s: Site) -> None:
    """CausalConvWithState: every channel by its own kernel, over what came before."""
    x, kernel = s.shape(0), s.shape(1)
    last = bool(s.whole("channels_last"))
    channels = x[-1] if last else x[1]
    if len(x) < 3 or len(kernel) < 3 or kernel[0] != channels:
        raise ShapeError(f"a kernel of {kernel} for {x}")
    inputs = [s.given(0)]
    params = [s.param(1, "weight", "weight")] if s.stored(1) else []
    if not params:
        inputs.append(s.given(1))
    biased = s.has(2)
    if biased and s.stored(2):
        params.append(s.param(2, "bias", "bias"))
    elif biased:
        inputs.append(s.given(2))
    if s.has(3):
        inputs.append(s.given(3))
    length = (kernel[-1] - 1) * s.whole("dilation", 1)
    state = _state(s, (x[0], channels, *(() if last else x[2:-1]), length))
    dtype = s.dtype(3) if s.has(3) else s.dtype(0)
    named = s.text("activation", "none").lower()
    active = named in ("silu", "swish")
    if not active and named != "none":
        raise ShapeError(f"activation {named!r}, expected none, silu or swish")
    count = elements(x)
    told = at.CustomCost(
        (x, state),
        (s.dtype(0), dtype),
        mac=count * elements(kernel[2:]),
        add=count * (biased + active),
        mul=count * active,
        exp=count * active,
        div=count * active,
    )
    s.counted(inputs, told, params=params)


def gates(s: Site) -> None:
    """LinearAttentionGate: a decay by softplus, and an update rate by a sigmoid."""
    names = s.operator.outputs
    made = s.emit("add", (s.given(0), s.given(1)), part="bias", roles="bias")[0]
    made = s.emit("softplus", (made,), part="softplus")[0]
    s.emit("mul", (made, s.given(2)), roles="scale", outputs=names[:1])
    if len(names) > 1 and names[1]:
        s.emit("sigmoid", (s.given(3),), part="beta", outputs=names[1:2])


OPERATORS: dict[tuple[str, str], Convert] = {
    ("", "LinearAttention"): linear_attention,
    ("com.microsoft", "LinearAttention"): linear_attention,
    ("", "CausalConvWithState"): causal_conv,
    ("com.microsoft", "CausalConvWithState"): causal_conv,
    ("com.microsoft", "LinearAttentionGate"): gates,
}
