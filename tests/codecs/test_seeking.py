"""Bytes of a file read by seeking are those of the file, and few pages are kept."""

from __future__ import annotations

import random
from pathlib import Path

import onnx  # noqa: TID251
import pytest

from layerscope import analyze
from layerscope.codecs import seeking
from tests.formats.onnx.onnx_files import conv, model, zeros
from tests.formats.stored_files import legacy


def test_slices_and_indices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seeking, "PAGE_BYTES", 16)
    monkeypatch.setattr(seeking, "MOST_PAGES", 3)
    data = bytes(range(256)) * 2 + b"end"
    path = tmp_path / "x"
    path.write_bytes(data)
    source = random.Random(3)
    with path.open("rb") as file:
        found = seeking.SeekedBytes(file, len(data))
        assert len(found) == len(data)
        for _ in range(500):
            start, stop = source.randrange(-600, 600), source.randrange(-600, 600)
            assert found[start:stop] == data[start:stop]
            at = source.randrange(-len(data), len(data))
            assert found[at] == data[at]
            assert len(found.pages) <= 3
            begin, end = sorted((at % len(data), stop % len(data)))
            assert found.find(b"\x07", begin, end) == data.find(b"\x07", begin, end)
        assert found[:] == data
        with pytest.raises(IndexError):
            found[len(data) + 99]
        with pytest.raises(ValueError, match="step"):
            found[::2]
        first = seeking.SeekedBytes(file, 20)  # of the file, whose second page has more
        assert (first[15:], first.find(b"\x14", 0)) == (data[15:20], -1)
        with pytest.raises(IndexError):
            first[20]


def test_models_read_by_seeking_have_the_same_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(model([conv()], stored=[zeros("w1", 4, 3, 3, 3)]), path)
    weights = legacy(tmp_path / "weights.pt", {f"layer{n}.weight": (2, 3) for n in range(3000)})
    mapped = [analyze(each).to_json() for each in (path, weights)]
    monkeypatch.setattr(seeking, "SEEKS", True)
    assert [analyze(each).to_json() for each in (path, weights)] == mapped
