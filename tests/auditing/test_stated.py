"""Numbers of parameters that are stated in bytes, outside of tables."""

from __future__ import annotations

import pytest

from layerscope.auditing.document import audit_text
from layerscope.auditing.fix import fix
from tests.auditing.documents import CLEAN


@pytest.mark.parametrize(
    ("line", "printed"),
    [
        ("**Number of parameters: [ 474.706 MiB ] [Top <a href='./x'>6</a> ]**", "474.706 MiB"),
        ("Number of trainable parameters = 12 KB", "12 KB"),
        ("- # params: 4.2MB", "4.2MB"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("above", [True, False])
def test_bytes_are_no_number_of_parameters(line: str, printed: str, above: bool) -> None:
    text = f"{line}\n\n{CLEAN}" if above else f"{CLEAN}\n{line}\n"
    (finding,) = audit_text(text, "stated").findings
    assert (finding.kind, finding.printed, finding.table) == ("unit", printed, 1)
    shown = text.splitlines()[finding.line - 1]
    assert shown[finding.position - 1 :].startswith(printed)
    assert fix(text, "stated").text == text


@pytest.mark.parametrize(
    "line",
    [
        "Number of parameters: 61,706 (241.04 KB)",
        "Number of parameters: 474.7 M",
        "Number of parameters: 7B",
        "Memory: 12 MB",
        "| Number of parameters | 4 MB |",
    ],
)
def test_numbers_and_sizes_are_no_findings(line: str) -> None:
    assert audit_text(f"{line}\n\n{CLEAN}", "stated").findings == ()
