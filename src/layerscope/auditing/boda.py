"""The audit of Boda's per-layer profile: every figure of a line, the totals, and the profile."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from math import prod

from msgspec import Struct
from msgspec.structs import replace

from layerscope.auditing.boda_repair import repaired
from layerscope.auditing.findings import AuditedColumn, AuditedTable, Finding
from layerscope.documents.figures import Figure, read

BYTES = 4  # of an element
DIMS = r"\d+(?:\*\d+){1,9}"  # batch and channels, or filters and their channels, then a window
SIZES = re.compile(
    rf"^(?P<name>\S+) input (?P<input>{DIMS})=(?P<input_bytes>\S+) "
    rf"filts (?P<filts>{DIMS})=(?P<filts_bytes>\S+) out (?P<out>{DIMS})=(?P<out_bytes>\S+)"
)
WORK = re.compile(
    r"^(?P<name>\S+) FWD (?P<flops>\S+) (?P<moved>\S+)\s+FWD_AI (?P<intensity>\S+)\s+"
    r"MxNxK=(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)(?: x(?P<groups>\d+))?"
    r"(?:\s+---\s+(?P<time>\S+) (?P<rate>\S+))?"
)
RUNTIME = re.compile(r"RUNTIME=(?P<seconds>[\d.e-]+)")
POWER = re.compile(r"POWER=(?P<watts>[\d.]+)W")
SUMS = re.compile(
    r"fwd_input_bytes=(?P<input>\S+) fwd_filt_bytes=(?P<filts>\S+) fwd_output_bytes=(?P<out>\S+)"
)
TOTAL = re.compile(r"^(?P<flops>[\d.]+[KMGTP]?F)(?: (?P<rate>[\d.]+[KMGTP]?F/s))?\s*$")
MOVED = re.compile(r"^(?P<moved>\S+B)(?: (?P<rate>\S+B/s))? AI=(?P<intensity>\S+)\s*$")
ENERGY = re.compile(r"^(?P<energy>\S+J) (?P<rate>\S+F/s)/W\s*$")
PROFILE = re.compile(
    r"^(?P<time>\S+s)\s+(?P<share>[\d.]+%)\s+(?P<sum>\S+s)\s+(?P<sum_share>[\d.]+%)\s+(?P<name>\S+)\s*$"
)
MILLI = re.compile(r"([\d.]+)m(?:F/B|F|B)")
WIDEST = 1_000
DEPTH = " channels"


class _BodaLayer(Struct):
    """A layer of the profile: elements, channels, and its line."""

    input: int
    filts: int
    out: int
    filters: int
    channels: int  # of the input
    window: int  # elements of the kernel
    line: int
    outs: int  # channels of the output
    out_text: str
    groups: int = 1
    transposed: bool = False

    @property
    def flops(self) -> int:
        """Two for each multiply-add; the additions of biases are not counted."""
        if self.transposed:
            return 2 * self.input * (self.filts // max(self.channels, 1))
        return 2 * self.out * (self.filts // max(self.filters, 1))

    @property
    def columns(self) -> int:
        """Columns of the matrix product of one group."""
        return self.filters * self.window if self.transposed else self.filters // self.groups

    @property
    def moved(self) -> int:
        """Bytes of input, filters, biases and output."""
        return BYTES * (self.input + self.filts + self.out + self.biases)

    @property
    def biases(self) -> int:
        """One for each channel of the output."""
        return self.filters * (self.groups if self.transposed else 1)

    @property
    def unbiased(self) -> int:
        """Bytes of a layer that has no biases, which the profile does not say."""
        return self.moved - BYTES * self.biases


class _Audit:
    """Findings and counts of one profile."""

    def __init__(self, table: int) -> None:
        self.table = table
        self.findings: list[Finding] = []
        self.counts: dict[str, list[int]] = {}
        self.layers: dict[str, _BodaLayer] = {}
        self.runtime: Fraction | None = None
        self.watts: Fraction | None = None
        self.elapsed = (Fraction(), Fraction())  # of the profile, at least and at most

    def check(
        self, at: tuple[int, str, str], printed: str, low: Fraction, high: Fraction, why: str
    ) -> None:
        """Compare a printed figure with what it must be from `low` to `high`."""
        line, row, column = at
        figure = read(printed)
        if (milli := MILLI.fullmatch(printed)) and (small := read(milli[1])):
            figure = replace(small, scale=Fraction(1, 1000))  # 493mF/B
        count = self.counts.setdefault(column, [0, 0])
        if figure is None:
            return
        count[1] += 1
        least, most = figure.interval()
        if least <= high and low <= most:
            count[0] += 1
            return
        expected = f"{float(low):.6g}" if low == high else f"{float(low):.4g} to {float(high):.4g}"
        self.findings.append(
            Finding(self.table, line, row, column, "figure", printed, expected, why)
        )

    def doubt(self, at: tuple[int, str, str]) -> None:
        """Say that the last finding is not certain, if it is of that cell."""
        last = self.findings[-1] if self.findings else None
        if last is not None and (last.line, last.row, last.column) == at:
            self.findings[-1] = replace(last, certain=False)


def audit_boda(lines: Sequence[str], table: int) -> tuple[AuditedTable, list[Finding]] | None:
    """The audit of the profile in a text; None if there is none."""
    found = _audited(lines, table)
    if found is None:
        return None

    def check(given: Sequence[str]) -> list[Finding]:
        again = _audited(given, table)
        return [] if again is None else again[1]

    own = list(lines_of(lines))
    numbers = {line: n for n, line in enumerate(own, 1)}
    given = [replace(finding, line=numbers[finding.line]) for finding in found[1]]
    named = repaired([lines[line - 1] for line in own], given, check, own)
    return found[0], [_located(finding, own[finding.line - 1]) for finding in named]


def _located(finding: Finding, line: int) -> Finding:
    """A finding at its line in the document; the input is as suspect as the depth of filters."""
    both = finding.column == "filts" and finding.reason.endswith(DEPTH)
    also = (f"input in line {line}",) if both else finding.also
    return replace(finding, line=line, also=also)


def _audited(lines: Sequence[str], table: int) -> tuple[AuditedTable, list[Finding]] | None:
    audit = _Audit(table)
    first = 0
    for number, line in enumerate(lines, 1):
        if len(line) > WIDEST:
            continue
        for pattern, step in STEPS:
            match = pattern.search(line)
            if match is not None:
                step(audit, match, number)
                first = first or (number if audit.layers else 0)
                break
    if not audit.layers:
        return None
    for name, layer in audit.layers.items():
        if layer.biases != layer.outs:
            why = f"{layer.filters} filters"
            _differs(audit, layer.line, name, ("out", layer.out_text), why)
    audit.findings.sort(key=lambda finding: finding.line)
    columns = tuple(
        AuditedColumn(name, "by Boda's rules, of RUNTIME and POWER", right, of)
        for name, (right, of) in audit.counts.items()
    )
    return AuditedTable(first, f"{len(audit.layers)} convolutions", columns), audit.findings


def _sizes(audit: _Audit, match: re.Match[str], line: int) -> None:
    dims = {name: [*map(int, match[name].split("*"))] for name in ("input", "filts", "out")}
    filters, depth, *window = dims["filts"]
    counts = {name: prod(sizes) for name, sizes in dims.items()}
    name = match["name"]
    for part, count in counts.items():
        exact = Fraction(BYTES * count)
        why = f"{match[part]} elements of {BYTES} bytes"
        audit.check((line, name, part), match[f"{part}_bytes"], exact, exact, why)
        if part == "input" and match[part] not in {each.out_text for each in audit.layers.values()}:
            audit.doubt((line, name, part))  # no other cell shows these sizes
    if depth and dims["input"][1] % depth:
        _differs(audit, line, name, ("filts", match["filts"]), f"{dims['input'][1]}{DEPTH}")
    audit.layers[name] = _BodaLayer(
        counts["input"], counts["filts"], counts["out"], max(filters, 1),
        max(dims["input"][1], 1), prod(window), line, dims["out"][1], match["out"],
    )  # fmt: skip


def _differs(audit: _Audit, line: int, row: str, cell: tuple[str, str], why: str) -> None:
    audit.findings.append(
        Finding(audit.table, line, row, cell[0], "figure", cell[1], "", f"the row has {why}")
    )


def _work(audit: _Audit, match: re.Match[str], line: int) -> None:
    name = match["name"]
    layer = audit.layers.get(name)
    if layer is None:
        return
    m, n, k = (int(match[size]) for size in "mnk")
    groups = max(int(match["groups"] or 1), 1)
    columns = layer.filters * layer.window
    if n == columns != layer.filters // groups:  # the product of a transposed convolution
        layer.transposed = layer.outs == layer.filters * groups
    layer.groups = groups
    flops, moved = Fraction(layer.flops), Fraction(layer.moved)
    least = Fraction(layer.unbiased)
    audit.check((line, name, "FWD"), match["flops"], flops, flops, "2 x multiply-adds")
    audit.check(
        (line, name, "bytes"), match["moved"], least, moved, "input, filters, biases, output"
    )
    low, high = _quotient(flops, moved), flops / least if least else flops
    audit.check((line, name, "FWD_AI"), match["intensity"], low, high, "FLOPs by bytes")
    if 2 * m * n * k * groups != layer.flops or n != layer.columns:
        text = f"{m}x{n}x{k}"
        _differs(audit, line, name, ("MxNxK", text), f"{layer.flops // 2:,} multiply-adds")
    if match["time"]:
        low, high = _rates(flops, read(match["time"]))
        audit.check(
            (line, name, "F/s"), match["rate"], low, high, f"{match['flops']} in {match['time']}"
        )


def _quotient(amount: Fraction, parts: Fraction) -> Fraction:
    """One number by another; 0 where a profile has none of the other."""
    return amount / parts if parts else Fraction(0)


def _rates(amount: Fraction, time: Figure | None) -> tuple[Fraction, Fraction]:
    """The rates that a rounded time gives."""
    if time is None:
        return Fraction(0), Fraction(10**30)
    least, most = time.interval()
    return amount / most, amount / least if least else Fraction(10**30)


def _runtime(audit: _Audit, match: re.Match[str], line: int) -> None:
    found = re.search(r"RUNTIME=([\d.]+(?:e-?\d+)?)", match[0])
    if found is not None:
        audit.runtime = Fraction(found[1])


def _power(audit: _Audit, match: re.Match[str], line: int) -> None:
    audit.watts = Fraction(match["watts"])


def _sums(audit: _Audit, match: re.Match[str], line: int) -> None:
    for part in ("input", "filts", "out"):
        total = Fraction(BYTES * sum(getattr(layer, part) for layer in audit.layers.values()))
        audit.check(
            (line, "SUM-OVER-FWD-LAYERS-TOTALS", part),
            match[part],
            total,
            total,
            "sum of the layers",
        )


def _total(audit: _Audit, match: re.Match[str], line: int) -> None:
    flops = Fraction(sum(layer.flops for layer in audit.layers.values()))
    audit.check((line, "FWD TOTALS", "FLOPs"), match["flops"], flops, flops, "sum of the layers")
    if audit.runtime and match["rate"]:
        rate = flops / audit.runtime
        audit.check((line, "FWD TOTALS", "F/s"), match["rate"], rate, rate, "FLOPs by RUNTIME")


def _moved(audit: _Audit, match: re.Match[str], line: int) -> None:
    moved = Fraction(sum(layer.moved for layer in audit.layers.values()))
    flops = Fraction(sum(layer.flops for layer in audit.layers.values()))
    least = Fraction(sum(layer.unbiased for layer in audit.layers.values()))
    audit.check((line, "FWD TOTALS", "bytes"), match["moved"], least, moved, "sum of the layers")
    high = flops / least if least else flops
    audit.check(
        (line, "FWD TOTALS", "AI"),
        match["intensity"],
        _quotient(flops, moved),
        high,
        "FLOPs by bytes",
    )
    if audit.runtime and match["rate"]:
        rate = moved / audit.runtime
        audit.check((line, "FWD TOTALS", "B/s"), match["rate"], rate, rate, "bytes by RUNTIME")


def _energy(audit: _Audit, match: re.Match[str], line: int) -> None:
    if not audit.watts or not audit.runtime:
        return
    joules = audit.watts * audit.runtime
    audit.check((line, "FWD TOTALS", "J"), match["energy"], joules, joules, "POWER x RUNTIME")
    flops = Fraction(sum(layer.flops for layer in audit.layers.values()))
    rate = flops / audit.runtime / audit.watts
    audit.check(
        (line, "FWD TOTALS", "F/s/W"), match["rate"], rate, rate, "FLOPs by RUNTIME and POWER"
    )


def _profile(audit: _Audit, match: re.Match[str], line: int) -> None:
    time, name = read(match["time"]), match["name"]
    if time is None or not audit.runtime:
        return
    least, most = time.interval()
    low, high = audit.elapsed
    audit.elapsed = low + least, high + most
    whole = audit.runtime / 100
    audit.check(
        (line, name, "time%"), match["share"], least / whole, most / whole, "time by RUNTIME"
    )
    audit.check((line, name, "cum_time"), match["sum"], *audit.elapsed, "sum of the rows so far")
    audit.check((line, name, "cum_time%"), match["sum_share"], audit.elapsed[0] / whole,
                audit.elapsed[1] / whole, "sum of the rows so far by RUNTIME")  # fmt: skip


STEPS: tuple[tuple[re.Pattern[str], Callable[[_Audit, re.Match[str], int], None]], ...] = (
    (SIZES, _sizes), (WORK, _work), (SUMS, _sums), (RUNTIME, _runtime), (POWER, _power),
    (TOTAL, _total), (MOVED, _moved), (ENERGY, _energy), (PROFILE, _profile),
)  # fmt: skip


def lines_of(lines: Sequence[str]) -> Iterator[int]:
    """Numbers of the lines that belong to a profile."""
    for number, line in enumerate(lines, 1):
        if len(line) <= WIDEST and any(pattern.search(line) for pattern, _ in STEPS):
            yield number
