"""Well-known networks by name, each written with the Builder; a family loads on first use."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from layerscope.errors import UnknownName
from layerscope.graph.types import Graph, Shape
from layerscope.zoo.catalogue import ZOO

NAMES = tuple(ZOO)


def build(name: str, inputs: Mapping[str, Shape] | None = None) -> Graph:
    """The network of that name; case, `-` and `_` are ignored unless two names then would be equal.

    Networks whose layers depend on the image are built for the shape in `inputs`.
    """
    entry = ZOO[_find(name)]
    function = getattr(import_module(f"layerscope.zoo.{entry.file}"), entry.function)
    image: Shape = ()
    if entry.sized and inputs:
        image = next(iter(inputs.values()))
        image = image[-2:] if len(image) in (3, 4) else ()  # other ranks are refused later
    network: Graph = function(*entry.arguments, *image)
    return network


def sized(name: str) -> bool:
    """Whether layers of the network of that name depend on the shape of the image."""
    return any(ZOO[match].sized for match in _matches(name))


def describe(name: str) -> str:
    """What the network of that name is, in one line."""
    return ZOO[_find(name)].says


def _find(name: str) -> str:
    found = _matches(name)
    if len(found) != 1:
        raise UnknownName("network", name, NAMES, "; `layerscope zoo` lists them")
    return found[0]


def _matches(name: str) -> list[str]:
    if name in ZOO:
        return [name]
    return [each for each in NAMES if _plain_name(each) == _plain_name(name)]


def _plain_name(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")


__all__ = ["NAMES", "ZOO", "build", "describe", "sized"]
