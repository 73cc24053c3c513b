"""Parses protobuf's text format into messages with offsets, without a schema.

It accepts what protobuf's own parsers accept and common variants: `:` before `{` or not, `{}` or
`<>`, lists in `[]`, `,` and `;` between fields, both quotes, adjacent strings joined, comments,
extensions. The bytes are read once and without recursion; fields named in `skip` are not kept.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from mmap import mmap

from msgspec import Struct

from layerscope.codecs.message import Kind, Message, Scalar, unescape
from layerscope.errors import FormatError, TextSpan

MOST_DEPTH = 100
MOST_VALUES = 1_000_000  # some hundred MB; large networks have a hundred thousand
MOST_NAMES = 10_000  # field names that are cached as str
CHUNK = 1 << 20
CONTINUATION = bytes(range(0x80, 0xC0))  # bytes of UTF-8 that begin no character

# Comments and spaces, with possessive quantifiers: no backtracking.
SPACE = rb"(?:\s++|\#[^\n]*+)*+"
BLANK = rb"(?:[\s,;]++|\#[^\n]*+)*+"
STRING = rb"(?P<string>\"(?:[^\"\\\n]++|\\.)*+\"|'(?:[^'\\\n]++|\\.)*+')"
FIELD = re.compile(
    BLANK + rb"(?:(?P<name>[A-Za-z_][\w.\-]*+|\[[^\[\]\n\"'{}<>#]*+\])" + SPACE
    + rb"(?P<colon>:?)" + SPACE + rb"(?P<open>[{<\[]?)|(?P<close>[}>])|(?P<end>\Z))"
)  # fmt: skip
SCALAR = re.compile(
    SPACE + rb"(?:" + STRING + rb"|(?P<number>[+\-]?\s*+\.?[0-9](?:[eE][+\-]|[\w.])*+)"
    rb"|(?P<word>-?\s*+[A-Za-z_][\w.\-]*+))",
    re.DOTALL,
)  # fmt: skip
TOKEN = re.compile(STRING + rb"|[+\-]?[\w.]++", re.DOTALL)
JOINED = re.compile(SPACE + STRING, re.DOTALL)
LISTED = re.compile(BLANK + rb"(?:(?P<close>\])|(?P<open>[{<])|(?P<scalar>(?=[\"'\w.+\-])))")
# Placeholders of templates: $HEIGHT$, ${HEIGHT}, @HEIGHT@, %(height)d, %d.
PLACEHOLDER = re.compile(
    SPACE + rb"(\$\w{1,99}\$?|\$\{\w{1,99}\}|@\w{1,99}@|%\(\w{1,99}\)[a-z]|%[a-z]\b)"
)
CLOSES = {b"{": b"}", b"<": b">", b"[": b"]"}


class Text:
    """The bytes of a text, their name in errors, and the line of each offset."""

    __slots__ = ("_characters", "_line", "_seen", "data", "name")

    def __init__(self, data: bytes | mmap, name: str) -> None:
        self.data = data
        self.name = name
        self._seen = 0
        self._line = 1
        self._characters = 0  # of the line, before `_seen`

    def line(self, at: int) -> int:
        """The line of an offset, from 1; fast for offsets in ascending order."""
        if at < self._seen:
            self._seen, self._line, self._characters = 0, 1, 0
        for start in range(self._seen, at, CHUNK):
            piece = self.data[start : min(start + CHUNK, at)]
            ends = piece.count(b"\n")
            if ends:
                self._line += ends
                self._characters = 0
                piece = piece[piece.rfind(b"\n") + 1 :]
            self._characters += len(piece.translate(None, CONTINUATION))
        self._seen = at
        return self._line

    def column(self, at: int) -> int:
        """The column of an offset in characters, from 1."""
        self.line(at)
        return self._characters + 1

    def position(self, at: int) -> str:
        """An offset as `line 3`."""
        return f"line {self.line(at)}"

    def error(self, at: int, what: str, fix: str | None = None) -> FormatError:
        """An error to raise, with line and column of an offset; `fix` replaces its token."""
        return FormatError.at(self.name, self.span(at, fix), what)

    def span(self, at: int, fix: str | None = None) -> TextSpan:
        """Line, column and length of the token at an offset."""
        token = TOKEN.match(self.data, at)
        length = len(token[0].decode("utf-8", "replace")) if token else 0
        return TextSpan(self.line(at), self.column(at), length, fix)

    def name_before(self, at: int, name: str) -> int:
        """The offset of the name of the field whose value is at an offset."""
        found = self.data.rfind(name.encode(), 0, at)
        return found if found >= 0 else at

    def unexpected(self, at: int, wanted: str) -> FormatError:
        """An error at the first token from an offset on."""
        found = re.compile(BLANK).match(self.data, at)
        at = found.end() if found else at
        piece = self.data[at : at + 20].decode("utf-8", "replace").split("\n")[0].strip()
        return self.error(
            at, f"found {piece!r}, expected {wanted}" if piece else f"expected {wanted}"
        )


class Frame(Struct, gc=False):
    """An open message, or with a `label` an open list of values of that field."""

    message: Message
    close: bytes
    kept: bool
    label: bytes = b""


def parse(data: bytes | mmap, name: str, skip: Collection[str] = ()) -> Message:
    """Parse a text; raises FormatError with line and column."""
    text = Text(data, name)
    if b"\0" in data[:CHUNK]:
        raise text.error(data.find(b"\0"), "a zero byte, expected text")
    return Parser(text, skip).run()


class Parser:
    """The state of a parse; `left` is how many more values may be kept."""

    def __init__(self, text: Text, skip: Collection[str] = ()) -> None:
        self.text = text
        self.skip = frozenset(word.encode() for word in skip)
        self.left = MOST_VALUES
        self.names: dict[bytes, str] = {}
        self.stack: list[Frame] = []

    def run(self) -> Message:
        """The outermost message."""
        at = 3 if self.text.data[:3] == b"\xef\xbb\xbf" else 0
        root = Message(self.text, at)
        self.stack = [Frame(root, b"", True)]
        while self.stack:
            at = self._in_list(at) if self.stack[-1].label else self._in_message(at)
        return root

    def _in_message(self, at: int) -> int:
        """Parse one field or the end of the message; returns the offset behind it."""
        top = self.stack[-1]
        found = FIELD.match(self.text.data, at)
        if found is None:
            raise self.text.unexpected(at, "the name of a field")
        name = found["name"]
        if name is None:
            if found["end"] is not None and top.close:
                what = f"the message that begins here has no {top.close.decode()}"
                raise self.text.error(top.message.at, what)
            return self._leave(found)
        kept = top.kept and name not in self.skip
        opened = found["open"]
        if opened == b"[":
            self._need_colon_or_message(found)
            self._enter(Frame(top.message, b"]", kept, name), found.start("open"))
        elif opened:
            inner = Message(self.text, found.start("open"))
            self._keep(top.message, name, inner, kept)
            self._enter(Frame(inner, CLOSES[opened], kept), inner.at)
        elif not found["colon"]:
            raise self.text.unexpected(found.end(), f": or {{ after {_shown(name)}")
        else:
            return self._scalar(top.message, name, found.end(), kept)
        return found.end()

    def _need_colon_or_message(self, found: re.Match[bytes]) -> None:
        if not found["colon"]:
            following = LISTED.match(self.text.data, found.end())
            if following is None or following["open"] is None:
                raise self.text.error(
                    found.start("open"), f"a list of {_shown(found['name'])} without :"
                )

    def _in_list(self, at: int) -> int:
        """Parse one value of a list or its end; returns the offset behind it."""
        top = self.stack[-1]
        found = LISTED.match(self.text.data, at)
        if found is None:
            raise self.text.unexpected(at, f"a value of {_shown(top.label)} or ]")
        if found["close"] is not None:
            return self._leave(found)
        if found["open"] is None:
            return self._scalar(top.message, top.label, found.end(), top.kept)
        inner = Message(self.text, found.start("open"))
        self._keep(top.message, top.label, inner, top.kept)
        self._enter(Frame(inner, CLOSES[found["open"]], top.kept), inner.at)
        return found.end()

    def _enter(self, frame: Frame, at: int) -> None:
        if len(self.stack) > MOST_DEPTH:
            raise self.text.error(at, f"messages nested deeper than {MOST_DEPTH}")
        self.stack.append(frame)

    def _leave(self, found: re.Match[bytes]) -> int:
        close, wanted = found["close"] or b"", self.stack[-1].close
        if close != wanted:
            hint = f"expected {wanted.decode()}" if wanted else "which closes nothing"
            raise self.text.error(found.start("close"), f"found {close.decode()}, {hint}")
        self.stack.pop()
        return found.end()

    def _scalar(self, outer: Message, name: bytes, at: int, kept: bool) -> int:
        """Parse the scalar at an offset; returns the offset behind it."""
        data = self.text.data
        found = SCALAR.match(data, at)
        if found is None:
            template = PLACEHOLDER.match(data, at)
            if template is not None:
                what = (
                    f"found {_shown(template[1])!r}, a placeholder of a template: replace it with "
                )
                raise self.text.error(template.start(1), f"{what}a value of {_shown(name)}")
            raise self.text.unexpected(at, f"a value of {_shown(name)}")
        kind: Kind = found.lastgroup  # type: ignore[assignment]
        begin, end = found.span(kind)
        if kind != "string":
            self._keep(
                outer, name, Scalar(kind, found[kind].decode("ascii", "replace"), begin), kept
            )
            return end
        parts = [found[kind][1:-1]]
        while (more := JOINED.match(data, end)) is not None:
            parts.append(more["string"][1:-1])
            end = more.end()
        text = "".join(map(unescape, parts)) if kept else ""
        self._keep(outer, name, Scalar(kind, text, begin), kept)
        return end

    def _keep(self, outer: Message, name: bytes, value: Scalar | Message, kept: bool) -> None:
        if not kept:
            return
        self.left -= 1
        if self.left < 0:
            raise self.text.error(value.at, f"more than {MOST_VALUES:,} values: this is no network")
        field = self.names.get(name)
        if field is None:
            field = name.decode("utf-8", "replace").strip("[] \t")
            if len(self.names) < MOST_NAMES:
                self.names[name] = field
        outer.put(field, value)


def _shown(name: bytes) -> str:
    return name[:60].decode("utf-8", "replace")
