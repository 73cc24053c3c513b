"""Every call that reaches PyTorch's dispatcher goes to the handler of its kind.

Tensors are on the meta device: shapes and strides without values. Composite operators arrive whole
because the model runs in inference mode. One without a converter is decomposed, and what cannot be
decomposed becomes an unknown node under its own name.

A handler is a function of the capture's state and the call; it returns what the operator returns.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from layerscope.formats.torch.caches import OPERATORS
from layerscope.formats.torch.capture_state import Capture
from layerscope.formats.torch.compute_calls import on_compute
from layerscope.formats.torch.computed_values import on_read
from layerscope.formats.torch.constant_calls import on_constant, on_constants
from layerscope.formats.torch.higher_order import on_higher_order
from layerscope.formats.torch.op_calls import OpCall, cache_key, named_key, op_info
from layerscope.formats.torch.tensors import TracedTensor
from layerscope.formats.torch.torch_types import Args, Dispatch, Kwargs, Result, Torch
from layerscope.formats.torch.view_calls import on_view
from layerscope.formats.torch.write_calls import on_write

if TYPE_CHECKING:
    from torch._ops import OpOverload

Handler = Callable[[Capture, OpCall], Result]

# By `OpInfo.kind`. Those of the first table take any call.
HANDLERS: dict[str, Handler] = {
    "constant": on_constant,
    "random": on_constant,
    "read": on_read,
    "higher_order": on_higher_order,
    "left_aligned": lambda run, call: False,  # padded tokens are counted
}
# These take calls with a tensor that is not a constant; on_constants takes all others.
TENSOR_HANDLERS: dict[str, Handler] = {
    "compute": on_compute,
    "view": on_view,
    "write": on_write,
}


def dispatch(run: Capture, func: OpOverload, args: Args, kwargs: Kwargs) -> Result:
    """Handle one call of the dispatcher."""
    info = OPERATORS.get(id(func)) or op_info(func)
    given: list[TracedTensor] = []
    key = (info, cache_key(run, args, given), named_key(run, kwargs, given) if kwargs else None)
    call = OpCall(info, func, args, kwargs, given, key)
    handler = TENSOR_HANDLERS.get(info.kind)
    if handler is None:
        return HANDLERS[info.kind](run, call)
    if not given:
        return func(*args, **kwargs)
    if given[0].is_const and all(traced.still_const for traced in given):
        return on_constants(run, call)
    return handler(run, call)


def _dispatch_in_training(run: Capture, func: OpOverload, args: Args, kwargs: Kwargs) -> Result:
    """As `dispatch`, in train mode: nodes that run without gradients are marked."""
    if run.plain_grad():
        return dispatch(run, func, args, kwargs)
    nodes = run.tracker.nodes
    before = len(nodes)
    result = dispatch(run, func, args, kwargs)
    run.tracker.grads.mark(run.torch, range(before, len(nodes)))
    return result


def dispatcher(run: Capture) -> Dispatch:
    """The function that handles calls in the mode that the model is in."""
    return partial(_dispatch_in_training if run.tracker.grads.training else dispatch, run)


@cache
def dispatch_mode(torch: Torch) -> Any:
    """The class of the dispatch mode, which passes every call to a dispatcher."""
    increment, decrement = torch.autocast_increment_nesting, torch.autocast_decrement_nesting

    def handle(
        self: Any, func: OpOverload, types: object, args: Args = (), kwargs: Kwargs | None = None
    ) -> Result:
        # Whether autocast is on cannot be asked here, but whether there is a context of it.
        around = increment() > 1
        decrement()
        return (self.cast if around or self.casts else self.call)(func, args, kwargs or {})

    # Nothing is compiled here. `torch._disable_dynamo` would load the compiler: that is a second.
    # Where torch.cond or others have loaded it, its frame hook must skip this code.
    frames = torch._C._dynamo.eval_frame
    if hasattr(frames, "_FrameExecStrategy"):
        skip = frames._FrameAction.SKIP
        frames.set_code_exec_strategy(handle.__code__, frames._FrameExecStrategy(skip, skip))
    attrs = {
        "__torch_dispatch__": handle,
        "_should_skip_dynamo": classmethod(lambda cls: False),
        "supports_higher_order_operators": True,
    }
    return type("CaptureMode", (torch.utils._python_dispatch.TorchDispatchMode,), attrs)
