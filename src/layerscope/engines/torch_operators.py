"""Table of ONNX operators as PyTorch calls.

CALLS and REFUSED together have every operator that lowering emits, which
tests/engines/test_operator_table.py checks. tests/engines/test_torch_operators.py compares the
results of the calls with onnxruntime's. Why it is a table: docs/decisions/0025-torch-calls.md.
"""

from __future__ import annotations

from layerscope.engines import torch_calls as calls
from layerscope.engines.torch_calls import TorchCall

UNARY = {
    "Relu": "relu", "Sigmoid": "sigmoid", "Tanh": "tanh", "Exp": "exp", "Sqrt": "sqrt",
    "Erf": "erf", "Abs": "abs", "Neg": "neg", "Reciprocal": "reciprocal", "Log": "log",
    "Acos": "acos", "Acosh": "acosh", "Asin": "asin", "Asinh": "asinh", "Atan": "atan",
    "Atanh": "atanh", "Cos": "cos", "Cosh": "cosh", "Sin": "sin", "Sinh": "sinh", "Tan": "tan",
    "Ceil": "ceil", "Floor": "floor", "Round": "round", "Sign": "sign", "IsNaN": "isnan",
    "IsInf": "isinf", "Not": "logical_not", "BitwiseNot": "bitwise_not", "Det": "det",
}  # fmt: skip
BINARY = {
    "MatMul": "matmul", "Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "Pow": "pow",
    "And": "logical_and", "BitwiseAnd": "bitwise_and", "Equal": "eq", "Greater": "gt", "Less": "lt",
}  # fmt: skip
CALLS: dict[str, TorchCall] = {
    **{op: calls.unary(name) for op, name in UNARY.items()},
    **{op: calls.binary(name) for op, name in BINARY.items()},
    "Conv": calls.conv, "ConvTranspose": calls.conv_transpose,
    "MaxPool": calls.max_pool, "AveragePool": calls.avg_pool,
    "GlobalAveragePool": lambda torch, attrs, x: x.mean(calls.spatial(x), True),
    "GlobalMaxPool": lambda torch, attrs, x: x.amax(calls.spatial(x), True),
    "GlobalLpPool": calls.global_lp_pool,
    "Gemm": calls.gemm,
    "Einsum": lambda torch, attrs, *inputs: torch.einsum(attrs.text("equation"), *inputs),
    "Max": calls.variadic("maximum"), "Min": calls.variadic("minimum"),
    "Sum": calls.variadic("add"), "Mean": calls.mean, "Mod": calls.modulo,
    "Where": lambda torch, attrs, condition, a, b: torch.where(condition, a, b),
    "HardSwish": calls.activation("hardswish"), "Softplus": calls.activation("softplus"),
    "Softsign": calls.activation("softsign"), "Mish": calls.activation("mish"),
    "Selu": calls.activation("selu"),
    "LeakyRelu": calls.scaled("leaky_relu", 0.01), "Elu": calls.scaled("elu", 1.0),
    "Celu": calls.scaled("celu", 1.0), "HardSigmoid": calls.hard_sigmoid,
    "ThresholdedRelu": calls.thresholded_relu, "Shrink": calls.shrink,
    "Gelu": lambda torch, attrs, x: torch.nn.functional.gelu(
        x, approximate=attrs.text("approximate", "none")),
    "PRelu": lambda torch, attrs, x, slope: torch.where(x < 0, x * slope, x),
    "Clip": calls.clip, "Cast": calls.cast_to,
    "Softmax": lambda torch, attrs, x: torch.softmax(x, attrs.integer("axis", -1)),
    "LogSoftmax": lambda torch, attrs, x: torch.log_softmax(x, attrs.integer("axis", -1)),
    "Hardmax": calls.hardmax,
    "BatchNormalization": calls.batch_norm, "LayerNormalization": calls.layer_norm,
    "InstanceNormalization": calls.instance_norm, "GroupNormalization": calls.group_norm,
    "LpNormalization": calls.lp_norm, "LRN": calls.local_response_norm,
    "ReduceMean": calls.reduce(lambda torch, x, dims, keep: torch.mean(x, dims, keep)),
    "ReduceSum": calls.reduce(lambda torch, x, dims, keep: torch.sum(x, dims, keep)),
    "ReduceMax": calls.reduce(lambda torch, x, dims, keep: torch.amax(x, dims, keep)),
    "ReduceMin": calls.reduce(lambda torch, x, dims, keep: torch.amin(x, dims, keep)),
    "ReduceProd": calls.reduce(calls.reduce_prod),
    "ReduceL1": calls.reduce(lambda torch, x, dims, keep: torch.sum(x.abs(), dims, keep)),
    "ReduceL2": calls.reduce(
        lambda torch, x, dims, keep: torch.linalg.vector_norm(x, 2, dims, keep)),
    "ReduceSumSquare": calls.reduce(lambda torch, x, dims, keep: torch.sum(x * x, dims, keep)),
    "ReduceLogSum": calls.reduce(lambda torch, x, dims, keep: torch.log(torch.sum(x, dims, keep))),
    "ReduceLogSumExp": calls.reduce(lambda torch, x, dims, keep: torch.logsumexp(x, dims, keep)),
    "ArgMax": calls.arg("argmax"), "ArgMin": calls.arg("argmin"),
    "TopK": calls.top_k, "CumSum": calls.cumsum,
    "Reshape": calls.reshape, "Flatten": calls.flatten,
    "Transpose": lambda torch, attrs, x: x.permute(attrs.integers("perm")),
    "Concat": lambda torch, attrs, *inputs: torch.cat(inputs, attrs.integer("axis")),
    "Split": calls.split, "Slice": calls.slice_, "Pad": calls.pad,
    "Squeeze": lambda torch, attrs, x, axes: x.squeeze(tuple(axes.tolist())),
    "Unsqueeze": calls.unsqueeze, "Expand": calls.expand,
    "DepthToSpace": calls.depth_to_space, "Trilu": calls.trilu,
    "Tile": lambda torch, attrs, x, repeats: x.repeat(repeats.tolist()),
    "Shape": lambda torch, attrs, x: torch.tensor(x.shape),
    "Gather": calls.gather, "GatherElements": calls.gather_elements, "GatherND": calls.gather_nd,
    "Dropout": lambda torch, attrs, x, *rest: x,
    "Identity": lambda torch, attrs, x: x,
    "Constant": calls.constant, "ConstantOfShape": calls.constant_of_shape,
}  # fmt: skip

# Operators that lowering emits and that PyTorch is not measured with, and why.
REFUSED = {
    **dict.fromkeys(("LSTM", "GRU", "RNN"), "PyTorch orders gates and weights differently"),
    **dict.fromkeys(("DFT", "STFT"), "PyTorch has complex tensors, ONNX pairs of real numbers"),
    **dict.fromkeys(("DeformConv", "RoiAlign", "MaxRoiPool", "NonMaxSuppression"),
                    "an operator of torchvision, not of PyTorch"),
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear"),
                    "PyTorch quantizes tensors with their scale, not by operators"),
    **dict.fromkeys(("Resize", "GridSample", "AffineGrid"),
                    "PyTorch lacks some of its coordinate modes"),
    **dict.fromkeys(("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"),
                    "losses belong to training, and forward passes are measured"),
    **dict.fromkeys(("ScatterElements", "ScatterND", "OneHot", "ReverseSequence", "LpPool"),
                    "PyTorch has no single operator for it"),
}  # fmt: skip


def refusal(op_type: str) -> str:
    """Why an operator that is not in CALLS is refused."""
    return REFUSED.get(op_type, "no PyTorch call is known for it")
