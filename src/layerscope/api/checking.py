"""The figures of a network against its budget: `check`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layerscope.api.networks import analyze
from layerscope.api.timing import time_of
from layerscope.errors import UsageError

if TYPE_CHECKING:
    from layerscope.report.budgets import Budget, Verdict


def check(budget: Budget, *, measure: bool = False, on: str | None = None) -> Verdict:
    """Compare the figures of a network with its budget.

    A limit of its time needs `measure`, which times it on ONNX Runtime, or `on`, the machine that
    its time is predicted for.
    """
    from layerscope.report.budgets import judge
    from layerscope.report.quantities import named_sizes

    if measure and on is not None:
        raise UsageError("--measure cannot be combined with --on")
    shapes = budget.input
    if isinstance(shapes, (str, list)):
        texts = [shapes] if isinstance(shapes, str) else map(str, shapes)
        shapes = named_sizes(tuple(texts), "--input") or None
    report = analyze(
        budget.network,
        input=shapes,
        batch=budget.batch,
        dtype=budget.dtype,
        like=budget.like,
        tokens=budget.tokens,
        decode=budget.decode,
        **budget.reading,
    )
    time = None
    if "time" in budget.limits and (measure or on is not None):
        time = time_of(report, budget.network, on, budget.dtype)
    return judge(report, budget, time)
