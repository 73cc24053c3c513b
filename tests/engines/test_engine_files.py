"""Every engine has a file with the functions of EngineModule, and an extra that installs it."""

from __future__ import annotations

import ast
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

from layerscope.engines import ENGINES, EngineModule

ROOT = Path(__file__).parent.parent.parent
FUNCTIONS = {name for name in vars(EngineModule) if not name.startswith("_")}


@pytest.mark.parametrize("name", ENGINES)
def test_the_file_defines_what_an_engine_needs(name: str) -> None:
    spec = find_spec(f"layerscope.engines.{ENGINES[name].module}")  # without importing the engine
    assert spec is not None, f"engines/{ENGINES[name].module}.py is missing"
    assert spec.origin is not None
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert {"version", "measure"} == FUNCTIONS <= defined


@pytest.mark.parametrize("name", ENGINES)
def test_it_can_be_installed(name: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = set(ENGINES[name].extra.split(","))
    assert extras <= set(project["optional-dependencies"])


@pytest.mark.parametrize("name", ENGINES)
def test_it_is_documented(name: str) -> None:
    assert f"`{name}`" in (ROOT / "docs" / "measure.md").read_text(encoding="utf-8")
