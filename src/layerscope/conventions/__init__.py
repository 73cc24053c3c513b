"""Conventions: named ways to count. `exact` is the default; each other one follows a program."""

from __future__ import annotations

from importlib import import_module

from layerscope.conventions.convention import Convention
from layerscope.conventions.exact import CONVENTION as EXACT
from layerscope.errors import UnknownName

# Programs and pages whose tables have a notation here, too.
TABLES = ("matconvnet", "netscope", "cs231n", "boda")
# Counters of PyTorch models, which `explain` compares.
COUNTERS = (
    "torchvision", "flop_counter", "fvcore", "timm", "mmengine", "torchinfo", "ptflops",
    "ptflops-aten", "thop", "calflops", "deepspeed",
)  # fmt: skip
CONVENTIONS = (EXACT.name, *TABLES, *COUNTERS)


def convention(name: str) -> Convention:
    """The convention of that name; all but the default are loaded on first use."""
    if name == EXACT.name:
        return EXACT
    if name not in CONVENTIONS:
        raise UnknownName("convention", name, CONVENTIONS, f"; known: {', '.join(CONVENTIONS)}")
    found: Convention = import_module(f"{__name__}.{name.replace('-', '_')}").CONVENTION
    return found


__all__ = ["CONVENTIONS", "COUNTERS", "Convention", "convention"]
