"""A language model in use on the report page: cache by layer, memory by use, what fits."""

from __future__ import annotations

from collections.abc import Sequence

from layerscope.export.language_lines import (
    NAMES,
    LanguageResults,
    cache_lines,
    fit_lines,
    fit_rows,
    format_notes,
    memory_line,
)
from layerscope.export.page_types import PageCacheKind, PageCacheLayer, PageFitRow, PageUse
from layerscope.llm.account import Deployment
from layerscope.llm.cache import LayerCache
from layerscope.llm.fit import LanguageFit
from layerscope.report.numbers import bytes_text, exact_text


def page_use(results: LanguageResults) -> PageUse:
    """The cache, the memory and the fit of a language model, as texts."""
    deployment, fit = results.deployment, results.fit
    layers = deployment.layers()
    cache, *notes = cache_lines(deployment)
    fits = fit_lines(fit) if fit is not None else []
    return PageUse(
        cache=cache,
        layers=[
            PageCacheLayer(NAMES[each.kind], each.total, bytes_text(each.total)) for each in layers
        ],
        most=bytes_text(max((each.total for each in layers), default=0)),
        kinds=_kinds(layers),
        notes=[*notes, *format_notes(deployment)],
        memory=memory_line(deployment),
        fits=" ".join(fits),
        contexts=[] if fit is None else _contexts(deployment, fit),
    )


def _kinds(layers: Sequence[LayerCache]) -> list[PageCacheKind]:
    numbers: dict[LayerCache, list[int]] = {}
    for n, each in enumerate(layers):
        numbers.setdefault(each, []).append(n)
    found = []
    for each, members in numbers.items():
        sizes = (each.keys, each.values, each.state + each.cross)
        keys, values, state = (bytes_text(size) if size else "" for size in sizes)
        found.append(
            PageCacheKind(
                ranges(members),
                NAMES[each.kind],
                exact_text(each.cells) if each.cells else "",
                keys,
                values,
                state,
                bytes_text(each.total),
                bytes_text(each.total * len(members)),
            )
        )
    return found


def ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers as ranges: 0–4, 6, 8–9."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(f"{a}" if a == b else f"{a}–{b}" for a, b in parts)


def _contexts(deployment: Deployment, fit: LanguageFit) -> list[PageFitRow]:
    rows = fit_rows(deployment, fit)
    return [PageFitRow(batch, tokens, uses, total) for batch, tokens, *uses, total in rows]
