"""The pytest fixture `layerscope_budget`: a test fails if a network exceeds its budget.

layerscope is imported only when the fixture is used.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from layerscope.graph import Graph
    from layerscope.report import Report
    from layerscope.report.budgets import Budget


@pytest.fixture
def layerscope_budget(request: pytest.FixtureRequest) -> Callable[..., Report]:
    """Check a network: `layerscope_budget("resnet18", max_params="12M", batch=1)`.

    Without limits, those of the network in [tool.layerscope.budgets] apply. Returns the report.
    """

    def check(network: str | Graph, *, allow_unknown: bool = False, **options: Any) -> Report:
        __tracebackhide__ = True
        from layerscope.api import check as judged
        from layerscope.export.budget_results import sentences

        verdict = judged(_budget(network, allow_unknown, options, request.config.rootpath))
        if not verdict.ok:
            pytest.fail("\n".join(sentences(verdict)), pytrace=False)
        return verdict.report

    return check


def _budget(
    network: str | Graph, allow_unknown: bool, options: dict[str, Any], root: Path
) -> Budget:
    from layerscope.errors import UnknownName, UsageError
    from layerscope.report.budget_file import TABLE, find, read
    from layerscope.report.budgets import COUNTED, Budget, limits

    name = network if isinstance(network, str) else network.name
    given = {key: options.pop(key) for key in list(options) if key.startswith("max_")}
    for key in options:
        if key not in COUNTED:
            raise UnknownName("option", key, COUNTED, f"; choose from {', '.join(COUNTED)}")
    if given:
        found = limits({key.replace("_", "-"): value for key, value in given.items()}, "")
        return Budget(name, network, found, **options, allow_unknown=allow_unknown)
    file = find(root)
    budgets = read(file) if file else {}
    if name not in budgets:
        raise UsageError(f"no limits for {name}: give one, such as max_params, or add {TABLE}")
    if options:
        raise UsageError(f"{next(iter(options))} needs limits; in a file it is a key of {TABLE}")
    from msgspec.structs import replace

    budget = budgets[name]
    return replace(budget, allow_unknown=allow_unknown or budget.allow_unknown)
