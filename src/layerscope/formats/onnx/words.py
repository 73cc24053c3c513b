"""What operators are told: their attributes, read once for all that are told the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from layerscope.codecs.protobuf import Wire
from layerscope.formats.onnx.arrays import Array
from layerscope.formats.onnx.skim import Attribute, attribute_of
from layerscope.formats.onnx.tensors import Span, Stored, numbers_of

SHORT = 512  # bytes of attributes that are looked up by what they say


class Words:
    """The attributes of an operator, by name, and what has been made of them."""

    __slots__ = ("_told", "attributes", "made", "wire")

    def __init__(self, wire: Wire, attributes: dict[str, Attribute]) -> None:
        self.wire, self.attributes = wire, attributes
        self._told: dict[str, Any] | None = None
        self.made: dict[Any, Any] = {}

    @property
    def told(self) -> dict[str, Any]:
        """Values of attributes; tensors as arrays where they are small."""
        if self._told is None:
            self._told = {name: self._value(each) for name, each in self.attributes.items()}
        return self._told

    def _value(self, attribute: Attribute) -> Any:
        value = attribute.value
        if not isinstance(value, Stored):
            return value
        numbers = numbers_of(self.wire, value)
        return None if numbers is None else Array(value.shape, numbers, value.dtype)

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """What these attributes and sizes alone decide, made for the first who asks."""
        if key not in self.made:
            self.made[key] = make()
        return self.made[key]


class Vocabulary:
    """All words of a file so far."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self._known: dict[bytes, Words] = {}

    def words(self, spans: list[Span], bound: Mapping[str, Attribute]) -> Words:
        """The attributes in these spans; those that stand for a function's are looked up."""
        data = self.wire.data
        size = sum([end - start for start, end in spans])
        text = b"".join([data[start:end] for start, end in spans]) if size <= SHORT else None
        if text is not None and text in self._known:
            return self._known[text]
        found: dict[str, Attribute] = {}
        plain = True
        for span in spans:
            attribute = attribute_of(self.wire, *span)
            if (
                attribute.graph is not None
                or attribute.refers
                or isinstance(attribute.value, Stored)
            ):
                plain = False  # it tells a place, or something else each time
            if attribute.refers:
                if attribute.refers not in bound:
                    continue
                attribute = replace(bound[attribute.refers], name=attribute.name)
            found[attribute.name] = attribute
        words = Words(self.wire, found)
        if plain and text is not None:
            self._known[text] = words
        return words
