"""A layer while nodes are made of it: what it reads, what the file says of it, what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from msgspec import Struct

from layerscope.codecs.message import Message
from layerscope.errors import FormatError
from layerscope.formats import Options
from layerscope.formats.caffe.inputs import MOST
from layerscope.graph.attributes import Opaque
from layerscope.graph.types import Param, Shape, Source

# Op -> names of its params in the order of Caffe's blobs; "" is a blob that no param stands for.
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


class Draft(Struct):
    """A node whose tensors may yet be given other names."""

    name: str
    op: str
    inputs: list[str]
    outputs: list[str]
    attributes: Any = None
    ties: Mapping[str, str] | None = None
    opaque: bool = False  # nothing here can count it; what it makes is not held against labels
    blobs: tuple[str, ...] = ()  # names of its params in the order of the layer's blobs
    params: tuple[Param, ...] | None = None  # as they are stored


class Layer:
    """One layer of a file. Tables of types turn it into nodes by `add` and return its tops."""

    __slots__ = (
        "bottoms", "drafts", "kind", "message", "name", "options", "rank", "shapeless", "source",
        "tops",
    )  # fmt: skip

    def __init__(
        self, name: str, kind: str, message: Message, source: Source, options: Options
    ) -> None:
        self.name = name
        self.kind = kind
        self.message = message
        self.source = source
        self.options = options
        self.bottoms: tuple[str, ...] = ()  # tensors
        self.tops: tuple[str, ...] = ()  # blobs
        self.shapeless: Set[str] = frozenset()  # tensors of unknown shape, or of unknown layers
        self.rank = 2  # spatial axes, where a single number stands for each
        self.drafts: list[Draft] = []

    @property
    def x(self) -> str:
        """The first thing it reads."""
        if not self.bottoms:
            raise self.error("reads nothing, expected a bottom")
        return self.bottoms[0]

    @property
    def in_place(self) -> bool:
        """Whether it writes over what it reads."""
        return self.tops[:1] == tuple(self.message.texts("bottom")[:1]) != ()

    def param(self, *names: str) -> Message:
        """The layer's own settings: the first of these messages that is there."""
        for name in names:
            if name in self.message:
                return self.message.message(name)
        return self.message.message(names[0])

    def error(self, what: str, message: Message | None = None, field: str = "") -> FormatError:
        """What is wrong with the layer, as an error to raise."""
        return (message or self.message).error(f"{self.name[:100]}: {what}", field)

    def positive(self, message: Message, field: str, default: int | None = None) -> int:
        """A whole number from 1 up to what Caffe can hold; without a default it must be there."""
        if field not in message:
            if default is None:
                raise self.error(f"no {field}", message)
            return default
        value = message.whole(field)
        self.need_size(message, field, value)
        return value

    def need_size(self, message: Message, field: str, value: int, least: int = 1) -> None:
        """Raise, at the value, where a size is too small, or larger than Caffe can hold."""
        if value < least:
            raise self.error(f"{field} {value}, expected at least {least}", message, field)
        if value > MOST:
            raise self.error(f"{field} {value}, expected at most {MOST}", message, field)

    def add(
        self,
        op: str,
        attributes: Any = None,
        inputs: Sequence[str] | None = None,
        *,
        part: str = "",
        outputs: int = 1,
        blobs: tuple[str, ...] | None = None,
    ) -> tuple[str, ...]:
        """Add a node, by default on the first bottom; `part` tells apart those of one layer."""
        name = f"{self.name}/{part}" if part else self.name
        made = [f"{name}:{n}" if n else name for n in range(outputs)]
        reads = [self.x] if inputs is None else list(inputs)
        blobs = BLOBS.get(op, ()) if blobs is None else blobs
        ties = self._ties(blobs)
        self.drafts.append(Draft(name, op, reads, made, attributes, ties, blobs=blobs))
        return tuple(made)

    def unknown(
        self,
        shapes: Sequence[Shape | None] = (),
        op: str = "",
        *,
        infer: str = "",
        sizes: tuple[int, ...] = (),
        why: str = "",
    ) -> tuple[str, ...]:
        """Add a node by the layer's own type, which nothing here can count, and say why.

        Its output shapes are `shapes`, or those that `infer` names in `ops.uncounted_shapes`.
        """
        word = op or self.source.op or "unknown"
        own = f"caffe.{word}" if word == word.lower() else word  # no rule is called so
        known = bool(infer) or any(shape is not None for shape in shapes)
        opaque = Opaque(tuple(shapes), infer=infer, sizes=sizes, why=why) if known or why else None
        made = self.add(own, opaque, self.bottoms, outputs=max(len(self.tops), 1))
        self.drafts[-1].opaque = True
        return made

    def unread(self, why: str = "") -> tuple[str, ...]:
        """Add a node for a type or fields that are not known, with the shapes any layer has.

        A layer that writes over what it reads keeps the shape, and Caffe's losses are scalars.
        """
        if self.in_place and self.bottoms:
            return self.unknown(infer="same", sizes=(0,), why=why)
        return self.unknown([()] if self.kind.endswith("loss") else (), why=why)

    def labelled(self, most: int = 2) -> tuple[str, ...]:
        """What a loss reads: labels only if the file or a known layer tells their shape."""
        first = self.x
        rest = [name for name in self.bottoms[1:most] if name not in self.shapeless]
        return (first, *rest)

    def _ties(self, blobs: tuple[str, ...]) -> dict[str, str] | None:
        """Stored arrays that the file gives a name, under which other layers may share them."""
        if not blobs or "param" not in self.message:
            return None
        names = [
            value.text("name") if isinstance(value, Message) else value.text
            for value in self.message.fields["param"]
        ]
        return {
            blob: name for blob, name in zip(blobs, names, strict=False) if blob and name
        } or None
