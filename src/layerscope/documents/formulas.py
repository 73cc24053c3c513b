"""The value of a formula in a cell, such as (3*3*64)*64 or floor((224-7)/2)+1.

Numbers, + - * / x × · ÷, powers, parentheses, floor and ceil; nothing else is evaluated.
"""

from __future__ import annotations

import re
from fractions import Fraction
from math import ceil, floor

from msgspec import Struct

LENGTH = 2_000  # characters of a formula
DEPTH = 100  # nested parentheses
BITS = 256  # of a value on the way
EXPONENT = 64

SIGNS = str.maketrans({
    "×": "*", "·": "*", "∙": "*", "⋅": "*", "∗": "*", "✕": "*", "÷": "/", "−": "-", "–": "-",
    "（": "(", "）": ")", "[": "(", "]": ")", "²": "^2", "³": "^3",
    "⌊": "floor(", "⌋": ")", "⌈": "ceil(", "⌉": ")",
})  # fmt: skip
LATEX = (
    (re.compile(r"\\(?:times|cdot|ast)(?![A-Za-z])"), "*"),
    (re.compile(r"\\div(?![A-Za-z])"), "/"),
    (re.compile(r"\\(?:left|right)(?![A-Za-z])"), ""),
    (re.compile(r"\\lfloor(?![A-Za-z])"), "floor("),
    (re.compile(r"\\lceil(?![A-Za-z])"), "ceil("),
    (re.compile(r"\\r(?:floor|ceil)(?![A-Za-z])"), ")"),
)
TOKEN = re.compile(
    r"\s*(?:(?P<number>\d{1,3}(?:,\d{3})+(?![\d,])(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)"
    r"|(?P<name>floor|ceil)(?=\s*\()|(?P<sign>\*\*|[-+*/^xX()]))"
)
RANK = {"+": 1, "-": 1, "*": 2, "/": 2, "negative": 3, "^": 4}


class FormulaError(ValueError):
    """A text that is no formula, or one beyond the limits."""


class _Stack(Struct):
    """Values and operators that wait for their operands."""

    values: list[Fraction]
    waiting: list[str]

    def apply(self) -> None:
        """Replace the operands of the last operator by its result."""
        sign = self.waiting.pop()
        needed = 1 if sign in ("negative", "floor", "ceil") else 2
        if len(self.values) < needed:
            raise FormulaError(f"{sign} without a number")
        right = self.values.pop()
        if needed == 1:
            self.values.append(_unary(sign, right))
        else:
            self.values.append(_binary(sign, self.values.pop(), right))

    def reduce(self, rank: int) -> None:
        """Apply the operators that bind at least as closely."""
        while self.waiting and RANK.get(self.waiting[-1], 0) >= rank:
            self.apply()

    def close(self) -> None:
        """Apply what is inside a parenthesis, and the function before it."""
        self.reduce(1)
        if not self.waiting or self.waiting.pop() != "(":
            raise FormulaError("a parenthesis that was not opened")
        if self.waiting and self.waiting[-1] in ("floor", "ceil"):
            self.apply()


def value(text: str) -> Fraction:
    """The exact value of a formula; raises FormulaError for anything else."""
    if len(text) > LENGTH:
        raise FormulaError(f"a formula of {len(text):,} characters, the limit is {LENGTH:,}")
    stack, operand = _Stack([], []), False  # operand: the last token ends a value
    for kind, token in _tokens(text):
        if kind == "number" or kind == "name" or token == "(":
            if operand:
                raise FormulaError(f"two values without a sign before {token!r}")
            operand = kind == "number"
            if operand:
                stack.values.append(Fraction(token.replace(",", "")))
            else:
                stack.waiting.append(token)
                if len(stack.waiting) > DEPTH:
                    raise FormulaError(f"nested deeper than {DEPTH}")
        elif token == ")":
            if not operand:
                raise FormulaError("an empty parenthesis or a sign before `)`")
            stack.close()
        elif operand:
            # a power binds from the right: 2^3^2 is 2^9
            stack.reduce(RANK[token] + (token == "^"))
            stack.waiting.append(token)
            operand = False
        elif token == "-":
            stack.waiting.append("negative")
        elif token != "+":
            raise FormulaError(f"{token} without a number before it")
    if not operand:
        raise FormulaError("ends with a sign" if stack.waiting or stack.values else "empty")
    stack.reduce(1)
    if stack.waiting:
        raise FormulaError("a parenthesis that is not closed")
    return stack.values[0]


def has_sign(text: str) -> bool:
    """Whether a text has two numbers with an operator between them."""
    return re.search(r"\d[\s)\]]*(?:\*\*|[-+*/×·^xX]|\\times|\\cdot)[\s(\[]*\d", text) is not None


def _tokens(text: str) -> list[tuple[str, str]]:
    for pattern, sign in LATEX:
        text = pattern.sub(sign, text)
    text = text.translate(SIGNS).replace("{", "(").replace("}", ")").strip()
    found, at = [], 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise FormulaError(f"{text[at : at + 20]!r} is no part of a formula")
        kind = match.lastgroup or ""
        token = match[kind]
        found.append((kind, {"x": "*", "X": "*", "**": "^"}.get(token, token)))
        at = match.end()
    return found


def _unary(sign: str, number: Fraction) -> Fraction:
    if sign == "negative":
        return -number
    return Fraction(floor(number) if sign == "floor" else ceil(number))


def _binary(sign: str, left: Fraction, right: Fraction) -> Fraction:
    if sign == "+":
        result = left + right
    elif sign == "-":
        result = left - right
    elif sign == "*":
        result = left * right
    elif sign == "/":
        if not right:
            raise FormulaError("a division by zero")
        result = left / right
    else:
        if right.denominator != 1 or not 0 <= right <= EXPONENT:
            raise FormulaError(f"a power that is no whole number from 0 to {EXPONENT}")
        if left.numerator.bit_length() * int(right) > BITS:
            raise FormulaError("a number that is too large")
        result = left ** int(right)
    if max(result.numerator.bit_length(), result.denominator.bit_length()) > BITS:
        raise FormulaError("a number that is too large")
    return result
