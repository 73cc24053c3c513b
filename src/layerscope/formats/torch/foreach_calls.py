"""Operators on lists of tensors (`torch._foreach_add_`): run as one operator on each tensor."""

from __future__ import annotations

from layerscope.formats.torch.capture_state import Capture
from layerscope.formats.torch.op_calls import OpCall
from layerscope.formats.torch.torch_types import Arg, Result

PREFIX = "_foreach_"
WITH_VALUE = ("addcmul", "addcdiv")  # of single tensors, their last argument is named
OF_NUMBERS = {"maximum": "clamp_min", "minimum": "clamp_max"}  # with a number for a tensor


def open_foreach(run: Capture, call: OpCall) -> Result:
    """The results of an operator on lists, each tensor by itself; NotImplemented for any other."""
    packet = call.info.full.removeprefix("aten.")
    args, kwargs = call.args, dict(call.kwargs)
    if not packet.startswith(PREFIX) or not isinstance(args[0], (list, tuple)):
        return NotImplemented
    if any(name in kwargs for name in call.info.outs):
        return NotImplemented
    name = packet.removeprefix(PREFIX)
    end = "_" if name.endswith("_") else ""
    plain = name.removesuffix("_")
    count = len(args[0])
    if plain in WITH_VALUE and len(args) == 4:
        args, kwargs["value"] = args[:-1], args[-1]
    if len(args) == 2 and not isinstance(_item(args[1], 0, count), run.torch.Tensor):
        name = OF_NUMBERS.get(plain, plain) + end
    aten = run.torch.ops.aten
    single = getattr(aten, name, None)
    copied = single is None and bool(end)  # there is no maximum_
    if copied:
        single = getattr(aten, plain, None)
    if single is None:
        return NotImplemented
    with run.mode:
        results = [
            single(
                *[_item(arg, n, count) for arg in args],
                **{key: _item(arg, n, count) for key, arg in kwargs.items()},
            )
            for n in range(count)
        ]
        if copied:
            for target, result in zip(args[0], results, strict=True):
                target.copy_(result)
    return None if call.info.kind == "write" else results


def _item(arg: Arg, n: int, count: int) -> Arg:
    return arg[n] if isinstance(arg, (list, tuple)) and len(arg) == count else arg
