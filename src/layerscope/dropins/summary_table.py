"""The text of a summary: a table in the layout of torchinfo, totals, stamp and notes."""

from __future__ import annotations

from layerscope.dropins.counters import figure_of
from layerscope.escaping import visible
from layerscope.formats.torch.module_log import NO_INPUT
from layerscope.notations.module_rows import ModuleRow
from layerscope.notations.module_table import SummaryOptions, table_lines
from layerscope.report.numbers import bytes_text, marked
from layerscope.report.types import Report

ASCII = str.maketrans({
    "·": "-", "×": "x", "≥": ">=", "≤": "<=", "—": "-", "–": "-", "−": "-", "…": "...", "→": "->",
})  # fmt: skip


def write(report: Report, rows: tuple[ModuleRow, ...], options: SummaryOptions) -> str:
    """The whole text, without a line feed at the end."""
    rule, lines = table_lines(report, rows, options)
    text = "\n".join([*lines, *_totals(report), rule, *_notes(report, rows)])
    if "ascii_only" in options.row_settings:
        return text.translate(ASCII).encode("ascii", "backslashreplace").decode()
    return text


def _totals(report: Report) -> list[str]:
    totals, sign = report.totals, report.sign("params")
    params, trainable = report.total_params, report.trainable_params
    lines = [
        f"Total params: {marked(f'{params:,}', sign)}",
        f"Trainable params: {marked(f'{trainable:,}', sign)}",
        f"Non-trainable params: {marked(f'{params - trainable:,}', sign)}",
    ]
    if _is_not_run(report):
        return lines
    convention = report.convention
    exact = "" if convention.is_exact or totals.convention_ops is None else " (exact)"
    lines += [
        f"Total mult-adds{exact}: {marked(f'{report.total_macs:,}', report.sign('macs'))}",
        f"Total FLOPs{exact}: {marked(f'{report.total_flops:,}', report.sign('flops'))}",
    ]
    if exact:
        figure = marked(f"{figure_of(report):,}", report.sign("convention_ops"))
        lines.append(f"Total {convention.figure} ({convention.name}): {figure}")
    sizes = (
        ("Input size", sum([tensor.bytes for tensor in report.inputs]), ""),
        ("Forward pass size", totals.activation_bytes, "activation_bytes"),
        ("Peak of activations", totals.peak_activation_bytes, "peak_activation_bytes"),
        ("Params and buffers size", totals.param_bytes, "param_bytes"),
    )
    return [
        *lines,
        *[f"{title}: {marked(bytes_text(size), report.sign(name))}" for title, size, name in sizes],
    ]


def _is_not_run(report: Report) -> bool:
    """Whether no input was given."""
    return NO_INPUT in report.graph.notes


def _notes(report: Report, rows: tuple[ModuleRow, ...]) -> list[str]:
    shown = sum([row.num_params if row.is_leaf_layer else row.own_params
                 for row in rows if not row.is_recursive])  # fmt: skip
    tied = shown - max([row.num_params for row in rows], default=0)
    lines = [report.stamp, str(report.coverage), *report.notes]
    if _is_not_run(report):
        lines = [f"layerscope {report.version} · {report.name} · no input", *report.notes]
    if tied:
        lines.append(f"{tied:,} tied parameters are in several rows, and once in the totals")
    return [visible(line) for line in lines]
