"""Files that once broke a reader, or were made to: each gives a graph or a named error, quickly."""

from __future__ import annotations

import time
from pathlib import Path
from random import Random

import pytest

import layerscope
from tests.fuzz import onnx_nets
from tests.fuzz.faults import FAULTS, Fault
from tests.fuzz.mutators import MUTATORS
from tests.fuzz.nets import net
from tests.fuzz.seeds import SEEDS
from tests.fuzz.targets import REGRESSIONS, TARGETS, fuzz_onnx, fuzz_protobuf


@pytest.mark.parametrize("path", sorted(REGRESSIONS.iterdir()), ids=lambda path: path.name)
def test_regression(path: Path) -> None:
    begin = time.process_time()
    TARGETS[path.name.partition("-")[0]](path.read_bytes())
    assert time.process_time() - begin < 5


@pytest.mark.parametrize("target", TARGETS)
def test_what_fuzzing_begins_from(target: str) -> None:
    for data in SEEDS[target]().values():
        TARGETS[target](data)


@pytest.mark.parametrize("target", MUTATORS)
def test_changed_files(target: str) -> None:
    """The changes that keep a file readable, with a few changed bytes in place of libFuzzer's."""
    source = Random(target)

    def change(data: bytes) -> bytes:
        at = source.randrange(len(data) + 1)
        return data[:at] + source.randbytes(source.randrange(4)) + data[at + source.randrange(3) :]

    files = list(SEEDS[target]().values())
    for data in files[:: len(files) // 20 + 1]:
        for _ in range(40):
            data = MUTATORS[target](data, source, change)[: 1 << 15]
            TARGETS[target](data)


def test_networks_that_are_nearly_right() -> None:
    for seed in range(300):
        fuzz_protobuf(net(seed))
    for seed in range(1000, 1500):
        fuzz_onnx(onnx_nets.net(seed))


@pytest.mark.parametrize("target", TARGETS)
def test_faults_to_plant(target: str) -> None:
    """Each still changes one place of its reader: see `make fuzz-planted`."""
    assert len(FAULTS[target]) == 3
    for fault in FAULTS[target]:
        assert planted(fault)


def planted(fault: Fault) -> bool:
    """Whether the old text stands in its file once, and Python takes the new one."""
    text = (Path(layerscope.__file__).parent / fault.file).read_text()
    compile(text.replace(fault.old, fault.new), fault.file, "exec")
    return text.count(fault.old) == 1
