"""Every preset written as Caffe would store it, by its fields, is read as the same network."""

from __future__ import annotations

from pathlib import Path

import pytest

from layerscope import analyze
from layerscope.codecs.message import Message, Scalar
from layerscope.codecs.schema import Enum, Schema
from layerscope.errors import LayerscopeError
from layerscope.formats.caffe import prototxt
from layerscope.formats.caffe.schema import LAYER, NET
from tests.codecs.wire import field

FOLDERS = ("prototxt", "prototxt_repaired", "mtcnn")


def encode(message: Message, schema: Schema) -> bytes:
    """The fields of a text that a schema knows, on the wire."""
    made = b""
    known = {name: (number, holds) for number, (name, holds) in schema.fields.items()}
    for name, values in message.fields.items():
        if name not in known:
            continue
        number, holds = known[name]
        for value in values:
            if isinstance(value, Message):
                inner = holds if isinstance(holds, Schema) else LAYER
                made += field(number, encode(value, inner))
            else:
                made += field(number, scalar(message, name, holds, value))
    return made


def scalar(message: Message, name: str, holds: object, value: Scalar) -> int | float | str:
    single = Message(message.locator)
    single.put(name, value)
    if isinstance(holds, Enum):
        return holds.words.index(value.text.upper())
    if holds == "int":
        return single.whole(name)
    if holds == "bool":
        return int(single.flag(name))
    return single.number(name) if holds == "float" else value.text


def test_presets_as_binary_files(shared: Path, tmp_path: Path) -> None:
    read = 0
    for path in sorted(p for f in FOLDERS for p in (shared / "truth/netscope" / f).glob("*")):
        for phase in ("train", "test"):
            try:
                told = analyze(str(path), phase=phase)
            except LayerscopeError:
                continue  # what the text lacks, its binary lacks as well
            binary = tmp_path / "net.caffemodel"
            binary.write_bytes(encode(prototxt.message(str(path)), NET))
            try:
                found = analyze(str(binary), phase=phase)
            except LayerscopeError as error:
                pytest.fail(f"{path.name}: {error}")
            assert found.totals == told.totals, path.name
            assert [n.op for n in found.graph.nodes] == [n.op for n in told.graph.nodes]
            assert [n.attributes for n in found.graph.nodes] == [
                n.attributes for n in told.graph.nodes
            ]
            read += 1
    assert read >= 20
