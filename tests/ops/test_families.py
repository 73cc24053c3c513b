"""Everything about an op stands in files of one stem: that of the file that defines its OpSpec.

A reader who has found an op in one folder finds it under the same file name in the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import pytest

from layerscope import ops
from layerscope.graph.attributes import DeclaredOutputs, Softmax
from layerscope.lower.emitters import EMITTERS, REFUSED
from layerscope.ops import SPECS
from tests import brute
from tests.brute.onnx_models import MODELS

STEMS = (
    "activation", "attention", "caffe_recurrent", "control", "convolution", "data_dependent",
    "elementwise", "fft", "indexing", "layout", "linalg", "linear", "loss", "normalization",
    "pooling", "quantization", "recurrent", "reduction", "resize", "roi", "search",
    "slice_concat",
)  # fmt: skip
FAMILY = {op: stem for stem in STEMS for op in getattr(ops, stem).SPECS}

# Folder -> tables by op in each of its files.
# Converters are checked in test_onnx_families.py, test_aten_families.py and test_caffe_families.py.
FOLDERS: Mapping[str, tuple[str, ...]] = {
    "layerscope.lower.emitters": ("EMITTERS", "REFUSED"),
    "tests.brute": ("BRUTE",),
    "tests.brute.onnx_models": ("MODELS",),
}
# Attributes that ops of several families have; they stand in the file of the first one.
SHARED_ATTRIBUTES = {DeclaredOutputs, Softmax}


def files(folder: str) -> list[str]:
    """Stems of a folder's files."""
    path = Path(import_module(folder).__file__ or "").parent
    return sorted(file.stem for file in path.glob("*.py") if file.stem != "__init__")


def test_every_op_has_a_family() -> None:
    assert set(FAMILY) == set(SPECS)
    assert sum(len(getattr(ops, stem).SPECS) for stem in STEMS) == len(SPECS)


@pytest.mark.parametrize("folder", FOLDERS)
def test_ops_stand_in_the_file_of_their_family(folder: str) -> None:
    for stem in set(files(folder)) & set(STEMS):
        module = import_module(f"{folder}.{stem}")
        for table in FOLDERS[folder]:
            wrong = {op for op in getattr(module, table, ()) if FAMILY[op] != stem}
            assert not wrong, f"{folder}.{stem}.{table}"


def test_cases_stand_in_the_file_of_their_family() -> None:
    for stem in STEMS:
        cases = import_module(f"tests.brute.{stem}").CASES
        assert {FAMILY[case.op] for case in cases} == {stem}


def test_nothing_is_left_out() -> None:
    assert set(EMITTERS) | set(REFUSED) == set(SPECS)
    assert set(brute.BRUTE) == {case.op for case in brute.CASES}
    assert set(MODELS) <= set(SPECS)


def test_folders_have_files_of_these_stems_only() -> None:
    assert files("layerscope.lower.emitters") == sorted(STEMS)
    assert set(files("tests.brute.onnx_models")) <= set(STEMS)
    assert set(STEMS) <= set(files("tests.brute"))
    attributes = set(files("layerscope.graph.attributes")) - {"window"}  # of several families
    assert attributes <= set(STEMS)


def test_attributes_stand_in_the_file_of_their_family() -> None:
    for op, spec in SPECS.items():
        if spec.attributes is not None and spec.attributes not in SHARED_ATTRIBUTES:
            assert spec.attributes.__module__.rpartition(".")[2] == FAMILY[op], op
