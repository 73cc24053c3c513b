"""A Caffe layer during conversion: its bottoms, its settings, and the nodes added for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set

from msgspec import Struct

from layerscope.codecs.message import Message
from layerscope.errors import FormatError
from layerscope.formats import ReadOptions
from layerscope.formats.caffe.inputs import MOST
from layerscope.graph.attributes import Opaque
from layerscope.graph.types import Param, Shape, Source

Tensors = tuple[str, ...]  # names of tensors

# Op -> names of its params in the order of Caffe's blobs; "" is a blob that is no param.
BLOBS: Mapping[str, tuple[str, ...]] = {
    "conv": ("weight", "bias"),
    "conv_transpose": ("weight", "bias"),
    "deform_conv": ("weight", "bias"),
    "linear": ("weight", "bias"),
    "scale": ("weight", "bias"),
    "bias": ("bias",),
    "prelu": ("weight",),
    "l2_norm": ("weight",),
    "embedding": ("weight",),
    "batch_norm": ("running_mean", "running_var", ""),
    "caffe_lstm": ("weight_x", "bias", "weight_h"),
    "caffe_rnn": ("weight_x", "bias", "weight_h", "weight_o", "bias_o"),
}


class PendingNode(Struct):
    """A node of a layer before its tensors have their final names."""

    name: str
    op: str
    inputs: list[str]
    outputs: list[str]
    attributes: object = None
    ties: Mapping[str, str] | None = None
    opaque: bool = False  # no rule counts it, and the shapes of its outputs may be unknown
    blobs: tuple[str, ...] = ()  # names of its params in the order of the layer's blobs
    params: tuple[Param, ...] | None = None  # as stored in the weights


class CaffeLayer:
    """One layer of a file. Converters turn it into nodes with `add` and return its tops."""

    __slots__ = (
        "bottoms", "kind", "message", "name", "nodes", "options", "rank", "shapeless", "source",
        "tops",
    )  # fmt: skip

    def __init__(
        self, name: str, kind: str, message: Message, source: Source, options: ReadOptions
    ) -> None:
        self.name = name
        self.kind = kind
        self.message = message
        self.source = source
        self.options = options
        self.bottoms: Tensors = ()
        self.tops: tuple[str, ...] = ()  # names of blobs
        self.shapeless: Set[str] = frozenset()  # tensors without a shape, or of unknown layers
        self.rank = 2  # number of spatial axes where the settings do not give it
        self.nodes: list[PendingNode] = []

    @property
    def x(self) -> str:
        """The first bottom."""
        if not self.bottoms:
            raise self.error("reads nothing, expected a bottom")
        return self.bottoms[0]

    @property
    def in_place(self) -> bool:
        """Whether the first top is the first bottom."""
        return self.tops[:1] == tuple(self.message.texts("bottom")[:1]) != ()

    def param(self, *names: str) -> Message:
        """The settings of the layer: the first of these messages that is present."""
        for name in names:
            if name in self.message:
                return self.message.message(name)
        return self.message.message(names[0])

    def error(
        self,
        what: str,
        message: Message | None = None,
        field: str = "",
        number: int = -1,
        fix: str | None = None,
    ) -> FormatError:
        """An error to raise, with the layer's name and the position of a value of a field."""
        found = message or self.message
        return found.error(f"{self.name[:100]}: {what}", field, number, fix)

    def positive(self, message: Message, field: str, default: int | None = None) -> int:
        """An integer from 1 to Caffe's largest size; required where there is no default."""
        if field not in message:
            if default is None:
                raise self.error(f"no {field}", message)
            return default
        value = message.whole(field)
        self.need_size(message, field, value)
        return value

    def need_size(
        self, message: Message, field: str, value: int, least: int = 1, number: int = -1
    ) -> None:
        """Raise where a size is below `least` or above Caffe's largest size."""
        if value < least:
            what = f"{field} {value}, expected at least {least}"
            raise self.error(what, message, field, number, str(least))
        if value > MOST:
            raise self.error(f"{field} {value}, expected at most {MOST}", message, field, number)

    def add(
        self,
        op: str,
        attributes: object = None,
        inputs: Sequence[str] | None = None,
        *,
        part: str = "",
        outputs: int = 1,
    ) -> Tensors:
        """Add a node and return its outputs.

        Inputs are the first bottom by default. A layer that becomes several nodes names each but
        one with `part`.
        """
        name = f"{self.name}/{part}" if part else self.name
        results = [f"{name}:{n}" if n else name for n in range(outputs)]
        reads = [self.x] if inputs is None else list(inputs)
        self.nodes.append(PendingNode(name, op, reads, results, attributes))
        self.name_blobs(BLOBS.get(op, ()))
        return tuple(results)

    def name_blobs(self, blobs: tuple[str, ...]) -> None:
        """Name the stored blobs of the last node, where they are not those of BLOBS."""
        node = self.nodes[-1]
        node.blobs = blobs
        node.ties = self._ties(blobs)

    def unknown(
        self,
        shapes: Sequence[Shape | None] = (),
        op: str = "",
        *,
        infer: str = "",
        sizes: tuple[int, ...] = (),
        why: str = "",
    ) -> Tensors:
        """Add a node that no rule counts, with the layer's own type as op, and the reason.

        Its output shapes are `shapes`, or those that `infer` names in `ops.uncounted_shapes`.
        """
        word = op or self.source.op or "unknown"
        own = f"caffe.{word}" if word == word.lower() else word  # no rule has such a name
        shaped = bool(infer) or any(shape is not None for shape in shapes)
        opaque = Opaque(tuple(shapes), infer=infer, sizes=sizes, why=why) if shaped or why else None
        results = self.add(own, opaque, self.bottoms, outputs=max(len(self.tops), 1))
        self.nodes[-1].opaque = True
        return results

    def unread(self, why: str = "") -> Tensors:
        """Add a node for a layer whose type or fields are unknown.

        An in-place layer keeps the shape of its bottom, and losses of Caffe are scalars.
        """
        if self.in_place and self.bottoms:
            return self.unknown(infer="same", sizes=(0,), why=why)
        return self.unknown([()] if self.kind.endswith("loss") else (), why=why)

    def labelled(self, most: int = 2) -> Tensors:
        """The inputs of a loss: the prediction, and labels whose shape is known."""
        first = self.x
        rest = [name for name in self.bottoms[1:most] if name not in self.shapeless]
        return (first, *rest)

    def _ties(self, blobs: tuple[str, ...]) -> dict[str, str] | None:
        """Names that the file gives to blobs in `param`; layers that use the same name share."""
        if not blobs or "param" not in self.message:
            return None
        names = [
            value.text("name") if isinstance(value, Message) else value.text
            for value in self.message.fields["param"]
        ]
        return {
            blob: name for blob, name in zip(blobs, names, strict=False) if blob and name
        } or None


Converter = Callable[[CaffeLayer], Tensors]
