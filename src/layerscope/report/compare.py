"""Networks side by side: their totals and times, and the layers in which they differ."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import ClassVar, Literal

from msgspec import Struct

from layerscope.errors import UsageError
from layerscope.graph.attributes import Window
from layerscope.graph.names import shape_text
from layerscope.graph.types import Tensor
from layerscope.report.align import Item, Pairs, align
from layerscope.report.measurement import Measurement, Run, total_s
from layerscope.report.numbers import ABOUT, AT_LEAST, About, counted
from layerscope.report.prediction import Prediction
from layerscope.report.results import TableResult
from layerscope.report.tree import is_idle
from layerscope.report.types import Layer, Report

Kind = Literal["equal", "changed", "only_first", "only_second"]
Unit = Literal["count", "bytes"]


# totals that are compared -> what they are called, and their unit
TOTALS: dict[str, tuple[str, Unit]] = {
    "params": ("params", "count"),
    "macs": ("MACs", "count"),
    "flops": ("FLOPs", "count"),
    "activations": ("activations", "count"),
    "activation_bytes": ("memory", "bytes"),
    "peak_activation_bytes": ("peak memory", "bytes"),
    "param_bytes": ("weights", "bytes"),
}


class ComparedTotal(Struct, frozen=True):
    """One total of every network, in order; `bounds` and `estimates` say which are not exact."""

    name: str
    title: str
    unit: Unit
    values: tuple[int, ...]
    bounds: tuple[bool, ...]
    estimates: tuple[bool, ...] = ()  # (): none is

    def sign(self, n: int) -> str:
        """The sign of the value of one network."""
        about = ABOUT if any(self.estimates[n : n + 1]) else ""
        return (AT_LEAST if self.bounds[n] else "") + about

    @property
    def ratios(self) -> tuple[Fraction | None, ...]:
        """Each value divided by the first network's; None for division by zero or lower bounds."""
        base, unknown = self.values[0], self.bounds[0]
        return tuple(
            Fraction(value, base) if base and not (bound or unknown) else None
            for value, bound in zip(self.values, self.bounds, strict=True)
        )


class Change(Struct, frozen=True):
    """One difference of two layers; figures are ints, None where unknown."""

    what: str
    first: int | str | None
    second: int | str | None


class LayerMatch(Struct, frozen=True):
    """A layer of one network and its counterpart in the other; one of them may be missing."""

    kind: Kind
    first: Layer | None
    second: Layer | None
    changes: tuple[Change, ...] = ()

    @property
    def layer(self) -> Layer:
        """The layer of the second network, else that of the first."""
        found = self.second or self.first
        assert found is not None
        return found


class Pair(Struct, frozen=True):
    """The first network and another, layer by layer, in execution order."""

    first: Report
    second: Report
    matches: tuple[LayerMatch, ...]

    def count(self, kind: Kind) -> int:
        """Number of matches of that kind."""
        return sum(match.kind == kind for match in self.matches)


class NetworkTime(Struct, frozen=True):
    """The time of a network, in seconds, and of its layers where these are known."""

    total_s: float
    is_lower_bound: bool = False  # layers without a time are missing from it
    source: str = ""  # the engine and its runs, or the machine that it is predicted for
    layers: Mapping[str, float] = {}

    @classmethod
    def of(cls, found: Measurement | Prediction) -> NetworkTime:
        """The time that was measured or predicted."""
        if isinstance(found, Prediction):
            return cls.of_prediction(found)
        return cls.of_measurement(found)

    @classmethod
    def of_run(cls, run: Run) -> NetworkTime:
        """The end-to-end time of a run; without one the sum of its rows, a lower bound."""
        whole, count, busy = run.timing.end_to_end_s, len(run.timing.runs_s), run.timing.contention
        parts = [f"{run.engine} {run.engine_version}".strip()]
        parts += [] if run.threads is None else [f"{run.threads} threads"]
        parts += [f"median of {counted(count, 'run')}"] if count else []
        parts += [] if busy is None else [f"contention {busy:.2f}"]
        bound = whole is None or not run.complete
        return cls(
            total_s(run.rows) if whole is None else whole, bound, ", ".join(parts), run.times
        )

    @classmethod
    def of_measurement(cls, found: Measurement) -> NetworkTime:
        """The time of the first run; the source says how many others there are."""
        time = cls.of_run(found.runs[0])
        others = len(found.runs) - 1
        if not others:
            return time
        more = f"{time.source}; the first of {others + 1} runs in the file"
        return cls(time.total_s, time.is_lower_bound, more, time.layers)

    @classmethod
    def of_prediction(cls, found: Prediction) -> NetworkTime:
        """A predicted time."""
        layers = {
            row.layers[0]: row.time_s for row in found.rows if row.layers and row.time_s is not None
        }
        source = f"predicted for {found.machine}, {found.engine}, error {found.error:.0%}"
        return cls(found.total_s, found.is_lower_bound, source, layers)


class Comparison(TableResult, frozen=True):
    """Totals and times of all networks, and the layers of each against those of the first."""

    printed_by: ClassVar[str] = "comparison"

    reports: tuple[Report, ...]
    figures: tuple[ComparedTotal, ...]
    pairs: tuple[Pair, ...]
    times: tuple[NetworkTime | None, ...] = ()  # by report; (): none has one

    @property
    def equal(self) -> bool:
        """Whether all networks have the same layers."""
        return all(match.kind == "equal" for pair in self.pairs for match in pair.matches)


def compare(reports: Sequence[Report], times: Sequence[NetworkTime | None] = ()) -> Comparison:
    """Put reports side by side; they must be counted by the same convention."""
    if len(reports) < 2:
        raise UsageError(f"{len(reports)} network to compare, expected at least 2")
    counted = dict.fromkeys(report.convention.name for report in reports)
    if len(counted) > 1:
        raise UsageError(
            f"reports counted by {' and '.join(counted)} cannot be compared; "
            f"--like {next(iter(counted))} applies to networks and files"
        )
    first = reports[0]
    pairs = tuple(_compared(first, other) for other in reports[1:])
    return Comparison(tuple(reports), _figures(reports), pairs, tuple(times))


def _figures(reports: Sequence[Report]) -> tuple[ComparedTotal, ...]:
    counted = reports[0].convention
    titles: dict[str, tuple[str, Unit]] = {}
    if not counted.is_exact and reports[0].totals.convention_ops is not None:
        titles["convention_ops"] = (f"{counted.figure} ({counted.name})", "count")
    titles |= TOTALS
    return tuple(
        ComparedTotal(
            name,
            title,
            unit,
            tuple(getattr(report.totals, name) for report in reports),
            tuple(name in report.lower_bounds for report in reports),
            tuple(name in report.estimates for report in reports),
        )
        for name, (title, unit) in titles.items()
    )


def _compared(first: Report, second: Report) -> Pair:
    # Constants that only compute shapes differ by exporter, and no engine runs them.
    ours, theirs = (
        [layer for layer in report.layers if not is_idle(layer)] for report in (first, second)
    )
    numbers: dict[Hashable, int] = {}
    found = align(
        [_item(layer, numbers) for layer in ours], [_item(layer, numbers) for layer in theirs]
    )
    back = {j: i for i, j in found.items()}
    matches: list[LayerMatch] = []
    added: list[LayerMatch] = []
    i = 0
    for j, layer in enumerate(theirs):
        if j not in back:
            added.append(LayerMatch("only_second", None, layer))
            continue
        at = back[j]
        matches += _removed(ours[i : max(i, at)], i, found)
        matches += added
        matches.append(_match(ours[at], layer, (first, second)))
        added = []
        i = max(i, at + 1)
    return Pair(first, second, (*matches, *_removed(ours[i:], i, found), *added))


def _removed(layers: Sequence[Layer], start: int, found: Pairs) -> list[LayerMatch]:
    """Layers without a counterpart in the second network."""
    return [
        LayerMatch("only_first", layer, None)
        for n, layer in enumerate(layers, start)
        if n not in found
    ]


def _item(layer: Layer, numbers: dict[Hashable, int]) -> Item:
    """What a layer is matched by; `numbers` gives equal layers equal numbers."""
    shapes = tuple([tensor.shape for tensor in (*layer.inputs, *layer.outputs)])
    whole = (layer.op, layer.node.attributes, shapes, layer.params, layer.ops, layer.status)
    like = (layer.op, layer.output)
    signature, likeness = (numbers.setdefault(key, len(numbers)) for key in (whole, like))
    return Item(layer.name, layer.op, signature, likeness)


def _match(first: Layer, second: Layer, reports: tuple[Report, Report]) -> LayerMatch:
    changes = tuple(_changes(first, second, reports))
    return LayerMatch("changed" if changes else "equal", first, second, changes)


def _changes(first: Layer, second: Layer, reports: tuple[Report, Report]) -> Iterable[Change]:
    """Differences in op or attributes, in shapes, then in figures."""
    if first.op != second.op:
        yield Change("type", first.op, second.op)
    elif first.node.attributes != second.node.attributes:
        yield from _attribute_changes(first.node.attributes, second.node.attributes)
    for what in ("inputs", "outputs"):
        shapes = [_shapes(getattr(layer, what)) for layer in (first, second)]
        if shapes[0] != shapes[1]:
            yield Change("input" if what == "inputs" else "output", *shapes)
    layers = (first, second)
    complete = [report.params_known(x.node) for x, report in zip(layers, reports, strict=True)]
    for what, (mine, other) in (
        ("params", [x.params if has else None for x, has in zip(layers, complete, strict=True)]),
        ("MACs", [_operations(x, x.ops.mac) for x in layers]),
        ("FLOPs", [_operations(x, x.ops.flops) for x in layers]),
    ):
        if mine != other:
            yield Change(what, mine, other)
            if what == "MACs":  # FLOPs follow from them
                return


def _operations(layer: Layer, count: int) -> int | None:
    """A count of a layer, None if it is unknown."""
    if layer.status == "unknown":
        return None
    return About(count) if layer.status == "estimate" and count else count


def _shapes(tensors: Iterable[Tensor]) -> str:
    return " ".join(shape_text(tensor.shape) for tensor in tensors)


def _attribute_changes(first: object, second: object) -> Iterable[Change]:
    """Attributes that differ, by name; those of a window one by one."""
    if type(first) is not type(second) or not isinstance(first, Struct):
        yield Change("attributes", str(first), str(second))
        return
    for name in first.__struct_fields__:
        mine, other = getattr(first, name), getattr(second, name)
        if mine == other:
            continue
        if isinstance(mine, Window) and isinstance(other, Window):
            yield from _attribute_changes(mine, other)
        else:
            yield Change(name.replace("_", " "), _value(mine), _value(other))


def _value(value: object) -> str:
    if isinstance(value, tuple) and all(isinstance(part, int) for part in value):
        return shape_text(value)
    if isinstance(value, tuple) and all(isinstance(part, tuple) for part in value):
        return ",".join("/".join(map(str, dict.fromkeys(part))) for part in value)
    return str(value)
