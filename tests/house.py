"""Figures on how readable the sources are: `python -m tests.house [--list]`.

Words that readers would not search for, `Any` in signatures, class names defined more than once,
functions with many parameters or branches, and op families whose files differ in name.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).parent.parent / "src" / "layerscope"
WORDS = ("told", "made", "known", "place", "held", "reach", "alike")
MOST_PARAMETERS = 5
MOST_BRANCHES = 25
Function = ast.FunctionDef | ast.AsyncFunctionDef
BRANCHES = (
    ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.Assert,
    ast.comprehension, ast.match_case,
)  # fmt: skip


def files(root: Path = SOURCES) -> list[Path]:
    """Python files below a folder, sorted."""
    return sorted(root.rglob("*.py"))


def words(root: Path = SOURCES) -> Counter[str]:
    """How often each of WORDS stands in the sources as a whole word."""
    found: Counter[str] = Counter()
    for path in files(root):
        found.update(re.findall(rf"\b(?:{'|'.join(WORDS)})\b", path.read_text(encoding="utf-8")))
    return found


def identifiers(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Names that a file defines or assigns, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node.lineno


def named_so(root: Path = SOURCES) -> list[str]:
    """Identifiers that are one of WORDS."""
    return [
        f"{path.relative_to(root)}:{line} {name}"
        for path in files(root)
        for name, line in identifiers(ast.parse(path.read_text(encoding="utf-8")))
        if name in WORDS
    ]


def functions(tree: ast.AST) -> Iterator[Function]:
    """Functions and methods of a file, nested ones included."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def _parameters(function: Function) -> list[ast.arg]:
    args = function.args
    several = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    return [arg for arg in several if arg.arg not in ("self", "cls")]


def _annotations(function: Function) -> Iterator[ast.expr]:
    args = function.args
    for arg in (*_parameters(function), args.vararg, args.kwarg):
        if arg is not None and arg.annotation is not None:
            yield arg.annotation
    if function.returns is not None:
        yield function.returns


def any_annotations(function: Function) -> int:
    """How often `Any` stands in a function's signature."""
    return sum(
        isinstance(node, ast.Name) and node.id == "Any"
        for annotation in _annotations(function)
        for node in ast.walk(annotation)
    )


def branches(function: Function) -> int:
    """Branches of a function, those of functions inside it left out."""
    count = 0
    waiting: list[ast.AST] = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            continue
        count += isinstance(node, BRANCHES)
        if isinstance(node, ast.BoolOp):
            count += len(node.values) - 1
        waiting.extend(ast.iter_child_nodes(node))
    return count


class House:
    """The figures of one source tree, with the lines behind each."""

    def __init__(self, root: Path = SOURCES) -> None:
        self.words = words(root)
        self.named = named_so(root)
        self.any: list[str] = []
        self.long: list[str] = []
        self.branchy: list[str] = []
        self.lines = self.files = self.short = 0
        classes: dict[str, list[str]] = defaultdict(list)
        for path in files(root):
            text = path.read_text(encoding="utf-8")
            tree = ast.parse(text)
            where = path.relative_to(root)
            self.files += 1
            self.lines += text.count("\n")
            self.short += text.count("\n") < 45
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    classes[node.name].append(f"{where}:{node.lineno}")
            for function in functions(tree):
                spot = f"{where}:{function.lineno} {function.name}"
                self.any += [spot] * any_annotations(function)
                if len(_parameters(function)) > MOST_PARAMETERS:
                    self.long.append(f"{spot} ({len(_parameters(function))})")
                if branches(function) > MOST_BRANCHES:
                    self.branchy.append(f"{spot} ({branches(function)})")
        self.twice = {name: where for name, where in classes.items() if len(where) > 1}


def main() -> None:
    shown = "--list" in sys.argv
    trees = [Path(arg) for arg in sys.argv[1:] if not arg.startswith("-")] or [SOURCES]
    for root in trees:
        house = House(root)
        print(f"{house.files} files, {house.lines} lines, {house.short} files below 45 lines")
        print("words: " + ", ".join(f"{word} {house.words[word]}" for word in WORDS))
        for title, rows in (
            ("identifiers among these words", house.named),
            ("Any in signatures", house.any),
            ("class names defined twice", [f"{k}: {', '.join(v)}" for k, v in house.twice.items()]),
            (f"functions with more than {MOST_PARAMETERS} parameters", house.long),
            (f"functions above {MOST_BRANCHES} branches", house.branchy),
        ):
            print(f"{title}: {len(rows)}")
            if shown:
                print("".join(f"  {row}\n" for row in rows), end="")


if __name__ == "__main__":
    main()
