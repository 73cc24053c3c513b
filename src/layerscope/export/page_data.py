"""The data inside a report page."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module

from layerscope.conventions import CONVENTIONS
from layerscope.errors import InputError
from layerscope.escaping import delivered, visible
from layerscope.export import FORMS
from layerscope.export.footer import footer
from layerscope.export.json import document, file_name
from layerscope.export.json_types import LayerJson, LiveTensorJson, TreeJson
from layerscope.export.page_types import (
    PageCoverage,
    PageLayer,
    PageRefused,
    PageReport,
    PageTensor,
    PageWeight,
)
from layerscope.graph.names import shape_text
from layerscope.report.numbers import bytes_text, counted
from layerscope.report.outline import Outline
from layerscope.report.types import Report

MOST_EXPORTED = 1000  # layers of a network whose table the page has as csv, Markdown and LaTeX


def page_report(
    report: Report, outlined: Outline, conventions: Sequence[str] = CONVENTIONS
) -> PageReport:
    """One network of a page, with all conventions, or with some and without exports and advice."""
    is_whole = conventions is CONVENTIONS
    full = document(report, conventions=conventions, advised=is_whole)
    assert full.stamp is not None
    numbers = {tensor.name: n for n, tensor in enumerate(full.tensors)}
    coverage = full.coverage
    count = len(full.layers)
    total = count + len(outlined.groups)
    root = TreeJson(total, full.network, "", "", "exact", list(range(count)), full.tree)
    return PageReport(
        network=full.network,
        columns=full.columns,
        layers=[_layer(layer, numbers) for layer in full.layers],
        tree=_without_sums(root),
        cells=full.cells,
        conventions=full.conventions,
        tensors=[_tensor(t, report) for t in full.tensors],
        memory=full.memory,
        totals=full.totals,
        inputs=full.inputs,
        outputs=full.outputs,
        stamp=full.stamp,
        coverage=PageCoverage(
            coverage.known, coverage.total, coverage.unknown, coverage.estimated,
            str(report.coverage),
        ),
        findings=full.findings,
        notes=full.notes,
        stored=full.stored,
        language=full.language,
        facts=_facts(report),
        exports=_exports(report) if is_whole else {},
    )  # fmt: skip


def refused_report(path: str, error: InputError) -> PageRefused:
    """The entry of a file that could not be read; its message without folders."""
    name = file_name(path)
    text = error.line
    for written in (path, os.path.abspath(path), os.path.realpath(path)):
        text = text.replace(written, name)
    return PageRefused(visible(name), visible(text))


def _facts(report: Report) -> list[tuple[str, str]]:
    """Inputs, batch, dtype and number of layers."""
    return [
        *((visible(tensor.name), shape_text(tensor.shape)) for tensor in report.inputs),
        ("batch", str(report.batch)),
        ("", str(report.dtypes)),
        *([("cache", f"{report.past:,} tokens")] if report.past else []),
        ("", counted(len(report.layers), "layer")),
    ]


def _exports(report: Report) -> dict[str, str]:
    """The table in the forms of other programs, as `show --as` writes it."""
    if len(report.layers) > MOST_EXPORTED:
        return {}
    return {
        form: delivered(
            import_module(f"layerscope.export.{FORMS[form]}").write(report) + footer(report, form),
            form,
        )
        for form in ("csv", "markdown", "latex")
    }


def _without_sums(tree: TreeJson) -> TreeJson:
    tree.sums = {}
    for child in tree.children:
        if not isinstance(child, int):
            _without_sums(child)
    return tree


def _layer(layer: LayerJson, numbers: dict[str, int]) -> PageLayer:
    return PageLayer(
        name=layer.name,
        type=layer.type,
        inputs=[numbers[t.name] for t in layer.inputs if t.name in numbers],
        outputs=[numbers[t.name] for t in layer.outputs if t.name in numbers],
        scope=layer.scope,
        module=layer.module,
        attributes=layer.attributes,
        window=layer.window,
        weights=[PageWeight(w.name, w.role, w.shape, w.dtype) for w in layer.weights],
        gemm=layer.gemm,
        field=layer.field,
        fields=layer.fields if len(layer.fields) > 1 else [],
        status=layer.status,
        note=layer.note,
        source=layer.source,
        source_op=layer.source_op,
        times=layer.times,
    )


def _tensor(tensor: LiveTensorJson, report: Report) -> PageTensor:
    return PageTensor(
        tensor.name,
        tensor.shape,
        shape_text(tensor.shape),
        tensor.dtype,
        tensor.bytes,
        "?" if tensor.bytes is None else bytes_text(tensor.bytes),
        tensor.producer,
        tensor.consumers,
        tensor.first,
        tensor.last,
        tensor.storage,
        tensor.counted_bytes,
        report.tensors[tensor.name].declared,
    )
