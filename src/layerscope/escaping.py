"""Escaping for every output format, as names come from untrusted files.

Non-printable characters are escaped in every format: control characters, bidirectional overrides,
zero-width and other format characters, line separators, lone surrogates. Each format then escapes
its own syntax: tags, formulas, macros, quotes. `delivered` is the last step before output.
"""

from __future__ import annotations

import re
from fractions import Fraction

# A spreadsheet evaluates a cell that begins with one of these; the last four are full-width forms.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")
# Cells that begin with a sign and are no formula: -1.5, an offset -3x-3, - for no number.
NUMBER = r"(?:[+-]?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?|-)"
NUMBERS = f"{NUMBER}(?:x{NUMBER})*"
LIVE_AFTER_COMMA = r"([,;\t]\s*)(?=[=+\-@＝＋－＠])"
MARKDOWN = str.maketrans({sign: "\\" + sign for sign in "\\|*_`<>[]&$"})
LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "×": r"$\times$", "<": r"$<$", ">": r"$>$", "≥": r"$\geq$", "≤": r"$\leq$",
})  # fmt: skip
# A record label of Graphviz: fields are split at bars and braces before entities are decoded.
RECORD = str.maketrans({
    "\\": "&#92;&#92;", '"': "&quot;", "&": "&amp;", "{": r"\{", "}": r"\}", "|": r"\|",
    "<": r"\<", ">": r"\>", " ": r"\ ",
})  # fmt: skip
SGR = ("\x1b[0m", "\x1b[1m", "\x1b[2m")  # the escape sequences of our own styles


def visible(text: str, keep: str = "") -> str:
    """Text with every non-printable character escaped by its number."""
    if text.isprintable():
        return text
    codes = {ord(c): _code(c) for c in set(text) if not c.isprintable() and c not in keep}
    return text.translate(codes) if codes else text


def _code(char: str) -> str:
    code = ord(char)
    return (
        f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"
    )


def one_line(text: str) -> str:
    """Text on one line, for comments and error messages."""
    return visible(" ".join(text.split()))


def markdown(text: str, keep: str = "") -> str:
    """Text on one line that Markdown prints literally; characters of `keep` are not escaped."""
    escaped = one_line(text).translate(MARKDOWN)
    for sign in keep:
        escaped = escaped.replace("\\" + sign, sign)
    return escaped


def code_span(text: str) -> str:
    """Text of a code span in a Markdown table."""
    return one_line(text).replace("`", "'").replace("|", "\\|").replace("<", "\\x3c")


def latex(text: str) -> str:
    """Text on one line that LaTeX prints literally."""
    return one_line(text).translate(LATEX)


def html(text: str) -> str:
    """Text for HTML, SVG and XML 1.0, in elements and in attributes."""
    from html import escape  # its table of entities takes as long to import as a small report

    return escape(visible(text))


def quoted(text: str) -> str:
    """A string in double quotes, for YAML and Graphviz."""
    inner = visible(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{inner}"'


def record_text(text: str) -> str:
    """Text inside a quoted record label of Graphviz, which it prints literally."""
    return visible(text).translate(RECORD)


def csv_cell(value: object) -> object:
    """A CSV cell that no spreadsheet evaluates: numbers are kept, formulas get an apostrophe."""
    if value is None:
        return ""
    if isinstance(value, Fraction):
        return f"{getattr(value, 'sign', '')}{float(value):.6g}"
    if isinstance(value, (int, float)):
        return value
    text = str(value)
    live = text.lstrip(" ").startswith(FORMULA) and not re.fullmatch(NUMBERS, text)
    return ("'" if live else "") + visible(text)


def csv_comment(text: str) -> str:
    """A CSV comment without formulas and quotes, for readers that do not know comments."""
    return re.sub(LIVE_AFTER_COMMA, r"\1'", one_line(text).replace('"', "'"))


def json_text(document: object, indent: int = 2) -> str:
    """A document as JSON with non-printable characters escaped."""
    import msgspec

    try:
        data = msgspec.json.encode(document)
    except UnicodeEncodeError:  # a file name that is not UTF-8
        data = msgspec.json.encode(_encodable(msgspec.to_builtins(document)))
    return _json_escaped(msgspec.json.format(data, indent=indent).decode()) + "\n"


def _encodable(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_encodable(key): _encodable(each) for key, each in value.items()}
    return [_encodable(each) for each in value] if isinstance(value, (list, tuple)) else value


def _json_escaped(text: str) -> str:
    """JSON with non-printable characters, which are in strings only, escaped."""
    if (text.isascii() and "\x7f" not in text) or text.replace("\n", "").isprintable():
        return text
    codes = {ord(c): _json_code(c) for c in set(text) if not c.isprintable() and c != "\n"}
    return text.translate(codes) if codes else text


def _json_code(char: str) -> str:
    code = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{code[n : n + 4]}" for n in range(0, len(code), 4))


def delivered(text: str, form: str = "text", *, styled: bool = False) -> str:
    """The text for output, without characters that a terminal or editor would interpret.

    Line feeds and tabs are kept, and with `styled` the escape sequences of our own styles.
    """
    if form == "json":
        return _json_escaped(text)
    if not styled:
        return visible(text, "\n\t")
    parts = re.split("(" + "|".join(map(re.escape, SGR)) + ")", text)
    return "".join(part if part in SGR else visible(part, "\n\t") for part in parts)
