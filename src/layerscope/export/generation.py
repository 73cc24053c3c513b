"""Times of a language model (`predict`): a row per layer of each step, or a row per batch size."""

from __future__ import annotations

from msgspec import to_builtins

from layerscope.escaping import json_text
from layerscope.export.grid import Blocks, Cell, Grid, Lines, named
from layerscope.report.generation import GenerationTimes, LayerStep, StepPrediction
from layerscope.report.numbers import rate_of_tokens, time_text

SCHEMA = 1


def headline(found: GenerationTimes) -> str:
    """Network, machine and steps in one line."""
    steps = [f"{step.phase} {time_text(step.total_s)}" for step in found.steps[:2]]
    more = f" and {len(found.steps) - 2} more" if len(found.steps) > 2 else ""
    return f"of {found.network} on {found.machine}: {', '.join(steps)}{more}"


def step_line(step: StepPrediction) -> str:
    """A step with its interval and rate."""
    interval = f"{time_text(step.low_s)} to {time_text(step.high_s)}"
    rate = f"{rate_of_tokens(step.tokens_per_s)} tokens/s"
    if step.phase == "prefill":
        what = f"prefill of {step.tokens:,} tokens"
        what += f" after {step.past:,}" if step.past else ""
        return f"{what}, batch {step.batch}: {time_text(step.total_s)} ({interval}), {rate}"
    each = rate_of_tokens(step.tokens_per_s / step.batch)
    return (
        f"decode after {step.past:,} tokens, batch {step.batch}: {time_text(step.total_s)} a token "
        f"({interval}), {rate}" + (f", {each} of each sequence" if step.batch > 1 else "")
    )


def is_sweep(found: GenerationTimes) -> bool:
    """Whether there are several batch sizes."""
    return len({step.batch for step in found.steps}) > 1


def blocks(
    found: GenerationTimes, *, sort: bool = False, top: int | None = None, stamp: bool = True
) -> Blocks:
    """Tables of layers, one per step; of several batch sizes one table with a row per step."""
    if is_sweep(found):
        return [_sweep_grid(found), Lines(_lines(found, stamp))]
    tables = [_step_grid(step, _chosen(step, sort, top), step_line(step)) for step in found.steps]
    return [*tables, Lines(_lines(found, stamp))]


def csv_blocks(
    found: GenerationTimes, *, sort: bool = False, top: int | None = None, stamp: bool = True
) -> Blocks:
    """One table with exact seconds: a row per layer of each step, or per batch size."""
    if is_sweep(found):
        return [_sweep_grid(found), Lines(_lines(found, stamp))]
    names = ("phase", "layer", "kind", "roof", "time_s", "floor_s")
    rows = [[named(name) for name in names]]
    for step in found.steps:
        for row in _chosen(step, sort, top):
            texts = [named(each) for each in (step.phase, row.name, row.kind, row.roof)]
            rows.append([*texts, Cell("", value=row.time_s), Cell("", value=row.floor_s)])
    return [Grid(rows), Lines(_lines(found, stamp))]


def _chosen(step: StepPrediction, sort: bool, top: int | None) -> list[LayerStep]:
    rows = sorted(step.rows, key=lambda row: -row.time_s) if sort else list(step.rows)
    return rows[:top]


def _step_grid(step: StepPrediction, rows: list[LayerStep], title: str) -> Grid:
    head = [
        named("layer"), named("kind", 2), Cell("time"), Cell("%"), Cell("least", drop=1),
        named("bound by"),
    ]  # fmt: skip
    table = [head, *(_row(row, step.total_s) for row in rows)]
    rest = step.total_s - sum(row.time_s for row in rows)
    if len(rows) < len(step.rows):
        more = f"{len(step.rows) - len(rows)} more rows"
        share = f"{100 * rest / step.total_s:.1f}"
        table.append(
            [named(more), named(""), Cell(time_text(rest)), Cell(share), Cell(""), named("")]
        )
    table.append([
        named("total"), named(""), Cell(time_text(step.total_s)), Cell("100.0"),
        Cell(time_text(step.floor_s)), named(""),
    ])  # fmt: skip
    return Grid(table, title=title, totals=1, in_csv=False)


def _row(row: LayerStep, total_s: float) -> list[Cell]:
    share = f"{100 * row.time_s / total_s:.1f}"
    figures = (time_text(row.time_s), share, time_text(row.floor_s))
    return [named(row.name), named(row.kind), *map(Cell, figures), named(row.roof)]


def _sweep_grid(found: GenerationTimes) -> Grid:
    head = [
        Cell("batch"), named("step"), Cell("time"), Cell("low", drop=2), Cell("high", drop=1),
        Cell("tokens/s"), Cell("tokens/s each"),
    ]  # fmt: skip
    names = ("batch", "step", "time_s", "low_s", "high_s", "tokens_per_s", "tokens_per_s_each")
    table = [head]
    for step in found.steps:
        times = (step.total_s, step.low_s, step.high_s)
        rates = (step.tokens_per_s, step.tokens_per_s / step.batch)
        table.append([
            Cell(f"{step.batch:,}", value=step.batch), named(step.phase),
            *[Cell(time_text(each), value=each) for each in times],
            *[Cell(rate_of_tokens(each), value=each) for each in rates],
        ])  # fmt: skip
    return Grid(table, names=names)


def _lines(found: GenerationTimes, stamp: bool) -> list[str]:
    prompt = {step.tokens for step in found.steps if step.phase == "prefill"}
    past = {step.past for step in found.steps if step.phase == "decode"}
    lengths = [f"a prompt of {n:,} tokens" for n in prompt] + [f"{n:,} tokens before" for n in past]
    lines = [
        f"{found.network}, {', '.join(lengths)}; weights {found.weights}, cache {found.cache}; "
        "intervals of 68 %.",
        *found.notes,
    ]
    last = f"layerscope {found.version} · {found.machine} · fitted on {found.source}"
    return [*lines, *([last] if stamp else [])]


def write_json(found: GenerationTimes) -> str:
    """The steps as JSON, with totals and rates."""
    steps = [
        {
            **to_builtins(step),
            "total_s": step.total_s,
            "floor_s": step.floor_s,
            "low_s": step.low_s,
            "high_s": step.high_s,
            "tokens_per_s": step.tokens_per_s,
        }
        for step in found.steps
    ]
    return json_text({
        "kind": "generation",
        "schema": SCHEMA,
        "network": found.network,
        "machine": found.machine,
        "weights": found.weights,
        "cache": found.cache,
        "steps": steps,
        "source": found.source,
        "notes": found.notes,
        "version": found.version,
    })  # fmt: skip
