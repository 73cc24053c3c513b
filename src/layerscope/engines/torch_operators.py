"""ONNX operators as PyTorch calls: those that lowered networks are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Attrs = dict[str, Any]
Call = Callable[..., Any]  # (torch, what the operator was told, its inputs) -> output or outputs


def _pads(told: Attrs, rank: int) -> tuple[list[int], list[int]]:
    pads = list(told.get("pads", [0] * (2 * rank)))
    return pads[:rank], pads[rank:]


def _padded(t: Any, x: Any, told: Attrs, rank: int, value: float) -> tuple[Any, list[int]]:
    """The input padded where both sides differ, and what is left for the operator to pad."""
    begin, end = _pads(told, rank)
    if begin == end:
        return x, begin
    sides = [side for n in reversed(range(rank)) for side in (begin[n], end[n])]
    return t.nn.functional.pad(x, sides, value=value), [0] * rank


def _conv(t: Any, told: Attrs, x: Any, w: Any, b: Any = None) -> Any:
    rank = x.dim() - 2
    x, pads = _padded(t, x, told, rank, 0.0)
    call = (t.conv1d, t.conv2d, t.conv3d)[rank - 1]
    one = [1] * rank
    return call(
        x, w, b, told.get("strides", one), pads, told.get("dilations", one), told.get("group", 1)
    )


def _max_pool(t: Any, told: Attrs, x: Any) -> Any:
    rank = x.dim() - 2
    x, pads = _padded(t, x, told, rank, float("-inf"))
    call = (t.max_pool1d, t.max_pool2d, t.max_pool3d)[rank - 1]
    one = [1] * rank
    return call(
        x, told["kernel_shape"], told.get("strides", one), pads, told.get("dilations", one),
        bool(told.get("ceil_mode", 0)),
    )  # fmt: skip


def _avg_pool(t: Any, told: Attrs, x: Any) -> Any:
    rank = x.dim() - 2
    begin, end = _pads(told, rank)
    if begin != end:
        raise NotImplementedError("average pooling padded unequally")
    f = t.nn.functional
    call = (f.avg_pool1d, f.avg_pool2d, f.avg_pool3d)[rank - 1]
    return call(
        x, told["kernel_shape"], told.get("strides", [1] * rank), begin,
        bool(told.get("ceil_mode", 0)), bool(told.get("count_include_pad", 0)),
    )  # fmt: skip


def _gemm(t: Any, told: Attrs, a: Any, b: Any, c: Any = None) -> Any:
    a = a.t() if told.get("transA") else a
    if c is not None and told.get("transB") and told.get("alpha", 1) == told.get("beta", 1) == 1:
        return t.nn.functional.linear(a, b, c)
    y = a @ (b.t() if told.get("transB") else b)
    y = y if told.get("alpha", 1.0) == 1.0 else y * told["alpha"]
    return y if c is None else y + c * told.get("beta", 1.0)


def _reshape(t: Any, told: Attrs, x: Any, shape: Any) -> Any:
    sizes = [x.shape[n] if size == 0 else int(size) for n, size in enumerate(shape.tolist())]
    return x.reshape(sizes)


def _reduce(call: str) -> Call:
    def run(t: Any, told: Attrs, x: Any, axes: Any = None) -> Any:
        found = told.get("axes") if axes is None else axes.tolist()
        dims = list(range(x.dim())) if not found else [int(a) for a in found]
        return getattr(t, call)(x, dims, bool(told.get("keepdims", 1)))

    return run


def _split(t: Any, told: Attrs, x: Any, sizes: Any = None) -> Any:
    axis = told.get("axis", 0)
    if sizes is not None:
        return t.split(x, sizes.tolist(), axis)
    return t.chunk(x, told["num_outputs"], axis)


def _slice(t: Any, told: Attrs, x: Any, starts: Any, ends: Any, *more: Any) -> Any:
    axes = more[0].tolist() if more else range(len(starts))
    steps = more[1].tolist() if len(more) > 1 else [1] * len(starts)
    for start, end, axis, step in zip(starts.tolist(), ends.tolist(), axes, steps, strict=True):
        if step < 1:
            raise NotImplementedError("slices that go backwards")
        size = x.shape[axis]
        low, high = (max(min(v + size if v < 0 else v, size), 0) for v in (start, end))
        where = [slice(None)] * x.dim()
        where[axis] = slice(low, high, step)
        x = x[tuple(where)]
    return x


def _layer_norm(t: Any, told: Attrs, x: Any, scale: Any, bias: Any = None) -> Any:
    axis = told.get("axis", -1)
    return t.nn.functional.layer_norm(
        x, list(x.shape[axis:]), scale, bias, told.get("epsilon", 1e-5)
    )


def _clip(t: Any, told: Attrs, x: Any, low: Any = None, high: Any = None) -> Any:
    return t.clamp(x, None if low is None else low.item(), None if high is None else high.item())


def _unary(name: str) -> Call:
    return lambda t, told, x: getattr(t, name)(x)


def _functional(name: str) -> Call:
    return lambda t, told, x: getattr(t.nn.functional, name)(x)


def _binary(name: str) -> Call:
    return lambda t, told, a, b: getattr(t, name)(a, b)


OPERATORS: dict[str, Call] = {
    "Conv": _conv,
    "MaxPool": _max_pool,
    "AveragePool": _avg_pool,
    "GlobalAveragePool": lambda t, told, x: x.mean(list(range(2, x.dim())), True),
    "GlobalMaxPool": lambda t, told, x: x.amax(list(range(2, x.dim())), True),
    "Gemm": _gemm,
    "MatMul": _binary("matmul"),
    "Add": _binary("add"), "Sub": _binary("sub"), "Mul": _binary("mul"), "Div": _binary("div"),
    "Pow": _binary("pow"),
    "Relu": _unary("relu"), "Sigmoid": _unary("sigmoid"), "Tanh": _unary("tanh"),
    "Exp": _unary("exp"), "Sqrt": _unary("sqrt"), "Erf": _unary("erf"), "Abs": _unary("abs"),
    "Neg": _unary("neg"), "Reciprocal": _unary("reciprocal"), "Log": _unary("log"),
    "HardSwish": _functional("hardswish"), "HardSigmoid": _functional("hardsigmoid"),
    "LeakyRelu": lambda t, told, x: t.nn.functional.leaky_relu(x, told.get("alpha", 0.01)),
    "Gelu": lambda t, told, x: t.nn.functional.gelu(x, approximate=told.get("approximate", "none")),
    "PRelu": lambda t, told, x, w: t.where(x < 0, x * w, x),
    "Clip": _clip,
    "Softmax": lambda t, told, x: t.softmax(x, told.get("axis", -1)),
    "BatchNormalization": lambda t, told, x, w, b, m, v: t.nn.functional.batch_norm(
        x, m, v, w, b, False, 0.0, told.get("epsilon", 1e-5)),
    "LayerNormalization": _layer_norm,
    "LRN": lambda t, told, x: t.nn.functional.local_response_norm(
        x, told["size"], told.get("alpha", 1e-4), told.get("beta", 0.75), told.get("bias", 1.0)),
    "Reshape": _reshape,
    "Flatten": lambda t, told, x: x.flatten(told.get("axis", 1)),
    "Transpose": lambda t, told, x: x.permute(told["perm"]),
    "Concat": lambda t, told, *xs: t.cat(xs, told["axis"]),
    "Split": _split,
    "Slice": _slice,
    "Squeeze": lambda t, told, x, axes: x.squeeze(tuple(axes.tolist())),
    "Unsqueeze": lambda t, told, x, axes: _unsqueezed(x, axes.tolist()),
    "Expand": lambda t, told, x, shape: x.expand(
        t.broadcast_shapes(tuple(x.shape), tuple(shape.tolist()))),
    "Gather": lambda t, told, x, index: _gathered(t, x, index, told.get("axis", 0)),
    "ReduceMean": _reduce("mean"), "ReduceSum": _reduce("sum"), "ReduceMax": _reduce("amax"),
    "Dropout": lambda t, told, x, *rest: x,
    "Identity": lambda t, told, x: x,
}  # fmt: skip


def _unsqueezed(x: Any, axes: list[int]) -> Any:
    for axis in sorted(axes):
        x = x.unsqueeze(axis)
    return x


def _gathered(t: Any, x: Any, index: Any, axis: int) -> Any:
    taken = t.index_select(x, axis, index.reshape(-1))
    return taken.reshape(*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])
