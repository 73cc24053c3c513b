"""Weights in a folder against the model of its config.json: names, shapes and totals."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path

import pytest

from layerscope.api.networks import analyze
from layerscope.formats.torch.model_names.stored_weights import INDEX, WEIGHTS
from tests.formats.stored_files import safetensors
from tests.llm.test_torch_families import _modules, _small

pytest.importorskip("torch")

pytestmark = pytest.mark.filterwarnings("ignore")
Arrays = dict[str, tuple[int, ...]]


def folder(tmp_path: Path, kind: str = "llama") -> tuple[Path, Arrays]:
    """A folder with a configuration, and the arrays of its model."""
    torch, transformers = _modules()
    config = _small(transformers, kind)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    values = config.to_dict() | {"architectures": [type(model).__name__], "model_type": kind}
    (tmp_path / "config.json").write_text(json.dumps(values), encoding="utf-8")
    return tmp_path, {name: tuple(each.shape) for name, each in model.named_parameters()}


def write(path: Path, arrays: Arrays, files: int = 2, stated: int = 0, absent: int = 0) -> None:
    """Shards of bf16 with their index; the last ones may be absent."""
    parts = [dict(list(arrays.items())[n::files]) for n in range(files)]
    names = [f"model-{n}.safetensors" for n in range(files)]
    for name, part in list(zip(names, parts, strict=True))[: files - absent]:
        safetensors(path / name, {each: ("BF16", shape) for each, shape in part.items()})
    index = {
        "metadata": {"total_size": 2 * sum(map(prod, arrays.values())) + stated},
        "weight_map": {
            each: name for name, part in zip(names, parts, strict=True) for each in part
        },
    }
    (path / INDEX).write_text(json.dumps(index), encoding="utf-8")


def notes(path: Path) -> list[str]:
    found = analyze(f"hf:{path}", tokens=4).notes
    return [each for each in found if "stored" in each or "index" in each]


@pytest.mark.parametrize("kind", ["llama", "gemma", "gpt2"])
def test_equal_weights(kind: str, tmp_path: Path) -> None:
    path, arrays = folder(tmp_path, kind)
    assert notes(path) == []
    total = sum(map(prod, arrays.values()))
    text = f"stored weights: {total:,} elements in {len(arrays)} arrays, with the names and shapes"
    safetensors(path / WEIGHTS, {name: ("F32", shape) for name, shape in arrays.items()})
    assert notes(path) == [f"{text} of the model"]
    write(path, arrays)
    assert notes(path) == [f"{text} of the model"]


def test_other_weights(tmp_path: Path) -> None:
    path, arrays = folder(tmp_path)
    query = "model.layers.0.self_attn.q_proj.weight"
    changed = {name: shape for name, shape in arrays.items() if name != "model.norm.weight"}
    changed |= {query: arrays[query][::-1], "model.extra": (3, 5)}
    write(path, changed, stated=8)
    differs, size = notes(path)
    assert "only stored: model.extra (15 elements)" in differs
    assert "not stored: model.norm.weight (64 elements)" in differs
    assert f"other shapes: {query} 64x96, in the model 96x64" in differs
    total = 2 * sum(map(prod, changed.values()))
    assert size == f"the index states {total + 8:,} bytes, its arrays have {total:,}"


def test_experts_that_are_stored_one_by_one(tmp_path: Path) -> None:
    path, arrays = folder(tmp_path, "mixtral")
    split: Arrays = {}
    for name, shape in arrays.items():
        if len(shape) == 3:
            split |= {f"{name}.{n}": shape[1:] for n in range(shape[0])}
        else:
            split[name] = shape
    write(path, split)
    [note] = notes(path)
    assert "elements have other names" in note
    assert "only stored" not in note


@pytest.mark.parametrize("absent", [1, 2])
def test_an_index_without_its_files(tmp_path: Path, absent: int) -> None:
    path, arrays = folder(tmp_path)
    write(path, arrays, absent=absent)
    [note] = notes(path)
    total = sum(map(prod, arrays.values()))
    files = "1 file of the index is" if absent == 1 else "2 files of the index are"
    assert f"shapes are not compared, {files} absent" in note
    assert f"the names of its {len(arrays)} arrays are those of the model" in note
    assert f"it states {2 * total:,} bytes for the model's {total:,} elements, 2 for each" in note
    write(path, {name + "x": shape for name, shape in arrays.items()}, absent=2)
    [note] = notes(path)
    assert f"and {len(arrays) - 3} more" in note
