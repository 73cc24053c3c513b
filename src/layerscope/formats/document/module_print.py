"""The grammar of a printed module: names, classes, arguments, and modules inside of modules.

    Net(
      (conv): Conv2d(3, 8, kernel_size=(3, 3), stride=(1, 1))
      (blocks): ModuleList(
        (0-5): 6 x Block(
          (fc): Linear(in_features=8, out_features=8, bias=True)
        )
      )
    )

A line is the start of a module, the end of one, or arguments of the module around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct, field

from layerscope.errors import FormatError
from layerscope.escaping import visible
from layerscope.formats.document.module_arguments import Argument, arguments, closing
from layerscope.limits import PRINT_DEPTH, PRINTED_MODULES

NAME = r"[^\s()=,:]{1,200}"  # a class, or the name of a network
ROOT = re.compile(rf"[ \t]*({NAME})\(")
START = re.compile(rf"[ \t]*\((?P<name>[^\n]*?)\): (?:(?P<count>\d{{1,9}}) x )?(?P<kind>{NAME})\(")
OTHER = re.compile(r"[ \t]*\((?P<name>[^\n]*?)\): (?P<text>.*)")
RANGE = re.compile(r"(\d{1,9})-(\d{1,9})")


class PrintedModule(Struct):
    """A module of a print: its class, its arguments and its children, and where it starts."""

    name: str  # in the module around it; of a repeated one the first, as in `0-5`
    kind: str
    line: int
    column: int
    count: int = 1  # how many equal modules the line stands for
    text: str = ""  # what is printed instead of a class with arguments
    arguments: list[Argument] = field(default_factory=list)
    children: list[PrintedModule] = field(default_factory=list)

    def names(self) -> Iterator[str]:
        """The name of every module that the line stands for."""
        if self.count == 1:
            yield self.name
            return
        first = int(self.name)
        yield from map(str, range(first, first + self.count))


def starts(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Indices of the first and the last line of each print of a model."""
    found = []
    after = 0
    for index, line in enumerate(lines):
        if index < after or "(" not in line:
            continue
        match = ROOT.match(line)
        if match is None or not _goes_on(lines, index, match.end()):
            continue
        end = _last_line(lines, index)
        found.append((index, end))
        after = end + 1
    return found


def _goes_on(lines: Sequence[str], index: int, column: int) -> bool:
    """Whether modules or arguments follow the line that may start a print."""
    if lines[index][column:].strip():
        return False
    return any(OTHER.match(line) for line in lines[index + 1 : index + 4])


def _last_line(lines: Sequence[str], index: int) -> int:
    """The last line of the print that begins at a line: one that closes what that opened."""
    depth = 1
    for at in range(index + 1, len(lines)):
        text = lines[at].strip()
        if text == ")":
            depth -= 1
            if not depth:
                return at
        elif text.endswith("("):
            depth += 1
    return len(lines) - 1


def parse(lines: Sequence[str], first: int, where: str) -> PrintedModule:
    """The module in some lines, the first of which is the line `first` of the document `where`."""
    match = ROOT.match(lines[0])
    if match is None:
        raise FormatError(f"{where}:{first + 1}:1: expected the class of a module and `(`")
    root = PrintedModule("", match[1], first + 1, match.start(1) + 1)
    stack = _open([], root, lines[0], match.end(), where)
    at = 0
    while stack:
        at += 1
        if at == len(lines):
            last = stack[-1]
            raise FormatError(
                f"{where}:{last.line}:{last.column}: {visible(last.kind)}( is not closed; "
                "the document ends before its `)`"
            )
        line = lines[at]
        text = line.strip()
        if not text:
            continue
        if text == ")":
            stack.pop()
            continue
        stack = _line(stack, line, first + at + 1, where)
    _check_size(root, where)
    return root


def _line(stack: list[PrintedModule], line: str, number: int, where: str) -> list[PrintedModule]:
    """The open modules after a line, which starts a module or has arguments of the last one."""
    around = stack[-1]
    match = START.match(line)
    if match is not None:
        child = PrintedModule(match["name"], match["kind"], number, match.start("kind") + 1)
        _repeat(child, match, where)
        around.children.append(child)
        return _open(stack, child, line, match.end(), where)
    match = OTHER.match(line)
    if match is not None:  # None, a parameter, or what a class prints in its own way
        child = PrintedModule(match["name"], "", number, match.start("text") + 1)
        child.text = match["text"].strip()
        around.children.append(child)
        return stack
    return _argue(stack, line, len(line) - len(line.lstrip()), where, number)


def _open(
    stack: list[PrintedModule], module: PrintedModule, line: str, column: int, where: str
) -> list[PrintedModule]:
    stack.append(module)
    PRINT_DEPTH.check(len(stack), f"{where}:{module.line}:{module.column}")
    return _argue(stack, line, column, where, module.line)


def _argue(
    stack: list[PrintedModule], line: str, column: int, where: str, number: int
) -> list[PrintedModule]:
    """Add the arguments of a line from a column on; a `)` that matches no `(` ends the module."""
    end = closing(line, column)
    text = line[column:] if end is None else line[column:end]
    stack[-1].arguments += arguments(text, number, column + 1, where)
    if end is not None:
        stack.pop()
        rest = line[end + 1 :].strip()
        if rest and set(rest) <= {")"}:
            raise FormatError(f"{where}:{number}:{end + 2}: `)` without a `(` before it")
    return stack


def _repeat(child: PrintedModule, match: re.Match[str], where: str) -> None:
    """Set the count of `(0-5): 6 x Block(`; raise if range and count differ."""
    if match["count"] is None:
        return
    bounds = RANGE.fullmatch(match["name"])
    count = int(match["count"])
    if bounds is None or int(bounds[2]) - int(bounds[1]) + 1 != count or count < 1:
        raise FormatError(
            f"{where}:{child.line}:{match.start('name') + 1}: {count} modules named "
            f"({visible(match['name'][:40])}), expected a range of {count} numbers such as "
            f"(0-{max(count - 1, 0)})"
        )
    child.name, child.count = bounds[1], count


def _check_size(root: PrintedModule, where: str) -> None:
    """Raise if repeated modules inside of repeated ones are too many."""
    total = 0
    waiting = [(root, 1)]
    while waiting:
        module, times = waiting.pop()
        times *= module.count
        total += times
        PRINTED_MODULES.check(total, f"{where}:{module.line}:{module.column}")
        waiting += [(child, times) for child in module.children]
