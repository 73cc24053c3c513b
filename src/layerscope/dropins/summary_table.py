"""The text of a summary: a table in the layout of torchinfo, totals, stamp and notes."""

from __future__ import annotations

from layerscope.dropins.counters import figure_of
from layerscope.escaping import visible
from layerscope.formats.torch.module_log import NO_INPUT
from layerscope.notations.module_rows import ModuleRow
from layerscope.notations.module_table import SummaryOptions, table_lines
from layerscope.report.numbers import at_least, bytes_text
from layerscope.report.types import Report

ASCII = str.maketrans({
    "·": "-", "×": "x", "≥": ">=", "—": "-", "–": "-", "−": "-", "…": "...", "→": "->",
})  # fmt: skip


def write(report: Report, rows: tuple[ModuleRow, ...], options: SummaryOptions) -> str:
    """The whole text, without a line feed at the end."""
    rule, lines = table_lines(report, rows, options)
    text = "\n".join([*lines, *_totals(report), rule, *_notes(report, rows)])
    if "ascii_only" in options.row_settings:
        return text.translate(ASCII).encode("ascii", "backslashreplace").decode()
    return text


def _totals(report: Report) -> list[str]:
    totals, bounds = report.totals, report.lower_bounds
    params, trainable = report.total_params, report.trainable_params
    lines = [
        f"Total params: {params:,}",
        f"Trainable params: {trainable:,}",
        f"Non-trainable params: {params - trainable:,}",
    ]
    if _is_not_run(report):
        return lines
    convention = report.convention
    exact = "" if convention.is_exact or totals.convention_ops is None else " (exact)"
    lines += [
        f"Total mult-adds{exact}: {at_least(f'{report.total_macs:,}', 'macs' in bounds)}",
        f"Total FLOPs{exact}: {at_least(f'{report.total_flops:,}', 'flops' in bounds)}",
    ]
    if exact:
        figure = at_least(f"{figure_of(report):,}", "convention_ops" in bounds)
        lines.append(f"Total {convention.figure} ({convention.name}): {figure}")
    sizes = (
        ("Input size", sum([tensor.bytes for tensor in report.inputs]), ""),
        ("Forward pass size", totals.activation_bytes, "activation_bytes"),
        ("Peak of activations", totals.peak_activation_bytes, "peak_activation_bytes"),
        ("Params and buffers size", totals.param_bytes, "param_bytes"),
    )
    return [
        *lines,
        *[f"{title}: {at_least(bytes_text(size), name in bounds)}" for title, size, name in sizes],
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
