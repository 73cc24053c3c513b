"""Operators of a backward pass, which a forward calls if it differentiates: forces, score models.

Each is run as its steps: those of PyTorch's table of decompositions, or convolutions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from layerscope.formats.torch.capture_state import Capture
from layerscope.formats.torch.op_calls import OpCall
from layerscope.formats.torch.torch_types import Result, Torch

if TYPE_CHECKING:
    from torch import Tensor


def open_backward(run: Capture, call: OpCall) -> Result:
    """The results of an operator of a backward pass by its steps, each of them dispatched.

    NotImplemented if there are none.
    """
    if "_backward" not in call.info.name:
        return NotImplemented
    torch = run.torch
    steps: Callable[..., Result] | None
    steps = OWN.get(call.info.full)
    if steps is not None:
        steps = partial(steps, torch)
    else:
        steps = torch._decomp.decomposition_table.get(call.func)
    if steps is None:
        return NotImplemented
    with run.mode:
        return steps(*call.args, **call.kwargs)


def _shrink_backward(torch: Torch, grad: Tensor, x: Tensor, limit: float) -> Tensor:
    """The gradient, and zeros where the activation is zero."""
    return torch.where((x >= -limit) & (x <= limit), 0, grad)


def _convolution_backward(  # the signature is PyTorch's
    torch: Torch,
    grad: Tensor,
    x: Tensor,
    weight: Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    """Gradients of a convolution: two convolutions and a sum, as far as they are asked for."""
    axes = x.dim() - 2
    stride, padding, dilation = [
        [*sizes] * axes if len(sizes) == 1 else [*sizes] for sizes in (stride, padding, dilation)
    ]
    of_x = of_weight = of_bias = None
    sizes = weight.shape[2:]
    if output_mask[0]:
        extra = [0] * axes
        if not transposed:  # elements at the end that the windows do not reach
            extra = [
                x.shape[n + 2] - ((grad.shape[n + 2] - 1) * stride[n] - 2 * padding[n]
                                  + dilation[n] * (sizes[n] - 1) + 1)
                for n in range(axes)
            ]  # fmt: skip
        of_x = torch.ops.aten.convolution(
            grad, weight, None, stride, padding, dilation, not transposed, extra, groups
        )
    if output_mask[1]:
        slid, fixed = (grad, x) if transposed else (x, grad)
        of_weight = _of_weight(torch, slid, fixed, (stride, padding, dilation), groups, sizes)
    if output_mask[2]:
        of_bias = grad.sum([0, *range(2, grad.dim())])
    return of_x, of_weight, of_bias


def _of_weight(
    torch: Torch,
    slid: Tensor,
    fixed: Tensor,
    windows: tuple[Sequence[int], Sequence[int], Sequence[int]],
    groups: int,
    sizes: Sequence[int],
) -> Tensor:
    """The gradient of a weight: the batch is the axis that is summed, and strides are dilations."""
    stride, padding, dilation = windows
    pads = [pad for each in reversed(padding) for pad in (each, each)]
    padded = torch.nn.functional.pad(slid, pads) if any(pads) else slid
    for n, size in enumerate(sizes):
        reached = (fixed.shape[n + 2] - 1) * stride[n] + (size - 1) * dilation[n] + 1
        padded = padded.narrow(n + 2, 0, reached)
    batch, channels = slid.shape[:2]
    data = padded.reshape(batch, groups, channels // groups, *padded.shape[2:])
    data = data.movedim(2, 0).transpose(1, 2)  # in of a group, groups, batch
    data = data.reshape(channels // groups, groups * batch, *padded.shape[2:])
    zeros = [0] * len(sizes)
    out = torch.ops.aten.convolution(
        data, fixed.transpose(0, 1), None, dilation, zeros, stride, False, zeros, groups
    )
    return out.transpose(0, 1)


# Steps of operators that PyTorch's table has none for.
OWN: dict[str, Callable[..., Result]] = {
    "aten.convolution_backward": _convolution_backward,
    "aten.softshrink_backward": _shrink_backward,
    "aten.hardshrink_backward": _shrink_backward,
}
