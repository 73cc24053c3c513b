"""Sums over the layers of a report: totals, coverage, dtypes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from fractions import Fraction
from typing import NamedTuple

from msgspec import Struct

from layerscope.analysis.costs import Cost
from layerscope.ops import Ops


class Dtypes(Struct, frozen=True):
    """Elements by dtype, most first: of the network's inputs, and of outputs of arithmetic."""

    inputs: dict[str, int]
    arithmetic: dict[str, int]

    @property
    def name(self) -> str:
        """The one dtype there is, else `mixed`."""
        names = {*self.inputs, *self.arithmetic}
        return names.pop() if len(names) == 1 else "mixed"

    def __str__(self) -> str:
        parts = [
            f"{what} {' and '.join(counts)}"
            for what, counts in (("inputs", self.inputs), ("arithmetic", self.arithmetic))
            if counts
        ]
        return f"mixed ({', '.join(parts)})" if self.name == "mixed" else self.name


class Totals(Struct, frozen=True):
    """Sums over all layers, and the peak.

    `macs`, `flops` and `ops` are exact under every convention; `convention_ops` is the one figure
    that the convention's system prints, None where it prints none.
    """

    params: int  # as the convention counts them
    buffers: int
    ops: Ops
    convention_kinds: Ops  # by kind, as the convention counts them
    convention_ops: int | None
    activations: int
    activation_bytes: int
    convention_activations: int
    read_bytes: int
    write_bytes: int
    param_bytes: int
    peak_activation_bytes: int

    @property
    def macs(self) -> int:
        """Multiply-adds."""
        return self.ops.mac

    @property
    def flops(self) -> int:
        """2 per multiply-add, 1 per everything else."""
        return self.ops.flops

    @property
    def intensity(self) -> Fraction | None:
        """FLOPs per byte moved."""
        moved = self.read_bytes + self.write_bytes
        return Fraction(self.flops, moved) if moved else None


# Totals that are lower bounds where the figures of a layer are unknown.
BOUNDED = (
    "macs", "flops", "ops", "convention_ops", "activations", "activation_bytes",
    "convention_activations", "read_bytes", "write_bytes", "peak_activation_bytes", "backward_ops",
)  # fmt: skip


# Totals that are estimates where the sizes of a layer's tensors are.
OF_SIZES = (
    "activations", "activation_bytes", "convention_activations", "read_bytes", "write_bytes",
    "peak_activation_bytes",
)  # fmt: skip


class Coverage(Struct, frozen=True):
    """How many layers have figures."""

    known: int
    total: int
    unknown: dict[str, int]  # op -> how many nodes of it have no figures
    estimated: int

    def __str__(self) -> str:
        line = f"ops known: {self.known} of {self.total}"
        if self.unknown:
            ops = ", ".join(f"{op} ×{count}" for op, count in self.unknown.items())
            line += f"; unknown: {ops}"
        if self.estimated:
            line += f"; estimates (~): {self.estimated}"
        return line


class CostSums(NamedTuple):
    """Exact sums over the costs of all nodes."""

    ops: Ops
    params: int
    buffers: int
    stored_bytes: int
    read_bytes: int
    write_bytes: int


def sum_costs(costs: Collection[Cost]) -> CostSums:
    """The sums; equal nodes share one Cost, which is multiplied by how many they are."""
    distinct = {id(cost): cost for cost in costs}
    counts = Counter(map(id, costs))
    mac = add = mul = comp = div = exp = 0
    params = buffers = stored = read = write = 0
    for identity, cost in distinct.items():
        n, ops = counts[identity], cost.ops
        mac += n * ops.mac
        add += n * ops.add
        mul += n * ops.mul
        comp += n * ops.comp
        div += n * ops.div
        exp += n * ops.exp
        params += n * cost.param_count
        buffers += n * cost.buffer_count
        stored += n * cost.stored_bytes
        read += n * cost.read_bytes
        write += n * cost.write_bytes
    ops = Ops(mac, add, mul, comp, div, exp)
    return CostSums(ops, params, buffers, stored, read, write)


def sum_ops(many: list[Ops]) -> Ops:
    """The sum by kind; faster than adding Ops one by one."""
    return Ops(
        sum([ops.mac for ops in many]),
        sum([ops.add for ops in many]),
        sum([ops.mul for ops in many]),
        sum([ops.comp for ops in many]),
        sum([ops.div for ops in many]),
        sum([ops.exp for ops in many]),
    )
