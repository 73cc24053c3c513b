"""Limits on the totals of networks, and whether a report stays within them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct

from layerscope.errors import UnknownName, UsageError
from layerscope.report.quantities import Unit, count_of, named_sizes, quantity, shown, within
from layerscope.report.types import Layer, Report, Totals

MOST = 3  # layers named for an overrun


class Figure(Struct, frozen=True):
    """A total that can be limited, and what of it each layer holds (None: see the peak)."""

    name: str
    title: str
    unit: Unit
    says: str
    sum: str  # which of the totals it is
    held: Callable[[Layer], int | None] | None

    def total(self, totals: Totals) -> int | None:
        """The total, None if the convention has no such figure."""
        value: int | None = getattr(totals, self.sum)
        return value


FIGURES = {
    figure.name: figure
    for figure in (
        Figure("params", "params", "count", "learnable numbers",
               "params", lambda layer: layer.params),
        Figure("macs", "MACs", "count", "multiply-adds",
               "macs", lambda layer: layer.ops.mac),
        Figure("flops", "FLOPs", "count", "2 per MAC and 1 per other operation",
               "flops", lambda layer: layer.ops.flops),
        Figure("counted", "counted", "count", "the figure of the convention",
               "convention_ops", lambda layer: layer.convention_ops),
        Figure("activations", "activations", "count", "numbers that layers make",
               "activations", lambda layer: layer.activations),
        Figure("peak", "peak memory", "bytes", "activations alive at once",
               "peak_activation_bytes", None),
        Figure("weights", "weights", "bytes", "all stored arrays",
               "param_bytes", lambda layer: layer.param_bytes),
    )
}  # fmt: skip

COUNTED = ("batch", "input", "dtype", "like")  # how the network is analyzed
READ = ("phase", "proposals", "weights", "keep-going", "dims")  # how its file is read
KEYS = ("network", *COUNTED, "allow-unknown", *READ)


class Budget(Struct, frozen=True):
    """Limits by figure, for one network on one input."""

    name: str
    network: Any  # a name, or a graph
    limits: Mapping[str, int]
    batch: int | None = None
    input: Any = None
    dtype: str | None = None
    like: str = "exact"
    allow_unknown: bool = False
    reading: Mapping[str, Any] = {}  # what the reader of a file is told


class Check(Struct, frozen=True):
    """One figure against its limit, and what holds most of it, largest first."""

    figure: Figure
    found: int
    limit: int
    most: tuple[tuple[str, int], ...] = ()

    @property
    def over(self) -> int:
        """By how much the limit is exceeded, 0 if it is not."""
        return max(self.found - self.limit, 0)


class Verdict(Struct, frozen=True):
    """A budget and how the network stands to it."""

    budget: Budget
    report: Report
    checks: tuple[Check, ...]

    @property
    def unknown(self) -> bool:
        """Whether figures lack something that the budget does not allow to be unknown."""
        return bool(self.report.coverage.unknown) and not self.budget.allow_unknown

    @property
    def ok(self) -> bool:
        """Whether every limit is kept and nothing is unknown that must not be."""
        return not self.unknown and not any(check.over for check in self.checks)


def limits(given: Mapping[str, Any], where: str = "--") -> dict[str, int]:
    """Limits by figure from names such as max-params and quantities such as 5M."""
    found = {}
    for key, value in given.items():
        figure = FIGURES.get(key.removeprefix("max-"))
        if figure is None or not key.startswith("max-"):
            raise UnknownName("limit", key, names(), f"; known: {', '.join(names())}")
        found[figure.name] = quantity(value, figure.unit, f"{where}{key}")
    return found


def names() -> list[str]:
    """What limits are called."""
    return [f"max-{name}" for name in FIGURES]


def budget(name: str, told: Any, file: str) -> Budget:
    """A budget from its table in a file; a key that is none is named with the nearest one."""
    where = f"{file}: budgets.{name}"
    if not isinstance(told, Mapping):
        raise UsageError(f"{where}: expected a table of limits such as max-params")
    known = [*names(), *KEYS]
    for key in told:
        if key not in known:
            raise UnknownName(f"key in {where}:", key, known, f"; known: {', '.join(known)}")
    found = limits({key: told[key] for key in told if key not in KEYS}, f"{where}: ")
    if not found:
        raise UsageError(f"{where}: no limit, expected at least one of {', '.join(names())}")
    return Budget(
        name,
        _typed(told, "network", str, where) or name,
        found,
        _typed(told, "batch", int, where),
        _input(told, where),
        _typed(told, "dtype", str, where),
        _typed(told, "like", str, where) or "exact",
        _typed(told, "allow-unknown", bool, where) or False,
        _reading(told, where),
    )


def _input(told: Mapping[str, Any], where: str) -> str | list[str] | None:
    """Shapes as on the command line, a text or a list of texts; they are looked through here."""
    value = _typed(told, "input", (str, list), where)
    if value is None:
        return None
    texts = [value] if isinstance(value, str) else value
    if not all(isinstance(text, str) for text in texts):
        raise UsageError(f"{where}: input {shown(value)}: expected a text, or a list of texts")
    named_sizes(tuple(texts), f"{where}: input")
    found: str | list[str] = value
    return found


def _reading(told: Mapping[str, Any], where: str) -> dict[str, Any]:
    """What the reader of the network's file is told, by the names it has for it."""
    kinds = {"phase": str, "proposals": int, "weights": str, "keep-going": bool, "dims": dict}
    given = {key: _typed(told, key, kind, where) for key, kind in kinds.items()}
    for name, size in (given["dims"] or {}).items():
        if count_of(size, f"{where}: dims.{name}") < 1:
            raise UsageError(f"{where}: dims.{name} {size}: expected at least 1")
    return {key.replace("-", "_"): value for key, value in given.items() if value is not None}


def _typed(told: Mapping[str, Any], key: str, kind: Any, where: str) -> Any:
    value = told.get(key)
    fits = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    if isinstance(value, int) and not isinstance(value, bool):
        within(value, f"{where}: {key}")
    if value is not None and not fits:
        kinds = kind if isinstance(kind, tuple) else (kind,)
        expected = {
            str: "a text", int: "a whole number", bool: "true or false", list: "a list",
            dict: "a table",
        }  # fmt: skip
        told_kinds = " or ".join(expected[each] for each in kinds)
        raise UsageError(f"{where}: {key} {shown(value)}: expected {told_kinds}")
    return value


def judge(report: Report, budget: Budget) -> Verdict:
    """Compare every limited figure with its limit."""
    return Verdict(budget, report, tuple(_checks(report, budget)))


def _checks(report: Report, budget: Budget) -> Iterable[Check]:
    for name, limit in budget.limits.items():
        figure = FIGURES[name]
        found = figure.total(report.totals)
        if found is None:
            raise UsageError(
                f"max-{name}: the convention {report.convention.name} counts no operations"
            )
        yield Check(figure, found, limit, _most(report, figure) if found > limit else ())


def _most(report: Report, figure: Figure) -> tuple[tuple[str, int], ...]:
    if figure.held is None:
        holders = list(report.memory.peak_alive)
    else:
        holders = [(layer.name, figure.held(layer) or 0) for layer in report.layers]
    holders.sort(key=lambda holder: -holder[1])
    return tuple(holder for holder in holders[:MOST] if holder[1])
