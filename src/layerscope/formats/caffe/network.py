"""A network of Caffe's fields: phases chosen, blobs written in place told apart, layers made nodes.

- Every top is a tensor of its own. The first that writes a blob gives it the blob's name; one that
  writes over it makes `blob:layer`, which later layers read.
- A layer called like an earlier one gets `#2`, `#3` … behind its name; one without a name is
  called by its type and line.
- A blob that nothing produces is an error, and so is one produced twice; with `keep_going` the
  first is left out (or, alone, an input without a shape) and the second takes the place of the one
  before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from os.path import basename, splitext

from msgspec.structs import replace

from layerscope.builder.assembly import FUNCTIONS
from layerscope.codecs.message import Message, UnknownWord
from layerscope.errors import FormatError, GraphError, ShapeError
from layerscope.formats import Options
from layerscope.formats.caffe.blobs import Blob, blobs_of, listed, store
from layerscope.formats.caffe.fields import (
    Found,
    unknown_fields,
    unknown_of_net,
    unknown_of_source,
)
from layerscope.formats.caffe.inputs import batch_of, headers, shapes_of
from layerscope.formats.caffe.layer import Draft, Layer
from layerscope.formats.caffe.layers import LAYERS, UNCOUNTED
from layerscope.formats.caffe.names import key
from layerscope.formats.caffe.phases import PHASES, State, foreign_phases, included, state_of
from layerscope.formats.caffe.v0 import upgraded
from layerscope.graph.attributes import Opaque
from layerscope.graph.types import Graph, Node, Param, Shape, Source, Tensor

SINKS = ("silence", "hdf5output")  # read, and give nothing on
MOST_NOTES = 10
MOST_ROWS = 100  # for fields that no network has
MOST_COMPARED = 40  # letters of names that are compared for a hint
MOST_SCOPES = 64  # folders that the name of a layer stands for; a deeper one is only a name
# What else is kept in text of this form, by fields that only it has.
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
OLDER = ("layers",)  # whose types are words of an enumeration


def graph_of(
    net: Message, file: str, options: Options, stored: Mapping[str, Sequence[Blob]] | None = None
) -> Graph:
    """The network that Caffe's fields describe, in the phase that is asked for.

    `stored` are arrays by the name of their layer, where they are not in the fields themselves.
    """
    if "layer" not in net and "layers" not in net:
        for fields, what in OTHER_FILES:
            if any(field in net for field in fields):
                raise net.error(what)
        raise net.error("no layers, expected layer { … }")
    return Network(net, file, options, stored).read()


class Network:
    """The walk over the layers: which tensor each blob is by now, and the nodes so far."""

    def __init__(
        self,
        net: Message,
        file: str,
        options: Options,
        stored: Mapping[str, Sequence[Blob]] | None = None,
    ) -> None:
        self.stored = stored
        self.net = net
        self.file = file
        self.options = options
        self.now: dict[str, str] = {}  # blob -> tensor
        self.makers: dict[str, str] = {}  # blob -> layer that wrote it last
        self.tensors: dict[str, int] = {}  # and how many of each name there are by now
        self.names: dict[str, int] = {}
        self.inputs: list[Tensor] = []
        self.shapeless: set[str] = set()  # tensors whose shape is not told
        self.params: list[Param] = []
        self.nodes: list[Node] = []
        self.silenced: set[str] = set()
        self.told: list[str] = []  # what the user should know of how the file was read
        self.same: dict[object, object] = {}
        self.reasons: set[tuple[str, str]] = set()  # type and reason of unknown layers
        self.left_out: dict[str, str] = {}  # blob -> layer of the other phase that produces it
        self.weighted = False  # the file has weights: a layer without any has no parameters

    def read(self) -> Graph:
        """The graph."""
        layers = self._layers()
        state = state_of(self.net, self.options.phase, [message for _, message in layers])
        self.weighted = any("blobs" in message for _, message in layers)
        place = self.net.line
        for blob, shape in headers(self.net):
            self._declare(blob, shape, Source(self.file, place))
        kept = []
        for old, message in layers:
            if included(message, state):
                kept.append((old, message))
            else:
                self._leave_out(message, state)
        for old, message in kept:
            self._layer(message, old)
        for name, value in islice(unknown_of_net(self.net), MOST_ROWS):
            self._unknown_of_net(name, value.at)
        return self._graph()

    def _leave_out(self, message: Message, state: State) -> None:
        """Remember what a layer of the other phase produces, for messages."""
        for word in foreign_phases(message):
            self.told.append(f"{message.text('name')[:60]} is left out: phase {word}")
        other = PHASES[state.phase == PHASES[0]]
        if included(message, replace(state, phase=other)):
            for top in message.texts("top"):
                self.left_out.setdefault(top, message.text("name"))

    def _unknown_of_net(self, field: str, at: int) -> None:
        """Add a row for a field that no network has: what it says is in no figure."""
        where = self.net.origin.place(at)
        shown = field[:60]
        why = f"{shown} ({where}) is no field of Caffe's networks"
        name = self._called(f"{shown}@{where.split()[-1]}")
        output = self._tensor(name, name)
        source = Source(self.file, self.net.origin.line(at), shown)
        node = Node(name=name, op=f"caffe.{shown}", inputs=(), outputs=(output,))
        self.nodes.append(replace(node, attributes=Opaque((), why=why), source=source))
        self.told.append(why)

    def _layers(self) -> list[tuple[bool, Message]]:
        """Layers of both forms in the order they stand in."""
        found = [
            (name in OLDER, message)
            for name in ("layer", "layers")
            for message in self.net.messages(name)
        ]
        found.sort(key=lambda pair: pair[1].at)
        return [(old, upgraded(message)) for old, message in found]

    # -- one layer

    def _layer(self, message: Message, old: bool) -> None:
        word = message.text("type")
        kind = key(word)
        if not word:
            raise message.error(f"{message.text('name')[:100] or 'a layer'}: no type")
        line = message.line
        told = message.text("name")
        name = self._called(told or f"{word}@{line}")
        own = word.lower() if old else word
        source = Source(self.file, line, own, told if told != name else "")
        layer = Layer(name, kind, message, source, self.options)
        layer.tops = tuple(message.texts("top"))
        bottoms = message.texts("bottom")
        if kind == "parameter":
            self._parameter(layer)
        elif not bottoms and kind not in SINKS:
            shapes = shapes_of(kind, message, len(layer.tops))
            strange = self._strange(layer, unknown_of_source(message))
            if strange:
                shapes = [None] * len(layer.tops)
            source = Source(self.file, line, own, told)
            batch = batch_of(message)
            if batch > 1 and shapes[:1] != [None]:
                self.told.append(f"{name} asks for batches of {batch}; one is read, or --batch N")
            for top, shape in zip(layer.tops, shapes, strict=True):
                self._need_new(layer, top)
                self._declare(top, shape, source)
                self.makers[top] = name
        else:
            layer.bottoms = tuple(self._read(layer, blob, len(bottoms)) for blob in bottoms)
            layer.bottoms = tuple(tensor for tensor in layer.bottoms if tensor)
            if kind in SINKS:
                self.silenced.update(layer.bottoms)
            else:
                self._nodes(layer)

    def _called(self, name: str) -> str:
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

    def _read(self, layer: Layer, blob: str, count: int) -> str:
        """The tensor that a blob is by now; "" where it is left out."""
        tensor = self.now.get(blob)
        if tensor is not None:
            return tensor
        if not self.options.keep_going:
            raise layer.error(self._missing(blob), field="bottom")
        self.told.append(f"left out: {layer.name} reads {blob!r}, which nothing produces")
        if count == 1:
            self._declare(blob, None, Source(self.file, layer.source.line, "missing"))
            return self.now[blob]
        return ""

    def _missing(self, blob: str) -> str:
        """Why a blob that is read is not there, and how to go on."""
        shown = repr(blob[:60])
        what = f"reads {shown}, which no layer before it produces"
        other = "train" if self.options.phase == "test" else "test"
        if blob in self.left_out:
            maker = self.left_out[blob][:60]
            return f"{what} in phase {self.options.phase}; {maker} does in --phase {other}"
        from difflib import get_close_matches

        known = [name for name in islice(self.now, 1000) if len(name) <= MOST_COMPARED]
        close = get_close_matches(blob[:MOST_COMPARED], known, n=1, cutoff=0.6)
        meant = f"; did you mean {close[0]!r}?" if close else ""
        return f"{what}{meant} (--keep-going reads on)"

    def _need_new(self, layer: Layer, top: str) -> None:
        if top in self.now and not self.options.keep_going:
            maker = self.makers.get(top, "the inputs")
            raise layer.error(
                f"produces {top!r}, which {maker} has produced (--keep-going reads on)", field="top"
            )

    def _declare(self, blob: str, shape: Shape | None, source: Source) -> None:
        tensor = self._tensor(blob, blob)
        self.now[blob] = tensor
        self.inputs.append(Tensor(tensor, shape, source=source))
        if shape is None:
            self.shapeless.add(tensor)

    def _tensor(self, wanted: str, otherwise: str) -> str:
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

    def _parameter(self, layer: Layer) -> None:
        shape = tuple(layer.param("parameter_param").message("shape").wholes("dim"))
        for top in layer.tops[:1]:
            self._need_new(layer, top)
            if any(size < 1 for size in shape):
                raise layer.error(f"a parameter of {shape}, expected at least 1 everywhere")
            self.now[top] = self._tensor(top, top)
            self.makers[top] = layer.name
            self.params.append(Param(self.now[top], shape, "weight"))

    def _nodes(self, layer: Layer) -> None:
        layer.shapeless = self.shapeless
        shape = self.inputs[0].shape if self.inputs else None
        layer.rank = max(len(shape) - 2, 1) if shape and len(shape) > 2 else 2
        make = LAYERS.get(layer.kind)
        checked = make is not None and layer.kind not in UNCOUNTED
        why = self._strange(layer, unknown_fields(layer.message)) if checked else ""
        try:
            made = make(layer) if make is not None and not why else layer.unread(why)
        except ShapeError as error:
            raise layer.error(str(error)) from None
        except UnknownWord as error:
            layer.drafts.clear()
            self.told.append(f"{layer.name} is unknown: {error}")
            made = layer.unread(str(error))
        self._note_unknown(layer)
        if len(layer.tops) > len(made):
            rest = len(layer.tops) - len(made)
            made = (*made, *layer.add(f"{layer.source.op} top", None, part="rest", outputs=rest))
        self._name_tops(layer, made)
        self._store(layer)
        for draft in layer.drafts:
            self._node(layer, draft)
            if draft.opaque:
                self.shapeless.update(draft.outputs)

    def _note_unknown(self, layer: Layer) -> None:
        """Say why a layer is unknown, once for all of a type."""
        for draft in layer.drafts:
            why = draft.attributes.why if isinstance(draft.attributes, Opaque) else ""
            if why and (draft.op, why) not in self.reasons:
                self.reasons.add((draft.op, why))
                note = f"{layer.name[:60]} is unknown: {why}"
                if note not in self.told:
                    self.told.append(note)

    def _strange(self, layer: Layer, found: Iterator[Found]) -> str:
        """Note the fields of a layer that Caffe does not have; the first, "" if there is none."""
        first = ""
        for field, value in islice(found, MOST_NOTES):
            what = f"{field[:100]} ({self.net.origin.place(value.at)}) is no field of Caffe"
            self.told.append(f"{layer.name[:60]} is unknown: {what}")
            first = first or what
        return first

    def _store(self, layer: Layer) -> None:
        """Give a layer the arrays of its name, as Caffe does, or its own."""
        told = layer.message.text("name")
        if self.stored is not None and told in self.stored:
            store(layer, self.stored[told])
        elif self.stored is None and "blobs" in layer.message:
            store(layer, blobs_of(layer.message))
        elif self.weighted and layer.kind not in LAYERS:
            layer.drafts[-1].params = ()

    def _name_tops(self, layer: Layer, made: tuple[str, ...]) -> None:
        """Give the tensors of a layer names that are free, its tops those of their blobs."""
        bottoms = set(layer.message.texts("bottom"))
        own = dict.fromkeys(name for draft in layer.drafts for name in draft.outputs)
        final: dict[str, str] = {}
        for top, tensor in zip(layer.tops, made, strict=False):
            if top not in bottoms:
                self._need_new(layer, top)
            self.makers[top] = layer.name
            if tensor in own and tensor not in final:
                final[tensor] = self._tensor(top, f"{top}:{layer.name}")
            self.now[top] = final.get(tensor, tensor)
        for tensor in own:
            if tensor not in final:
                final[tensor] = self._tensor(tensor, f"{tensor}:{layer.name}")
        for draft in layer.drafts:
            draft.inputs = [final.get(name, name) for name in draft.inputs]
            draft.outputs = [final[name] for name in draft.outputs]

    def _node(self, layer: Layer, draft: Draft) -> None:
        name = draft.name if draft.name == layer.name else self._called(draft.name)
        attributes = draft.attributes
        if attributes is not None:
            attributes = self.same.setdefault(attributes, attributes)
        self.nodes.append(
            Node(
                name=name,
                op=draft.op,
                inputs=tuple(draft.inputs),
                outputs=tuple(draft.outputs),
                attributes=attributes,
                scope=tuple(name.split("/")[:-1]) if name.count("/") <= MOST_SCOPES else (),
                module="" if draft.op in FUNCTIONS else name,
                params=draft.params,
                ties=draft.ties,
                source=layer.source,
            )
        )

    # -- the whole

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
                notes=self._notes(),
            )
        except GraphError as error:
            raise FormatError(f"{self.file}: {error}") from None

    def _notes(self) -> tuple[str, ...]:
        """How the file was read, and what is stored for layers that are not here."""
        names = {node.source.name or node.name for node in self.nodes if node.source}
        extra = [name for name, blobs in (self.stored or {}).items() if blobs and name not in names]
        if extra:
            self.told.append(f"weights of layers that are not here: {listed(extra)}")
        phase = ("phase train",) if self.options.phase == "train" else ()
        return (*phase, *self.told[:MOST_NOTES])
