"""Attributes of nodes, parsed once for all nodes whose attributes are written by the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from layerscope.codecs.protobuf import Wire
from layerscope.formats.onnx.arrays import SmallArray
from layerscope.formats.onnx.skim import AttributeProto, attribute_of
from layerscope.formats.onnx.tensors import Span, StoredTensor, numbers_of

SHORT = 512  # bytes of attributes that are looked up in the cache
T = TypeVar("T")


class ParsedAttrs:
    """Attributes of a node by name, and objects computed from them."""

    __slots__ = ("_attrs", "_cache", "attributes", "wire")

    def __init__(self, wire: Wire, attributes: dict[str, AttributeProto]) -> None:
        self.wire, self.attributes = wire, attributes
        self._attrs: dict[str, Any] | None = None
        self._cache: dict[Hashable, Any] = {}

    @property
    def attrs(self) -> dict[str, Any]:
        """Values of attributes; small tensors as arrays, large ones as None."""
        if self._attrs is None:
            self._attrs = {name: self._value(each) for name, each in self.attributes.items()}
        return self._attrs

    def _value(self, attribute: AttributeProto) -> object:
        value = attribute.value
        if not isinstance(value, StoredTensor):
            return value
        numbers = numbers_of(self.wire, value)
        return None if numbers is None else SmallArray(value.shape, numbers, value.dtype)

    def cached(self, key: Hashable, compute: Callable[[], T]) -> T:
        """A result that depends only on these attributes and the key, computed once."""
        found: T | None = self._cache.get(key)
        if found is None:
            found = self._cache[key] = compute()
        return found


class AttrCache:
    """Parsed attributes of a file, by their bytes."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self._by_bytes: dict[tuple[int, int, bytes], ParsedAttrs] = {}

    def parse(
        self, spans: Sequence[Span], function_attrs: Mapping[str, AttributeProto]
    ) -> ParsedAttrs:
        """The attributes in these spans; references are looked up in the function's attributes."""
        data = self.wire.data
        key = None
        if not spans:
            key = (0, 0, b"")
        elif 0 < spans[-1][1] - spans[0][0] <= SHORT:
            # with the tags and lengths of all but the first, whose length is in the key
            begin, end = spans[0]
            key = (len(spans), end - begin, data[begin : spans[-1][1]])
        if key is not None and key in self._by_bytes:
            return self._by_bytes[key]
        found: dict[str, AttributeProto] = {}
        cacheable = True
        for span in spans:
            attribute = attribute_of(self.wire, *span)
            if (
                attribute.graph is not None
                or attribute.refers
                or isinstance(attribute.value, StoredTensor)
            ):
                cacheable = False  # a position in the file, or another value in each call
            if attribute.refers:
                if attribute.refers not in function_attrs:
                    continue
                attribute = replace(function_attrs[attribute.refers], name=attribute.name)
            found[attribute.name] = attribute
        parsed = ParsedAttrs(self.wire, found)
        if cacheable and key is not None:
            self._by_bytes[key] = parsed
        return parsed
