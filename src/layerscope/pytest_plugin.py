"""The pytest fixture `layerscope_budget`: a test fails if a network exceeds its budget.

layerscope is imported only when the fixture is used.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import torch  # noqa: TID251

    from layerscope.graph import Graph
    from layerscope.report import Report
    from layerscope.report.budgets import Budget

# Options of `analyze` for live modules.
MODULE_OPTIONS = ("input_size", "input_data", "dtypes", "rules", "real")


@pytest.fixture
def layerscope_budget(request: pytest.FixtureRequest) -> Callable[..., Report]:
    """Check a network: `layerscope_budget("resnet18", max_params="12M", batch=1)`.

    The network is a name, a file, a Graph or a `torch.nn.Module`; for a module, `input_size` or
    `input_data` is given as for `summary`. Without limits, those of [tool.layerscope.budgets] apply
    under the name of the network, of the module's class, or under `budget`. A limit of the time
    needs `measure=True`, or `on`, a machine to predict it for. Returns the report.
    """

    def check(
        network: str | Graph | torch.nn.Module,
        *,
        budget: str = "",
        allow_unknown: bool = False,
        measure: bool = False,
        on: str | None = None,
        **options: Any,
    ) -> Report:
        __tracebackhide__ = True
        from layerscope.api.checking import check as judged
        from layerscope.errors import UsageError
        from layerscope.export.budget_results import sentences

        asked = _limits(network, budget, options, request.config.rootpath)
        if (measure or on is not None) and "time" not in asked.limits:
            raise UsageError(
                f"{'measure' if measure else 'on'} needs a limit of the time, max_time"
            )
        verdict = judged(_allowing(asked, allow_unknown), measure=measure, on=on)
        if not verdict.ok:
            pytest.fail("\n".join(sentences(verdict)), pytrace=False)
        return verdict.report

    return check


def _limits(
    network: str | Graph | torch.nn.Module, name: str, options: dict[str, Any], root: Path
) -> Budget:
    """The limits of a call, or those of the file."""
    from layerscope.errors import UsageError
    from layerscope.report.budget_file import TABLE, find, read
    from layerscope.report.budgets import Budget, limits

    name = name or _name(network)
    given = {key: options.pop(key) for key in list(options) if key.startswith("max_")}
    counted, captured = _split(network, options)
    if given:
        found = limits({key.replace("_", "-"): value for key, value in given.items()}, "")
        return Budget(name, network, found, **counted, reading=captured)
    file = find(root)
    budgets = read(file) if file else {}
    if name not in budgets:
        raise UsageError(f"no limits for {name}: give one, such as max_params, or add {TABLE}")
    if counted:
        raise UsageError(f"{next(iter(counted))} needs limits; in a file it is a key of {TABLE}")
    from msgspec.structs import replace

    found_budget = budgets[name]
    if isinstance(network, str):
        return found_budget
    if found_budget.input is not None and captured:
        raise UsageError(
            f"{next(iter(captured))}: the budget of {name} has an input; remove one of them"
        )
    return replace(found_budget, network=network, reading=captured)


def _name(network: str | Graph | torch.nn.Module) -> str:
    """The network's name; the class of a module."""
    from layerscope.graph import Graph

    if isinstance(network, (str, Graph)):
        return network if isinstance(network, str) else network.name
    return type(getattr(network, "_orig_mod", network)).__name__  # the module that is compiled


def _split(
    network: str | Graph | torch.nn.Module, options: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of every network, and those of live modules; any other raises."""
    from layerscope.errors import UnknownName
    from layerscope.graph import Graph
    from layerscope.report.budgets import COUNTED

    is_live = not isinstance(network, (str, Graph))
    names = (*COUNTED, *(MODULE_OPTIONS if is_live else ()))
    for key in options:
        if key not in names:
            raise UnknownName("option", key, names, f"; choose from {', '.join(names)}")
    counted = {key: value for key, value in options.items() if key in COUNTED}
    return counted, {key: value for key, value in options.items() if key not in COUNTED}


def _allowing(budget: Budget, allow_unknown: bool) -> Budget:
    from msgspec.structs import replace

    return replace(budget, allow_unknown=allow_unknown or budget.allow_unknown)
