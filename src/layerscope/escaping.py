"""One escaping step for every form of output: names come from strangers' files.

What does not print is written out in every form: control characters, bidirectional overrides,
zero-width and other format characters, line separators, lone surrogates. Each form then escapes
what it would obey: tags, formulas, macros, quotes. `delivered` is the last step before a text
leaves.
"""

from __future__ import annotations

import re
from fractions import Fraction
from html import escape as _html_escape

# A spreadsheet runs a cell that begins with one of these; the last four are their wide forms.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")
# What begins with a sign and is none: -1.5, -3x-3 of an offset, - where there is no number.
NUMBERS = re.compile(r"{0}(?:x{0})*".format(r"(?:[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?|-)"), re.ASCII)
LIVE_AFTER_COMMA = re.compile(r"([,;\t]\s*)(?=[=+\-@＝＋－＠])")
MARKDOWN = str.maketrans({sign: "\\" + sign for sign in "\\|*_`<>[]&$"})
LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "×": r"$\times$", "<": r"$<$", ">": r"$>$", "≥": r"$\geq$",
})  # fmt: skip
SGR = ("\x1b[0m", "\x1b[1m", "\x1b[2m")  # the only sequences that styles of ours print


def visible(text: str, keep: str = "") -> str:
    """Text in which every character that does not print is written out by its number."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else _code(c) for c in text)


def _code(char: str) -> str:
    code = ord(char)
    return (
        f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"
    )


def one_line(text: str) -> str:
    """Text in one line, for comments and error messages."""
    return visible(" ".join(text.split()))


def markdown(text: str, keep: str = "") -> str:
    """Text that Markdown prints as it is, in one line; signs of `keep` are left alone."""
    escaped = one_line(text).translate(MARKDOWN)
    for sign in keep:
        escaped = escaped.replace("\\" + sign, sign)
    return escaped


def code_span(text: str) -> str:
    """Text between backticks in a cell of Markdown."""
    return one_line(text).replace("`", "'").replace("|", "\\|").replace("<", "\\x3c")


def latex(text: str) -> str:
    """Text that LaTeX prints as it is, in one line."""
    return one_line(text).translate(LATEX)


def html(text: str) -> str:
    """Text of HTML, SVG and XML 1.0, in elements and in attributes."""
    return _html_escape(visible(text))


def quoted(text: str) -> str:
    """A text in double quotes, as YAML and Graphviz both read it."""
    inner = visible(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{inner}"'


def csv_cell(value: object) -> object:
    """A cell that no spreadsheet runs: numbers stay numbers, a text gets an apostrophe."""
    if value is None:
        return ""
    if isinstance(value, Fraction):
        return f"{float(value):.6g}"
    if isinstance(value, (int, float)):
        return value
    text = str(value)
    live = text.lstrip(" ").startswith(FORMULA) and not NUMBERS.fullmatch(text)
    return ("'" if live else "") + visible(text)


def csv_comment(text: str) -> str:
    """A comment of csv that holds no formula and no quote for a reader without comments."""
    return LIVE_AFTER_COMMA.sub(r"\1'", one_line(text).replace('"', "'"))


def json_text(document: object, indent: int = 2) -> str:
    """A document as JSON whose strings hold nothing that does not print."""
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
    """JSON in which characters that do not print, which only strings hold, are escapes."""
    if text.isascii() and "\x7f" not in text:
        return text
    return "".join(c if c == "\n" or c.isprintable() else _json_code(c) for c in text)


def _json_code(char: str) -> str:
    code = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{code[n : n + 4]}" for n in range(0, len(code), 4))


def delivered(text: str, form: str = "text", *, styled: bool = False) -> str:
    """What leaves: no character is left that a terminal or an editor would obey.

    Lines and tabs stay, and with `styled` the sequences of our own styles.
    """
    if form == "json":
        return _json_escaped(text)
    if not styled:
        return visible(text, "\n\t")
    parts = re.split("(" + "|".join(map(re.escape, SGR)) + ")", text)
    return "".join(part if part in SGR else visible(part, "\n\t") for part in parts)
