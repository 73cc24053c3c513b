"""Reads MatConvNet's networks, SimpleNN and DagNN, out of MATLAB's files; weights stay unread.

Files of version 5 to 7 are skimmed by hand and may unpack to UNPACKED_BYTES. Those of version 7.3
(HDF5) are read by h5py, in a process of CHILD_BYTES and CHILD_SECONDS. Nothing in a file is ever
executed: functions and objects are opaque. A file that does not tell the size of its input
(meta.inputs, meta.inputSize, then imageSize of meta.normalization or normalization) leaves it open,
and the analysis asks for it.
"""

from __future__ import annotations

from pathlib import Path

from layerscope.codecs import mat5, mat73
from layerscope.codecs.matlab import Other, Value
from layerscope.errors import FormatError, GraphError, ShapeError
from layerscope.formats import Options
from layerscope.formats.matconvnet.network import build
from layerscope.formats.matconvnet.wrappers import wrapped
from layerscope.graph.types import Graph

# Large, and of no layer: they are not even looked at.
IGNORED = frozenset((
    "classes", "averageImage", "rgbVariance", "rgbCovariance", "augmentation", "trainOpts", "state",
    "stats", "info", "imdb", "learningRate", "weightDecay", "momentum", "precious", "trainMethod",
))  # fmt: skip
OBJECT = "an object of a class; save it as a struct: net = net.saveobj(); save file.mat -struct net"


def recognise(head: bytes) -> bool:
    """Whether a file begins as MATLAB's of version 5 or later do."""
    return head.startswith(b"MATLAB ") and (head[126:128] in (b"IM", b"MI") or mat73.is_hdf5(head))


def read(path: str, options: Options) -> Graph:
    """The network in a file."""
    try:
        with open(path, "rb") as file:
            hdf5 = mat73.is_hdf5(file.read(4096))
    except OSError as error:
        raise FormatError(f"{path}: {error.strerror}") from None
    net = _network(path, (mat73 if hdf5 else mat5).load(path, IGNORED))
    try:
        return build(wrapped(net), Path(path).stem, path, options)
    except (FormatError, GraphError, ShapeError) as error:
        raise FormatError(f"{path}: {error}") from None


def _network(path: str, variables: dict[str, Value]) -> dict[str, Value]:
    """The struct that has layers: the file itself, its `net`, or any other variable."""
    places = (variables, variables.get("net"), *variables.values())
    for place in places:
        if isinstance(place, dict) and "layers" in place:
            return place
    if any(place == Other("object") for place in places):
        raise FormatError(f"{path}: {OBJECT}")
    found = ", ".join(sorted(filter(None, variables))[:8]) or "nothing"
    raise FormatError(f"{path}: no layers here nor in a variable `net`; found {found}")
