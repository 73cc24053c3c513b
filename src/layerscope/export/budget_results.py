"""Results of budget checks (`check`), also as JUnit XML for CI systems."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from layerscope.escaping import html, json_text, visible
from layerscope.export.grid import Blocks, Cell, Grid, Lines, named
from layerscope.report.budgets import BudgetResults, Check, Verdict
from layerscope.report.numbers import (
    ABOUT,
    AT_LEAST,
    bytes_text,
    exact_text,
    marked,
    percent_text,
    ratio_text,
    share_text,
    short_text,
    time_text,
)

SCHEMA = 1
MANY = 10  # times the limit: from here on a factor is printed, not percent


def sentences(verdict: Verdict) -> list[str]:
    """One sentence for each limit that is not met and for unknown operators; [] if none."""
    name = visible(verdict.budget.name)
    failures = [_failure(check, verdict) for check in verdict.checks]
    found = [f"{name}: {failure}" for failure in failures if failure]
    return [*found, f"{name}: {_unknown(verdict)}"] if verdict.unknown else found


def headline(results: BudgetResults) -> str:
    """How many budgets are met, in one line."""
    verdicts = results.verdicts
    bad = sum(not verdict.ok for verdict in verdicts)
    budgets = "budget" if len(verdicts) == 1 else "budgets"
    return (
        f"{bad} of {len(verdicts)} {budgets} not met" if bad else f"{len(verdicts)} {budgets} met"
    )


def blocks(results: BudgetResults, *, stamp: bool = True) -> Blocks:
    """One row per limit, then a sentence for each one that is not met."""
    names = ("network", "figure", "found", "limit", "used", "result")
    failures = [line for verdict in results.verdicts for line in sentences(verdict)]
    found: list[Grid | Lines] = [
        Grid(_rows(results.verdicts), names=names),
        Lines(failures, "list"),
    ]
    if not stamp:
        return found
    stamps = []
    for verdict in results.verdicts:
        stamps.append(verdict.report.stamp)
        if verdict.time is not None:
            stamps.append(f"time of {visible(verdict.budget.name)}: {verdict.time.source}")
    return [*found, Lines(stamps)]


def write_json(results: BudgetResults, *, stamp: bool = True) -> str:
    """Every limit with the value found, and whether all are met."""
    document = {
        "kind": "budget",
        "schema": SCHEMA,
        "ok": results.ok,
        "budgets": [_budget(verdict, stamp) for verdict in results.verdicts],
    }
    return json_text(document)


def write_junit(results: BudgetResults) -> str:
    """One test suite per network, one test case per limit, one failure per limit not met."""
    suites = []
    tests = failures = 0
    for verdict in results.verdicts:
        name = html(verdict.budget.name)
        cases = [
            _case(f"max-{check.figure.name}", name, _failure(check, verdict))
            for check in verdict.checks
        ]
        if verdict.report.coverage.unknown:
            message = _unknown(verdict) if verdict.unknown else ""
            cases.append(_case("all figures known", name, message))
        bad = sum("<failure" in case for case in cases)
        suites.append(
            f'  <testsuite name="{name}" tests="{len(cases)}" failures="{bad}" errors="0" '
            f'skipped="0">\n{_time_source(verdict)}{"".join(cases)}  </testsuite>\n'
        )
        tests, failures = tests + len(cases), failures + bad
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuites name="layerscope check" tests="{tests}" failures="{failures}" errors="0">\n'
        f"{''.join(suites)}</testsuites>\n"
    )


def _time_source(verdict: Verdict) -> str:
    """Where the time of a network is from, as a property of its test suite."""
    if verdict.time is None:
        return ""
    return (
        "    <properties>\n"
        f'      <property name="time source" value="{html(verdict.time.source)}"/>\n'
        "    </properties>\n"
    )


def _case(name: str, network: str, message: str) -> str:
    head = f'    <testcase classname="layerscope.{network}" name="{name}"'
    if not message:
        return f"{head}/>\n"
    text = html(message)
    return (
        f'{head}>\n      <failure type="OverBudget" message="{text}">{text}</failure>\n'
        "    </testcase>\n"
    )


def _number(value: float, check: Check, short: bool = False) -> str:
    if check.figure.unit == "seconds":
        return time_text(value)
    count = int(value)
    if not short:
        return f"{count:,}" + (" B" if check.figure.unit == "bytes" else "")
    return bytes_text(count) if check.figure.unit == "bytes" else short_text(count)


def _found(check: Check, verdict: Verdict, short: bool = False) -> str:
    """The value found, with its sign if it is a lower bound or an estimate."""
    return marked(_number(check.found, check, short), verdict.sign(check))


def _rows(verdicts: Sequence[Verdict]) -> list[list[Cell]]:
    titles = [named("network"), named("figure"), Cell("found"), Cell("limit"), Cell("used", drop=1)]
    rows = [[*titles, named("")]]
    for verdict in verdicts:
        for check in verdict.checks:
            exact, short = (
                f"over by {_excess_text(check, verdict, each)}" for each in (False, True)
            )
            last = Cell(exact, True, short)
            if not check.over:
                unsure = verdict.unknown or check.is_undecided
                last = named("unknown" if unsure else "ok")
            rows.append([
                named(visible(verdict.budget.name)), named(check.figure.title),
                _value(check, verdict, check.found), _value(check, verdict, check.limit),
                Cell(_share_text(check, verdict.sign(check))), last,
            ])  # fmt: skip
    return rows


def _value(check: Check, verdict: Verdict, value: float) -> Cell:
    """A figure found or its limit."""
    if value is check.found:
        exact, short = (_found(check, verdict, each) for each in (False, True))
        sign = verdict.sign(check)
        stored: float | str = marked(str(value), sign) if sign else value
        return Cell(exact, short=short, value=stored)
    exact, short = (_number(value, check, each) for each in (False, True))
    return Cell(exact, short=short, value=value)


def _excess_text(check: Check, verdict: Verdict, short: bool = False) -> str:
    """By how much a limit is exceeded: of a lower bound at least that."""
    return marked(_number(check.over, check, short), verdict.sign(check))


def _share_text(check: Check, sign: str) -> str:
    """The share of the limit that is used; `sign` is that of the figure found."""
    if not check.limit:
        return "" if check.found else "?" if sign.startswith(AT_LEAST) else "0%"
    share = Fraction(check.found) / Fraction(check.limit)
    if not share and sign.startswith(AT_LEAST):
        return "?"
    return marked(_times(share) if share >= MANY else f"{percent_text(share) or 0}%", sign)


def _times(share: Fraction) -> str:
    return f"×{exact_text(int(share)) if share >= 100 else ratio_text(share)}"


def _failure(check: Check, verdict: Verdict) -> str:
    """Why a limit is not met; "" if it is."""
    if check.over:
        return _overrun(check, verdict)
    if not check.is_undecided:
        return ""
    return (
        f"{check.figure.title} {_found(check, verdict)}, not known to be within the limit of "
        f"{_number(check.limit, check)}: layers without a time are missing from it"
    )


def _overrun(check: Check, verdict: Verdict) -> str:
    by = ""
    if check.limit:
        share = Fraction(check.found) / Fraction(check.limit)
        text = _times(share) if share >= MANY else f"{percent_text(share - 1)}%"
        by = f" ({marked(text, verdict.sign(check))})"
    most = ", ".join(
        f"{visible(name)} {share_text(Fraction(part), Fraction(check.found), verdict.sign(check))}"
        for name, part in check.most
    )
    return (
        f"{check.figure.title} {_found(check, verdict)}, "
        f"over the limit of {_number(check.limit, check)} by {_excess_text(check, verdict)}{by}"
        f"{f'; most in {most}' if most else ''}"
    )


def _unknown(verdict: Verdict) -> str:
    return f"{visible(str(verdict.report.coverage))}; --allow-unknown leaves them out"


def _budget(verdict: Verdict, stamp: bool) -> dict[str, object]:
    return {
        "name": verdict.budget.name,
        "network": verdict.report.name,
        "ok": verdict.ok,
        "unknown": verdict.report.coverage.unknown,
        "allow_unknown": verdict.budget.allow_unknown,
        "checks": [
            {
                "figure": check.figure.name,
                "unit": check.figure.unit,
                "found": check.found,
                "lower_bound": verdict.is_bound(check),
                **({"estimate": True} if ABOUT in verdict.sign(check) else {}),
                "limit": check.limit,
                "over": check.over,
                "ok": not check.over and not check.is_undecided,
                "most": [{"layer": name, "held": part} for name, part in check.most],
            }
            for check in verdict.checks
        ],
        **({} if verdict.time is None else {"time_source": verdict.time.source}),
        "coverage": str(verdict.report.coverage),
        "notes": list(verdict.report.notes),
        "stamp": verdict.report.stamp if stamp else None,
    }
