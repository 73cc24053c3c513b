"""Fixtures of all tests: the shared figures, golden files and the small networks."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.skips import NO_SHARED, Skips

# Some virtual machines report AMX and end a process that uses it: oneDNN's bf16 kernels do. It is
# read when PyTorch is imported.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

HERE = Path(__file__).parent
SHARED = HERE.parent.parent / "shared"

# On a loaded machine a deadline fails, and so does the check for slow data. CI draws the same
# examples at every run, so that one commit has one result; runs by hand draw others, and the blob
# reproduces a failure.
settings.register_profile(
    "layerscope",
    parent=settings.get_profile("default"),
    deadline=None,
    derandomize="CI" in os.environ,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("layerscope")


def pytest_configure(config: pytest.Config) -> None:
    os.environ.pop("COLUMNS", None)  # the width of somebody's terminal, which tables would fit
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so in a job in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.pluginmanager.register(Skips(), "layerscope-skips")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--refresh-goldens", action="store_true", help="write golden files anew")
    parser.addoption("--all-installed", action="store_true", help="a missing library is a failure")


@pytest.fixture
def shared() -> Path:
    """The folder of independent figures; tests that need it are skipped where it is not."""
    if not SHARED.is_dir():
        pytest.skip(NO_SHARED)
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
