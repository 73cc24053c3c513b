"""Fixtures of all tests: the shared figures, golden files and the small networks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SHARED = HERE.parent.parent / "shared"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--refresh-goldens", action="store_true", help="write golden files anew")


@pytest.fixture
def shared() -> Path:
    """The folder of independent figures; tests that need it are skipped where it is not."""
    if not SHARED.is_dir():
        pytest.skip("the independent figures (../shared) are not on this machine")
    return SHARED


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare text with tests/goldens/NAME, or write it there with --refresh-goldens."""

    def compare(name: str, text: str) -> None:
        path = HERE / "goldens" / name
        if request.config.getoption("--refresh-goldens"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.is_file(), f"no golden {name}: run pytest --refresh-goldens and read it"
        assert text == path.read_text(encoding="utf-8")

    return compare
