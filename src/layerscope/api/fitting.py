"""The largest batch that fits in a memory: `fit`; training memory of adapters."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from layerscope.api.networks import (
    Analyzable,
    analyze_with,
    is_model,
    load_graph,
    recognised,
    takes_sizes,
)
from layerscope.api.options import APPLIES_TO, is_given
from layerscope.errors import LayerscopeError, ShapeError, UsageError
from layerscope.graph import Graph
from layerscope.report import Report
from layerscope.report.quantities import count_of
from layerscope.report.training import Fit

if TYPE_CHECKING:
    from layerscope.analysis.training import Training
    from layerscope.formats.torch.named_model import NamedModel

MOST_BATCH = 2**40  # ends the search if memory hardly grows with the batch


def train_adapters(
    report: Report,
    rank: int,
    optimizer: str = "adam",
    *,
    mixed: bool = False,
    checkpoint: bool = False,
) -> Training:
    """Memory of a training step of adapters (LoRA) beside linear layers, the rest frozen."""
    from layerscope.analysis.adapters import with_adapters
    from layerscope.report.build import report_of

    found = report_of(with_adapters(report.graph, report.costs, rank))
    return replace(found.training(optimizer, mixed=mixed, checkpoint=checkpoint), lora=rank)


def fit(
    network: str | PathLike[str] | Graph | Report,
    memory_bytes: int,
    *,
    train: str | None = None,
    mixed: bool = False,
    checkpoint: bool = False,
    **options: Any,
) -> Fit:
    """The largest batch whose inference (or training step with optimizer `train`) fits in memory.

    Inference needs the weights, the peak of activations and the key-value cache if there is one. A
    Report stands for its graph, in-place if it is counted so. Other options are those of `analyze`.
    """
    if count_of(memory_bytes, "memory") < 1:
        raise UsageError(f"memory of {memory_bytes} bytes, expected at least 1")
    if train is None and (mixed or checkpoint):
        raise UsageError(f"{'mixed' if mixed else 'checkpoint'} needs train, the optimizer")
    if options.get("batch") is not None:
        raise UsageError("batch is what fit finds")
    options.pop("batch", None)
    if isinstance(network, Report):
        options = {"in_place": network.memory.in_place, **options}
        network = network.graph
    network = fspath(network) if isinstance(network, PathLike) else network
    source: str | Graph | NamedModel = network
    if is_model(network):
        from layerscope.formats.torch.model_names import find

        source = find(str(network))  # built once, captured for every batch
    elif isinstance(network, str):
        found = recognised(network)
        if not takes_sizes(network, found):
            reading = {name: options.pop(name) for name in APPLIES_TO if name in options}
            source = load_graph(network, reading, found)
    if sum(is_given(options.get(name)) for name in ("input", "tokens", "decode", "dims")) > 1:
        analyze_with(source, options)  # raises if they contradict each other

    def analyzed(batch: int) -> Report:
        try:
            return analyze_with(source, {**options, "batch": batch}, agrees=False)
        except ShapeError as error:
            raise _fixed_batch(source, options, error) from None

    def needed(batch: int) -> tuple[int, bool]:
        """Bytes of a batch, and whether they are all of them."""
        report = analyzed(batch)
        if train is None:
            totals, bounds = report.totals, report.lower_bounds
            is_all = not {"param_bytes", "peak_activation_bytes"} & {*bounds}
            return totals.param_bytes + totals.peak_activation_bytes + report.cache_bytes, is_all
        step = report.training(train, mixed=mixed, checkpoint=checkpoint)
        return step.total_bytes, step.complete

    high = 1
    while needed(high)[0] <= memory_bytes:
        if high >= MOST_BATCH:
            raise UsageError(f"every batch up to {high:,} fits in {memory_bytes:,} bytes")
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if needed(middle)[0] <= memory_bytes else (low, middle)
    size, complete = needed(high)
    return Fit(low, needed(low)[0] if low else 0, size, memory_bytes, complete)


def _fixed_batch(source: Analyzable, options: Mapping[str, Any], error: ShapeError) -> ShapeError:
    """The error of a batch that a network does not accept: with a hint, if it accepts its own."""
    try:
        own = analyze_with(source, options)
    except LayerscopeError:
        return error
    works = "give a network of any batch, such as an ONNX file with a symbolic batch"
    if own.graph.autograd is not None:
        works = "pass the model itself, which is captured for every batch"
    return ShapeError(
        f"{error}; the batch of {own.name} is fixed at {own.batch}, and --fit tries others: {works}"
    )
