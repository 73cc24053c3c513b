"""Rules as ONNX Runtime has them, for blocks of any size, without asking it."""

from __future__ import annotations

from layerscope.prediction.engine_rules import ACTIVATIONS, POOLS, EngineRules

FUSED = ("relu", "relu6", "sigmoid", "tanh", "leaky_relu", "hard_sigmoid", "clip")
AFTER_LINEAR = ("relu", "sigmoid", "tanh", "leaky_relu", "hard_sigmoid", "elu", "softplus")
MOVED = ("elu", "softplus")  # activations that take an image out of its blocks

NO_BLOCKS = EngineRules(after_conv=FUSED, after_linear=AFTER_LINEAR, sums_plain="first node")


def blocks_of(block: int) -> EngineRules:
    """Of a processor whose vectors hold so many numbers."""
    return EngineRules(
        block=block,
        direct=block,
        conv_multiple=4,
        depthwise_multiple=4,
        group_multiple=block,
        pool_multiple=block,
        concat_multiple=block,
        pools=tuple(POOLS),
        by_element=(*(op for op in ACTIVATIONS if op not in MOVED), "batch_norm", "add", "mul"),
        after_conv=tuple(op for op in ACTIVATIONS if op in (*FUSED, "hard_swish")),
        after_linear=AFTER_LINEAR,
        sums_in_blocks="first operand",
        sums_plain="first node",
        norm_relu=True,
    )
