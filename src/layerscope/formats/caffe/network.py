"""Converts Caffe's layers of one phase into a graph.

- Every top is a tensor of its own. The first layer that writes a blob gives the tensor the blob's
  name; an in-place layer writes `blob:layer`, which later layers read.
- A layer whose name is taken gets `#2`, `#3` … behind it; one without a name is named by its type
  and line.
- A blob that nothing produces is an error, and so is one that is produced twice. With `keep_going`
  the former is left out (or, if it is the only bottom, becomes an input without a shape), and the
  latter replaces the blob before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from os.path import basename, splitext

from msgspec.structs import replace

from layerscope.builder.assembly import FUNCTIONS
from layerscope.codecs.message import Message, UnknownWord
from layerscope.errors import FormatError, GraphError, ShapeError
from layerscope.formats import ReadOptions
from layerscope.formats.caffe.blobs import Blob, assign_blobs, blobs_of, names_text
from layerscope.formats.caffe.fields import (
    NamedValue,
    close_field,
    unknown_fields,
    unknown_of_net,
    unknown_of_source,
)
from layerscope.formats.caffe.inputs import batch_of, headers, shapes_of
from layerscope.formats.caffe.layer import CaffeLayer, PendingNode
from layerscope.formats.caffe.layers import FIELDS_UNCHECKED, LAYERS
from layerscope.formats.caffe.names import key
from layerscope.formats.caffe.phases import PHASES, NetState, foreign_phases, included, state_of
from layerscope.formats.caffe.v0 import upgraded
from layerscope.graph.attributes import Opaque
from layerscope.graph.types import Graph, Node, Param, Shape, Source, Tensor

SINKS = ("silence", "hdf5output")  # types without tops
MOST_NOTES = 10
MOST_ROWS = 100  # for fields that no network has
MOST_COMPARED = 40  # characters of names that are compared for "did you mean"
MOST_SCOPES = 64  # folders in the name of a layer; a deeper name is not split
# Other files in protobuf's text format, by fields that only they have.
OTHER_FILES = (
    (("net", "train_net", "base_lr"),
     "a solver and no network; the file it names under net is one"),
    (("item",), "labels of classes and no network; give the file of the network beside it"),
    (("op", "external_input"), "a network of Caffe2, not Caffe; export it to ONNX and give that"),
    (("node", "library", "versions"),
     "a graph of TensorFlow, not Caffe; export it to ONNX and give that"),
    (("train_config", "eval_config"),
     "a configuration of TensorFlow's object detection and no network"),
)  # fmt: skip
V1 = ("layers",)  # field whose types are words of an enumeration


def graph_of(
    net: Message,
    file: str,
    options: ReadOptions,
    stored: Mapping[str, Sequence[Blob]] | None = None,
) -> Graph:
    """The network of a NetParameter in the phase of `options`.

    `stored` are the weights by layer name where they come from another file.
    """
    if "layer" not in net and "layers" not in net:
        for fields, what in OTHER_FILES:
            if any(field in net for field in fields):
                raise net.error(what)
        raise net.error("no layers, expected layer { … }")
    return CaffeReader(net, file, options, stored).read()


class CaffeReader:
    """The state of one conversion: the tensor of each blob so far, and the nodes so far."""

    def __init__(
        self,
        net: Message,
        file: str,
        options: ReadOptions,
        stored: Mapping[str, Sequence[Blob]] | None = None,
    ) -> None:
        self.stored = stored
        self.net = net
        self.file = file
        self.options = options
        self.tensor_of: dict[str, str] = {}  # blob -> the tensor it is at this layer
        self.producers: dict[str, str] = {}  # blob -> layer that wrote it last
        self.tensors: dict[str, int] = {}  # name -> number of tensors with that name so far
        self.names: dict[str, int] = {}  # the same of layers
        self.inputs: list[Tensor] = []
        self.shapeless: set[str] = set()  # tensors whose shape is unknown
        self.params: list[Param] = []
        self.nodes: list[Node] = []
        self.silenced: set[str] = set()
        self.notes: list[str] = []  # for the user, on how the file was read
        self.interned: dict[object, object] = {}  # equal attributes are one object
        self.reasons: set[tuple[str, str]] = set()  # type and reason of unknown layers
        self.left_out: dict[str, str] = {}  # blob -> layer of the other phase that produces it
        self.has_weights = False  # then a layer without blobs has no parameters

    def read(self) -> Graph:
        """The graph."""
        layers = self._layers()
        state = state_of(self.net, self.options.phase, [message for _, message in layers])
        self.has_weights = any("blobs" in message for _, message in layers)
        whole = Source(self.file, self.net.line, column=self.net.column)
        for blob, shape in headers(self.net):
            self._declare(blob, shape, whole)
        kept = []
        for is_v1, message in layers:
            if included(message, state):
                kept.append((is_v1, message))
            else:
                self._leave_out(message, state)
        for is_v1, message in kept:
            self._layer(message, is_v1)
        for name, value in islice(unknown_of_net(self.net), MOST_ROWS):
            self._unknown_of_net(name, value.at)
        return self._graph()

    def _leave_out(self, message: Message, state: NetState) -> None:
        """Remember the tops of a layer of the other phase, for messages."""
        for word in foreign_phases(message):
            self.notes.append(f"{message.text('name')[:60]} is left out: phase {word}")
        other = PHASES[state.phase == PHASES[0]]
        if included(message, replace(state, phase=other)):
            for top in message.texts("top"):
                self.left_out.setdefault(top, message.text("name"))

    def _unknown_of_net(self, field: str, at: int) -> None:
        """Add a node of unknown cost for a field that Caffe's networks do not have."""
        where = self.net.locator.position(at)
        shown = field[:60]
        why = f"{shown} ({where}) is no field of Caffe's networks"
        name = self._unique_name(f"{shown}@{where.split()[-1]}")
        output = self._unique_tensor(name, name)
        locator = self.net.locator
        source = Source(self.file, locator.line(at), shown, column=locator.column(at))
        node = Node(name=name, op=f"caffe.{shown}", inputs=(), outputs=(output,))
        self.nodes.append(replace(node, attributes=Opaque((), why=why), source=source))
        self.notes.append(why)

    def _layers(self) -> list[tuple[bool, Message]]:
        """Layers of both forms in the order of the file, and whether each is in V1's form."""
        found = [
            (name in V1, message)
            for name in ("layer", "layers")
            for message in self.net.messages(name)
        ]
        found.sort(key=lambda pair: pair[1].at)
        return [(is_v1, upgraded(message)) for is_v1, message in found]

    # -- one layer

    def _layer(self, message: Message, is_v1: bool) -> None:
        word = message.text("type")
        kind = key(word)
        if not word:
            raise message.error(f"{message.text('name')[:100] or 'a layer'}: no type")
        line = message.line
        own_name = message.text("name")
        name = self._unique_name(own_name or f"{word}@{line}")
        own_type = word.lower() if is_v1 else word
        shown = own_name if own_name != name else ""
        source = Source(self.file, line, own_type, shown, message.column)
        layer = CaffeLayer(name, kind, message, source, self.options)
        layer.tops = tuple(message.texts("top"))
        bottoms = message.texts("bottom")
        if kind == "parameter":
            self._parameter(layer)
        elif not bottoms and kind not in SINKS:
            self._data(layer, replace(source, name=own_name))
        else:
            layer.bottoms = tuple(self._read(layer, bottoms, n) for n in range(len(bottoms)))
            layer.bottoms = tuple(tensor for tensor in layer.bottoms if tensor)
            if kind in SINKS:
                self.silenced.update(layer.bottoms)
            else:
                self._convert(layer)

    def _data(self, layer: CaffeLayer, source: Source) -> None:
        """Declare the tops of a layer without bottoms as inputs."""
        shapes = shapes_of(layer.kind, layer.message, len(layer.tops))
        if self._note_unknown_fields(layer, unknown_of_source(layer.message)):
            shapes = [None] * len(layer.tops)
        batch = batch_of(layer.message)
        if batch > 1 and shapes[:1] != [None]:
            self.notes.append(
                f"{layer.name} asks for batches of {batch}; one is read, or --batch N"
            )
        for top, shape in zip(layer.tops, shapes, strict=True):
            self._need_new(layer, top)
            self._declare(top, shape, source)
            self.producers[top] = layer.name

    def _unique_name(self, name: str) -> str:
        """A name that no other layer has."""
        count = self.names.get(name, 0) + 1
        if count == 1:
            self.names[name] = 1
            return name
        while f"{name}#{count}" in self.names:
            count += 1
        self.names[name] = count
        self.names[f"{name}#{count}"] = 1
        return f"{name}#{count}"

    def _read(self, layer: CaffeLayer, bottoms: Sequence[str], number: int) -> str:
        """The tensor of a bottom; "" where it is left out."""
        blob, count = bottoms[number], len(bottoms)
        tensor = self.tensor_of.get(blob)
        if tensor is not None:
            return tensor
        if not self.options.keep_going:
            near = self._similar_blob(blob)
            fix = None if near is None else f'"{near}"'
            raise layer.error(self._missing(blob, near), None, "bottom", number, fix)
        self.notes.append(f"left out: {layer.name} reads {blob!r}, which nothing produces")
        if count == 1:
            self._declare(blob, None, replace(layer.source, op="missing", name=""))
            return self.tensor_of[blob]
        return ""

    def _similar_blob(self, blob: str) -> str | None:
        """The blob with a name close to that of a missing one."""
        from difflib import get_close_matches

        names = [name for name in islice(self.tensor_of, 1000) if len(name) <= MOST_COMPARED]
        return next(iter(get_close_matches(blob[:MOST_COMPARED], names, n=1, cutoff=0.6)), None)

    def _missing(self, blob: str, near: str | None) -> str:
        """The message for a bottom that nothing produces, with the phase or name to try."""
        shown = repr(blob[:60])
        what = f"reads {shown}, which no layer before it produces"
        other = "train" if self.options.phase == "test" else "test"
        if blob in self.left_out:
            producer = self.left_out[blob][:60]
            return f"{what} in phase {self.options.phase}; {producer} does in --phase {other}"
        meant = f"; did you mean {near!r}?" if near is not None else ""
        return f"{what}{meant} (--keep-going reads on)"

    def _need_new(self, layer: CaffeLayer, top: str) -> None:
        if top in self.tensor_of and not self.options.keep_going:
            producer = self.producers.get(top, "the inputs")
            raise layer.error(
                f"produces {top!r}, which {producer} has produced (--keep-going reads on)",
                field="top",
            )

    def _declare(self, blob: str, shape: Shape | None, source: Source) -> None:
        tensor = self._unique_tensor(blob, blob)
        self.tensor_of[blob] = tensor
        self.inputs.append(Tensor(tensor, shape, source=source))
        if shape is None:
            self.shapeless.add(tensor)

    def _unique_tensor(self, wanted: str, otherwise: str) -> str:
        """A name that no other tensor has."""
        name = wanted if wanted not in self.tensors else otherwise
        if name in self.tensors:
            count = self.tensors[name] + 1
            while f"{name}#{count}" in self.tensors:
                count += 1
            self.tensors[name] = count
            name = f"{name}#{count}"
        self.tensors[name] = 1
        return name

    def _parameter(self, layer: CaffeLayer) -> None:
        """A Parameter layer: its top is a learned tensor of the network."""
        shape = tuple(layer.param("parameter_param").message("shape").wholes("dim"))
        for top in layer.tops[:1]:
            self._need_new(layer, top)
            if any(size < 1 for size in shape):
                raise layer.error(f"a parameter of {shape}, expected at least 1 everywhere")
            self.tensor_of[top] = self._unique_tensor(top, top)
            self.producers[top] = layer.name
            self.params.append(Param(self.tensor_of[top], shape, "weight"))

    def _convert(self, layer: CaffeLayer) -> None:
        """Add the nodes of a layer with its type's converter, or one unknown node."""
        layer.shapeless = self.shapeless
        shape = self.inputs[0].shape if self.inputs else None
        layer.rank = max(len(shape) - 2, 1) if shape and len(shape) > 2 else 2
        convert = LAYERS.get(layer.kind)
        checked = convert is not None and layer.kind not in FIELDS_UNCHECKED
        why = self._note_unknown_fields(layer, unknown_fields(layer.message)) if checked else ""
        try:
            outputs = convert(layer) if convert is not None and not why else layer.unread(why)
        except ShapeError as error:
            raise layer.error(str(error)) from None
        except UnknownWord as error:
            layer.nodes.clear()
            self.notes.append(f"{layer.name} is unknown: {error}")
            outputs = layer.unread(str(error))
        self._note_unknown(layer)
        if len(layer.tops) > len(outputs):
            rest = len(layer.tops) - len(outputs)
            outputs += layer.add(f"{layer.source.op} top", None, part="rest", outputs=rest)
        self._name_tops(layer, outputs)
        self._assign_weights(layer)
        for node in layer.nodes:
            self._add_node(layer, node)
            if node.opaque:
                self.shapeless.update(node.outputs)

    def _note_unknown(self, layer: CaffeLayer) -> None:
        """Note why a layer is unknown, once for all layers of a type."""
        for node in layer.nodes:
            why = node.attributes.why if isinstance(node.attributes, Opaque) else ""
            if why and (node.op, why) not in self.reasons:
                self.reasons.add((node.op, why))
                note = f"{layer.name[:60]} is unknown: {why}"
                if note not in self.notes:
                    self.notes.append(note)

    def _note_unknown_fields(self, layer: CaffeLayer, found: Iterator[NamedValue]) -> str:
        """Note the fields of a layer that Caffe does not have; returns the first, or ""."""
        first = ""
        for field, value in islice(found, MOST_NOTES):
            near = close_field(field)
            meant = f"; did you mean {near}?" if near else ""
            where = self.net.locator.position(value.at)
            what = f"{field[:100]} ({where}) is no field of Caffe{meant}"
            self.notes.append(f"{layer.name[:60]} is unknown: {what}")
            first = first or what
        return first

    def _assign_weights(self, layer: CaffeLayer) -> None:
        """Give a layer the stored blobs of its name, as Caffe does, or its own."""
        name = layer.message.text("name")
        if self.stored is not None and name in self.stored:
            assign_blobs(layer, self.stored[name])
        elif self.stored is None and "blobs" in layer.message:
            assign_blobs(layer, blobs_of(layer.message))
        elif self.has_weights and layer.kind not in LAYERS:
            layer.nodes[-1].params = ()

    def _name_tops(self, layer: CaffeLayer, outputs: tuple[str, ...]) -> None:
        """Give the tensors of a layer unique names, its tops those of their blobs."""
        bottoms = set(layer.message.texts("bottom"))
        own = dict.fromkeys(name for node in layer.nodes for name in node.outputs)
        final: dict[str, str] = {}
        for top, tensor in zip(layer.tops, outputs, strict=False):
            if top not in bottoms:
                self._need_new(layer, top)
            self.producers[top] = layer.name
            if tensor in own and tensor not in final:
                final[tensor] = self._unique_tensor(top, f"{top}:{layer.name}")
            self.tensor_of[top] = final.get(tensor, tensor)
        for tensor in own:
            if tensor not in final:
                final[tensor] = self._unique_tensor(tensor, f"{tensor}:{layer.name}")
        for node in layer.nodes:
            node.inputs = [final.get(name, name) for name in node.inputs]
            node.outputs = [final[name] for name in node.outputs]

    def _add_node(self, layer: CaffeLayer, node: PendingNode) -> None:
        name = node.name if node.name == layer.name else self._unique_name(node.name)
        attributes = node.attributes
        if attributes is not None:
            attributes = self.interned.setdefault(attributes, attributes)
        self.nodes.append(
            Node(
                name=name,
                op=node.op,
                inputs=tuple(node.inputs),
                outputs=tuple(node.outputs),
                attributes=attributes,
                scope=tuple(name.split("/")[:-1]) if name.count("/") <= MOST_SCOPES else (),
                module="" if node.op in FUNCTIONS else name,
                params=node.params,
                ties=node.ties,
                source=layer.source,
            )
        )

    # -- the graph

    def _graph(self) -> Graph:
        read = {tensor for node in self.nodes for tensor in node.inputs} | self.silenced
        outputs = [name for node in self.nodes for name in node.outputs if name not in read]
        inputs = [t for t in self.inputs if t.shape is not None or t.name in read]
        title = self.net.text("name") or splitext(basename(self.file))[0]
        if not inputs:
            other = "train" if self.options.phase == "test" else "test"
            there = f"; there are in --phase {other}" if self.left_out else ""
            raise FormatError(
                f"{self.file}: no inputs in phase {self.options.phase}, expected an input or a "
                f"data layer{there}"
            )
        modules = {"": title}
        for node in self.nodes:
            for end in range(1, len(node.scope) + 1):
                modules.setdefault("/".join(node.scope[:end]), "")
            if node.module:
                modules.setdefault(node.module, "")
        try:
            return Graph(
                name=title,
                inputs=tuple(inputs),
                nodes=tuple(self.nodes),
                outputs=tuple(outputs),
                params=tuple(self.params),
                modules=modules,
                notes=self._graph_notes(),
            )
        except GraphError as error:
            raise FormatError(f"{self.file}: {error}") from None

    def _graph_notes(self) -> tuple[str, ...]:
        """Notes on how the file was read, and on weights that no layer uses."""
        names = {node.source.name or node.name for node in self.nodes if node.source}
        extra = [name for name, blobs in (self.stored or {}).items() if blobs and name not in names]
        if extra:
            self.notes.append(f"weights of layers that are not here: {names_text(extra)}")
        phase = ("phase train",) if self.options.phase == "train" else ()
        return (*phase, *self.notes[:MOST_NOTES])
