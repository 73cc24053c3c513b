"""A language model in use as JSON: active parameters, cache by layer, memory, what fits."""

from __future__ import annotations

from layerscope.export.language_lines import (
    LanguageResults,
    attention_macs,
    bytes_per_token,
    format_notes,
)
from layerscope.export.language_types import (
    AttentionJson,
    CacheJson,
    ContextJson,
    DeploymentJson,
    DevicesJson,
    LanguageFitJson,
    LayerCacheJson,
    UseJson,
)
from layerscope.llm.account import DeployedMemory, Deployment, memory_use
from layerscope.llm.cache import cache_bytes, needed
from layerscope.llm.devices import Parallelism, stage_memory
from layerscope.llm.fit import MOST, LanguageFit
from layerscope.llm.parameters import active_params, predictor_params, total_params


def deployment_json(results: LanguageResults) -> DeploymentJson:
    """The figures that `LanguageResults.lines` prints."""
    deployment = results.deployment
    model, use = deployment.model, memory_use(deployment)
    macs = attention_macs(deployment, results.decodes)
    return DeploymentJson(
        model_type=model.model_type,
        runtime=deployment.program,
        weight_format=deployment.weights,
        params=total_params(model),
        active_params={each.convention: each.params for each in active_params(model)},
        predictor_params=predictor_params(model),
        attention=None if macs is None else AttentionJson(macs.attention, macs.needed),
        cache=_cache(deployment),
        memory=_memory_json(use),
        fit=None if results.fit is None else _fit(results.fit),
        notes=[*model.notes, *format_notes(deployment)],
        devices=None if results.split is None else _devices(deployment, results.split),
    )


def _memory_json(use: DeployedMemory) -> UseJson:
    return UseJson(use.weights, use.cache, use.activations, use.workspace, use.total)


def _devices(deployment: Deployment, split: Parallelism) -> DevicesJson:
    stages = [_memory_json(use) for use in stage_memory(deployment, split)]
    return DevicesJson(split.tensor, split.pipeline, split.expert, stages)


def _cache(deployment: Deployment) -> CacheJson:
    options = deployment.cache
    layers = [
        LayerCacheJson(each.kind, each.cells, each.keys, each.values, each.state, each.cross)
        for each in deployment.layers()
    ]
    return CacheJson(
        tokens=options.tokens,
        sequences=options.sequences,
        key_format=options.keys,
        value_format=options.values,
        bytes=cache_bytes(deployment.model, options, deployment.rule),
        needed_bytes=cache_bytes(deployment.model, options, needed),
        bytes_per_token=bytes_per_token(deployment),
        layers=layers,
    )


def _fit(fit: LanguageFit) -> LanguageFitJson:
    return LanguageFitJson(
        fit.memory_bytes,
        fit.usable_bytes,
        _number(fit.largest_batch.number),
        _number(fit.longest_context.number),
        [ContextJson(batch, _number(tokens)) for batch, tokens in fit.contexts],
    )


def _number(found: int) -> int | None:
    return None if found >= MOST else found
