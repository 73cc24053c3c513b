"""Measured times of a language model (`measure`): a row per step and engine."""

from __future__ import annotations

from msgspec import to_builtins

from layerscope.escaping import json_text
from layerscope.export.grid import Blocks, Cell, Grid, Lines, named
from layerscope.report.generation_runs import GenerationRuns, MeasuredStep
from layerscope.report.numbers import UNKNOWN, bytes_text, exact_text, rate_of_tokens, time_text

SCHEMA = 1
BUSY = 1.05  # contention from which times are those of a loaded machine
CSV = (
    "engine", "step", "tokens", "past", "batch", "time_s", "min_s", "max_s", "tokens_per_s",
    "tokens_per_s_each", "runs", "contention", "cache_bytes",
)  # fmt: skip


def headline(found: GenerationRuns) -> str:
    """Network, engines and times in one line."""
    steps = [f"{each.engine} {each.phase} {time_text(each.median_s)}" for each in found.steps[:2]]
    more = f" and {len(found.steps) - 2} more" if len(found.steps) > 2 else ""
    return f"of {found.network}: {', '.join(steps) or 'no step'}{more}"


def blocks(found: GenerationRuns, *, stamp: bool = True) -> Blocks:
    """A row for each step, and what it rests on."""
    head = [
        named("engine"), named("step"), Cell("tokens"), Cell("after"), Cell("batch", drop=3),
        Cell("time"), Cell("least", drop=2), Cell("most", drop=1), Cell("tokens/s"),
    ]  # fmt: skip
    table = [head]
    for each in found.steps:
        times = (each.median_s, each.min_s, each.max_s)
        table.append([
            named(each.engine), named(each.phase), Cell(f"{each.tokens:,}"),
            Cell(f"{each.past:,}"), Cell(f"{each.batch:,}"), *map(Cell, map(time_text, times)),
            Cell(rate_of_tokens(each.tokens_per_s)),
        ])  # fmt: skip
    return [Grid(table, in_csv=False), Lines(_lines(found, stamp))]


def csv_blocks(found: GenerationRuns, *, stamp: bool = True) -> Blocks:
    """A row for each step with exact seconds."""
    rows = [[named(name) for name in CSV]]
    for each in found.steps:
        values = (
            each.engine, each.phase, each.tokens, each.past, each.batch, each.median_s, each.min_s,
            each.max_s, each.tokens_per_s, each.tokens_per_s / each.batch, len(each.runs_s),
            each.contention, each.cache_bytes,
        )  # fmt: skip
        rows.append([Cell(UNKNOWN, value=value) for value in values])
    return [Grid(rows), Lines(_lines(found, stamp))]


def _lines(found: GenerationRuns, stamp: bool) -> list[str]:
    counts = {len(each.runs_s) for each in found.steps}
    runs = f"{min(counts, default=0)}" if len(counts) < 2 else f"{min(counts)} to {max(counts)}"
    lines = [
        f"{found.network} with {exact_text(found.params)} random weights in {found.dtype}, "
        f"{found.threads} threads; times are medians of {runs} runs.",
        *filter(None, map(_cache_line, found.steps)),
        *filter(None, map(_contention_line, found.steps)),
        *found.notes,
        *found.failures,
    ]
    versions = ", ".join(
        dict.fromkeys(f"{each.engine} {each.engine_version}" for each in found.steps)
    )
    last = f"layerscope {found.version} · {versions} · {found.machine} · {found.measured}"
    return [*lines, *([last] if stamp else [])]


def _cache_line(step: MeasuredStep) -> str:
    """What the cache object has, beside the figure of the configuration."""
    if step.cache_bytes is None:
        return ""
    text = (
        f"The cache after {step.past:,} tokens has {bytes_text(step.cache_bytes)} "
        f"({exact_text(step.cache_bytes)} bytes)"
    )
    if step.expected_cache_bytes in (None, step.cache_bytes):
        return f"{text}{', as counted' if step.expected_cache_bytes is not None else ''}."
    return f"{text}; {exact_text(step.expected_cache_bytes or 0)} bytes were counted."


def _contention_line(step: MeasuredStep) -> str:
    if step.contention is None or step.contention <= BUSY:
        return ""
    return (
        f"Other programs ran during {step.engine} {step.phase}: contention {step.contention:.2f}; "
        "its times are too long."
    )


def write_json(found: GenerationRuns) -> str:
    """The steps as JSON, with medians and rates."""
    steps = [
        {
            **to_builtins(each),
            "median_s": each.median_s,
            "min_s": each.min_s,
            "max_s": each.max_s,
            "tokens_per_s": each.tokens_per_s,
        }
        for each in found.steps
    ]
    names = ("network", "machine", "params", "dtype", "threads")
    last = ("version", "measured", "notes", "failures")
    return json_text({
        "kind": "generation_run",
        "schema": SCHEMA,
        **{name: getattr(found, name) for name in names},
        "steps": steps,
        **{name: getattr(found, name) for name in last},
    })  # fmt: skip
