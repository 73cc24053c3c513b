"""Documentation that the program writes is fresh, and nothing that users can type is left out."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

from layerscope.cli import COMMANDS
from layerscope.conventions import CONVENTIONS
from layerscope.notations import NOTATIONS
from layerscope.ops import SPECS

ROOT = Path(__file__).parent.parent


def generator() -> Any:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", generator().PAGES)
def test_pages_are_fresh(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    made = generator().PAGES[page]()
    assert (ROOT / page).read_text(encoding="utf-8") == made, f"{page} is stale: run make docs"


def test_every_op_is_in_the_table_of_counts() -> None:
    page = (ROOT / "docs" / "counting.md").read_text(encoding="utf-8")
    told = set(re.findall(r"`([a-z0-9_]+)`", page))
    assert set(SPECS) <= told


def test_the_readme_names_every_command_and_form() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in (*COMMANDS, *NOTATIONS, *CONVENTIONS):
        assert f"`{name}`" in text or f"layerscope {name}" in text, name


def test_the_contributors_map_names_every_folder_and_file() -> None:
    """Folders of the package, and files of the folders that have a table of their own."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    package = ROOT / "src" / "layerscope"
    folders = {path.parent for path in package.rglob("__init__.py")} - {package}
    missing = [str(f) for f in folders if f"`{f.name}/`" not in text and f"/{f.name}/`" not in text]
    assert not missing
    for part in ("formats/torch", "formats/torch/aten", "formats/onnx", "formats/onnx/converters"):
        for path in (package / part).glob("*.py"):
            assert path.stem == "__init__" or f"| `{path.name}` |" in text, path


def test_the_contributors_guide_names_files_and_tests_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    recipes = text[text.index("## Recipes") : text.index("## Habits")]
    sources = [ROOT / "src" / "layerscope", ROOT / "src" / "layerscope" / "formats" / "torch", ROOT]
    for name in re.findall(r"`([\w./-]+\.(?:py|md|toml|txt))(?:::\w+)?`", recipes):
        near = list((ROOT / "tests").rglob(name)) + list((ROOT / "src").rglob(name))
        assert near or any((folder / name).exists() for folder in sources), name
    for path, test in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", recipes):
        assert f"def {test}(" in (ROOT / path).read_text(encoding="utf-8"), test


def test_no_page_links_to_a_missing_file() -> None:
    for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_python_of_the_readme_runs() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        lines = block.splitlines()
        names: dict[str, Any] = {}
        for line in lines:
            code, _, expected = line.partition("  # ")
            if expected.strip().startswith("("):
                assert repr(eval(code, names)) == expected.strip()
            else:
                exec(code, names)


def test_tests_that_are_named_exist() -> None:
    """In comments of the sources, in the docs and in the recipes."""
    files = [*ROOT.glob("src/**/*.py"), *ROOT.glob("docs/**/*.md"), ROOT / "CONTRIBUTING.md"]
    named = {
        path for file in files
        for path in re.findall(r"tests/[\w/]+\.py", file.read_text(encoding="utf-8"))
    }  # fmt: skip
    assert named
    assert [path for path in sorted(named) if not (ROOT / path).is_file()] == []
