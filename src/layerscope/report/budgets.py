"""Limits on the totals of networks, and whether a report stays within them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from operator import attrgetter
from typing import Any, ClassVar, TypeVar

from msgspec import Struct

from layerscope.errors import UnknownName, UsageError
from layerscope.report.compare import NetworkTime
from layerscope.report.numbers import AT_LEAST
from layerscope.report.quantities import (
    Unit,
    count_of,
    duration,
    named_sizes,
    quantity,
    shown,
    within,
)
from layerscope.report.results import TableResult
from layerscope.report.tree import UNUSED
from layerscope.report.types import Report, Totals

T = TypeVar("T")
MOST = 3  # layers named for an overrun
TYPE_NAMES: dict[type, str] = {
    str: "a text", int: "a whole number", bool: "true or false", list: "a list", dict: "a table",
}  # fmt: skip


class LimitedTotal(Struct, frozen=True):
    """A total that can be limited, and the share of a layer in it (None for the peak)."""

    name: str
    title: str
    unit: Unit
    says: str
    sum: str  # name of the field of Totals
    of_layer: str | None  # name of the field of Layer, such as ops.mac

    def total(self, totals: Totals, time: NetworkTime | None = None) -> float | None:
        """The total, None if the convention has no such figure, or there is no time."""
        if self.unit == "seconds":
            return None if time is None else time.total_s
        value: int | None = getattr(totals, self.sum)
        return value


FIGURES = {
    figure.name: figure
    for figure in (
        LimitedTotal("params", "params", "count", "learnable numbers",
               "params", "params"),
        LimitedTotal("macs", "MACs", "count", "multiply-adds",
               "macs", "ops.mac"),
        LimitedTotal("flops", "FLOPs", "count", "2 per MAC and 1 per other operation",
               "flops", "ops.flops"),
        LimitedTotal("counted", "counted", "count", "the figure of the convention",
               "convention_ops", "convention_ops"),
        LimitedTotal("activations", "activations", "count", "numbers that layers make",
               "activations", "activations"),
        LimitedTotal("peak", "peak memory", "bytes", "activations alive at once",
               "peak_activation_bytes", None),
        LimitedTotal("weights", "weights", "bytes", "all stored arrays",
               "param_bytes", "param_bytes"),
        LimitedTotal("time", "time", "seconds", "one forward pass, measured or predicted",
               "", None),
    )
}  # fmt: skip

COUNTED = ("batch", "input", "dtype", "like", "tokens", "decode")  # how the network is analyzed
READ = ("phase", "proposals", "weights", "keep-going", "dims")  # how its file is read
KEYS = ("network", *COUNTED, "allow-unknown", *READ)


class Budget(Struct, frozen=True):
    """Limits by figure, for one network on one input."""

    name: str
    network: Any  # a name, a file, a Graph or a torch.nn.Module
    limits: Mapping[str, float]
    batch: int | None = None
    input: Any = None  # as `analyze` takes it, or text as on the command line
    dtype: str | None = None
    like: str = "exact"
    allow_unknown: bool = False
    reading: Mapping[str, Any] = {}  # options of the reader of the file, or of a live module
    tokens: int | None = None
    decode: int | None = None


class Check(Struct, frozen=True):
    """One figure and its limit, and the layers or tensors with most of it, largest first."""

    figure: LimitedTotal
    found: float  # an int, or seconds
    limit: float
    most: tuple[tuple[str, float], ...] = ()
    is_undecided: bool = False  # a lower bound that is within the limit

    @property
    def over(self) -> float:
        """By how much the limit is exceeded, 0 if it is not."""
        return max(self.found - self.limit, 0)


class Verdict(Struct, frozen=True):
    """A budget and the figures of its network."""

    budget: Budget
    report: Report
    checks: tuple[Check, ...]
    time: NetworkTime | None = None  # measured or predicted, if the budget limits it

    @property
    def unknown(self) -> bool:
        """Whether layers are unknown although the budget does not allow it."""
        return bool(self.report.coverage.unknown) and not self.budget.allow_unknown

    @property
    def ok(self) -> bool:
        """Whether no limit is exceeded and no layer is unknown that must not be."""
        return not self.unknown and not any(c.over or c.is_undecided for c in self.checks)

    def is_bound(self, check: Check) -> bool:
        """Whether the figure found is a lower bound."""
        if check.figure.unit == "seconds":
            return self.time is not None and self.time.is_lower_bound
        return check.figure.sum in self.report.lower_bounds

    def sign(self, check: Check) -> str:
        """The sign of the figure found: `≥` for a lower bound, `~` for an estimate."""
        if check.figure.unit == "seconds":
            return AT_LEAST if self.is_bound(check) else ""
        return self.report.sign(check.figure.sum)


class BudgetResults(TableResult, frozen=True):
    """The results of all budgets."""

    printed_by: ClassVar[str] = "budgets"

    verdicts: tuple[Verdict, ...]

    @property
    def ok(self) -> bool:
        """Whether all budgets are met."""
        return all(verdict.ok for verdict in self.verdicts)


def limits(given: Mapping[str, object], where: str = "--") -> dict[str, float]:
    """Limits by figure from names such as max-params and quantities such as 5M."""
    found: dict[str, float] = {}
    for key, value in given.items():
        figure = FIGURES.get(key.removeprefix("max-"))
        if figure is None or not key.startswith("max-"):
            raise UnknownName("limit", key, names(), f"; known: {', '.join(names())}")
        parse = duration if figure.unit == "seconds" else partial(quantity, unit=figure.unit)
        found[figure.name] = parse(value, where=f"{where}{key}")
    return found


def names() -> list[str]:
    """Names of all limits."""
    return [f"max-{name}" for name in FIGURES]


def budget(name: str, table: object, file: str) -> Budget:
    """A budget from its table in a file; an unknown key raises, with the nearest one named."""
    where = f"{file}: budgets.{name}"
    if not isinstance(table, Mapping):
        raise UsageError(f"{where}: expected a table of limits such as max-params")
    keys = [*names(), *KEYS]
    for key in table:
        if key not in keys:
            raise UnknownName(f"key in {where}:", key, keys, f"; known: {', '.join(keys)}")
    found = limits({key: table[key] for key in table if key not in KEYS}, f"{where}: ")
    if not found:
        raise UsageError(f"{where}: no limit, expected at least one of {', '.join(names())}")
    return Budget(
        name,
        _typed(table, "network", str, where) or name,
        found,
        _typed(table, "batch", int, where),
        _input(table, where),
        _typed(table, "dtype", str, where),
        _typed(table, "like", str, where) or "exact",
        _typed(table, "allow-unknown", bool, where) or False,
        _reading(table, where),
        _typed(table, "tokens", int, where),
        _typed(table, "decode", int, where),
    )


def _input(table: Mapping[str, object], where: str) -> str | list[str] | None:
    """Shapes as on the command line, a string or a list of strings; raises if they are wrong."""
    value = table.get("input")
    _check_type(value, (str, list), f"{where}: input")
    if value is None:
        return None
    items = value if isinstance(value, list) else [value]
    texts = [text for text in items if isinstance(text, str)]
    if len(texts) < len(items):
        raise UsageError(f"{where}: input {shown(value)}: expected a text, or a list of texts")
    named_sizes(tuple(texts), f"{where}: input")
    return texts if isinstance(value, list) else texts[0]


def _reading(table: Mapping[str, object], where: str) -> dict[str, object]:
    """Options of the reader of the network's file, by its names for them."""
    dims = _typed(table, "dims", dict, where)
    for name, size in (dims or {}).items():
        if count_of(size, f"{where}: dims.{name}") < 1:
            raise UsageError(f"{where}: dims.{name} {size}: expected at least 1")
    given = {
        "phase": _typed(table, "phase", str, where),
        "proposals": _typed(table, "proposals", int, where),
        "weights": _typed(table, "weights", str, where),
        "keep_going": _typed(table, "keep-going", bool, where),
        "dims": dims,
    }
    return {key: value for key, value in given.items() if value is not None}


def _typed(table: Mapping[str, object], key: str, kind: type[T], where: str) -> T | None:
    """The value of a key, None without one; raises if it has another type."""
    value = table.get(key)
    _check_type(value, (kind,), f"{where}: {key}")
    return value if isinstance(value, kind) else None


def _check_type(value: object, kinds: tuple[type, ...], where: str) -> None:
    """Raise unless a value is None or of one of the types; True is no whole number."""
    if isinstance(value, int) and not isinstance(value, bool):
        within(value, where)
    fits = isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))
    if value is not None and not fits:
        expected = " or ".join(TYPE_NAMES[kind] for kind in kinds)
        raise UsageError(f"{where} {shown(value)}: expected {expected}")


def judge(report: Report, budget: Budget, time: NetworkTime | None = None) -> Verdict:
    """Compare every limited figure with its limit."""
    return Verdict(budget, report, tuple(_checks(report, budget, time)), time)


def _checks(report: Report, budget: Budget, time: NetworkTime | None) -> Iterable[Check]:
    for name, limit in budget.limits.items():
        if name not in FIGURES:
            raise UnknownName("limit", name, FIGURES, f"; choose from {', '.join(FIGURES)}")
        figure = FIGURES[name]
        found = figure.total(report.totals, time)
        if found is None and figure.unit == "seconds":
            raise UsageError(f"{budget.name}: max-time needs --measure or --on MACHINE")
        if found is None:
            raise UsageError(
                f"max-{name}: the convention {report.convention.name} counts no operations"
            )
        most = _largest_holders(report, figure, time) if found > limit else ()
        undecided = figure.unit == "seconds" and time is not None and time.is_lower_bound
        yield Check(figure, found, limit, most, undecided and found <= limit)


def _largest_holders(
    report: Report, figure: LimitedTotal, time: NetworkTime | None
) -> tuple[tuple[str, float], ...]:
    holders: list[tuple[str, float]]
    if figure.unit == "seconds":
        holders = list(time.layers.items()) if time is not None else []
    elif figure.of_layer is None:
        holders = list(report.memory.peak_alive)
    else:
        share = attrgetter(figure.of_layer)
        holders = [(layer.name, share(layer) or 0) for layer in report.layers]
        unused = {"params": report.unused_params, "param_bytes": report.unused_bytes}
        holders.append((UNUSED, unused.get(figure.sum, 0)))
    holders.sort(key=lambda holder: -holder[1])
    return tuple(holder for holder in holders[:MOST] if holder[1])
