"""Small parsers of Graphviz's language and of LaTeX tables, which raise on wrong syntax."""

from __future__ import annotations

import re
import shutil
import subprocess
from html import unescape

from msgspec import Struct

TOKEN = re.compile(
    r"""\s+|//[^\n]*\n|(?P<arrow>->)|(?P<sign>[{}\[\]=;,])|(?P<quoted>"(?:[^"\\\n]|\\.)*")"""
    r"""|(?P<id>[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_\x80-\U0010ffff]*|-?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?))"""
)
KEYWORDS = ("node", "edge", "graph", "digraph", "subgraph", "strict")
COMMANDS = (
    *("begin", "end", "hline", "char", "textbackslash", "textasciitilde", "textasciicircum"),
    *("times", "geq", "toprule", "midrule", "bottomrule", "textbf", "quad"),
)
RULES = (r"\hline", r"\toprule", r"\midrule", r"\bottomrule")


class Digraph(Struct):
    """Nodes with their attributes, and edges, of a file in Graphviz's language."""

    nodes: dict[str, dict[str, str]]
    edges: list[tuple[str, str]]
    clusters: list[str]  # labels


def digraph(text: str) -> Digraph:
    """The graph of a file; raises an AssertionError on wrong syntax."""
    if shutil.which("dot"):
        subprocess.run(["dot", "-Tcanon"], input=text.encode(), check=True, capture_output=True)
    tokens = _tokens(text)
    assert tokens[0] == "digraph", "the file is a digraph"
    assert _is_id(tokens[1])
    assert tokens[2] == "{"
    found = Digraph({}, [], [])
    end = _statements(tokens, 3, found)
    assert end == len(tokens), "nothing but comments after the last brace"
    return found


def _tokens(text: str) -> list[str]:
    tokens, at = [], 0
    while at < len(text):
        match = TOKEN.match(text, at)
        assert match is not None, f"not a token: {text[at : at + 40]!r}"
        if match.lastgroup:
            tokens.append(match[0])
        at = match.end()
    return tokens


def _is_id(token: str) -> bool:
    plain = token not in ("->", *"{}[]=;,")
    return plain and token.lower() not in KEYWORDS


def _statements(tokens: list[str], at: int, found: Digraph) -> int:
    """Read statements up to the closing brace; returns the index after it."""
    while tokens[at] != "}":
        word = tokens[at]
        if word == ";":
            at += 1
        elif word == "subgraph":
            assert _is_id(tokens[at + 1])
            assert tokens[at + 2] == "{"
            at = _statements(tokens, at + 3, found)
        elif word in ("node", "edge", "graph"):
            _, at = _attributes(tokens, at + 1)
        else:
            assert _is_id(word), word
            if tokens[at + 1] == "=":
                assert _is_id(tokens[at + 2])
                found.clusters += [tokens[at + 2]] if word == "label" else []
                at += 3
            elif tokens[at + 1] == "->":
                assert _is_id(tokens[at + 2])
                found.edges.append((word, tokens[at + 2]))
                _, at = _attributes(tokens, at + 3)
            else:
                assert word not in found.nodes, f"{word} is defined twice"
                found.nodes[word], at = _attributes(tokens, at + 1)
    return at + 1


def _attributes(tokens: list[str], at: int) -> tuple[dict[str, str], int]:
    found: dict[str, str] = {}
    if tokens[at] != "[":
        return found, at
    at += 1
    while tokens[at] != "]":
        assert _is_id(tokens[at]), tokens[at]
        assert tokens[at + 1] == "="
        assert _is_id(tokens[at + 2])
        found[tokens[at]] = tokens[at + 2]
        at += 4 if tokens[at + 3] == "," else 3
    return found, at + 1


def label_lines(label: str) -> list[str]:
    """The lines of a quoted label as Graphviz prints them."""
    lines = [""]
    for part in re.findall(r"\\.|[^\\]", label[1:-1]):
        if part == r"\n":
            lines.append("")
        else:
            lines[-1] += part.removeprefix("\\")
    return lines


def record_fields(label: str) -> list[str]:
    """The texts of the fields of a quoted record label, in order; its braces are balanced."""
    fields, text, depth = [], "", 0
    parts = re.findall(r"\\.|[^\\]", label[1:-1].replace('\\"', '"'))
    assert "".join(parts) == label[1:-1].replace('\\"', '"')
    for part in parts:
        if part in ("{", "}", "|"):
            depth += (part == "{") - (part == "}")
            assert depth >= 0
            fields.append(text)
            text = ""
        else:
            assert part not in ("<", ">"), "no ports"
            text += part
    assert depth == 0
    return [_decoded(field) for field in [*fields, text] if field.strip()]


def _decoded(field: str) -> str:
    """A field without the spaces around it, its escapes and entities read."""
    field = re.sub(r"^ +|(?<!\\) +$", "", field)
    field = re.sub(r"\\([{}|<> ])", r"\1", field)
    return unescape(field).replace("\\\\", "\\")


def latex_rows(text: str) -> list[list[str]]:
    """The rows of all tabulars as cells; raises if LaTeX would stop, or see more than text."""
    lines = [line for line in text.splitlines() if line and not line.startswith("%")]
    body = "\n".join(lines)
    commands = re.findall(r"\\([A-Za-z]+|.)", body, re.DOTALL)
    unknown = {name for name in commands if name not in COMMANDS and name not in (*r"\&%$#{}_",)}
    assert not unknown, unknown
    rows: list[list[str]] = []
    columns = 0
    for line in lines:
        plain = re.sub(r"\\[\\&%$#{}_]|\\char`_", "", line)
        assert plain.count("{") == plain.count("}"), line
        assert not re.search(r"[#%~^_]", plain), line
        assert re.sub(r"\$(?:\\times|\\geq|<|>)\$", "", plain).count("$") == 0, line
        begun = re.fullmatch(r"\\begin\{tabular\}\{([lrc]+)\}", line)
        if begun:
            assert not columns
            columns = len(begun[1])
        elif line == r"\end{tabular}":
            columns = 0
        elif line not in RULES:
            assert line.endswith(r"\\"), line
            cells = re.split(r"(?<!\\)&", line[:-2])
            assert len(cells) == columns, line
            rows.append([cell.strip() for cell in cells])
    assert not columns
    return rows
