"""Bytes come from each tensor's own dtype, in every form; dtypes are told in the stamp."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import layerscope
from layerscope import Builder, Report
from layerscope.conventions import CONVENTIONS
from layerscope.graph import attributes as at
from layerscope.report.numbers import bytes_text
from tests.formats.onnx.onnx_files import array, model, node, zeros

# Bits of one number, stated here again: the table under test has them too.
BITS = {
    "fp64": 64, "fp32": 32, "fp16": 16, "bf16": 16, "int64": 64, "int32": 32, "int8": 8,
    "uint8": 8, "bool": 8, "int4": 4, "complex64": 64,
}  # fmt: skip
Sizes = list[tuple[int, str]]  # elements and dtype of each tensor a node makes


def size_of(tensors: Sizes) -> int:
    """Bytes of tensors, each padded to whole bytes."""
    return sum((count * BITS[dtype] + 7) // 8 for count, dtype in tensors)


class Mixed:
    """A random network, with the dtype and the elements of every tensor kept apart from it."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.builder = Builder("mixed")
        self.inputs: Sizes = []
        self.made: dict[str, Sizes] = {}  # node -> what it makes; a view makes nothing
        self.tensors: list[tuple[str, str]] = []  # name, dtype; all of 2 x 3 x 5 x 5
        for n in range(draw(st.integers(1, 3))):
            dtype = draw(st.sampled_from(sorted(BITS)))
            self.tensors.append((self.builder.input(f"in{n}", (2, 3, 5, 5), dtype), dtype))
            self.inputs.append((150, dtype))
        for n in range(draw(st.integers(1, 8))):
            self.step(f"n{n}")

    def step(self, name: str) -> None:
        x, dtype = self.draw(st.sampled_from(self.tensors))
        kind = self.draw(st.sampled_from(("cast", "quantize", "conv", "relu", "less", "view")))
        made, kept = self.make(kind, name, x, dtype)
        self.made[name] = kept
        self.tensors.append(made)

    def make(self, kind: str, name: str, x: str, dtype: str) -> tuple[tuple[str, str], Sizes]:
        b = self.builder
        if kind == "cast":
            other = self.draw(st.sampled_from(sorted(BITS)))
            y = b.add_node("cast", (x,), at.Cast(other), name=name)[0]
            return (y, other), [(150, other)]
        if kind == "quantize":
            y = b.add_node("quantize", (x,), at.Quantize("uint8"), name=name)[0]
            return (y, "uint8"), [(150, "uint8")]
        if kind == "less":
            y = b.add_node("compare", (x, x), name=name)[0]
            return (y, "bool"), [(150, "bool")]
        if kind == "view":
            return (b.reshape(x, (2, 3, 5, 5), name=name), dtype), []
        if kind == "conv":
            return (b.conv(x, 3, 3, padding=1, name=name), dtype), [(150, dtype)]
        values, _ = b.add_node("top_k", (x,), at.TopK(5), name=name, outputs=2)
        return (values, dtype), [(150, dtype), (150, "int64")]


@st.composite
def mixed(draw: Any) -> Mixed:
    return Mixed(draw)


def cells(text: str, column: int) -> list[str]:
    """One column of a Markdown table, below its head."""
    return [line.split("|")[1:-1][column].strip() for line in text.splitlines()[2:]]


@settings(max_examples=60)
@given(mixed())
def test_bytes_in_every_form_are_those_of_the_tensors(net: Mixed) -> None:
    report = layerscope.analyze(net.builder.build())
    expected = {name: size_of(kept) for name, kept in net.made.items()}
    total = sum(expected.values())
    assert {layer.name: layer.activation_bytes for layer in report.layers} == expected
    assert report.totals.activation_bytes == total

    document = json.loads(report.to_json())
    assert {x["name"]: x["activation_bytes"] for x in document["layers"]} == expected
    assert {x["name"]: x["write_bytes"] for x in document["layers"]} == expected
    assert document["totals"]["activation_bytes"] == total
    assert document["totals"]["write_bytes"] == total
    assert sum(x["bytes"] for x in document["inputs"]) == size_of(net.inputs)

    rows = list(csv.DictReader(io.StringIO(report.to_csv())))
    assert {row["name"]: int(row["memory"]) for row in rows} == expected
    frame = report.to_pandas(columns=("name", "memory"))
    assert dict(zip(frame["name"], frame["memory"], strict=True)) == expected

    view: dict[str, Any] = {"columns": ("name", "memory")}
    printed = {**{name: bytes_text(size) for name, size in expected.items()}}
    printed["total"] = bytes_text(total)
    lines = report.to_text(**view).splitlines()
    text = [re.split(r"\s{2,}", line.strip()) for line in lines if "─" not in line][1:]
    assert {row[0]: row[1] for row in text} == printed
    table = report.to_markdown(**view)
    names = [name.strip("*") for name in cells(table, 0)]
    assert dict(zip(names, cells(table, 1), strict=True)) == printed
    for size in printed.values():
        assert f"& {size} \\\\" in report.to_latex(**view)
        assert f">{size}</td>" in report.to_html(**view)


@settings(max_examples=30)
@given(mixed(), st.sampled_from(CONVENTIONS))
def test_bytes_do_not_follow_a_convention(net: Mixed, like: str) -> None:
    graph = net.builder.build()
    exact, counted = (layerscope.analyze(graph, like=name) for name in ("exact", like))
    view: dict[str, Any] = {"columns": ("name", "memory", "read", "write", "weights", "intensity")}
    assert counted.to_csv(**view) == exact.to_csv(**view)
    for name in ("activation_bytes", "read_bytes", "write_bytes", "param_bytes", "macs", "flops"):
        assert getattr(counted.totals, name) == getattr(exact.totals, name)


@given(mixed())
def test_the_stamp_has_every_dtype_with_its_elements(net: Mixed) -> None:
    report = layerscope.analyze(net.builder.build())
    stamp = json.loads(report.to_json())["stamp"]
    inputs: dict[str, int] = {}
    for count, dtype in net.inputs:
        inputs[dtype] = inputs.get(dtype, 0) + count
    assert stamp["dtypes"]["inputs"] == inputs
    names = {*inputs, *stamp["dtypes"]["arithmetic"]}
    assert stamp["dtype"] == (names.pop() if len(names) == 1 else "mixed")
    assert stamp["dtype"] in stamp["text"]


def stamp_of(report: Report) -> Any:
    return json.loads(report.to_json())["stamp"]


def test_a_quantized_onnx_file_is_counted_in_bytes_of_its_own(tmp_path: Path) -> None:
    import numpy as np  # noqa: TID251

    stored = [
        array("xs", 0.1, np.float32), array("xz", 0, np.uint8),
        array("ws", 0.1, np.float32), array("wz", 0, np.int8),
        zeros("w", 4, 3, 3, 3, dtype=np.int8),
        array("ys", 0.1, np.float32), array("yz", 0, np.uint8),
    ]  # fmt: skip
    nodes = [
        node("q = QuantizeLinear x xs xz"),
        node("y = QLinearConv q xs xz w ws wz ys yz"),
        node("z = DequantizeLinear y ys yz"),
    ]
    path = tmp_path / "quantized.onnx"
    path.write_bytes(model(nodes, "x 1x3x8x8", "z", stored).SerializeToString())
    report = layerscope.analyze(str(path))
    # q is 192 numbers of uint8, y 4x6x6 of uint8, z the same of fp32; the product inside
    # QLinearConv is no tensor of the file
    made = {layer.node.outputs[0]: layer.activation_bytes for layer in report.layers}
    assert {name: made[name] for name in ("q", "y", "z")} == {"q": 192, "y": 144, "z": 4 * 144}
    assert report.totals.activation_bytes == report.totals.write_bytes == 192 + 144 + 4 * 144
    found = stamp_of(report)
    assert (found["dtype"], found["dtypes"]["inputs"]) == ("mixed", {"fp32": 192})
    assert found["dtypes"]["arithmetic"] == {"fp32": 192 + 144, "uint8": 2 * 144}


def test_one_dtype_stays_as_it_was() -> None:
    found = stamp_of(layerscope.analyze("resnet18", dtype="fp16"))
    assert found["dtype"] == "fp16"
    assert list(found["dtypes"]["arithmetic"]) == ["fp16"]
    assert "· fp16 ·" in found["text"]


@pytest.mark.parametrize("name", ["gpt2", "bert_base"])
def test_token_ids_are_not_what_is_computed_in(name: str) -> None:
    report = layerscope.analyze(name, tokens=8)
    assert report.dtypes.inputs.keys() == {"int64"}
    assert next(iter(report.dtypes.arithmetic)) == report.float_dtype == "fp32"
    assert "mixed (inputs int64, arithmetic fp32" in report.stamp


def test_an_embedding_reads_rows_of_its_own_dtype() -> None:
    """Four rows of 16 int4 numbers are 32 bytes, whatever the float dtype of the result."""
    b = Builder("table")
    ids = b.input("ids", (1, 4), "int64")
    table = b.stored("table", (100, 16), "embedding", "int4")
    b.add_node("embedding", (ids, table), at.Embedding(100, 16), name="rows")
    row = layerscope.analyze(b.build()).by_name["rows"]
    assert row.cost.read_bytes == 4 * 8 + 4 * 16 // 2


# operator -> its inputs, what is stored, domain, bytes of its outputs
INSIDE: dict[str, tuple[str, list[Any], str, int]] = {}


def _inside() -> None:
    import numpy as np  # noqa: TID251

    scale, zero = array("s", 0.1, np.float32), array("z", 0, np.uint8)
    INSIDE["y = MatMulInteger x w"] = (
        "x 4x8 uint8", [zeros("w", 8, 3, dtype=np.int8)], "", 4 * 12
    )  # fmt: skip
    INSIDE["y = ConvInteger x w"] = (
        "x 1x3x8x8 uint8", [zeros("w", 4, 3, 3, 3, dtype=np.int8)], "", 4 * 144
    )  # fmt: skip
    INSIDE["y = QLinearAdd x s z x s z s z"] = ("x 4x8 uint8", [scale, zero], "com.microsoft", 32)
    INSIDE["y = QLinearSigmoid x s z s z"] = ("x 4x8 uint8", [scale, zero], "com.microsoft", 32)
    INSIDE["y = BiasGelu x b"] = ("x 4x8", [zeros("b", 8)], "com.microsoft", 4 * 32)
    INSIDE["y = SkipLayerNormalization x x g"] = ("x 1x4x8", [zeros("g", 8)], "com.microsoft", 128)


_inside()


@pytest.mark.parametrize("call", INSIDE)
def test_steps_inside_an_operator_take_no_memory(call: str, tmp_path: Path) -> None:
    """However many rows an operator has here, its outputs are all that is stored or written."""
    inputs, stored, domain, size = INSIDE[call]
    made = model([node(call, domain=domain)], inputs, "y", stored)
    path = tmp_path / "one.onnx"
    path.write_bytes(made.SerializeToString())
    report = layerscope.analyze(str(path))
    assert not report.coverage.unknown
    assert len(report.layers) > 1
    assert report.totals.activation_bytes == report.totals.write_bytes == size
    assert report.totals.peak_activation_bytes == size + report.inputs[0].bytes
