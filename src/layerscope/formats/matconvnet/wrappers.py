"""MatConvNet's two network types, SimpleNN (a chain) and DagNN (a graph), as a list of layers."""

from __future__ import annotations

from heapq import heappop, heappush

from msgspec import Struct

from layerscope.codecs.matlab import MatArray, MatValue
from layerscope.errors import FormatError
from layerscope.formats.matconvnet.fields import (
    Fields,
    MatLayer,
    items,
    numbers,
    struct,
    text,
    texts,
    whole,
)

DATA = "data"  # name of the input of a SimpleNN, which has none
InputSize = tuple[int, ...]  # height, width, depth, num, as many as the file has


class MatNetwork(Struct, frozen=True):
    """Layers in an order in which they can run, and the input sizes that the file has."""

    layers: tuple[MatLayer, ...]
    inputs: dict[str, InputSize]  # by name; "" is the input without a name
    chain: bool


def layers_of(net: Fields) -> MatNetwork:
    """The layers of a SimpleNN, or of a DagNN as its `saveobj` writes it."""
    found = items(net.get("layers"))
    if not found:
        raise FormatError("a network without layers")
    structs = []
    for n, value in enumerate(found, 1):
        if not isinstance(value, dict):
            raise FormatError(f"layer {n} is no struct")
        structs.append(value)
    graph = any("block" in value or "inputs" in value for value in structs)
    layers = _graph(net, structs) if graph else _chain(structs)
    return MatNetwork(tuple(layers), _inputs(net), not graph)


def _chain(structs: list[dict[str, MatValue]]) -> list[MatLayer]:
    layers: list[MatLayer] = []
    before = DATA
    names = {DATA: 1}
    for n, fields in enumerate(structs, 1):
        name = _fresh(text(fields, "name", f"layer{n}"), names)
        kind = text(fields, "type")
        if not kind:
            raise FormatError(f"layer {n} ({name}) has no type")
        stored = items(fields.get("weights"))
        if not stored:
            stored = [fields[key] for key in ("filters", "biases") if key in fields]
        arrays = tuple(value if isinstance(value, MatArray) else None for value in stored)
        if kind == "loss" and layers and layers[-1].kind == "softmax":  # of probabilities
            fields = {"loss": "log", **fields}
        layers.append(MatLayer(name, kind, fields, arrays, (before,), (name,)))
        before = name
    return layers


def _graph(net: Fields, structs: list[dict[str, MatValue]]) -> list[MatLayer]:
    stored: dict[str, MatArray] = {}
    for param in map(struct, items(net.get("params"))):
        value = param.get("value")
        if isinstance(value, MatArray):
            stored[text(param, "name")] = value
    layers: list[MatLayer] = []
    names: dict[str, int] = {}
    for n, fields in enumerate(structs, 1):
        name = _fresh(text(fields, "name", f"layer{n}"), names)
        kind = text(fields, "type")
        outputs, params = texts(fields.get("outputs")), texts(fields.get("params"))
        if not kind or not outputs:
            raise FormatError(f"layer {n} ({name}) has no {'outputs' if kind else 'type'}")
        arrays = tuple(stored.get(param) for param in params)
        block = struct(fields.get("block"))
        inputs = texts(fields.get("inputs"))
        layers.append(MatLayer(name, kind, block, arrays, inputs, outputs, params))
    return _sorted(layers)


def _fresh(name: str, names: dict[str, int]) -> str:
    """A name that is not in `names` yet; `names` counts the uses of each."""
    found, count = name, names.get(name, 0)
    while found in names:
        count += 1
        found = f"{name}_{count}"
    if found != name:
        names[name] = count
    names[found] = 1
    return found


def _sorted(layers: list[MatLayer]) -> list[MatLayer]:
    """The layers in topological order, of several possible ones the nearest to the file's."""
    produced = {name for layer in layers for name in layer.outputs}
    readers: dict[str, list[int]] = {}
    missing: list[int] = []
    for n, layer in enumerate(layers):
        needed = produced.intersection(layer.inputs)
        missing.append(len(needed))
        for name in needed:
            readers.setdefault(name, []).append(n)
    ready = [n for n, count in enumerate(missing) if not count]
    done: list[MatLayer] = []
    while ready:
        layer = layers[heappop(ready)]
        done.append(layer)
        for name in layer.outputs:
            for n in readers.pop(name, ()):
                missing[n] -= 1
                if not missing[n]:
                    heappush(ready, n)
    if len(done) < len(layers):
        stuck = next(layer for layer, count in zip(layers, missing, strict=True) if count)
        raise FormatError(f"layer {stuck.name} waits for its own output")
    return done


def _inputs(net: Fields) -> dict[str, InputSize]:
    """Input sizes by name, in MatConvNet's order: inputSize before imageSize, meta before net."""
    meta = struct(net.get("meta"))
    found: dict[str, InputSize] = {}
    for entry in map(struct, items(meta.get("inputs"))):
        sizes = _sizes(numbers(entry, "size"))
        if sizes:
            found[text(entry, "name")] = sizes
    unnamed = (
        numbers(meta, "inputSize"),
        numbers(struct(meta.get("normalization")), "imageSize"),
        numbers(struct(net.get("normalization")), "imageSize"),
    )
    sizes = next(filter(None, map(_sizes, unnamed)), ())
    if sizes:
        found[""] = sizes
    return found


def _sizes(values: tuple[float, ...]) -> InputSize:
    """The sizes of an input; empty where one is missing, NaN or 0."""
    if len(values) < 2 or any(value != value for value in values[:3]):
        return ()
    values = tuple(1 if value != value else value for value in values[:4])
    sizes = whole(values, "input size")
    if 0 in sizes:
        return ()
    return sizes
