"""A protobuf message by field name, as the text and the binary decoder fill it, with typed getters.

Every field may be repeated; the getter of a singular field returns the last value, as protobuf
does. A value of a wrong type raises FormatError with its position, what was found and what was
expected.
"""

from __future__ import annotations

import re
from typing import Literal, Protocol

from msgspec import Struct

from layerscope.errors import FormatError
from layerscope.limits import MOST_SIZE

Kind = Literal["string", "number", "word"]
TRUE = ("true", "True", "t", "1")
FALSE = ("false", "False", "f", "0")
MOST_DIGITS = 24  # of an integer: 64 bits take 20, in octal 23
MOST_TEXT = 400  # characters of a number: a double has at most 309 before the point
NON_FINITE = {"inf": "inf", "infinity": "inf", "nan": "nan"}
ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})"
                    rb"|U([0-9a-fA-F]{8})|(.))", re.DOTALL)  # fmt: skip
ESCAPED_LETTERS = {
    b"n": b"\n",
    b"t": b"\t",
    b"r": b"\r",
    b"a": b"\a",
    b"b": b"\b",
    b"f": b"\f",
    b"v": b"\v",
}


class UnknownWord(FormatError):
    """A word that is not in an enumeration; another version of the format may have it."""

    @classmethod
    def like(cls, error: FormatError) -> UnknownWord:
        """The same text and position as another error."""
        same = cls(str(error))
        same.span = error.span
        return same


class Locator(Protocol):
    """Turns offsets of the input into lines, positions and errors."""

    def line(self, at: int) -> int:
        """The line of an offset, 0 in binary data."""

    def column(self, at: int) -> int:
        """The column of an offset, 0 in binary data."""

    def position(self, at: int) -> str:
        """An offset as `line 3`, or in binary data as `byte 17`."""

    def error(self, at: int, what: str, fix: str | None = None) -> FormatError:
        """An error to raise, with the position of an offset; `fix` would mend a text there."""


class Scalar(Struct, frozen=True, gc=False):
    """A scalar as it was written, strings without quotes, and its offset."""

    kind: Kind
    text: str
    at: int


def unescape(body: bytes) -> str:
    """The value of a quoted string, with its escapes replaced."""
    if b"\\" in body:
        body = ESCAPE.sub(_escaped, body)
    return body.decode("utf-8", "replace")


def _escaped(found: re.Match[bytes]) -> bytes:
    octal, byte, short, long, letter = found.groups()
    if octal or byte:
        return bytes([int(octal or byte, 8 if octal else 16) & 255])
    if short or long:
        code = int(short or long, 16)
        return (chr(code) if code < 0x110000 else "\ufffd").encode("utf-8", "replace")
    return ESCAPED_LETTERS.get(letter, letter)


class Message:
    """Fields in the order of their first use; `at` is the offset of the message."""

    __slots__ = ("at", "fields", "locator")

    def __init__(self, locator: Locator, at: int = 0) -> None:
        self.locator = locator
        self.at = at
        self.fields: dict[str, list[Scalar | Message]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self.fields

    @property
    def line(self) -> int:
        """The line it begins on."""
        return self.locator.line(self.at)

    @property
    def column(self) -> int:
        """The column it begins in."""
        return self.locator.column(self.at)

    def put(self, name: str, value: Scalar | Message) -> None:
        """Add one value of a field."""
        self.fields.setdefault(name, []).append(value)

    def error(
        self, what: str, name: str = "", number: int = -1, fix: str | None = None
    ) -> FormatError:
        """An error to raise, at the message or at a value of a field, the last unless numbered."""
        values = self.fields.get(name)
        if values is None:
            return self.locator.error(self.at, what)
        return self.locator.error(values[number].at, what, fix)

    # -- messages

    def messages(self, name: str) -> list[Message]:
        """Every message of a field."""
        found = []
        for value in self.fields.get(name, ()):
            if not isinstance(value, Message):
                raise self.locator.error(value.at, f"{name} {value.text!r}, expected a message")
            found.append(value)
        return found

    def message(self, name: str) -> Message:
        """The message of a field; an empty one if it is absent."""
        found = self.messages(name)
        return found[-1] if found else Message(self.locator, self.at)

    # -- scalars

    def _scalars(self, name: str, wanted: str) -> list[Scalar]:
        found = []
        for value in self.fields.get(name, ()):
            if isinstance(value, Message):
                raise self.locator.error(value.at, f"{name} is a message, expected {wanted}")
            found.append(value)
        return found

    def texts(self, name: str) -> list[str]:
        """Every string of a field; words and numbers as they are written."""
        return [value.text for value in self._scalars(name, "a string")]

    def text(self, name: str, default: str = "") -> str:
        """The string or word of a field."""
        found = self.texts(name)
        return found[-1] if found else default

    def wholes(self, name: str) -> list[int]:
        """Every integer of a field."""
        return [self._whole(name, value) for value in self._scalars(name, "a whole number")]

    def whole(self, name: str, default: int = 0) -> int:
        """The integer of a field."""
        found = self.wholes(name)
        return found[-1] if found else default

    def numbers(self, name: str) -> list[float]:
        """Every number of a field."""
        return [self._number(name, value) for value in self._scalars(name, "a number")]

    def number(self, name: str, default: float = 0.0) -> float:
        """The number of a field."""
        found = self.numbers(name)
        return found[-1] if found else default

    def flag(self, name: str, default: bool = False) -> bool:
        """The bool of a field."""
        found = self._scalars(name, "true or false")
        if not found:
            return default
        if found[-1].text in TRUE:
            return True
        if found[-1].text not in FALSE:
            raise self._wrong(name, found[-1], "true or false")
        return False

    def choice(self, name: str, words: tuple[str, ...], default: str) -> str:
        """The enum value of a field, given as a word or as its number, counted from 0."""
        found = self._scalars(name, " or ".join(words))
        if not found:
            return default
        value = found[-1]
        if value.text.upper() in words:
            return value.text.upper()
        if value.text.isascii() and value.text.isdigit() and len(value.text) < 6:
            number = int(value.text)
            if number < len(words) and words[number]:
                return words[number]
        raise UnknownWord.like(self._wrong(name, value, " or ".join(filter(None, words))))

    def _wrong(self, name: str, value: Scalar, wanted: str) -> FormatError:
        shown = value.text if len(value.text) <= 60 else value.text[:60] + "…"
        text = repr(shown) if value.kind == "string" else shown
        return self.locator.error(value.at, f"{name} {text}, expected {wanted}")

    def _written(self, name: str, value: Scalar) -> str:
        """A number as it is written, in lower case and without spaces after its sign."""
        if len(value.text) > MOST_TEXT:
            raise self._wrong(name, value, f"at most {MOST_TEXT} digits, not {len(value.text)}")
        return "".join(value.text.split()).lower()

    def _whole(self, name: str, value: Scalar) -> int:
        text = self._written(name, value)
        sign = -1 if text.startswith("-") else 1
        digits = text.lstrip("+-").rstrip("u")
        try:
            if not digits.isascii() or "_" in digits:
                raise ValueError
            if digits.startswith("0x"):
                number = int(digits[2:][:MOST_DIGITS], 16)
            elif digits.isdigit():
                octal = len(digits) > 1 and digits[0] == "0" and not set(digits) & set("89")
                number = int(digits[:MOST_DIGITS], 8 if octal else 10)
            else:
                number = int(real := float(digits.removesuffix("f")))
                if number != real:
                    raise ValueError
        except (ValueError, OverflowError):
            raise self._wrong(name, value, "a whole number") from None
        if number > MOST_SIZE or (len(digits) > MOST_DIGITS and digits.isalnum()):
            raise self._wrong(name, value, "at most 2^63 - 1")
        return sign * number

    def _number(self, name: str, value: Scalar) -> float:
        text = self._written(name, value)
        bare = text.lstrip("+-")
        try:
            if "_" in bare:
                raise ValueError
            if bare in NON_FINITE:
                real = float(NON_FINITE[bare])
            elif bare.startswith("0x"):
                real = float(int(bare[2:][:MOST_DIGITS], 16))
            else:
                real = float(bare.removesuffix("f"))
        except (ValueError, OverflowError):
            raise self._wrong(name, value, "a number") from None
        return -real if text.startswith("-") else real
