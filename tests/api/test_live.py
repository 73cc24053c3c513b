"""The interface of the live page: any request is answered with JSON, errors have positions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from layerscope.api.live import LISTS, answer
from layerscope.api.reporting import page_data
from layerscope.conventions import CONVENTIONS
from layerscope.export.page_file import data_text
from layerscope.zoo import NAMES

NET = """name: "t" input: "data" input_shape { dim: 1 dim: 3 dim: 32 dim: 32 }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 16 kernel_size: 3 } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
"""
TABLE = """| layer | type | kernel | output shape | params |
| --- | --- | --- | --- | --- |
| data | input | | 1x28x28 | |
| conv1 | conv | 5x5 | 6x24x24 | 157 |
| conv2 | conv | 5x5 | 16x20x20 | 2,416 |
| conv3 | conv | 5x5 | 32x16x16 | 12,832 |
| fc | fully connected | | 10 | 81,930 |
"""

TRAINED = """name: "trained"
layer { name: "data" type: "Input" top: "data" include { phase: TRAIN }
  input_param { shape { dim: 1 dim: 3 dim: 8 dim: 8 } } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 4 kernel_size: 3 } }
"""


def ask(**request: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answer(json.dumps(request)))
    return found


def test_the_page_is_that_of_the_command_line() -> None:
    found = ask(what="analyze", zoo="lenet5")
    expected = json.loads(data_text(page_data(["lenet5"])))
    assert found["page"] == expected
    assert "error" not in found


def test_options_are_those_of_the_command_line() -> None:
    options: dict[str, Any] = {"batch": 3, "dtype": "fp16", "input": "3x64x64"}
    found = ask(what="analyze", zoo="resnet18", options=options, conventions=["exact", "thop"])
    [report] = found["page"]["reports"]
    [expected] = json.loads(data_text(page_data(["resnet18"], **options)))["reports"]
    assert report["cells"] == expected["cells"]
    assert report["conventions"]["thop"] == expected["conventions"]["thop"]
    assert list(report["conventions"]) == ["exact", "thop"]
    named = ask(what="analyze", zoo="lenet5", options={"input": "data=2x1x32x32"})
    assert named["page"]["reports"][0]["facts"][0] == ["data", "2x1x32x32"]


def test_layers_have_the_lines_of_the_text() -> None:
    found = ask(what="analyze", text=NET, conventions=["exact"])
    assert found["format"] == "caffe"
    assert found["lines"] == [2, 4]
    calls = ask(what="builder", zoo="lenet5")["text"]
    found = ask(what="analyze", text=calls, conventions=["exact"])
    assert found["format"] == "builder"
    names = [layer["name"] for layer in found["page"]["reports"][0]["layers"]]
    lines = calls.split("\n")
    for name, line in zip(names, found["lines"], strict=True):
        assert f'name="{name}"' in lines[line - 1]


def test_a_zoo_network_with_its_calls_has_lines_and_its_own_sizes() -> None:
    options: dict[str, Any] = {"input": "3x256x256"}
    asked: dict[str, Any] = {"zoo": "vit_b_32", "options": options, "conventions": ["exact"]}
    found = ask(what="analyze", calls=True, **asked)
    assert found["text"] == ask(what="builder", zoo="vit_b_32")["text"]
    assert "text" not in ask(what="analyze", **asked)
    assert "(1, 3, 256, 256)" in ask(what="builder", zoo="vit_b_32", options=options)["text"]
    expected = json.loads(data_text(page_data(["vit_b_32"], **options)))["reports"][0]
    assert found["page"]["reports"][0]["cells"] == expected["cells"]
    lines = found["text"].split("\n")
    names = [layer["name"].rpartition(".")[2] for layer in expected["layers"]]
    assert len(names) > 50
    for name, line in zip(names, found["lines"], strict=True):
        assert f'"{name}"' in lines[line - 1]


@pytest.mark.parametrize(
    "wrong, line, column, fix",
    [
        (NET.replace("kernel_size: 3", "kernel_size: 0"), 3, 51, "1"),
        (NET.replace("kernel_size: 3", "kernel_size: 99"), 3, 51, None),
        (NET.replace('bottom: "conv1"', 'bottom: "conv2"'), 4, 44, '"conv1"'),
        (NET.replace('layer { name: "relu1"', "layer [ name"), 4, 7, None),
        ('data = input("data", (1, 3, 8, 8))\nx = conv(data, 4, 9)', 2, 1, None),
        ('data = input("data", (1, 3, 8, 8))\nx = conv(data, 4, kernl=3)', 2, 19, "kernel=3"),
    ],
)
def test_errors_have_positions(wrong: str, line: int, column: int, fix: str | None) -> None:
    error = ask(what="analyze", text=wrong)["error"]
    assert error["severity"] == "error"
    assert (error["line"], error["fix"]) == (line, fix)
    assert error["column"] == column
    assert "/" not in error["text"].replace("://", "")
    assert "--" not in error["text"]


def test_remarks_have_positions() -> None:
    text = NET.replace("kernel_size", "kernal_size")
    [mark] = ask(what="analyze", text=text, conventions=["exact"])["marks"]
    line = text.split("\n")[mark["line"] - 1]
    assert line[mark["column"] - 1 :][: mark["length"]] == "kernal_size"
    assert mark["fix"] == "kernel_size"
    found = ask(what="analyze", text=TABLE, conventions=["exact"])
    assert found["format"] == "document"
    marks = ask(what="audit", text=TABLE)["marks"]
    assert found["marks"] == marks
    assert [TABLE.split("\n")[m["line"] - 1][m["column"] - 1 :][: m["length"]] for m in marks] == [
        "157"
    ]


@pytest.mark.parametrize("name", ["{path}", "torchvision:resnet18", "../net.prototxt", "resnet"])
def test_a_name_of_the_zoo_is_never_a_file_or_a_model(name: str, tmp_path: Path) -> None:
    path = tmp_path / "net.prototxt"
    path.write_text(NET, encoding="utf-8")
    for what in ("analyze", "builder", "write"):
        found = ask(what=what, zoo=name.format(path=path))
        assert "unknown network" in found["error"]["text"]


def test_findings_of_rows_are_marked_along_them() -> None:
    text = TABLE.replace("| 6x24x24 | 157 |", "| 6x24x24 | 156 | 7 |  ")
    [mark] = ask(what="audit", text=text)["marks"]
    assert mark["text"].startswith("conv1: too many cells")
    row = text.split("\n")[mark["line"] - 1]
    assert row[mark["column"] - 1 :][: mark["length"]] == "conv1 | conv | 5x5 | 6x24x24 | 156 | 7 |"


def test_a_document_with_several_networks_lists_their_lines() -> None:
    text = f"# one\n\n{TABLE}\n# two\n\n{TABLE.replace('10 | 81,930', '20 | 163,860')}"
    second = 3 + TABLE.count("\n") + 3
    found = ask(what="analyze", text=text, conventions=["exact"])
    assert found["starts"] == [3, second]
    assert "starts" not in ask(what="analyze", text=TABLE, conventions=["exact"])
    params = [
        ask(what="analyze", text=text, number=number, conventions=["exact"])["page"]["reports"][0][
            "cells"
        ]["params"]["values"][-1]
        for number in (0, 1, 2)
    ]
    assert params[1:] == [params[0], params[0] + 81_930]
    other = ask(what="analyze", text=text, number=2, conventions=["exact"])
    assert min(other["lines"]) > second
    assert "3" in ask(what="analyze", text=text, number=3)["error"]["text"]


def test_lists() -> None:
    assert [name for name, _ in ask(what="zoo")["names"]] == list(NAMES)
    assert [name for name, _ in ask(what="conventions")["names"]] == list(CONVENTIONS)
    for what in LISTS:
        assert all(name and isinstance(says, str) for name, says in ask(what=what).get("names", []))
    words = ask(what="completions")["names"]
    assert ["kernel_size", "convolution_param"] in words
    assert ["conv", "call"] in words
    assert ["Convolution", "type"] in words


def test_every_listed_form_is_written() -> None:
    for form, _ in ask(what="notations")["names"]:
        found = ask(what="write", zoo="lenet5", form=form)
        assert found.get("text"), (form, found.get("error"))


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "net.prototxt"
    path.write_text(NET, encoding="utf-8")
    found = ask(what="analyze", path=str(path), conventions=["exact"])
    assert found["format"] == "caffe"
    assert "lines" not in found


@pytest.mark.parametrize(
    "request_text",
    ["", "{}", "[]", '{"what": "run"}', '{"what": "analyze"}', '{"what": "analyze", "x": 1}',
     '{"what": "analyze", "zoo": "nope"}', '{"what": "analyze", "text": "hello"}',
     '{"what": "analyze", "text": "\\u0000\\ud800"}', '{"what": "analyze", "path": "/nope.onnx"}',
     '{"what": "analyze", "zoo": "lenet5", "options": {"batch": -1}}',
     '{"what": "analyze", "zoo": "lenet5", "options": {"input": "axb"}}',
     '{"what": "analyze", "zoo": "lenet5", "options": {"dtype": "fp7"}}',
     '{"what": "analyze", "zoo": "lenet5", "conventions": ["nope"]}',
     '{"what": "write", "zoo": "lenet5", "form": "nope"}',
     '{"what": "analyze", "text": "torchvision:resnet18"}'],
)  # fmt: skip
def test_any_request_is_answered(request_text: str) -> None:
    assert json.loads(answer(request_text))["error"]["text"]


def test_a_network_of_caffe_is_read_in_the_phase_that_has_its_data() -> None:
    text = TRAINED
    found = ask(what="analyze", text=text, conventions=["exact"])
    assert found["phase"] == "train"
    assert "in phase test; data does in phase train" in found["error"]["text"]
    asked: dict[str, Any] = {"options": {"phase": "train"}, "conventions": ["exact"]}
    read = ask(what="analyze", text=text, **asked)["page"]["reports"][0]
    assert [layer["name"] for layer in read["layers"]] == ["conv1"]
    refused = ask(what="analyze", text=text, options={"phase": "<b>"})["error"]["text"]
    assert refused == "phase '<b>', expected test or train"
    # a text of another format follows in the same editor
    assert "error" not in ask(what="analyze", zoo="lenet5", **asked)
