"""A report as JSON; json_types has the structs that define its schema."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import msgspec

from layerscope.analysis.costs import storage_of
from layerscope.analysis.fields import Field
from layerscope.analysis.training import Training
from layerscope.escaping import json_text
from layerscope.export.fit_lines import MemoryResults
from layerscope.export.json_types import (
    SCHEMA,
    AliveJson,
    CoverageJson,
    DtypesJson,
    FieldJson,
    LanguageJson,
    LayerJson,
    OpsJson,
    OptionsJson,
    ParamJson,
    PeakJson,
    ReportJson,
    SourceJson,
    StampJson,
    TensorJson,
    TotalsJson,
    TrainingJson,
)
from layerscope.export.language_types import DeploymentJson
from layerscope.graph.serialize import to_plain
from layerscope.graph.types import Graph, Source, Tensor
from layerscope.ops import Ops
from layerscope.report.columns import COLUMNS, window_text
from layerscope.report.language import Language, language
from layerscope.report.numbers import decimal
from layerscope.report.types import Layer, Report, sum_ops

NOT_REQUESTED = MemoryResults()


def write(
    report: Report,
    *,
    stamp: bool = True,
    totals_only: bool = False,
    requested: MemoryResults = NOT_REQUESTED,
    conventions: Sequence[str] = (),
) -> str:
    """The report as indented JSON text."""
    if totals_only:
        return json_text(_totals_only(report, requested, stamp=stamp))
    return json_text(document(report, stamp=stamp, requested=requested, conventions=conventions))


def schema(kind: type[msgspec.Struct] = ReportJson) -> str:
    """The JSON Schema of a document; by default of the one that `write` returns."""
    # $defs, $refs and titles are class names
    return re.sub(r'(\w+)Json"', r'\1"', json_text(msgspec.json.schema(kind)))


def document(
    report: Report,
    *,
    stamp: bool = True,
    requested: MemoryResults = NOT_REQUESTED,
    conventions: Sequence[str] = (),
    advised: bool = True,
) -> ReportJson:
    """The report as structs that can be encoded as JSON; cells and advice with `conventions`."""
    from layerscope.export.cells import cells, convention_cells
    from layerscope.export.json_tree import columns, findings, live_tensors, tree
    from layerscope.report.outline import outline

    memory = report.memory
    plain = plain_graph(report.graph)
    outlined = outline(report)
    own = cells(report, outlined.rows, COLUMNS) if conventions else {}
    return ReportJson(
        kind="report",
        schema=SCHEMA,
        network=report.name,
        inputs=[_tensor(tensor) for tensor in report.inputs],
        outputs=[_tensor(report.tensors[name]) for name in report.graph.outputs],
        totals=_totals(report),
        memory=PeakJson(
            memory.peak_node,
            memory.peak_bytes,
            [AliveJson(name, size) for name, size in memory.peak_alive],
            memory.in_place,
            "peak_activation_bytes" not in report.lower_bounds,
            list(memory.alive_bytes),
        ),
        layers=[
            _layer(layer, report, node)
            for layer, node in zip(report.layers, plain["nodes"], strict=True)
        ],
        stamp=_stamp(report) if stamp else None,
        coverage=_coverage(report),
        findings=findings(report, advised=advised and bool(conventions)),
        columns=columns(report),
        tree=tree(report, outlined),
        tensors=live_tensors(report),
        notes=list(report.notes),
        stored=report.stored,
        language=_language(language(report)),
        training=_training(requested.training),
        fit=requested.fit,
        deployment=_deployment(requested),
        options=OptionsJson(report.convention.name, memory.in_place, report.attention),
        cells=own,
        conventions=convention_cells(report, outlined, own, conventions),
        graph=plain,
    )


def plain_graph(graph: Graph) -> dict[str, Any]:
    """The graph without the folders of its files."""
    plain = to_plain(graph)
    for each in (*plain["nodes"], *plain["inputs"]):
        source = each.get("source")
        if source and source.get("file"):
            source["file"] = file_name(source["file"])
    return plain


def _language(found: Language | None) -> LanguageJson | None:
    if found is None:
        return None
    macs = found.macs_per_token
    return LanguageJson(
        tokens=found.tokens,
        past=found.past,
        macs_per_token=int(macs) if macs.denominator == 1 else float(macs),
        intensity=_float(found.intensity),
        weight_bytes=dict(found.weight_bytes),
        cache_tokens=found.cache_tokens,
        cache_bytes=None if found.cache_bytes is None else dict(found.cache_bytes),
    )


def _deployment(requested: MemoryResults) -> DeploymentJson | None:
    if requested.language is None:
        return None
    from layerscope.export.language_json import deployment_json

    return deployment_json(requested.language)


def _training(training: Training | None) -> TrainingJson | None:
    if training is None:
        return None
    return TrainingJson(
        training.optimizer,
        training.total_bytes,
        training.weights_bytes,
        training.half_copy_bytes,
        training.gradient_bytes,
        training.state_bytes,
        training.kept_bytes,
        training.working_bytes,
        training.checkpoints,
        training.complete,
        training.kept_status,
        list(training.notes),
        training.zero_stage,
        training.devices,
        training.lora,
    )


def _totals(report: Report) -> TotalsJson:
    totals = report.totals
    return TotalsJson(
        params=totals.params,
        buffers=totals.buffers,
        macs=totals.macs,
        flops=totals.flops,
        convention_ops=totals.convention_ops,
        ops=_ops(totals.ops),
        activations=totals.activations,
        activation_bytes=totals.activation_bytes,
        convention_activations=totals.convention_activations
        if _has_own_activations(report)
        else None,
        peak_activation_bytes=totals.peak_activation_bytes,
        param_bytes=totals.param_bytes,
        read_bytes=totals.read_bytes,
        write_bytes=totals.write_bytes,
        intensity=None if report.coverage.unknown else _float(totals.intensity),
        backward_ops=_ops(sum_ops(list(report.backward.values()))),
        macs_by_dtype=report.macs_by_dtype,
        complete=not report.coverage.unknown,
        lower_bounds=list(report.lower_bounds),
        unused_params=report.unused_params,
        estimates=list(report.estimates),
    )


def _totals_only(report: Report, requested: MemoryResults, *, stamp: bool) -> dict[str, object]:
    """The totals without the layers (`show --total --as json`)."""
    asked = {
        "training": _training(requested.training),
        "fit": requested.fit,
        "deployment": _deployment(requested),
    }
    return {
        "kind": "report",
        "schema": SCHEMA,
        "network": report.name,
        **msgspec.to_builtins(_totals(report)),
        "stamp": _stamp(report) if stamp else None,
        "coverage": _coverage(report),
        "notes": list(report.notes),
        **{name: found for name, found in asked.items() if found is not None},
    }


def _coverage(report: Report) -> CoverageJson:
    coverage = report.coverage
    return CoverageJson(coverage.known, coverage.total, coverage.unknown, coverage.estimated)


def _has_own_activations(report: Report) -> bool:
    """Whether the convention counts activations by a rule of its own."""
    counted = report.convention
    return counted.activations is not None


def _stamp(report: Report) -> StampJson:
    counted = report.convention
    return StampJson(
        version=report.version,
        convention=counted.name,
        counts=counted.says,
        figure=counted.figure or None,
        batch=report.batch,
        dtype=report.dtype,
        dtypes=DtypesJson(report.dtypes.inputs, report.dtypes.arithmetic),
        text=report.stamp,
    )


def _layer(layer: Layer, report: Report, plain: dict[str, Any]) -> LayerJson:
    has_ops = layer.status != "unknown"
    has_params = report.params_known(layer.node)  # true if the file stores weights of an unknown op
    sized = layer.name not in report.memory.bounded
    own = _has_own_activations(report)
    source = layer.node.source
    fields = [_field(field) for field in report.fields.get(layer.node.outputs[0], ())]
    return LayerJson(
        name=layer.name,
        type=layer.op,
        scope=list(layer.scope),
        module=layer.node.module,
        attributes=attributes(plain),
        window=window_text(layer) or "",
        inputs=[_tensor(tensor) for tensor in layer.inputs],
        outputs=[_tensor(tensor) for tensor in layer.outputs],
        params=layer.params if has_params else None,
        buffers=layer.cost.buffer_count if has_params else None,
        weights=[
            ParamJson(p.name, p.role, p.shape, p.dtype, storage_of(layer.node, p))
            for p in layer.cost.params
        ],
        ops=_ops(layer.ops) if has_ops else None,
        flops=layer.ops.flops if has_ops else None,
        convention_ops=layer.convention_ops if has_ops else None,
        convention_params=layer.params if has_params else None,
        activations=layer.activations if has_ops else None,
        activation_bytes=layer.activation_bytes if has_ops else None,
        convention_activations=layer.convention_activations if has_ops and own else None,
        alive_bytes=report.alive_bytes[layer.name] if has_ops and sized else None,
        read_bytes=layer.cost.read_bytes if has_ops else None,
        write_bytes=layer.cost.write_bytes if has_ops else None,
        intensity=_float(layer.intensity) if has_ops else None,
        gemm=layer.gemm,
        field=fields[0] if fields else None,
        fields=fields,
        backward_ops=_ops(report.backward[layer.name]) if has_ops else None,
        status=layer.status,
        note=layer.cost.note,
        source=_source(source),
        source_op=source.op if source else "",
        times=layer.node.times,
    )


def attributes(plain: dict[str, Any]) -> dict[str, Any]:
    """Attributes of a node by name, from its plain values; those of a window beside the others."""
    fields: dict[str, Any] = plain["attributes"][1] if plain["attributes"] else {}
    window = fields.get("window")
    if not isinstance(window, dict):
        return fields
    return {**window, **{name: value for name, value in fields.items() if name != "window"}}


def _source(source: Source | None) -> SourceJson | None:
    if source is None or not source.file:
        return None
    return SourceJson(file_name(source.file), source.line, source.column)


def file_name(path: str) -> str:
    """The name of a file without its folders, which differ from machine to machine."""
    from layerscope.formats import sources

    return sources.LABEL if sources.is_copy(path) else os.path.basename(path)


def _tensor(tensor: Tensor) -> TensorJson:
    size = tensor.bytes if tensor.shape is not None else None
    return TensorJson(tensor.name, tensor.shape, tensor.dtype, size, tensor.declared)


def _ops(ops: Ops) -> OpsJson:
    return OpsJson(ops.mac, ops.add, ops.mul, ops.comp, ops.div, ops.exp)


def _field(field: Field) -> FieldJson:
    return FieldJson(
        field.input,
        [size if isinstance(size, int) else "everything" for size in field.size],
        [decimal(value) for value in field.stride],
        [decimal(value) for value in field.offset],
        field.aligned,
    )


def _float(value: Fraction | None) -> float | None:
    return None if value is None else float(value)
