"""Lower bounds of times: operations at the peak of their dtype, weights read from DRAM.

A run reads every stored array that it uses at least once, at any batch size. The last-level cache
keeps at most its size from the previous run; the rest is read from DRAM. A row of an embedding
counts the elements that are looked up; the total counts every array whole, as the indices are
unknown. An array that several layers use counts once; quantized arrays count their stored bytes. A
cache of keys and values counts like weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import fsum

from msgspec import Struct

from layerscope.analysis.costs import storage_of
from layerscope.graph.types import DTYPE_BITS, storage_bytes
from layerscope.ops import SPECS
from layerscope.report import Layer, Report
from layerscope.report.prediction import LayerGuess


class Limits(Struct, frozen=True):
    """Peak FLOP/s by dtype, bytes a second of DRAM, bytes of the last-level cache."""

    flops_s: Mapping[str, float]
    dram_bytes_s: float
    cache_bytes: float | None = None  # None: unknown, and reading is not limited


class Floors:
    """Lower bounds in seconds of layers, of fused rows and of the whole network."""

    def __init__(self, report: Report, limits: Limits) -> None:
        self._limits = limits
        self._compute = {
            layer.name: _compute_s(layer, limits, report.float_dtype) for layer in report.layers
        }
        self._read: dict[str, int] = {}  # stored bytes that a layer reads
        self._first: dict[str, int] = {}  # those that no earlier layer has read
        counted: dict[str, int] = {}
        for name, storage, size in stored_reads(report):
            self._read[name] = self._read.get(name, 0) + size
            more = max(size - counted.get(storage, 0), 0)
            counted[storage] = counted.get(storage, 0) + more
            self._first[name] = self._first.get(name, 0) + more
        self._stored = sum(counted.values())
        self._cache = self._stored if limits.cache_bytes is None else limits.cache_bytes
        beyond = max(self._stored - self._cache, 0.0)
        self._from_dram = beyond / self._stored if self._stored else 0.0
        whole = sum([layer.param_bytes for layer in report.layers if layer.node.times])
        self._whole = max(whole, self._stored)

    def row(self, layers: Iterable[str]) -> float:
        """Lower bound of layers that run as one.

        The bytes that do not fit into the cache are distributed over the layers by their sizes, so
        that the bounds of rows add up to at least that of the network.
        """
        names = tuple(layers)
        compute = fsum(self._compute[name] for name in names)
        alone = sum(self._read.get(name, 0) for name in names) - self._cache
        share = self._from_dram * sum(self._first.get(name, 0) for name in names)
        return max(compute, max(alone, share) / self._limits.dram_bytes_s)

    @property
    def total(self) -> float:
        """Lower bound of a run."""
        beyond = self._whole - self._cache if self._limits.cache_bytes is not None else 0
        return max(fsum(self._compute.values()), beyond / self._limits.dram_bytes_s)


def _compute_s(layer: Layer, limits: Limits, dtype: str) -> float:
    """Seconds of all operations at the highest peak among the dtypes of the layer's tensors.

    Dtypes without a peak, such as those of indices, count with the peak of the report's dtype
    unless they have fewer bits.
    """
    flops = layer.cost.ops.flops
    dtypes = {tensor.dtype for tensor in (*layer.inputs, *layer.outputs)}
    dtypes |= {param.dtype for param in layer.cost.params}
    peaks = [limits.flops_s[each] for each in dtypes if each in limits.flops_s]
    if not peaks and dtype in limits.flops_s:
        wide = all(DTYPE_BITS.get(each, 0) >= DTYPE_BITS[dtype] for each in dtypes)
        peaks = [limits.flops_s[dtype]] if wide else []
    return flops / max(peaks) if flops and peaks else 0.0


def stored_reads(report: Report) -> Iterator[tuple[str, str, int]]:
    """Layer, storage and bytes read, for every stored array that a layer reads."""
    given = {param.name for param in report.graph.params}
    for layer in report.layers:
        node, call = layer.node, layer.call
        if call is None or not node.times:
            continue
        rule = SPECS[node.op]
        if rule.view or rule.folded:  # nothing moves
            continue
        reads = dict(zip(node.inputs, rule.input_elements(call), strict=False))
        looked_up = rule.param_elements(call) if rule.param_elements is not None else None
        for param in layer.cost.params:
            if param.role == "unused":
                continue
            count = param.elements
            if param.name in given and param.name in reads:
                count = reads[param.name]
            elif looked_up is not None:
                count = looked_up
            size = storage_bytes(min(count, param.elements), param.dtype)
            yield layer.name, storage_of(node, param, node.ties), size
        if getattr(call.attributes, "past", 0) and looked_up:
            yield layer.name, f"{node.name}: cache", storage_bytes(looked_up, report.float_dtype)


def rest_of_weights(
    rows: Sequence[LayerGuess], floors: Floors, error: float
) -> tuple[LayerGuess, ...]:
    """A row for what the sum lacks to its lower bound, such as weights of embeddings."""
    rest = floors.total - fsum(row.time_s or 0.0 for row in rows)
    if rest <= 0:
        return ()
    return (LayerGuess("weights that no row reads", (), "overhead", rest, error),)
