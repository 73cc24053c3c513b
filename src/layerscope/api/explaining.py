"""What other counters report, and why: `explain`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from layerscope.api.networks import analyze, analyze_with
from layerscope.api.options import check_unused
from layerscope.conventions import COUNTERS, convention
from layerscope.errors import UsageError
from layerscope.graph import Graph, Shape
from layerscope.report import Report

if TYPE_CHECKING:
    import torch  # noqa: TID251

    from layerscope.report.explain import Explanation

INPUT_OPTIONS = ("input", "input_size", "input_data")


def explain(
    network: str | Graph | torch.nn.Module | Report,
    *,
    figure: str | None = None,
    counters: Sequence[str] = COUNTERS,
    **options: Any,
) -> Explanation:
    """What other counters report for a network, and the reasons for each difference.

    With a published `figure`, such as "4.11G": which counters give it at its printed precision.
    Other options are those of `analyze`.
    """
    from layerscope.report.explain import explain as explained
    from layerscope.report.figures import find, parse_figure

    wanted = None if figure is None else parse_figure(figure)
    if isinstance(counters, str):
        raise UsageError(f"counters {counters!r}: a text, expected a list of names")
    if isinstance(network, Report):
        check_unused(options, "a Report is explained as it is")
    first = network if isinstance(network, Report) else analyze(network, **options)
    names = tuple(dict.fromkeys(counters))
    found = explained(replace(first, convention=convention("exact")), names)

    def again(shape: Shape) -> Report:
        if isinstance(network, Report):
            return analyze(network.graph, input=shape)
        others = {name: value for name, value in options.items() if name not in INPUT_OPTIONS}
        return analyze_with(network, {**others, "input": shape}, agrees=False)

    answer = None if wanted is None else find(found, wanted, again)
    return replace(found, answer=answer)
