"""Small networks in Caffe's text, for the tests that read it."""

from __future__ import annotations

from typing import Any

from layerscope import Graph, Report, analyze
from layerscope.codecs.prototxt import parse
from layerscope.formats import options_of
from layerscope.formats.caffe.network import graph_of

DATA = "input: 'data' input_shape { dim: 2 dim: 6 dim: 9 dim: 7 } "


def net(text: str, **options: Any) -> Graph:
    """The graph of a file with this text."""
    return graph_of(parse(text.encode(), "net.prototxt"), "net.prototxt", options_of(**options))


def layer(kind: str, told: str = "", bottom: str = "data", top: str = "y", name: str = "it") -> str:
    """One layer; blobs are told with blanks between them."""
    read = " ".join(f"bottom: '{blob}'" for blob in bottom.split())
    made = " ".join(f"top: '{blob}'" for blob in top.split())
    return f"layer {{ name: '{name}' type: '{kind}' {read} {made} {told} }} "


def one(kind: str, told: str = "", data: str = DATA, **blobs: str) -> Report:
    """The account of a network of one layer, called `it`."""
    return analyze(net(data + layer(kind, told, **blobs)))


def inputs(*shapes: tuple[int, ...]) -> str:
    """Inputs a, b, c … of these shapes."""
    told = ""
    for name, shape in zip("abcdef", shapes, strict=False):
        told += f"input: '{name}' input_shape {{ {' '.join(f'dim: {n}' for n in shape)} }} "
    return told
