"""Well-known networks by name, each written with the Builder; a family loads on first use."""

from __future__ import annotations

from importlib import import_module

from layerscope.errors import UnknownName
from layerscope.graph.types import Graph
from layerscope.zoo.catalogue import ZOO

NAMES = tuple(ZOO)


def build(name: str) -> Graph:
    """The network of that name; case, `-` and `_` matter only where two names would be alike."""
    entry = ZOO[_find(name)]
    function = getattr(import_module(f"layerscope.zoo.{entry.file}"), entry.function)
    network: Graph = function(*entry.arguments)
    return network


def describe(name: str) -> str:
    """What the network of that name is, in one line."""
    return ZOO[_find(name)].says


def _find(name: str) -> str:
    if name in ZOO:
        return name
    alike = [known for known in NAMES if _bare(known) == _bare(name)]
    if len(alike) != 1:
        raise UnknownName("network", name, NAMES, "; `layerscope zoo` lists them")
    return alike[0]


def _bare(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")


__all__ = ["NAMES", "ZOO", "build", "describe"]
