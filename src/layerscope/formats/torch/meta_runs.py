"""Operators run on the meta device, where tensors have shapes and strides but no values."""

from __future__ import annotations

import re

from layerscope.formats.torch.capture_state import Capture, NoKernel
from layerscope.formats.torch.computed_values import run_with_known_sizes
from layerscope.formats.torch.op_calls import OpCall
from layerscope.formats.torch.torch_types import Arg, Result

# What PyTorch says where a kernel needs values.
LACKS_VALUES = re.compile(r"\bmeta\b|\bfake impl|\bsparse\b", re.IGNORECASE).search


def run_on_meta(run: Capture, call: OpCall) -> Result:
    """The results of a call; on real tensors if the forward runs with values."""
    if run.real:
        return call.func(*call.args, **call.kwargs)
    named = {name: on_meta(run, arg) for name, arg in call.kwargs.items()}
    if "device" in named:
        named["device"] = run.meta_device
    try:
        return call.func(*on_meta(run, call.args), **named)
    except (NotImplementedError, RuntimeError) as error:
        lacks_kernel = isinstance(error, NotImplementedError) or LACKS_VALUES(str(error))
        if not lacks_kernel:
            raise
        found = run_with_known_sizes(run, call)
        if found is not None:
            return found
        raise run.needs_values(call.info, "has no kernel without them", NoKernel) from error


def on_meta(run: Capture, arg: Arg) -> Arg:
    """An argument with meta tensors instead of others, in lists as well."""
    torch = run.torch
    if isinstance(arg, torch.Tensor):
        if arg.device == run.meta_device and type(arg) in run.tensor_types:
            return arg
        traced = run.tracker.lookup(arg)
        if traced.meta.sparse:
            run.raised = NoKernel("a sparse tensor has no kernels without them")
            raise run.raised
        if traced.meta_copy is None:
            # autograd must be able to record a view of a tensor that it can record
            with torch.inference_mode(arg.is_inference()):
                traced.meta_copy = run.empty(traced.meta)
        return traced.meta_copy
    if isinstance(arg, (list, tuple)):
        return type(arg)([on_meta(run, each) for each in arg])
    if isinstance(arg, torch.device):
        return run.meta_device
    return arg


def with_own_storage(run: Capture, arg: Arg) -> Arg:
    """An argument whose tensors are new ones on the meta device, each in storage of its own."""
    if isinstance(arg, run.torch.Tensor):
        meta = run.tracker.lookup(arg).meta
        return run.torch.empty_strided(
            meta.shape, meta.stride, dtype=meta.dtype, device=run.meta_device
        )
    if isinstance(arg, (list, tuple)):
        return type(arg)([with_own_storage(run, each) for each in arg])
    return arg


def decompose(run: Capture, call: OpCall) -> Result:
    """The results of a composite operator by its own steps, each of them dispatched.

    NotImplemented if it has none.
    """
    with run.mode:
        return call.func.decompose(*call.args, **call.kwargs)
