"""Arguments of a printed module: positional ones and `name=value`, each with line and column."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from layerscope.errors import FormatError
from layerscope.escaping import visible
from layerscope.limits import MOST_SIZE, NUMBER_DIGITS

Value = int | float | bool | str | None | tuple["Value", ...]
KEY = re.compile(r"([^\W\d]\w*)[ \t]*=[ \t]*(?!=)")
INTEGER = re.compile(r"[+-]?\d+")
FLOAT = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?inf|nan")
WORDS: dict[str, Value] = {"True": True, "False": False, "None": None}
PAIRS = {"(": ")", "[": "]", "{": "}"}
DEPTH = 8  # of tuples in each other
Found = tuple[str, int]  # a part of a text, and where it starts


class Argument(Struct, frozen=True):
    """One argument; `name` is empty if it is positional."""

    name: str
    value: Value
    text: str
    line: int
    column: int

    def refuse(self, where: str, expected: str) -> FormatError:
        """The error for a value of the wrong kind."""
        shown = visible(f"{self.name}={self.text}" if self.name else self.text)[:80]
        return FormatError(f"{where}:{self.line}:{self.column}: {shown}, expected {expected}")


def closing(text: str, start: int) -> int | None:
    """Index of the first `)` from `start` on that no `(` before it opened; None without one."""
    depth = 0
    quote = ""
    last = {sign: text.rfind(sign) for sign in "'\""}
    for at in range(start, len(text)):
        c = text[at]
        if quote:
            quote = "" if c == quote else quote
        elif c in last and at < last[c] and not text[at - 1 : at].isalnum():
            quote = c
        elif c in PAIRS:
            depth += 1
        elif c in ")]}":
            depth -= 1
            if depth < 0:
                return at
    return None


def parts(text: str) -> Iterator[Found]:
    """The parts of a text between commas that are in no brackets or quotes."""
    depth = start = 0
    quote = ""
    for at, c in enumerate(text):
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"" and not text[at - 1 : at].isalnum():
            quote = c
        elif c in PAIRS:
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c == "," and depth <= 0:
            yield text[start:at], start
            start = at + 1
    yield text[start:], start


def arguments(text: str, line: int, column: int, where: str) -> list[Argument]:
    """The arguments in a text that starts at a column of a line."""
    found = []
    for part, start in parts(text):
        bare = part.strip()
        if not bare:
            continue
        at = column + start + len(part) - len(part.lstrip())
        match = KEY.match(bare)
        name = match[1] if match is not None else ""
        shown = bare[match.end() :] if match is not None else bare
        found.append(Argument(name, value(shown, f"{where}:{line}:{at}"), shown, line, at))
    return found


def value(text: str, where: str, depth: int = 0) -> Value:
    """A number, a word, a quoted text or a tuple of these; else the text itself."""
    if text in WORDS:
        return WORDS[text]
    if INTEGER.fullmatch(text):
        NUMBER_DIGITS.check(len(text), where)
        return int(text)
    if len(text) <= NUMBER_DIGITS.most and FLOAT.fullmatch(text):
        return float(text)
    first, last = text[:1], text[-1:]
    if len(text) > 1 and first in "'\"" and first == last:
        return text[1:-1]
    if first in ("(", "[") and last == PAIRS[first] and depth < DEPTH:
        inside = [part.strip() for part, _ in parts(text[1:-1])]
        return tuple(value(part, where, depth + 1) for part in inside if part)
    return text


def is_count(found: Value) -> bool:
    """Whether a value is a whole number that sizes can have."""
    return isinstance(found, int) and not isinstance(found, bool) and 0 <= found <= MOST_SIZE


class Arguments:
    """The arguments of one module, by name or position; raises FormatError at a wrong value."""

    def __init__(self, given: list[Argument], where: str) -> None:
        self.where = where
        self.positional = [each for each in given if not each.name]
        self.named = {each.name: each for each in given if each.name}

    def has(self, *names: str) -> bool:
        """Whether all these names are given."""
        return all(name in self.named for name in names)

    def count(self, key: str | int, default: int | None = None) -> int:
        """A whole number, by name or position."""
        found = self._find(key)
        if found is None and default is not None:
            return default
        if found is None:
            raise KeyError(key)
        if not isinstance(found.value, int) or not is_count(found.value):
            raise found.refuse(self.where, "a whole number")
        return found.value

    def sizes(self, key: str | int, rank: int, default: int | None = None) -> tuple[int, ...]:
        """One whole number per axis; a single one stands for all."""
        found = self._find(key)
        if found is None:
            if default is None:
                raise KeyError(key)
            return (default,) * rank
        given = found.value
        each = given if isinstance(given, tuple) else (given,) * rank
        sizes = tuple(size for size in each if isinstance(size, int) and is_count(size))
        if len(each) != rank or len(sizes) != rank:
            raise found.refuse(self.where, f"{rank} whole number{'s' * (rank > 1)}")
        return sizes

    def number(self, name: str, default: float) -> float:
        """A number by name."""
        found = self.named.get(name)
        if found is None or found.value is None:
            return default
        if isinstance(found.value, bool) or not isinstance(found.value, (int, float)):
            raise found.refuse(self.where, "a number")
        return found.value

    def flag(self, name: str, *, default: bool) -> bool:
        """True or False by name."""
        found = self.named.get(name)
        if found is None:
            return default
        if not isinstance(found.value, bool):
            raise found.refuse(self.where, "True or False")
        return found.value

    def word(self, name: str, default: str) -> str:
        """A text by name."""
        found = self.named.get(name)
        return default if found is None else str(found.value)

    def value(self, key: str | int) -> Value:
        """A value of any kind; None without one."""
        found = self._find(key)
        return None if found is None else found.value

    def _find(self, key: str | int) -> Argument | None:
        if isinstance(key, str):
            return self.named.get(key)
        return self.positional[key] if key < len(self.positional) else None
