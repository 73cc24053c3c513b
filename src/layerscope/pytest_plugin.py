"""The pytest fixture `layerscope_budget`: a test fails when a network outgrows its budget.

Nothing of layerscope is loaded before the fixture is called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def layerscope_budget(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Check a network: `layerscope_budget("resnet18", max_params="12M", batch=1)`.

    Without limits they are those of [tool.layerscope.budgets] under the network's name. Gives the
    report, for further looks.
    """

    def check(network: Any, *, allow_unknown: bool = False, **options: Any) -> Any:
        __tracebackhide__ = True
        from layerscope.cli.check import judged
        from layerscope.export.budget_results import sentences

        verdict = judged(_budget(network, allow_unknown, options, request.config.rootpath))
        if not verdict.ok:
            pytest.fail("\n".join(sentences(verdict)), pytrace=False)
        return verdict.report

    return check


def _budget(network: Any, allow_unknown: bool, options: dict[str, Any], root: Any) -> Any:
    from layerscope.errors import UnknownName, UsageError
    from layerscope.report.budget_file import TABLE, find, read
    from layerscope.report.budgets import COUNTED, Budget, limits

    name = network if isinstance(network, str) else network.name
    told = {key: options.pop(key) for key in list(options) if key.startswith("max_")}
    for key in options:
        if key not in COUNTED:
            raise UnknownName("option", key, COUNTED, f"; choose from {', '.join(COUNTED)}")
    if told:
        found = limits({key.replace("_", "-"): value for key, value in told.items()}, "")
        return Budget(name, network, found, **options, allow_unknown=allow_unknown)
    file = find(root)
    budgets = read(file) if file else {}
    if name not in budgets:
        raise UsageError(f"no limits for {name}: give one, such as max_params, or {TABLE}")
    if options:
        raise UsageError(f"{next(iter(options))} goes with limits, or as a key in {TABLE}")
    from msgspec.structs import replace

    budget = budgets[name]
    return replace(budget, allow_unknown=allow_unknown or budget.allow_unknown)
