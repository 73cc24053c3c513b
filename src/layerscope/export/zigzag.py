"""A workload for ZigZag: the YAML list of layers that it reads besides ONNX files.

Checked against KULeuven-MICAS/zigzag: docs/source/workload.rst (the keys), the schema in
zigzag/parser/workload_validator.py, inputs/workload/resnet18.yaml, and the equations that
zigzag/parser/onnx/{conv,gemm}_parser.py build. As in its ONNX reader, only products are layers;
an input from a layer that is left out is traced back to the latest product before it. The axis of a
1-D network is x.

Partial sums of integers below 32 bits have twice the bits, as in ZigZag's example.
"""

from __future__ import annotations

from layerscope.escaping import quoted
from layerscope.export.loop_nests import ConvLoops, LoopNest, layer_nests
from layerscope.graph.types import DTYPE_BITS
from layerscope.report.types import Layer, Report


def write(report: Report) -> str:
    """One entry per product, numbered in order of execution."""
    producers: dict[str, int] = {}  # tensor -> the last entry that it depends on
    entries: list[str] = []
    for layer in report.layers:
        sources = [producers.get(name) for name in layer.node.inputs]
        latest = max((source for source in sources if source is not None), default=None)
        for nest in layer_nests(layer):
            latest = len(entries)
            entries.append(_entry(nest, latest, _sources(nest, latest, sources)))
        if latest is not None:
            producers.update(dict.fromkeys(layer.node.outputs, latest))
    return "\n".join(entries)


def _sources(nest: LoopNest, entry: int, sources: list[int | None]) -> tuple[int, int]:
    """Entries that I and W come from; the entry's own number stands for weights and inputs."""
    found = [entry if source is None else source for source in sources]
    if nest.layer.op == "attention":  # queries by keys, then scores by values
        scores = nest.name.endswith(".scores")
        return (found[0], found[1]) if scores else (entry - 1, found[2])
    if nest.layer.op in ("matmul", "einsum"):
        return found[0], found[1]
    return found[0], entry


def _entry(nest: LoopNest, number: int, sources: tuple[int, int]) -> str:
    lines = [f"- id: {number}", f"  name: {quoted(nest.name)}"]
    lines += _product(nest) if nest.window is None else _convolution(nest.window)
    lines += _precision(nest.layer)
    lines += ["  operand_source:", f"    I: {sources[0]}", f"    W: {sources[1]}"]
    return "\n".join(lines) + "\n"


def _convolution(window: ConvLoops) -> list[str]:
    y, x = window.y, window.x
    g = "[g]" if window.groups > 1 else ""
    dims = {
        "B": window.batch, **({"G": window.groups} if g else {}), "K": window.out_channels,
        "C": window.in_channels, "OY": y.output, "OX": x.output, "FY": y.kernel, "FX": x.kernel,
    }  # fmt: skip
    relations = [
        f"ix={x.stride}*ox+{x.dilation}*fx",
        f"iy={y.stride}*oy+{y.dilation}*fy",
    ]
    return [
        "  operator_type: Conv",
        f"  equation: O[b]{g}[k][oy][ox]+=W{g}[k][c][fy][fx]*I[b]{g}[c][iy][ix]",
        f"  dimension_relations: [{', '.join(relations)}]",
        *_loops(dims),
        "  pr_loop_dims: [IX, IY]",
        f"  pr_loop_sizes: [{x.input}, {y.input}]",
        f"  padding: [{_pads_text(x.pads)}, {_pads_text(y.pads)}]",
    ]


def _product(nest: LoopNest) -> list[str]:
    gemm = nest.gemm
    b = "[b]" if gemm.count > 1 else ""
    dims = {**({"B": gemm.count} if b else {}), "D": gemm.m, "K": gemm.n, "C": gemm.k}
    return [
        "  operator_type: Gemm",
        f"  equation: O{b}[d][k]+=I{b}[d][c]*W{b}[c][k]",
        "  dimension_relations: []",
        *_loops(dims),
    ]


def _loops(dims: dict[str, int]) -> list[str]:
    return [
        f"  loop_dims: [{', '.join(dims)}]",
        f"  loop_sizes: [{', '.join(map(str, dims.values()))}]",
    ]


def _pads_text(pads: tuple[int, int]) -> str:
    return f"[{pads[0]}, {pads[1]}]"


def _precision(layer: Layer) -> list[str]:
    bits = {"I": _bits(layer.inputs[0].dtype), "O_final": _bits(layer.outputs[0].dtype)}
    weights = layer.cost.params[0].dtype if layer.cost.params else layer.inputs[1].dtype
    bits["W"] = _bits(weights)
    sums = bits["O_final"]
    if layer.outputs[0].dtype.startswith(("int", "uint")):
        sums = min(2 * sums, max(sums, 32))
    return ["  operand_precision:"] + [
        f"    {name}: {size}"
        for name, size in (
            ("W", bits["W"]), ("I", bits["I"]), ("O", sums), ("O_final", bits["O_final"]),
        )
    ]  # fmt: skip


def _bits(dtype: str) -> int:
    return DTYPE_BITS[dtype]
