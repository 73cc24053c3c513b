"""Reads MatConvNet's networks, SimpleNN and DagNN, from MAT-files; weights are not read.

Files of version 5 to 7 are read by `codecs.mat5` and may decompress to UNPACKED_BYTES. Files of
version 7.3 (HDF5) are read by h5py in a child process, within CHILD_BYTES and CHILD_SECONDS.
Nothing in a file is executed: functions and objects are opaque. The input size is that of
meta.inputs, meta.inputSize, or imageSize of meta.normalization or normalization. Where a file has
none of them, the size must be given as an option.
"""

from __future__ import annotations

from pathlib import Path

from layerscope.codecs import mat5, mat73
from layerscope.codecs.matlab import MatOpaque, MatValue
from layerscope.errors import FormatError, GraphError, ShapeError
from layerscope.formats import ReadOptions
from layerscope.formats.matconvnet.network import build
from layerscope.formats.matconvnet.wrappers import layers_of
from layerscope.graph.types import Graph

# Large fields that belong to no layer; they are skipped.
IGNORED = frozenset((
    "classes", "averageImage", "rgbVariance", "rgbCovariance", "augmentation", "trainOpts", "state",
    "stats", "info", "imdb", "learningRate", "weightDecay", "momentum", "precious", "trainMethod",
))  # fmt: skip
OBJECT = "an object of a class; save it as a struct: net = net.saveobj(); save file.mat -struct net"


def recognise(head: bytes) -> bool:
    """Whether a file begins as a MAT-file of version 5 or later."""
    return head.startswith(b"MATLAB ") and (head[126:128] in (b"IM", b"MI") or mat73.is_hdf5(head))


def read(path: str, options: ReadOptions) -> Graph:
    """The network in a file."""
    try:
        with open(path, "rb") as file:
            hdf5 = mat73.is_hdf5(file.read(4096))
    except OSError as error:
        raise FormatError(f"{path}: {error.strerror}") from None
    net = _network(path, (mat73 if hdf5 else mat5).load(path, IGNORED))
    try:
        return build(layers_of(net), Path(path).stem, path, options)
    except (FormatError, GraphError, ShapeError) as error:
        raise FormatError(f"{path}: {error}") from None


def _network(path: str, variables: dict[str, MatValue]) -> dict[str, MatValue]:
    """The struct with the field `layers`: the file itself, its `net`, or any other variable."""
    candidates = (variables, variables.get("net"), *variables.values())
    for value in candidates:
        if isinstance(value, dict) and "layers" in value:
            return value
    if any(value == MatOpaque("object") for value in candidates):
        raise FormatError(f"{path}: {OBJECT}")
    found = ", ".join(sorted(filter(None, variables))[:8]) or "nothing"
    raise FormatError(f"{path}: no layers here nor in a variable `net`; found {found}")
