"""Files that once broke a reader, or were made to: each gives a graph or a named error, quickly."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.fuzz import onnx_nets
from tests.fuzz.nets import net
from tests.fuzz.seeds import messages, models, texts
from tests.fuzz.targets import REGRESSIONS, TARGETS, fuzz_onnx, fuzz_protobuf, fuzz_prototxt


@pytest.mark.parametrize("path", sorted(REGRESSIONS.iterdir()), ids=lambda path: path.name)
def test_regression(path: Path) -> None:
    begin = time.process_time()
    TARGETS[path.name.partition("-")[0]](path.read_bytes())
    assert time.process_time() - begin < 5


def test_what_fuzzing_begins_from() -> None:
    for data in messages().values():
        fuzz_protobuf(data)
    for data in texts().values():
        fuzz_prototxt(data)
    for data in models().values():
        fuzz_onnx(data)


def test_networks_that_are_nearly_right() -> None:
    for seed in range(300):
        fuzz_protobuf(net(seed))
    for seed in range(1000, 1500):
        fuzz_onnx(onnx_nets.net(seed))
