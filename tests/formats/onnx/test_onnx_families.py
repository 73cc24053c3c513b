"""Converters of ONNX operators stand in the file of the op family that they emit.

The ops are those of onnx's own node tests: models of one operator each.
"""

from __future__ import annotations

from pathlib import Path

import layerscope
from layerscope.errors import LayerscopeError
from layerscope.formats.onnx import converters
from tests.families import FAMILIES, modules
from tests.formats.onnx.test_onnx_nodes import cases

CUSTOM = "its cost is computed by the converter"
CONSTANT = "a constant, computed before the run"
EXCEPTIONS = {
    "BlackmanWindow": CONSTANT, "HammingWindow": CONSTANT, "HannWindow": CONSTANT,
    "MelWeightMatrix": CONSTANT, "Shape": CONSTANT, "Size": CONSTANT,
    "CenterCropPad": CUSTOM, "DeformConv": CUSTOM, "NonMaxSuppression": CUSTOM, "Pad": CUSTOM,
    "Slice": CUSTOM, "Tile": CUSTOM,
    "MeanVarianceNormalization": "a norm composed of reductions and elementwise ops",
    "TensorScatter": "a choice between a cache and its update",
}  # fmt: skip


def emitted(folder: Path) -> dict[str, set[str]]:
    """Ops by operator of the domain ai.onnx, over all node tests with one node."""
    path = folder / "case.onnx"
    found: dict[str, set[str]] = {}
    for case in cases():
        nodes = case.model.graph.node
        if len(nodes) != 1 or nodes[0].domain not in ("", "ai.onnx"):
            continue
        path.write_bytes(case.model.SerializeToString())
        try:
            graph = layerscope.analyze(str(path)).graph
        except LayerscopeError:
            continue
        ops = {node.op for node in graph.nodes if node.op in FAMILIES}
        found.setdefault(nodes[0].op_type, set()).update(ops)
    return found


def test_converter_stands_in_the_file_of_its_family(tmp_path: Path) -> None:
    stems = {
        operator: stem
        for stem, module in modules(converters).items()
        for domain, operator in getattr(module, "OPERATORS", {})
        if not domain and stem in FAMILIES.values()
    }
    checked, elsewhere = 0, set()
    for operator, ops in emitted(tmp_path).items():
        if operator in stems and ops:
            checked += 1
            if stems[operator] not in {FAMILIES[op] for op in ops}:
                elsewhere.add(operator)
    assert checked >= 160
    assert elsewhere == EXCEPTIONS.keys()
