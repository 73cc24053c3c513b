"""Widths of texts in pixels, estimated from above, so that labels can be fitted before drawing."""

from __future__ import annotations

from layerscope.escaping import visible

# Widths of characters as shares of the font size, at least those of DejaVu Sans, a wide font.
NARROW = frozenset("fijlrt.,:;|'!()[]/ \\-")
WIDE = frozenset("mwMW@%&…—≥×ABCDGHKNOQRUVXYZ#+<=>^~")
NARROW_SHARE, USUAL_SHARE, WIDE_SHARE, BOLD_SHARE = 0.42, 0.65, 1.0, 1.13
FULL_WIDTH = 0x1100  # first character of scripts that are drawn as wide as high


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Pixels that a text takes at most, at that font size."""
    shares = sum(map(_share, text))
    return shares * size * (BOLD_SHARE if bold else 1)


def _share(char: str) -> float:
    if char in NARROW:
        return NARROW_SHARE
    wide = char in WIDE or (ord(char) >= FULL_WIDTH and not 0x2000 <= ord(char) < 0x2100)
    return WIDE_SHARE if wide else USUAL_SHARE


def shortened(text: str, room: float, size: float, *, bold: bool = False) -> str:
    """The text, or its beginning and end around … if it is wider than `room` pixels.

    The end gets two thirds: layers of one network differ there.
    """
    text = visible(text)
    if text_width(text, size, bold=bold) <= room:
        return text
    for kept in range(len(text) - 1, 0, -1):
        end = (2 * kept + 2) // 3
        short = f"{text[: kept - end]}…{text[-end:]}"
        if text_width(short, size, bold=bold) <= room:
            return short
    return "…"


def wrapped(text: str, room: float, size: float) -> list[str]:
    """The text in lines of at most `room` pixels, broken between words."""
    lines: list[str] = []
    for word in visible(text).split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size) <= room:
            lines[-1] = longer
        else:
            lines.append(shortened(word, room, size))
    return lines
