"""Builder calls as text, one per line: `x = conv(data, 64, 3, padding=1)`.

The text is parsed with `ast` and never executed: a value is a literal, a variable or the attributes
of an op, and a call is one of the Builder's methods with values of the right types. The characters
are checked first, so that the parser only sees brackets of a bounded depth.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from keyword import iskeyword
from typing import TYPE_CHECKING

from layerscope.documents.reader import load
from layerscope.errors import FormatError, TextSpan
from layerscope.limits import BRACKETS, CALLS_BYTES

if TYPE_CHECKING:
    from layerscope.formats import ReadOptions
    from layerscope.graph.types import Graph

FIRST = re.compile(
    rb"(?:\s++|\#[^\n]*+)*+(?:network\(\s*+[\"']|[A-Za-z_]\w*+[ ]*+=[ ]*+input\(\s*+[\"'])"
)
TOKEN = re.compile(
    r"(?P<blank>[ \n\f]++|\#[^\n]*+)"
    r"|(?P<string>\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+')(?![\w\"'])"
    r"|(?P<number>-?(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+\-]?[0-9]++)?+)(?!\w)"
    r"|(?P<name>[A-Za-z_]\w*+)(?![\"'])"
    r"|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<sign>[,=:])",
    re.ASCII,
)
WORDS = ("with", "pass", "True", "False", "None")


def recognise(head: bytes) -> bool:
    """Whether the first line is `network("…")` or declares an input."""
    return FIRST.match(head.removeprefix(b"\xef\xbb\xbf")) is not None


def read(path: str, options: ReadOptions) -> Graph:
    """The network of a file of Builder calls."""
    try:
        text = load(path)
    except OSError as error:
        raise FormatError(f"{path}: {error.strerror}") from None
    return parse(text, path)[0]


def parse(text: str, name: str) -> tuple[Graph, Mapping[str, int]]:
    """The network of a text with that name in errors, and the line of each node and input."""
    from layerscope.formats.builder_calls import Replay

    CALLS_BYTES.check(len(text), name)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    source = CallText(text, name)
    source.check_tokens()
    replay = Replay(source)
    replay.run(source.statements())
    return replay.graph()


class CallText:
    """A text of calls, its name in errors, and the positions of its values."""

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = name
        self.lines = text.split("\n")

    def error(
        self, node: ast.expr | ast.stmt | ast.keyword, what: str, fix: str | None = None
    ) -> FormatError:
        """An error at a value."""
        line = self.lines[node.lineno - 1].encode()
        column = len(line[: node.col_offset].decode("utf-8", "replace")) + 1
        ends_here = node.end_lineno == node.lineno and node.end_col_offset is not None
        end = line[node.col_offset : node.end_col_offset] if ends_here else b""
        length = len(end.decode("utf-8", "replace"))
        return FormatError.at(self.name, TextSpan(node.lineno, column, length, fix), what)

    def statements(self) -> list[ast.stmt]:
        """The statements of the text."""
        try:
            return ast.parse(self.text).body
        except SyntaxError as error:
            line, column = error.lineno or 1, error.offset or 1
            raise FormatError.at(self.name, TextSpan(line, column), error.msg) from None
        except (ValueError, MemoryError, RecursionError) as error:
            raise FormatError(f"{self.name}: {error}") from None

    def check_tokens(self) -> None:
        """Raise for a character that no call has, and for brackets nested too deep."""
        at, depth = 0, 0
        while at < len(self.text):
            found = TOKEN.match(self.text, at)
            if found is None:
                piece = re.compile(r"\w+|.", re.DOTALL).match(self.text, at)
                shown = piece[0] if piece else ""
                raise self.unexpected(at, len(shown), f"found {shown[:40]!r}, expected a call")
            if found.lastgroup == "open":
                depth += 1
                if depth > BRACKETS.most:
                    raise self.unexpected(at, 1, BRACKETS.refusal(depth))
            elif found.lastgroup == "close":
                depth -= 1
            elif found.lastgroup == "name" and iskeyword(found[0]) and found[0] not in WORDS:
                raise self.unexpected(at, len(found[0]), f"found {found[0]!r}, expected a call")
            at = found.end()

    def unexpected(self, at: int, length: int, what: str) -> FormatError:
        """An error at an offset of the text."""
        line = self.text.count("\n", 0, at) + 1
        column = at - self.text.rfind("\n", 0, at)
        return FormatError.at(self.name, TextSpan(line, column, length), what)


def close_word(word: str, words: Iterator[str] | Mapping[str, object]) -> str | None:
    """The word that is meant by a misspelt one, if one is close."""
    found = get_close_matches(word, list(words), n=1, cutoff=0.6)
    return found[0] if found else None
