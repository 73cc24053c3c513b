"""All node tests of onnx's own backend suite: none is refused, every known shape is right."""

from __future__ import annotations

import warnings
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np  # noqa: TID251
import onnx  # noqa: TID251
import pytest
from onnx.backend.test.case.node import collect_testcases  # noqa: TID251

import layerscope
from layerscope.formats.onnx.converters.table import CONVERTERS
from layerscope.formats.onnx.reasons import NO_RULES
from tests.formats.onnx.onnx_coverage import coverage

# Operators whose outputs data sizes, or whose sizes are inputs without values in these models.
OPEN = {
    "Add", "Cast", "CastLike", "Col2Im", "Concat", "ConstantOfShape", "Cos", "DFT", "Div",
    "Expand", "Gather", "GatherElements", "Identity", "If", "ImageDecoder", "Log", "Loop",
    "MatMul", "Mul", "Pad", "Range", "ReduceSum", "Reshape", "STFT", "SequenceInsert", "Shape",
    "Slice", "Split", "SplitToSequence", "Sqrt", "Squeeze", "StringNormalizer", "StringSplit",
    "Sub", "Transpose", "Unique", "Unsqueeze",
}  # fmt: skip
MOST_OPEN = 100  # of about 1,900 cases


@cache
def cases() -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [case for case in collect_testcases(None) if case.model is not None]


def shape_of(value: Any) -> tuple[int, ...] | None:
    """The shape of an expected output; None of what is no tensor."""
    if value is None or isinstance(value, (list, tuple, dict)):
        return None
    if isinstance(value, onnx.TensorProto):
        return tuple(value.dims)
    return tuple(np.shape(value))


def test_every_case_is_read_and_its_shapes_are_right(tmp_path: Path) -> None:
    path = tmp_path / "case.onnx"
    wrong: dict[str, Any] = {}
    unknown: Counter[str] = Counter()
    reasons: dict[str, str] = {}
    open_cases = 0
    for case in cases():
        path.write_bytes(case.model.SerializeToString())
        report = layerscope.analyze(str(path))
        outputs = case.data_sets[0][1]
        for value, given in zip(case.model.graph.output, outputs, strict=False):
            expected, made = shape_of(given), report.tensors.get(value.name)
            if expected is not None and made is not None and made.shape not in (None, expected):
                wrong[case.name] = (value.name, made.shape, expected)
        unknown.update(report.coverage.unknown)
        open_cases += bool(report.coverage.unknown)
        for layer in report.layers:
            if layer.status == "unknown":
                reasons[layer.cost.note] = f"{case.name}: {layer.op}"
    assert not wrong
    assert set(unknown) <= OPEN
    assert open_cases <= MOST_OPEN
    without = {note: where for note, where in reasons.items() if "no rule" in note or not note}
    assert not without  # each says which value is unknown, or what data decides


# -- the operators there are


def test_operators_with_a_rule_or_a_reason() -> None:
    found = coverage()
    least = {"": 195, "ai.onnx.ml": 17, "ai.onnx.preview.training": 3, "com.microsoft": 100}
    for domain, count in least.items():
        if found[domain].total:
            assert len(found[domain].rules) >= min(count, found[domain].total), domain
    assert not found[""].missing
    assert not found["ai.onnx.ml"].missing
    # a later ONNX Runtime may bring some that are not known yet
    assert len(found["com.microsoft"].missing) <= found["com.microsoft"].total // 10


def test_no_operator_has_both_a_rule_and_a_reason() -> None:
    assert not set(CONVERTERS) & set(NO_RULES)


@pytest.mark.parametrize("key", sorted(NO_RULES))
def test_the_reason_is_printed(key: tuple[str, str], tmp_path: Path) -> None:
    domain, op = key
    node = onnx.helper.make_node(op, ["x"], ["y"], domain=domain)
    x = onnx.helper.make_tensor_value_info("x", 1, [2, 3])
    y = onnx.helper.make_empty_tensor_value_info("y")
    opsets = [onnx.helper.make_opsetid("", 20), onnx.helper.make_opsetid(domain, 1)]
    model = onnx.helper.make_model(
        onnx.helper.make_graph([node], "g", [x], [y]), opset_imports=opsets
    )
    path = tmp_path / "one.onnx"
    path.write_bytes(model.SerializeToString())
    (layer,) = layerscope.analyze(str(path)).layers
    assert (layer.status, layer.cost.note) == ("unknown", NO_RULES[key])
