"""Builds of the package: with the report page, or with a warning that it is missing."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
pytest.importorskip("hatchling", reason="hatchling is not installed: make check installs it")


def build(root: Path, version: str = "standard") -> list[str]:
    """The warnings of a build of the folder."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    said: list[str] = []
    app = SimpleNamespace(display_warning=said.append)
    hook = module.PageHook(str(root), {}, None, None, str(root), "wheel", app)
    hook.initialize(version, {})
    return said


def with_page(root: Path) -> Path:
    for name in ("page.html", "charts.js"):
        path = root / "src" / "layerscope" / "web" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("built", encoding="utf-8")
    return root


def test_a_build_without_the_page_warns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAYERSCOPE_RELEASE", raising=False)
    [said] = build(tmp_path)
    assert "page.html" in said
    assert "make page" in said
    assert build(tmp_path, "editable") == []
    assert build(with_page(tmp_path)) == []


def test_a_release_without_the_page_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAYERSCOPE_RELEASE", "1")
    with pytest.raises(SystemExit, match="make page"):
        build(tmp_path)
    assert build(with_page(tmp_path)) == []
