"""The module tree of a report as rows: scopes with their sums, equal neighbours folded."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from itertools import chain
from typing import Literal

from msgspec import Struct

from layerscope.ops import Ops
from layerscope.report.types import Layer, Report, sum_ops

Kind = Literal["layer", "scope", "module", "op", "unused", "total"]
UNUSED = "unused parameters"  # name of the row of those that no layer uses


class TableRow(Struct, frozen=True, gc=False):
    """One row of a table: a layer, several, or the total. Figures are sums over `times` copies.

    A row of kind `unused` has no layers: its parameters and bytes are in the report.
    """

    name: str  # full
    label: str  # as indented in a tree
    depth: int
    kind: Kind
    members: tuple[Layer, ...]  # of one copy
    times: int = 1
    copies: tuple[Branch, ...] = ()  # the scopes of a folded row, whose figures may be no sums

    @property
    def layer(self) -> Layer | None:
        """The layer, if the row is a single one."""
        one = self.kind == "layer" or (self.kind == "module" and len(self.members) == 1)
        return self.members[0] if one else None

    @property
    def all_members(self) -> Iterator[Layer]:
        """The layers of all copies."""
        if not self.copies:
            return iter(self.members)
        return chain.from_iterable(map(_inside, self.copies))

    def sum(self, figure: Callable[[Layer], int]) -> int:
        """The sum of a figure over all layers of all copies."""
        if self.kind == "layer":
            return figure(self.members[0])
        return sum([figure(layer) for layer in self.members]) * self.times

    @property
    def params(self) -> int:
        """Learnable numbers, as the convention counts them."""
        return self.sum(lambda layer: layer.params)

    @property
    def ops(self) -> Ops:
        """Operations by kind, exact."""
        if self.kind == "layer":
            return self.members[0].ops
        return sum_ops([layer.ops for layer in self.members]) * self.times

    @property
    def convention_kinds(self) -> Ops:
        """Operations by kind, as the convention counts them."""
        if self.kind == "layer":
            return self.members[0].convention_kinds
        return sum_ops([layer.convention_kinds for layer in self.members]) * self.times

    @property
    def moved_bytes(self) -> int:
        """Bytes read and written, parameters included."""
        return self.sum(lambda layer: layer.moved_bytes)

    @property
    def unknown(self) -> bool:
        """Whether the figures of a layer in it are unknown."""
        if self.kind == "layer":
            return self.members[0].cost.status == "unknown"
        return any(layer.lacks_figures for layer in self.members)

    @property
    def status(self) -> str:
        """Status of the layer; of several, whether their sums are exact, an estimate or a bound."""
        if self.layer is not None:
            return self.layer.status
        if self.unknown:
            return "lower bound"
        return "estimate" if any(x.status == "estimate" for x in self.members) else "exact"


class Branch(Struct):
    """A scope of the tree."""

    name: str
    children: list[Branch | Layer]  # in order of first use
    scopes: dict[str, Branch]  # those of the children that are scopes, by name
    signature: int = -1  # equal for branches that differ only in their names


def layer_rows(report: Report) -> list[TableRow]:
    """One row per layer, without the tree."""
    return [TableRow(layer.name, layer.name, 0, "layer", (layer,)) for layer in report.layers]


def total_row(report: Report) -> TableRow:
    """The row of totals."""
    return TableRow("total", "total", 0, "total", report.layers)


def unused_rows(report: Report) -> list[TableRow]:
    """The row of parameters that no layer uses, if there are any."""
    return [TableRow(UNUSED, UNUSED, 0, "unused", ())] if report.graph.unused else []


def tree_rows(
    report: Report, depth: int | None = None, *, fold: bool = True, idle: bool = True
) -> list[TableRow]:
    """The tree down to `depth` levels (all if None), equal neighbours in one row with × N.

    With `idle` false, constants that are computed before the run are left out.
    """
    if depth is not None and depth < 1:
        return []
    root = _build_tree(report, idle)
    if fold:
        signatures: dict[Hashable, int] = {}
        for branch in root.scopes.values():
            _sign(branch, signatures)
    tree = _TreeRows(depth, fold)
    tree.add(root, 0, 1)
    return tree.rows


def is_idle(layer: Layer) -> bool:
    """Whether a layer is a constant computed before the run, without a stored array."""
    return layer.node.op == "constant" and not layer.cost.params


def _build_tree(report: Report, idle: bool) -> Branch:
    root = Branch("", [], {})
    branches: dict[tuple[str, ...], Branch] = {(): root}
    for layer in report.layers:
        if not idle and is_idle(layer):
            continue
        scope = layer.scope
        branch = branches.get(scope)
        if branch is None:
            branch = root
            for name in scope:
                inner = branch.scopes.get(name)
                if inner is None:
                    inner = branch.scopes[name] = Branch(name, [], {})
                    branch.children.append(inner)
                branch = inner
            branches[scope] = branch
        branch.children.append(layer)
    return root


class _TreeRows:
    """Rows of a tree down to `depth` levels, in order."""

    def __init__(self, depth: int | None, fold: bool) -> None:
        self.depth, self.fold = depth, fold
        self.rows: list[TableRow] = []

    def add(self, branch: Branch, level: int, trips: int | None) -> None:
        """Add the rows of a branch that runs `trips` times (None: unknown)."""
        if not branch.scopes:  # layers alone
            layers = [child for child in branch.children if isinstance(child, Layer)]
            self.rows += [layer_row(layer, layer.name, level) for layer in layers]
            return
        for run in _runs(branch.children, self.fold):
            child, times = run[0], len(run)
            if isinstance(child, Layer):
                self.rows.append(layer_row(child, child.name, level))
                continue
            inside = list(_inside(child))
            name = child.name
            if times > 1:
                name = f"{name}…{run[-1].name} × {times}"
            own = _runs_of(inside)
            if own != trips:  # a loop, or a branch that is not taken
                name += f" × {'?' if own is None else own}"
            path = _full_path(inside[0], level + 1)
            copies = tuple(each for each in run if isinstance(each, Branch)) if times > 1 else ()
            self.rows.append(TableRow(path, name, level, "scope", tuple(inside), times, copies))
            if self.depth is None or level + 1 < self.depth:
                self.add(child, level + 1, own)


def _runs_of(inside: list[Layer]) -> int | None:
    """How often all of these run; 1 where they differ, None where it is unknown."""
    times = {layer.node.times for layer in inside}
    if all(layer.node.estimate and layer.node.note.endswith("(× ?)") for layer in inside):
        return None
    return times.pop() if len(times) == 1 else 1


def _runs(children: list[Branch | Layer], fold: bool) -> Iterator[list[Branch | Layer]]:
    """Neighbouring scopes that differ only in their names together, all else alone."""
    run: list[Branch | Layer] = []
    before: int | None = None
    for child in children:
        signature = child.signature if fold and isinstance(child, Branch) else None
        if run and (signature is None or signature != before):
            yield run
            run = []
        run.append(child)
        before = signature
    if run:
        yield run


def _sign(branch: Branch, signatures: dict[Hashable, int]) -> None:
    """Set the signature of a branch and of those in it; equal contents have equal numbers."""
    parts: list[Hashable] = []
    for child in branch.children:
        if isinstance(child, Layer):
            call = child.call
            inputs = call and call.inputs
            own = _own_name(child)
            parts.append((own, child.op, child.node.attributes, inputs, child.params))
        else:
            _sign(child, signatures)
            parts.append((child.name, child.signature))
    branch.signature = signatures.setdefault(tuple(parts), len(signatures))


def _own_name(layer: Layer) -> str:
    return layer.name.rsplit(".", 1)[-1].rsplit("/", 1)[-1]


def _inside(branch: Branch) -> Iterator[Layer]:
    for child in branch.children:
        if isinstance(child, Layer):
            yield child
        else:
            yield from _inside(child)


def _full_path(layer: Layer, depth: int) -> str:
    """Path of a scope around a layer, with the separator of its name: dots or slashes."""
    path = layer.scope[:depth]
    slashed = "/".join(path)
    return slashed if layer.name.startswith(slashed + "/") else ".".join(path)


def layer_row(layer: Layer, name: str, level: int) -> TableRow:
    """The row of a layer at a level of the tree, labelled without the path of its scope."""
    label = name
    if level:
        for separator in ".", "/":  # the rows above show the path
            path = separator.join(layer.scope) + separator
            if name.startswith(path):
                label = name[len(path) :]
    return TableRow(name, label, level, "layer", (layer,))
