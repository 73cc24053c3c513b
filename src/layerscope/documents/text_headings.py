"""Headings of fixed-width text: words with gaps between them whose meanings are recognised."""

from __future__ import annotations

import re

from msgspec import Struct

from layerscope.documents.headings import meaning_of

LEAST = 2  # headings that must be recognised
LONGEST = 2_000  # characters of a heading
WORDS = 6  # of one heading
TOKEN = re.compile(r"\S+")
PHRASE = re.compile(r"\S+(?:[^\S\n]\S+)*")  # words with one space between them
NUMBER = re.compile(r"[-+~]?\d[\d.,]*\s?[A-Za-z%]{0,6}")
FENCE = re.compile(r"\s*(?:```|~~~)")
SUMMARY = re.compile(
    r"\s*(?:total|trainable|non-trainable|input size|forward/backward|params size|estimated"
    r"|optimizer)\b[^:]{0,60}:",
    re.IGNORECASE,
)


class Span(Struct, frozen=True):
    """A word or a heading, from its first character to behind its last."""

    text: str
    start: int
    end: int


def heading_of(line: str) -> tuple[Span, ...] | None:
    """The headings of a line with at least two that are recognised, and half of all."""
    if len(line) > LONGEST or FENCE.match(line) or SUMMARY.match(line):
        return None
    phrases = [Span(m[0], m.start(), m.end()) for m in PHRASE.finditer(line)]
    if len(phrases) < 2 or any(len(phrase.text) > 200 for phrase in phrases):
        return None
    if any(NUMBER.fullmatch(p.text) or p.text.startswith(":") for p in phrases):
        return None
    parts = [part for phrase in phrases for part in parts_of(phrase)]
    count = sum(meaning_of(part.text) is not None for part in parts)
    return tuple(parts) if count >= LEAST and 2 * count >= len(parts) else None


def parts_of(phrase: Span) -> list[Span]:
    """A phrase as one heading, or as the headings of which it is a sequence."""
    if meaning_of(phrase.text) is not None or " " not in phrase.text:
        return [phrase]
    words = [Span(m[0], m.start(), m.end()) for m in TOKEN.finditer(phrase.text)]
    found, at = [], 0
    while at < len(words):
        for size in range(min(WORDS, len(words) - at), 0, -1):
            start, end = words[at].start, words[at + size - 1].end
            text = phrase.text[start:end]
            if meaning_of(text) is not None:
                found.append(Span(text, phrase.start + start, phrase.start + end))
                at += size
                break
        else:
            return [phrase]
    return found
