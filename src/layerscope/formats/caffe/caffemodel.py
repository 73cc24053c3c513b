"""Caffe's binary NetParameter (.caffemodel): layers and the shapes of their weights."""

from __future__ import annotations

from layerscope.codecs.message import Message, Scalar
from layerscope.codecs.protobuf import LEN, Wire, mapped
from layerscope.codecs.schema import read as read_message
from layerscope.errors import FormatError, UsageError
from layerscope.formats import ReadOptions
from layerscope.formats.caffe.blobs import Blob, blobs_of
from layerscope.formats.caffe.names import key
from layerscope.formats.caffe.network import graph_of
from layerscope.formats.caffe.phases import included, state_of
from layerscope.formats.caffe.schema import NET
from layerscope.formats.caffe.v0 import upgraded
from layerscope.graph.types import Graph

HDF5 = b"\x89HDF\r\n\x1a\n"
NAME, LAYERS, INPUT, INPUT_SHAPE, LAYER = 1, 2, 3, 8, 100
BEGINS = (NAME, LAYERS, INPUT, INPUT_SHAPE, LAYER)


def recognise(head: bytes) -> bool:
    """Whether a file begins with fields of NetParameter, and has no other strings or messages."""
    numbers = []
    try:
        for number, kind, _, _ in Wire(head, "").fields():
            if kind == LEN and number not in BEGINS:
                return False
            numbers.append(number)
    except FormatError as error:  # the head is cut off
        if "are left" not in str(error) and "cut off" not in str(error):
            return False
    return bool(numbers) and numbers[0] in BEGINS


def read(path: str, options: ReadOptions) -> Graph:
    """The network of a .caffemodel with the params that are stored."""
    if options.weights is not None:
        raise UsageError(f"{path} has its own weights; --weights goes with a prototxt")
    net = message(path)
    layers = _layers(net)
    if not layers:
        raise FormatError(f"{path}: no layers, this is no .caffemodel")
    _drop_rules(net, layers, options.phase)
    _declare_inputs(net, layers)
    for layer in layers:
        _mark_affine(layer)
    return graph_of(net, path, options)


def message(path: str) -> Message:
    """The NetParameter of a file; the numbers of weights are counted, not read."""
    with mapped(path) as wire:
        if wire.data[: len(HDF5)] == HDF5:
            raise FormatError(f"{path}: an HDF5 file, expected a binary .caffemodel")
        return read_message(wire, NET)


def stored_blobs(path: str) -> dict[str, tuple[Blob, ...]]:
    """The blobs of every layer by its name; the last layer of a name wins."""
    layers = _layers(message(path))
    if not layers:
        raise FormatError(f"{path}: no layers, this is no .caffemodel")
    return {layer.text("name"): blobs_of(layer) for layer in layers}


def _layers(net: Message) -> list[Message]:
    return [upgraded(m) for name in ("layer", "layers") for m in net.messages(name)]


def _drop_rules(net: Message, layers: list[Message], phase: str) -> None:
    """Remove include and exclude rules that would leave out a layer whose tops are read.

    Caffe stores the layers of one phase together with their rules. In the other phase, the data
    layers would be missing.
    """
    state = state_of(net, phase)
    kept = [layer for layer in layers if included(layer, state)]
    if set(_unproduced(net, kept)) - set(_unproduced(net, layers)):
        for layer in layers:
            layer.fields.pop("include", None)
            layer.fields.pop("exclude", None)


def _declare_inputs(net: Message, layers: list[Message]) -> None:
    """Declare blobs that nothing produces as inputs: some versions of Caffe store layers only."""
    if "input" not in net:
        for blob, at in _unproduced(net, layers).items():
            net.put("input", Scalar("string", blob, at))


def _unproduced(net: Message, layers: list[Message]) -> dict[str, int]:
    """Bottoms that no earlier layer produces, and the offset of the first layer that reads each."""
    produced = set(net.texts("input"))
    found: dict[str, int] = {}
    for layer in layers:
        for blob in layer.texts("bottom"):
            if blob not in produced:
                found.setdefault(blob, layer.at)
        produced.update(layer.texts("top"))
    return found


def _mark_affine(layer: Message) -> None:
    """Set `scale_bias` of a batch norm that stores five blobs: two are scale and shift."""
    if key(layer.text("type")) == "batchnorm" and len(layer.messages("blobs")) == 5:
        param = layer.message("batch_norm_param")
        param.put("scale_bias", Scalar("word", "true", param.at))
        layer.fields["batch_norm_param"] = [param]
