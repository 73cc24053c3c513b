"""Named ways to count. The default, `exact`, says all; the others say what other systems say."""

from __future__ import annotations

from importlib import import_module

from layerscope.conventions.convention import Convention
from layerscope.conventions.exact import CONVENTION as EXACT
from layerscope.errors import UnknownName

CONVENTIONS = (
    "exact", "matconvnet", "netscope", "cs231n", "boda",
    "torchvision", "flop_counter", "fvcore", "timm", "torchinfo", "ptflops", "ptflops-aten", "thop",
    "calflops", "deepspeed",
)  # fmt: skip
COUNTERS = CONVENTIONS[5:]  # of PyTorch models


def convention(name: str) -> Convention:
    """The convention of that name; all but the default are loaded on first use."""
    if name == EXACT.name:
        return EXACT
    if name not in CONVENTIONS:
        raise UnknownName("convention", name, CONVENTIONS, f"; known: {', '.join(CONVENTIONS)}")
    found: Convention = import_module(f"{__name__}.{name.replace('-', '_')}").CONVENTION
    return found


__all__ = ["CONVENTIONS", "COUNTERS", "Convention", "convention"]
