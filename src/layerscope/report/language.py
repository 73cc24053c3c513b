"""Figures of a language model: bytes of its weights and of its cache, operations per token.

The cache after a prefill has all its tokens. The cache of a decoding step has the tokens before the
new one, which attends to itself as well: to one key more than the cache has.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from msgspec import Struct

from layerscope.graph.edits import is_cached, token_inputs
from layerscope.graph.types import elements, storage_bytes
from layerscope.report.numbers import bytes_text, exact_text, marked, ratio_text, short_text
from layerscope.report.types import Report

PRECISIONS = ("fp32", "fp16", "bf16", "int8", "int4")


class Language(Struct, frozen=True):
    """Figures of a network that takes tokens. Bytes are by precision."""

    tokens: int  # read at once in each sequence, those of its longest input
    past: int  # tokens before them, whose keys and values are cached
    macs_per_token: Fraction
    intensity: Fraction | None  # FLOPs per byte moved
    weight_bytes: Mapping[str, int]
    cache_tokens: int
    cache_bytes: Mapping[str, int] | None  # of all sequences; None: it has no cache


def language(report: Report) -> Language | None:
    """The figures of a network that takes tokens, None for any other."""
    lengths = [tensor.shape[1] for tensor in token_inputs(report.graph) if tensor.shape]
    if not lengths:
        return None
    tokens = max(lengths)
    cached = [node for node in report.graph.nodes if is_cached(node)]
    past = report.past
    cache_tokens = past or tokens
    macs = sum([cost.ops.mac for cost in report.costs.values()])
    params = sum([cost.param_count for cost in report.costs.values()])
    params += sum([param.elements for param in report.graph.unused])
    kept = sum([_kept_per_token(report, node.name) for node in cached]) * cache_tokens
    inputs = report.graph.inputs
    kept += sum([t.elements for t in inputs if t.name in report.graph.cache])
    keeps = bool(cached) or bool(report.graph.cache)
    return Language(
        tokens=tokens,
        past=past,
        macs_per_token=Fraction(macs, tokens * report.batch),
        intensity=None if report.coverage.unknown else report.totals.intensity,
        weight_bytes=_by_precision(params),
        cache_tokens=cache_tokens if keeps else 0,
        cache_bytes=_by_precision(kept) if keeps else None,
    )


def _kept_per_token(report: Report, name: str) -> int:
    """Elements of keys and values per position of all sequences in one layer."""
    call = report.shapes.calls.get(name)
    if call is None:
        return 0
    return sum(elements(shape) // shape[-2] for shape in call.inputs[1:3])


def _by_precision(count: int) -> dict[str, int]:
    return {dtype: storage_bytes(count, dtype) for dtype in PRECISIONS}


def lines(report: Report) -> tuple[str, ...]:
    """Lines under the table of a language model: operations, weights, cache."""
    found = language(report)
    if found is None:
        return ()
    sizes = _sizes(found.weight_bytes, report.sign("params"))
    text = [_work(found, report), f"Weights, all in one dtype without scales: {sizes}."]
    if found.cache_bytes is not None:
        many = f" in each of {report.batch} sequences" if report.batch > 1 else ""
        whose = f"{_tokens(found.cache_tokens)}{many}"
        text.append(f"{_cache(report)}, {whose}: {_sizes(found.cache_bytes)}.")
    return tuple(text)


def _has_keys(report: Report) -> bool:
    """Whether a cache has keys and values; that of a recurrent model has only states."""
    cache = report.graph.cache
    return not cache or any(name.endswith(("keys", "values")) for name in cache)


def _cache(report: Report) -> str:
    if not _has_keys(report):
        return "States, which do not grow"
    states = any("state" in name.rpartition("layers.")[2] for name in report.graph.cache)
    return "Cache of keys, values and states" if states else "Cache of keys and values"


def _work(found: Language, report: Report) -> str:
    macs = found.macs_per_token
    count = exact_text(int(macs)) if macs.denominator == 1 else short_text(macs)
    count = marked(count, report.sign("macs"))
    ratio = marked(ratio_text(found.intensity), report.sign("flops")) or "unknown"
    work = f"{count} MACs a token, {ratio} FLOPs a byte"
    if found.past and not _has_keys(report):
        return f"Decoding one token after {_tokens(found.past)}: {work}."
    if found.past:
        most = "at most " if any(report.graph.windows.values()) else ""
        keys = f"{most}{exact_text(found.past)} kept keys and its own"
        return f"Decoding one token, which attends to {keys}: {work}."
    kind = "Prefill of" if found.cache_bytes is not None else "Reading"
    return f"{kind} {_tokens(found.tokens)}: {work}."


def _tokens(count: int) -> str:
    return "1 token" if count == 1 else f"{exact_text(count)} tokens"


def _sizes(by_precision: Mapping[str, int], sign: str = "") -> str:
    """Precisions of one size together: 27.0 GB in fp32, 13.5 GB in fp16 or bf16 …"""
    by_size: dict[int, list[str]] = {}
    for dtype, size in by_precision.items():
        by_size.setdefault(size, []).append(dtype)
    return ", ".join(
        f"{marked(bytes_text(size), sign)} in {' or '.join(names)}"
        for size, names in by_size.items()
    )
