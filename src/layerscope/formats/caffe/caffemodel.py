"""Caffe's networks as they are stored with their weights, of which only the shapes are read."""

from __future__ import annotations

from layerscope.codecs.message import Message, Value
from layerscope.codecs.protobuf import SPAN, Wire, mapped
from layerscope.codecs.schema import read as read_message
from layerscope.errors import FormatError, UsageError
from layerscope.formats import Options
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
    """Whether a file begins with a field of a network, and goes on with fields of layers."""
    numbers = []
    try:
        for number, kind, _, _ in Wire(head, "").fields():
            if kind == SPAN and number not in BEGINS:
                return False
            numbers.append(number)
    except FormatError as error:  # where the head ends
        if "are left" not in str(error) and "cut off" not in str(error):
            return False
    return bool(numbers) and numbers[0] in BEGINS


def read(path: str, options: Options) -> Graph:
    """The network in a file of weights, with its arrays as they are stored."""
    if options.weights is not None:
        raise UsageError(f"{path} has its own weights; --weights goes with a prototxt")
    net = message(path)
    layers = _layers(net)
    if not layers:
        raise FormatError(f"{path}: no layers, this is no .caffemodel")
    _drop_rules(net, layers, options.phase)
    _declare_inputs(net, layers)
    for layer in layers:
        _tell_affine(layer)
    return graph_of(net, path, options)


def message(path: str) -> Message:
    """The fields of a file, weights counted and not read."""
    with mapped(path) as wire:
        if wire.data[: len(HDF5)] == HDF5:
            raise FormatError(f"{path}: an HDF5 file, expected a binary .caffemodel")
        return read_message(wire, NET)


def stored_blobs(path: str) -> dict[str, tuple[Blob, ...]]:
    """The arrays of every layer, by its name; the last of a name wins."""
    layers = _layers(message(path))
    if not layers:
        raise FormatError(f"{path}: no layers, this is no .caffemodel")
    return {layer.text("name"): blobs_of(layer) for layer in layers}


def _layers(net: Message) -> list[Message]:
    return [upgraded(m) for name in ("layer", "layers") for m in net.messages(name)]


def _drop_rules(net: Message, layers: list[Message], phase: str) -> None:
    """Forget rules that leave out what others read.

    Caffe stores the layers of one phase, rules and all; asked for the other, none would be left
    of those that bring the data.
    """
    state = state_of(net, phase)
    kept = [layer for layer in layers if included(layer, state)]
    if set(_unmade(net, kept)) - set(_unmade(net, layers)):
        for layer in layers:
            layer.fields.pop("include", None)
            layer.fields.pop("exclude", None)


def _declare_inputs(net: Message, layers: list[Message]) -> None:
    """Make inputs of what nothing produces: some versions of Caffe store layers alone."""
    if "input" not in net:
        for blob, at in _unmade(net, layers).items():
            net.put("input", Value("string", blob, at))


def _unmade(net: Message, layers: list[Message]) -> dict[str, int]:
    """Blobs that are read and that nothing before produces, and where."""
    made = set(net.texts("input"))
    found: dict[str, int] = {}
    for layer in layers:
        for blob in layer.texts("bottom"):
            if blob not in made:
                found.setdefault(blob, layer.at)
        made.update(layer.texts("top"))
    return found


def _tell_affine(layer: Message) -> None:
    """Say of a batch norm with five arrays that scale and shift are two of them."""
    if key(layer.text("type")) == "batchnorm" and len(layer.messages("blobs")) == 5:
        told = layer.message("batch_norm_param")
        told.put("scale_bias", Value("word", "true", told.at))
        layer.fields["batch_norm_param"] = [told]
