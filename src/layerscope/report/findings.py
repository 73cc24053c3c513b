"""Findings of a report as sentences: layers with most of each figure, and the memory peak.

They name the rows of the table that they stand under: layers, modules of a tree that is cut at some
depth, or groups of layers. A count of layers says of how many: "layer2 (13 of 42 layers)" has 42
layers, and 13 of them have the figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from layerscope.report.numbers import AT_LEAST, marked, share_text, short_text
from layerscope.report.tree import UNUSED, TableRow
from layerscope.report.types import Layer, Report

FEW_LAYERS, FEW_PARTS = 5, 3  # most names in a sentence


class Holder(Struct, frozen=True):
    """A row of a table, and its share of one figure."""

    name: str  # in the table
    paths: tuple[str, ...]  # of the scopes around it, outermost first
    count: int
    layers: int = 1  # with the figure
    size: int = 1  # all its layers

    @property
    def label(self) -> str:
        """Its name, with the number of its layers if it stands for several."""
        return self.name if self.size == 1 else f"{self.name} ({_layers(self.layers, self.size)})"


class NetworkFinding(Struct, frozen=True):
    """A sentence on the network, and the names of the layers that it is on."""

    kind: str
    text: str
    layers: tuple[str, ...] = ()
    saves_bytes: int | None = None  # of the memory peak, if it says what would lower that


def findings(report: Report, *, rows: Sequence[TableRow] = ()) -> tuple[str, ...]:
    """The sentences that stand under a table."""
    return tuple(finding.text for finding in table_findings(report, rows=rows))


def table_findings(report: Report, *, rows: Sequence[TableRow] = ()) -> tuple[NetworkFinding, ...]:
    """Findings on activations, parameters, the cost column and the memory peak.

    They are on single layers, or on the given rows of a table, each layer in one of them.
    """
    counted = report.convention
    has_figure = not counted.is_exact and bool(counted.figure)
    table = _Rows(report, rows)
    figures: tuple[tuple[str, Callable[[Layer], int], str], ...] = (
        ("activations", lambda x: x.activations, "activations"),
        ("parameters", lambda x: x.params, "params"),
        (
            counted.figure if has_figure else "MACs",
            lambda x: (x.convention_ops or 0) if has_figure else x.ops.mac,
            "convention_ops" if has_figure else "macs",
        ),
    )
    found = []
    for figure, count, name in figures:
        holders = table.holders(count)
        if name == "params" and report.unused_params:
            holders.append(Holder(UNUSED, (), report.unused_params))
        if holders:
            text, named = sentence(f"{figure} are", holders, table, report.sign(name))
            found.append(NetworkFinding(name, text, table.layers_with(count, named)))
    if len(report.macs_by_dtype) > 1:
        found.append(NetworkFinding("precision", _precisions(report)))
    if report.memory.peak_bytes:
        found.append(NetworkFinding("peak", _peak(report, table), (report.memory.peak_node,)))
    return tuple(found)


class _Rows:
    """Rows of a table by the layers in them; without rows every layer is one."""

    def __init__(self, report: Report, rows: Sequence[TableRow]) -> None:
        self.layers = report.layers
        self.noun = "rows" if rows or report.unused_params else "layers"
        self.row_of = {layer.name: row for row in rows for layer in row.members}
        self.producers: dict[str, str] = {}  # layers by the tensors that they write
        if rows:
            self.producers = {t.name: x.name for x in report.layers for t in x.outputs}
        self.sizes: dict[str, int] = {}  # layers by scope
        for layer in report.layers:
            for path in scope_paths(layer):
                self.sizes[path] = self.sizes.get(path, 0) + 1

    def name(self, layer: str) -> str:
        """The name of the row of a layer."""
        row = self.row_of.get(layer)
        return layer if row is None else row_name(row)

    def name_of_tensor(self, tensor: str) -> str:
        """The name of the row that writes a tensor; the tensor's own without rows."""
        return self.name(self.producers[tensor]) if tensor in self.producers else tensor

    def holders(self, figure: Callable[[Layer], int]) -> list[Holder]:
        """Rows with some of a figure, in order."""
        groups: dict[str, list[Layer]] = {}
        for layer in self.layers:
            groups.setdefault(self.name(layer.name), []).append(layer)
        found = []
        for name, layers in groups.items():
            count = sum(map(figure, layers))
            if count:
                row = self.row_of.get(layers[0].name)
                paths = scope_paths(layers[0]) if row is None or row.kind != "op" else ()
                outer = tuple(path for path in paths if path != name)
                if row is not None and row.kind == "scope":
                    outer = paths[: row.depth]
                having = sum(1 for layer in layers if figure(layer))
                found.append(Holder(name, outer, count, having, len(layers)))
        return found

    def layers_with(
        self, figure: Callable[[Layer], int], named: Sequence[Holder]
    ) -> tuple[str, ...]:
        """Names of the layers of some rows or scopes that have some of a figure."""
        names = {holder.name for holder in named}
        return tuple(
            layer.name
            for layer in self.layers
            if figure(layer)
            and (self.name(layer.name) in names or not names.isdisjoint(scope_paths(layer)))
        )


def row_name(row: TableRow) -> str:
    """The name of a row in a sentence: full, without the number of layers that an op row has."""
    return row.label if row.kind == "module" else row.name


class Table(Protocol):
    """What a sentence must know of the table that it stands under."""

    @property
    def noun(self) -> str:
        """What its rows are called: rows or layers."""

    @property
    def sizes(self) -> Mapping[str, int]:
        """Number of layers by the name of a scope."""


def most(figure_is: str, holders: Sequence[Holder], table: Table, sign: str = "") -> str:
    """The sentence on the rows that have most of a figure."""
    return sentence(figure_is, holders, table, sign)[0]


def sentence(
    figure_is: str, holders: Sequence[Holder], table: Table, sign: str = ""
) -> tuple[str, list[Holder]]:
    """A few rows with more than half of it, else a scope, else a few parts, else the largest.

    `figure_is` is the figure and its verb, `sign` that of the total if it is not exact. Returned
    with what the sentence names.
    """
    figure = figure_is.rpartition(" ")[0]
    total = sum(holder.count for holder in holders)
    whole = whole_text(total, sign)
    half = half_of(holders)
    if len(half) <= FEW_LAYERS:
        named = listing([holder.label for holder in half])
        return f"Most {figure_is} in {named}: {share_of(half, total, sign)} of {whole}.", half
    parts = _innermost(holders, table.sizes) or _outermost(holders, table.sizes)
    most_parts = half_of(parts)
    if len(most_parts) <= FEW_PARTS and len(most_parts) < len(parts):
        named = listing([part.label for part in most_parts])
        share = share_of(most_parts, total, sign)
        return f"Most {figure_is} in {named}: {share} of {whole}.", most_parts
    largest = max(holders, key=lambda holder: holder.count)
    share = share_of([largest], total, sign)
    text = (
        f"No part has most {figure}: the {len(half)} largest of {len(holders)} {table.noun} with "
        f"{figure} have half of {whole}, and {largest.label} has {share}."
    )
    return text, [largest]


def _precisions(report: Report) -> str:
    """Multiply-adds by dtype."""
    kinds = [f"{dtype} {short_text(count)}" for dtype, count in report.macs_by_dtype.items()]
    return f"MACs by precision: {', '.join(kinds)}."


def half_of(holders: Sequence[Holder]) -> list[Holder]:
    """The fewest with more than half of the sum, in their order."""
    total, covered = sum(holder.count for holder in holders), 0
    chosen = set()
    for n in sorted(range(len(holders)), key=lambda n: -holders[n].count):
        chosen.add(n)
        covered += holders[n].count
        if 2 * covered > total:
            break
    return [holder for n, holder in enumerate(holders) if n in chosen]


def _innermost(holders: Sequence[Holder], sizes: Mapping[str, int]) -> list[Holder]:
    """The deepest scope with more than half but not all of the total, and the rest."""
    total = sum(holder.count for holder in holders)
    depths = {path: n for holder in holders for n, path in enumerate(holder.paths)}
    scopes = _summed(holders, lambda holder: holder.paths, sizes)
    found = [scope for scope in scopes if total < 2 * scope.count < 2 * total]
    if not found:
        return []
    scope = max(found, key=lambda scope: depths[scope.name])
    return [scope, Holder("", (), total - scope.count)]


def _outermost(holders: Sequence[Holder], sizes: Mapping[str, int]) -> list[Holder]:
    """The top-level parts of the network: scopes, and rows outside of any."""
    return _summed(holders, lambda holder: holder.paths[:1] or (holder.name,), sizes)


def _summed(
    holders: Iterable[Holder],
    keys: Callable[[Holder], Sequence[str]],
    sizes: Mapping[str, int],
) -> list[Holder]:
    """Sums of holders by key, in order of first use."""
    sums: dict[str, tuple[int, int, int]] = {}
    for holder in holders:
        for key in keys(holder):
            count, layers, size = sums.get(key, (0, 0, 0))
            sums[key] = count + holder.count, layers + holder.layers, size + holder.size
    return [
        Holder(name, (), count, layers, max(sizes.get(name, size), size))
        for name, (count, layers, size) in sums.items()
    ]


def _layers(some: int, size: int) -> str:
    return f"all {size} layers" if some == size else f"{some} of {size} layers"


def _peak(report: Report, table: _Rows) -> str:
    """Where memory peaks and what is alive there, by rows of the table."""
    memory = report.memory
    sizes: dict[str, int] = {}
    for name, size in memory.peak_alive:
        if size:
            row = table.name_of_tensor(name)
            sizes[row] = sizes.get(row, 0) + size
    alive = sorted(sizes.items(), key=lambda item: -item[1])
    sign = report.sign("peak_activation_bytes")
    peak = memory.peak_bytes
    parts = [f"{name} {share_text(size, peak, sign)}" for name, size in alive[:FEW_PARTS]]
    if len(alive) > FEW_PARTS:
        parts.append(f"{len(alive) - FEW_PARTS} more")
    least = "at least " if sign.startswith(AT_LEAST) else ""
    row = table.name(memory.peak_node)
    where = memory.peak_node if row == memory.peak_node else f"{memory.peak_node}, in {row}"
    size_text = marked(f"{peak:,}", sign.removeprefix(AT_LEAST))
    return f"Memory peaks at {where}, with {least}{size_text} bytes alive: {listing(parts)}."


def scope_paths(layer: Layer) -> tuple[str, ...]:
    """Paths of all scopes around a layer, outermost first, with the separator of its name."""
    scope = layer.scope
    separator = "/" if layer.name.startswith("/".join(scope) + "/") else "."
    return tuple(separator.join(scope[: end + 1]) for end in range(len(scope)))


def listing(items: Sequence[str]) -> str:
    """Items separated by commas, the last by "and"."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def share_of(holders: Sequence[Holder], total: int, sign: str = "") -> str:
    """The share of a total that these have, in percent; `sign` is that of the total."""
    return share_text(sum(holder.count for holder in holders), total, sign)


def whole_text(total: int, sign: str) -> str:
    """A total in a sentence: of a lower bound what is known."""
    suffix = " known" if sign.startswith(AT_LEAST) else ""
    return f"{marked(f'{total:,}', sign.removeprefix(AT_LEAST))}{suffix}"
