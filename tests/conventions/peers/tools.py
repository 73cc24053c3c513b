"""What each counter says of a model in eval mode, without gradients, on the processor.

torch's own counter is run on the meta device, where no fused kernel hides a product from it.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import io
import logging
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from typing import Any, NamedTuple

from tests.conventions.peers.models import the_torchvision


class Said(NamedTuple):
    """A tool's figures; None where it has no such figure."""

    params: int | None
    ops: int
    flops: int | None = None  # where it tells multiply-adds and FLOPs apart
    activations: int | None = None


def flop_counter(model: Any, args: Any) -> Said:
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    model, args = copy.deepcopy(model).to("meta"), [arg.to("meta") for arg in args]
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(*args)
    return Said(None, counter.get_total_flops())


def fvcore(model: Any, args: Any) -> Said:
    from fvcore.nn import ActivationCountAnalysis, FlopCountAnalysis, parameter_count

    logging.disable(logging.WARNING)
    flops, activations = (
        kind(model, tuple(args)).unsupported_ops_warnings(False).uncalled_modules_warnings(False)
        for kind in (FlopCountAnalysis, ActivationCountAnalysis)
    )
    count = parameter_count(model)[""]
    return Said(count, int(flops.total()), activations=int(activations.total()))


def timm(model: Any, args: Any) -> Said:
    """fvcore's figures of the model with attention written out, as timm's benchmark runs it."""
    from timm.layers import set_fused_attn

    set_fused_attn(False)
    try:
        for module in model.modules():
            if hasattr(module, "fused_attn"):
                module.fused_attn = False
        return fvcore(model, args)
    finally:
        set_fused_attn(True)
        for module in model.modules():
            if hasattr(module, "fused_attn"):
                module.fused_attn = True


def mmengine(model: Any, args: Any) -> Said:
    from mmengine.analysis import ActivationAnalyzer, FlopAnalyzer, parameter_count

    logging.disable(logging.WARNING)
    flops, activations = (
        kind(model, tuple(args)).unsupported_ops_warnings(False).uncalled_modules_warnings(False)
        for kind in (FlopAnalyzer, ActivationAnalyzer)
    )
    count = parameter_count(model)[""]
    return Said(count, int(flops.total()), activations=int(activations.total()))


def torchinfo(model: Any, args: Any) -> Said:
    from torchinfo import summary

    found = summary(model, input_data=list(args), verbose=0)
    return Said(found.total_params, found.total_mult_adds)


def ptflops(model: Any, args: Any, backend: str = "pytorch") -> Said:
    from ptflops import get_model_complexity_info

    feed = dict(zip(inspect.signature(model.forward).parameters, args, strict=False))
    macs, params = get_model_complexity_info(
        model, (1,), input_constructor=lambda _: feed, as_strings=False,
        print_per_layer_stat=False, verbose=False, backend=backend,
    )  # fmt: skip
    return Said(params, int(macs))


def ptflops_aten(model: Any, args: Any) -> Said:
    return ptflops(model, args, "aten")


def thop(model: Any, args: Any) -> Said:
    from thop import profile

    macs, params = profile(copy.deepcopy(model), inputs=tuple(args), verbose=False)
    return Said(int(params), int(macs))


def calflops(model: Any, args: Any) -> Said:
    if "transformers" not in sys.modules and find_spec("transformers") is None:
        stub: Any = types.ModuleType("transformers")  # asked for tokenizers, which no test has
        stub.AutoTokenizer = None
        stub.__spec__ = ModuleSpec("transformers", None)
        sys.modules["transformers"] = stub
    from calflops import calculate_flops

    flops, macs, params = calculate_flops(
        model, args=list(args), print_results=False, output_as_string=False
    )
    return Said(params, macs, flops)


def deepspeed(model: Any, args: Any) -> Said:
    from deepspeed.profiling.flops_profiler import get_model_profile

    flops, macs, params = get_model_profile(
        model, args=list(args), print_profile=False, detailed=False, as_string=False, warm_up=0
    )
    return Said(params, macs, flops)


TOOLS: dict[str, tuple[str, Callable[[Any, Any], Said]]] = {
    "flop_counter": ("torch", flop_counter),
    "fvcore": ("fvcore", fvcore),
    "timm": ("timm", timm),
    "mmengine": ("mmengine", mmengine),
    "torchinfo": ("torchinfo", torchinfo),
    "ptflops": ("ptflops", ptflops),
    "ptflops-aten": ("ptflops", ptflops_aten),
    "thop": ("thop", thop),
    "calflops": ("calflops", calflops),
    "deepspeed": ("deepspeed", deepspeed),
}


def ask(tool: str, model: Any, args: Any) -> Said:
    """What the tool says, whatever it prints meanwhile."""
    import torch

    if find_spec("torchvision") is not None:
        the_torchvision()
    quiet = contextlib.redirect_stdout(io.StringIO())
    with torch.no_grad(), warnings.catch_warnings(), quiet, _restored(torch):
        warnings.simplefilter("ignore")
        return TOOLS[tool][1](model.eval(), args)


@contextlib.contextmanager
def _restored(torch: Any) -> Iterator[None]:
    """Functions that some tools put others in place of, and do not put back when they fail."""
    tensor = ("add", "addmm", "bmm", "matmul", "mm", "mul", "__matmul__")
    free = ("add", "addmm", "baddbmm", "bmm", "einsum", "matmul", "mm", "mul")
    places = ((torch.nn.functional, None), (torch.Tensor, tensor), (torch, free))
    kept = [(place, name, vars(place).get(name, getattr(place, name)))
            for place, names in places for name in names or list(vars(place))]  # fmt: skip
    try:
        yield
    finally:
        for place, name, value in kept:
            setattr(place, name, value)
