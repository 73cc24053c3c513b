"""Results of budget checks as text, Markdown, JSON, and JUnit XML for CI systems."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from layerscope.escaping import html, json_text, visible
from layerscope.escaping import markdown as escape
from layerscope.export.grid import Cell, lay_out, markdown, named
from layerscope.export.text import Style, plain
from layerscope.report.budgets import Check, Verdict
from layerscope.report.numbers import (
    at_least,
    bytes_text,
    exact_text,
    percent_text,
    ratio_text,
    short_text,
)

MANY = 10  # times the limit: from here on a factor is printed, not percent


def sentences(verdict: Verdict) -> list[str]:
    """One sentence for each limit that is exceeded and for unknown operators; [] if none."""
    name = visible(verdict.budget.name)
    found = [f"{name}: {_overrun(check, verdict)}" for check in verdict.checks if check.over]
    return [*found, f"{name}: {_unknown(verdict)}"] if verdict.unknown else found


def summary(verdicts: Sequence[Verdict]) -> str:
    """How many budgets are met, in one line."""
    bad = sum(not verdict.ok for verdict in verdicts)
    budgets = "budget" if len(verdicts) == 1 else "budgets"
    return (
        f"{bad} of {len(verdicts)} {budgets} not met" if bad else f"{len(verdicts)} {budgets} met"
    )


def write_text(
    verdicts: Sequence[Verdict], *, width: int | None = None, style: Style = plain
) -> str:
    """One row per limit, then a sentence for each one exceeded."""
    exact, short = (_rows(verdicts, digits) for digits in (False, True))
    table = lay_out(exact, width, style, short)
    failures = [line for verdict in verdicts for line in sentences(verdict)]
    if not failures:
        return table
    from textwrap import fill

    return (
        table
        + "\n"
        + "".join((fill(line, max(width, 20)) if width else line) + "\n" for line in failures)
    )


def write_markdown(verdicts: Sequence[Verdict]) -> str:
    """The same as a Markdown table and a list."""
    failures = [line for verdict in verdicts for line in sentences(verdict)]
    below = "\n" + "".join(f"- {escape(line)}\n" for line in failures) if failures else ""
    return markdown(_rows(verdicts, short=False)) + below


def write_json(verdicts: Sequence[Verdict], *, stamp: bool = True) -> str:
    """Every limit with the value found, and whether all are met."""
    document = {
        "ok": all(verdict.ok for verdict in verdicts),
        "budgets": [_budget(verdict, stamp) for verdict in verdicts],
    }
    return json_text(document)


def write_junit(verdicts: Sequence[Verdict]) -> str:
    """One test suite per network, one test case per limit, one failure per limit exceeded."""
    suites = []
    tests = failures = 0
    for verdict in verdicts:
        name = html(verdict.budget.name)
        cases = []
        for check in verdict.checks:
            message = _overrun(check, verdict) if check.over else ""
            cases.append(_case(f"max-{check.figure.name}", name, message))
        if verdict.report.coverage.unknown:
            message = _unknown(verdict) if verdict.unknown else ""
            cases.append(_case("all figures known", name, message))
        bad = sum("<failure" in case for case in cases)
        suites.append(
            f'  <testsuite name="{name}" tests="{len(cases)}" failures="{bad}" errors="0" '
            f'skipped="0">\n{"".join(cases)}  </testsuite>\n'
        )
        tests, failures = tests + len(cases), failures + bad
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuites name="layerscope check" tests="{tests}" failures="{failures}" errors="0">\n'
        f"{''.join(suites)}</testsuites>\n"
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


def _number(value: int, check: Check, short: bool = False) -> str:
    if not short:
        return f"{value:,}" + (" B" if check.figure.unit == "bytes" else "")
    return bytes_text(value) if check.figure.unit == "bytes" else short_text(value)


def _found(check: Check, verdict: Verdict, short: bool = False) -> str:
    """The value found, with ≥ if it is a lower bound."""
    bound = check.figure.sum in verdict.report.lower_bounds
    return at_least(_number(check.found, check, short), bound)


def _rows(verdicts: Sequence[Verdict], short: bool) -> list[list[Cell]]:
    titles = [named("network"), named("figure"), Cell("found"), Cell("limit"), Cell("used")]
    rows = [[*titles, named("")]]
    for verdict in verdicts:
        for check in verdict.checks:
            over = f"over by {_number(check.over, check, short)}"
            rows.append([
                named(visible(verdict.budget.name)), named(check.figure.title),
                Cell(_found(check, verdict, short)),
                Cell(_number(check.limit, check, short)), Cell(_used(check)),
                named(over if check.over else "unknown" if verdict.unknown else "ok"),
            ])  # fmt: skip
    return rows


def _used(check: Check) -> str:
    if not check.limit:
        return "" if check.found else "0%"
    share = Fraction(check.found, check.limit)
    return _times(share) if share >= MANY else f"{percent_text(share) or 0}%"


def _times(share: Fraction) -> str:
    return f"×{exact_text(int(share)) if share >= 100 else ratio_text(share)}"


def _overrun(check: Check, verdict: Verdict) -> str:
    by = ""
    if check.limit:
        share = Fraction(check.found, check.limit)
        by = f" ({_times(share) if share >= MANY else percent_text(share - 1) + '%'})"
    most = ", ".join(
        f"{visible(name)} {percent_text(Fraction(part, check.found))}%" for name, part in check.most
    )
    return (
        f"{check.figure.title} {_found(check, verdict)}, "
        f"over the limit of {_number(check.limit, check)} by {_number(check.over, check)}{by}"
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
                "lower_bound": check.figure.sum in verdict.report.lower_bounds,
                "limit": check.limit,
                "over": check.over,
                "ok": not check.over,
                "most": [{"layer": name, "held": part} for name, part in check.most],
            }
            for check in verdict.checks
        ],
        "coverage": str(verdict.report.coverage),
        "notes": list(verdict.report.notes),
        "stamp": verdict.report.stamp if stamp else None,
    }
