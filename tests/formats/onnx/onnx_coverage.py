"""How many operators of ONNX and of ONNX Runtime have a rule, a bound or a stated reason.

`python -m tests.formats.onnx.onnx_coverage` prints the numbers of each domain, and lists the
operators without one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from onnx import defs  # noqa: TID251

from layerscope.formats.onnx.converters.table import CONVERTERS
from layerscope.formats.onnx.reasons import NO_RULES

ONNX = ("", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training")
RUNTIME = ("com.microsoft", "com.microsoft.nchwc")


@dataclass
class Coverage:
    """Operators of a domain: with a rule (exact or a bound), with a reason, with neither."""

    rules: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return len(self.rules) + len(self.reasons) + len(self.missing)


def operators() -> dict[str, set[str]]:
    """Names of operators by domain, in the current opsets."""
    found: dict[str, set[str]] = {domain: set() for domain in (*ONNX, *RUNTIME)}
    for schema in defs.get_all_schemas():  # the latest version of each
        if schema.domain in found and not schema.deprecated:
            found[schema.domain].add(schema.name)
    try:
        from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema
    except ImportError:  # a build without it
        return found
    for schema in get_all_operator_schema():
        if schema.domain in RUNTIME:
            found[schema.domain].add(schema.name)
    return found


def coverage() -> dict[str, Coverage]:
    """What is known of the operators of each domain."""
    made: dict[str, Coverage] = {}
    for domain, names in operators().items():
        found = made[domain] = Coverage()
        for name in sorted(names):
            if (domain, name) in CONVERTERS or (domain, name) == ("", "Constant"):
                found.rules.append(name)
            elif (domain, name) in NO_RULES:
                found.reasons.append(name)
            else:
                found.missing.append(name)
    return made


def main() -> None:
    """Print the table."""
    print(f"{'domain':26} {'operators':>9} {'rule':>5} {'reason':>7} {'neither':>8}")
    for domain, found in coverage().items():
        counts = (found.total, len(found.rules), len(found.reasons), len(found.missing))
        total, rules, reasons, missing = counts
        print(f"{domain or 'ai.onnx':26} {total:>9} {rules:>5} {reasons:>7} {missing:>8}")
        for name in found.missing:
            print(f"  no rule for {name}")


if __name__ == "__main__":
    main()
