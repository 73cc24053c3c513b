"""Files of others: what they are, by bytes first and by name second, and how to go on."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import zipfile
from pathlib import Path

import pytest

from layerscope.cli import run
from layerscope.formats import foreign, sources
from tests.codecs import wire

Captured = pytest.CaptureFixture[str]
RANDOM = bytes(range(251, 100, -3))  # of no format


def archive(*names: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as opened:
        for name in names:
            opened.writestr(name, "{}")
    return made.getvalue()


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 102530333\n"
SOLVER = b'# a comment\nnet: "models/train_val.prototxt"\nbase_lr: 0.01\nmax_iter: 450\n'
PROGRAM = b"\x0a\xf0\x10\x08\x00\x10" + b"\xff" * 9 + b"\x01\x1a\x30" + b"\0" * 99
SAVED = b"\x08\x01\x12\xa0\x80\x01\x0a\x50\x0a\x00\x22\x05serve" + b"\0" * 300
CORE = b"\x08\x04\x12\x60\x0a\x10\x0a\x05image\x12\x03abc" + b"\0" * 200
NODE = b"\x0a\x1d\x0a\x05input\x12\x0bPlaceholder" + b"\x2a\x05abcde" * 20

# name -> bytes, what is said
FILES: dict[str, tuple[bytes, str]] = {
    "a.onnx": (LFS, "Git LFS pointer to a file of 102,530,333 bytes.*git lfs pull"),
    "a.safetensors": (LFS, "Git LFS pointer"), "a.pt": (LFS, "Git LFS pointer"),
    "b.pt": (b"../.git/annex/objects/x/y\n", "git annex get"),
    "solver.prototxt": (SOLVER, "a solver of Caffe.*models/train_val.prototxt"),
    "solver.pt": (SOLVER, "a solver of Caffe"), "solver": (SOLVER, "a solver of Caffe"),
    "m.tflite": (b"\x1c\0\0\0TFL3" + b"\0" * 99, "TensorFlow Lite.*tf2onnx.convert --tflite"),
    "tflite.bin": (b"\x1c\0\0\0TFL3" + b"\0" * 99, "TensorFlow Lite"),
    "x.ggml": (b"lmgg\x03\0\0\0", "GGML.*hf:config.json"), "x.bin": (b"tjgg\x03\0\0\0", "GGML"),
    "m.h5": (b"\x89HDF\r\n\x1a\n" + b"\0" * 99, "HDF5.*keras"),
    "m.keras": (archive("metadata.json", "config.json"), "Keras.*export"),
    "yolo.cfg": (b"[net]\nbatch=1\n[convolutional]\n", "Darknet"),
    "yolo.txt": (b"# c\n[net]\nbatch=1\n", "Darknet"), "yolo.weights": (RANDOM, "Darknet"),
    "n.param": (b"7767517\n75 83\nInput data 0 1 data\n", "ncnn"),
    "ir.xml": (b'<?xml version="1.0"?>\n<net name="x" version="11"/>', "OpenVINO IR"),
    "other.xml": (b"<Error><Code>AccessDenied</Code></Error>", "XML.*download it again"),
    "g.pb": (NODE, "frozen graph of TensorFlow.*--graphdef"),
    "frozen.bin": (NODE, "frozen graph"),
    "g.pbtxt": (b'node {\n  name: "x"\n  op: "Placeholder"\n}\n', "TensorFlow as text"),
    "o.pbtxt": (b"ir_version: 8\ngraph {\n}\n", "ONNX model as text.*textproto"),
    "saved_model.pb": (SAVED, "SavedModel.*--saved-model"),
    "predict_net.pb": (b"\x0a\x06squeez\x12\x04\x0a\x02da", "Caffe2"),
    "m.pdmodel": (PROGRAM, "PaddlePaddle.*paddle2onnx"), "m.pdiparams": (RANDOM, "PaddlePaddle"),
    "m.mlmodel": (CORE, "Core ML"), "m.engine": (b"ftrt" + b"\0" * 50, "TensorRT.*trtexec"),
    "m.plan": (RANDOM, "TensorRT"), "a.rknn": (b"RKNN\0\0", "RKNN"), "a.mnn": (RANDOM, "MNN"),
    "a.ptl": (archive("archive/data.pkl"), "PyTorch Mobile.*torch.export.save"),
    "a.pte": (b"\x18\0\0\0ET12", "ExecuTorch"), "a.ort": (b"\x18\0\0\0ORTM", "onnxruntime's own"),
    "a.npz": (archive("w.npy"), "NumPy"), "a.npy": (b"\x93NUMPY\x01\0", "NumPy"),
    "page.onnx": (b"<!DOCTYPE html><html>", "an HTML page"),
    "a.tar.gz": (b"\x1f\x8b\x08\0", "archive.*unpack"), "my.py": (b"x = 1\n", "my.py:NAME"),
    "u.prototxt": ("layer { }".encode("utf-16"), "UTF-16.*UTF-8"),
    "tfjs.json": (json.dumps({"modelTopology": {}}).encode(), "TensorFlow.js.*--tfjs"),
    "k.json": (json.dumps({"class_name": "M", "config": {}}).encode(), "Keras"),
    "s-symbol.json": (b'{"nodes": [], "arg_nodes": [], "heads": []}', "MXNet"),
    "n.ipynb": (b'{"cells": [], "nbformat": 4}', "notebook"),
    "nothing": (b"", "the file is empty"), "what.xyz": (RANDOM, "not a supported model file"),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_foreign_files_say_how_to_go_on(name: str, tmp_path: Path, capsys: Captured) -> None:
    data, says = FILES[name]
    path = tmp_path / name
    path.write_bytes(data)
    for command in (["show"], ["compare", "lenet5"], ["export", "--to", "json"], ["plot"]):
        assert run([*command, str(path)]) == 3
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("\n") == 1
        assert re.search(says, err), err


@pytest.mark.parametrize("inside", ["saved_model.pb", "Manifest.json", "__model__"])
def test_foreign_folders(
    inside: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / inside).write_bytes(b"\x08\x01")
    monkeypatch.chdir(tmp_path)
    for name in ("folder", "folder/", str(folder)):
        assert run(["show", name]) == 3
        assert "not read here" in capsys.readouterr().err
    (tmp_path / "m.mlpackage").mkdir()
    assert run(["show", "m.mlpackage"]) == 3
    assert "Core ML" in capsys.readouterr().err


def test_every_foreign_suffix_is_a_file(capsys: Captured) -> None:
    for suffix in foreign.SUFFIXES:
        assert run(["show", f"missing{suffix}"]) == 3
        assert "No such file" in capsys.readouterr().err


def test_every_line_of_the_table_can_be_printed() -> None:
    kinds = [each for each in vars(foreign).values() if isinstance(each, foreign.UnsupportedFormat)]
    assert len(kinds) > 30
    for kind in kinds:
        line = foreign.line_of("a b/it's.x", kind)
        assert "{" not in line.replace("{path}", ""), line


def test_arrays_beside_a_network_of_others(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "m.xml").write_text("<net name='m'/>")
    (tmp_path / "m.bin").write_bytes(RANDOM)
    assert run(["show", str(tmp_path / "m.bin")]) == 3
    assert capsys.readouterr().err


HEADER = b'{"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}'
OURS: dict[str, bytes] = {
    ".prototxt": b'name: "n" input: "data" input_dim: [1, 3, 8, 8]\n'
    b'layer { name: "r" type: "ReLU" bottom: "data" top: "r" }\n',
    ".safetensors": len(HEADER).to_bytes(8, "little") + HEADER + b"\0" * 24,
    ".caffemodel": wire.lenet(),
}


@pytest.mark.parametrize("suffix", OURS)
@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_standard_input_is_read_by_its_bytes(
    suffix: str,
    name: str,
    tmp_path: Path,
    capsys: Captured,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    file = tmp_path / f"stdin{suffix}"
    file.write_bytes(OURS[suffix])
    for command in (["show"], ["show", "--as", "json"], ["show", "--total"]):
        assert run([*command, str(file)]) == 0
        expected = capsys.readouterr().out.replace(str(file), "standard input")
        expected = expected.replace(f'"file": "{file.name}"', '"file": "standard input"')
        piped(monkeypatch, OURS[suffix])
        assert run([*command, name]) == 0
        assert capsys.readouterr().out == expected
    assert list(tmp_path.iterdir()) == [file]


def piped(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.mark.parametrize(
    ("data", "args", "code", "says"),
    [
        (b"", ["show", "-"], 3, "standard input: the file is empty"),
        (RANDOM, ["show", "-"], 3, "standard input: not a supported model file"),
        (LFS, ["show", "-"], 3, "standard input: a Git LFS pointer"),
        (OURS[".caffemodel"][:30], ["show", "-"], 3, "standard input: "),
        (b'{"model_type": "llama"}', ["show", "-"], 2, "its file, hf:config.json"),
        (OURS[".prototxt"], ["compare", "-", "-"], 2, "standard input is given twice"),
    ],
)
def test_standard_input_that_is_refused(
    data: bytes,
    args: list[str],
    code: int,
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
) -> None:
    piped(monkeypatch, data)
    assert run(args) == code
    err = capsys.readouterr().err
    assert says in err
    assert "/stdin" not in err


def test_standard_input_is_bounded_by_name(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr(sources, "STDIN_BYTES", 1 << 16)
    piped(monkeypatch, OURS[".prototxt"] + b"#" * (1 << 21))
    assert run(["show", "-"]) == 3
    assert "more than STDIN_BYTES = 65,536 bytes" in capsys.readouterr().err


def test_pipes_and_devices_are_refused_by_name(tmp_path: Path, capsys: Captured) -> None:
    fifo = tmp_path / "fifo.onnx"
    os.mkfifo(fifo)
    link = tmp_path / "link.onnx"
    link.symlink_to("/dev/zero")
    for name, what in ((fifo, "a named pipe"), (link, "a device"), ("/dev/zero", "a device")):
        for args in (
            ["show", f"{name}"], ["plot", f"{name}"], ["measure", f"{name}"],
            ["show", f"hf:{name}"], ["compare", "lenet5", f"{name}"],
            ["check", f"{name}", "--max-params", "1"],
            ["show", "lenet5", "--weights", f"{name}"],
        ):  # fmt: skip
            assert run(args) == 3
            err = capsys.readouterr().err
            assert f"{name}: {what}, expected a file" in err
            assert err.count("\n") == 1
        assert run(["check", "--config", str(name)]) == 3
        assert f"{name}: {what}, expected a file" in capsys.readouterr().err
