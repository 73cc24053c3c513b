"""What `flop_count_table(FlopCountAnalysis(model, inputs))` of fvcore 0.1.5 prints.

One row per module and parameter, down to three levels: parameters or the shape of one, and flops,
which are what the convention counts; by default fvcore's own. A module without parameters and flops
has no row, a module in which nothing ran has no flops, and a module whose only child has the same
figures shares a row with it.

- Parameters of a module are listed in the order in which its layers use them, fvcore's in the order
  of their declaration, which a graph does not have.
- A network without modules has one row per layer.
- fvcore counts an operator that it does not know as zero. Here figures that lack unknown ones end
  with `+ ?`.
"""

from __future__ import annotations

from msgspec import Struct

from layerscope.escaping import markdown
from layerscope.report import Report
from layerscope.report.modules import figure_of_layer, parameters_by_path, paths_of
from layerscope.report.numbers import plus_unknown

HEADER = ("module", "#parameters or shape", "#flops")
MOST_DEPTH = 3
HEADER_PADDING = 2  # of tabulate
UNITS = ((10**14, 15, "P"), (10**11, 12, "T"), (10**8, 9, "G"), (10**5, 6, "M"), (10**2, 3, "K"))


class ModuleFigures(Struct):
    """What a table says about a module or parameter; None: it has no such figure."""

    params: int | None = None
    flops: int | None = None
    shape: str = ""  # of a parameter
    is_called: bool = False
    lacks_params: bool = False
    lacks_flops: bool = False

    @property
    def cells(self) -> tuple[str | None, str | None]:
        """The texts of both figures."""
        params = None if self.params is None else _size(self.params, self.lacks_params)
        flops = None if self.flops is None else _size(self.flops, self.lacks_flops)
        if self.flops is not None and not self.is_called:
            flops = ""
        return self.shape or params, flops


Cells = tuple[str | None, str | None]


def write(report: Report) -> str:
    """The table."""
    tree = ModuleTree(figures_by_path(report))
    root, cells = tree.merged("")
    rows = [(_name(root or "model"), *_texts(cells, ""))]
    shared = f"{root}." if root else ""
    waiting = [(child, 1) for child in reversed(tree.children.get(root, ()))]
    while waiting:
        path, depth = waiting.pop()
        path, cells = tree.merged(path)
        indent = " " * depth
        rows.append((indent + _name(path.removeprefix(shared)), *_texts(cells, indent)))
        if depth < MOST_DEPTH:
            waiting += [(child, depth + 1) for child in reversed(tree.children.get(path, ()))]
    return _table(rows)


def figures_by_path(report: Report) -> dict[str, ModuleFigures]:
    """Figures of every module and parameter, in fvcore's order: those with parameters first."""
    found = {"": ModuleFigures(flops=0)}
    for path, param in parameters_by_path(report).items():
        for outer in _prefixes(path):
            at = found.setdefault(outer, ModuleFigures())
            at.params = (at.params or 0) + param.elements
        found[path].shape = str(param.shape)
    for path in report.graph.modules:
        at = found.setdefault(path, ModuleFigures())
        at.flops = 0
    for layer in report.layers:
        paths = paths_of(layer) if report.graph.modules else _prefixes(layer.name)
        for path in paths:
            at = found.setdefault(path, ModuleFigures())
            at.flops = (at.flops or 0) + figure_of_layer(layer)
            at.is_called = True
            at.lacks_flops |= layer.lacks_figures
            if not report.params_known(layer.node):
                at.params, at.lacks_params = at.params or 0, True
    return found


class ModuleTree:
    """The modules that have a row, and the children of each in order."""

    def __init__(self, figures: dict[str, ModuleFigures]) -> None:
        self.figures = figures
        self.children: dict[str, list[str]] = {}
        kept = {""}
        for path in sorted(figures, key=lambda path: -path.count(".")):
            at = figures[path]
            has_figures = bool(at.params or at.flops or at.lacks_params or at.lacks_flops)
            if path in kept or has_figures:
                kept.update(_prefixes(path))
        for path in figures:
            if path and path in kept:
                self.children.setdefault(path.rpartition(".")[0], []).append(path)

    def merged(self, path: str) -> tuple[str, Cells]:
        """The innermost module that shares a row with this one, and the cells of the row."""
        cells = self.figures[path].cells
        while len(inside := self.children.get(path, [])) == 1:
            both = _combined(cells, self.figures[inside[0]].cells)
            if both is None:
                break
            path, cells = inside[0], both
        return path, cells


def _combined(outer: Cells, inner: Cells) -> Cells | None:
    """The cells of two rows in one; None if they differ."""
    for a, b in zip(outer, inner, strict=True):
        if (a is None) != (b is None) or (a != b and a and b):
            return None
    return outer[0] or inner[0], outer[1] or inner[1]


def _prefixes(path: str) -> list[str]:
    """The model "", every module around a path, and the path."""
    ends = [n for n, char in enumerate(path) if char == "."]
    return ["", *(path[:end] for end in ends if end), path]


def _size(count: int, incomplete: bool) -> str:
    """Three decimals of the unit that is at most ten times larger."""
    text = str(count)
    for least, power, unit in UNITS:
        if count > least:
            text = f"{count / 10.0**power:.3f}".rstrip("0").rstrip(".") + unit
            break
    return plus_unknown(text, count, incomplete)


# -- text


def _name(path: str) -> str:
    return markdown(path, keep="_")


def _texts(cells: Cells, indent: str) -> tuple[str, str]:
    first, second = ("" if cell is None else indent + cell for cell in cells)
    return first, second


def _table(rows: list[tuple[str, str, str]]) -> str:
    """A table as tabulate formats it; a column of plain numbers is aligned right."""
    lines = ["|"] * (len(rows) + 2)
    for n, title in enumerate(HEADER):
        cells = [row[n] for row in rows]
        width = max([len(title) + HEADER_PADDING, *map(len, cells)])
        filled = [cell.strip() for cell in cells if cell.strip()]
        right = bool(filled) and all(cell.isdecimal() for cell in filled)
        rule = f"{'-' * (width + 1)}:" if right else f":{'-' * (width + 1)}"
        texts = [text.rjust(width) if right else text.ljust(width) for text in (title, *cells)]
        padded = [f" {text} " for text in texts]
        padded.insert(1, rule)
        lines = [f"{line}{text}|" for line, text in zip(lines, padded, strict=True)]
    return "\n".join(lines) + "\n"
