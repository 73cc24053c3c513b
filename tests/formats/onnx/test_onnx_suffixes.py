"""ONNX files are recognised by their bytes, whatever their suffix and the order of their fields."""

from __future__ import annotations

from pathlib import Path

import pytest

from layerscope import analyze, load
from layerscope.formats import recognise
from layerscope.formats.onnx import recognise as recognise_onnx
from layerscope.formats.sources import head_of

onnx = pytest.importorskip("onnx")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A model with more bytes than are looked at to recognise it."""
    from layerscope.cli import run

    path = tmp_path_factory.mktemp("onnx") / "lenet5.onnx"
    assert run(["export", "lenet5", "--to", "onnx", "-o", str(path)]) == 0
    return path.read_bytes()


def varint(number: int) -> bytes:
    """A number as protobuf writes it."""
    text = b""
    while number > 127:
        text += bytes([number & 127 | 128])
        number >>= 7
    return text + bytes([number])


def graph_first(data: bytes) -> bytes:
    """The same model with its graph before its version."""
    found = onnx.ModelProto.FromString(data)
    graph: bytes = found.graph.SerializeToString()
    found.ClearField("graph")
    rest: bytes = found.SerializeToString()
    return b"\x3a" + varint(len(graph)) + graph + rest


@pytest.mark.parametrize("ordered", [True, False], ids=["version first", "graph first"])
@pytest.mark.parametrize("name", ["net.bin", "net.pt", "net.pth", "net.dat", "net.pb", "net"])
def test_any_suffix(name: str, ordered: bool, model: bytes, tmp_path: Path) -> None:
    data = model if ordered else graph_first(model)
    assert onnx.ModelProto.FromString(data) == onnx.ModelProto.FromString(model)
    path = tmp_path / name
    path.write_bytes(data)
    assert recognise(str(path), head_of(str(path))).name == "onnx"
    assert analyze(str(path)).totals.macs == analyze("lenet5").totals.macs
    assert len(load(str(path)).nodes) == len(load("lenet5").nodes)


OTHER = (
    b"",
    b":",
    b":\n",
    b"\x3a\x05hello",
    b": a comment\n[net]\n",
    b"\x3a\x80\x80\x10\x0a\x04\x33",
)


@pytest.mark.parametrize("head", OTHER)
def test_other_bytes_are_not_onnx(head: bytes) -> None:
    assert not recognise_onnx(head.ljust(4096, b"\0"))
    assert not recognise_onnx(head)
