"""Sources of a sweep: what each kind expands to, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from layerscope.errors import LayerscopeError, UnknownName
from layerscope.sweeping.sources import content_of, networks_of
from layerscope.zoo import NAMES


def expanded(*sources: str) -> list[str]:
    return list(networks_of(sources))


def test_zoo_names_and_patterns() -> None:
    assert expanded("vgg16") == ["vgg16"]
    assert expanded("vgg1?") == [name for name in NAMES if len(name) == 5 and name[:4] == "vgg1"]
    assert expanded("*") == list(NAMES)


def test_each_network_once_in_the_order_of_its_sources() -> None:
    assert expanded("resnet50", "vgg16", "resnet50") == ["resnet50", "vgg16"]


def test_files_globs_and_folders(tmp_path: Path) -> None:
    for name in ("b.prototxt", "a.onnx", "notes.md", "sub/c.safetensors"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    folder = str(tmp_path)
    found = [f"{folder}/a.onnx", f"{folder}/b.prototxt", f"{folder}/sub/c.safetensors"]
    assert expanded(folder) == found
    assert expanded(f"{folder}/*.onnx") == found[:1]
    assert expanded(f"{folder}/b.prototxt") == found[1:2]


def test_a_list_names_sources(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text("# networks\nvgg16\n\nresnet1*  # a pattern\nvgg16\n")
    found = expanded(str(path))
    assert found[0] == "vgg16"
    assert found[1:] == [name for name in NAMES if name.startswith("resnet1")]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("nosuch*", "no name matches the pattern"),
        ("hf:nowhere/*.json", "no file matches the pattern"),
        ("nowhere/*.onnx", "no file matches the pattern"),
    ],
)
def test_a_pattern_without_a_match_is_refused(source: str, message: str) -> None:
    with pytest.raises(LayerscopeError, match=message.replace("*", r"\*")):
        expanded(source)


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ("resnt50", UnknownName, "did you mean resnet50"),
        ("missing.onnx", FileNotFoundError, "missing.onnx"),
        ("nowhere/net", FileNotFoundError, "nowhere/net"),
    ],
)
def test_a_source_that_does_not_exist_is_refused(
    source: str, error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        expanded("vgg16", source)
    path = tmp_path / "list.txt"
    path.write_text(f"{source}\n")
    assert expanded(str(path)) == [source]  # a row with an error


def test_a_folder_without_networks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LayerscopeError, match="no file in it has the suffix of a network"):
        expanded(str(tmp_path))


def test_prose_is_no_list(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("vgg16\nthis is a sentence\n")
    with pytest.raises(LayerscopeError, match=r"notes.txt:2: .*expected one network per line"):
        expanded(str(path))


def test_content_follows_the_bytes_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.prototxt"
    path.write_text("name: 'a'")
    first = content_of(str(path))
    path.write_text("name: 'b'")
    assert content_of(str(path)) != first
    assert content_of("vgg16") == "vgg16"
