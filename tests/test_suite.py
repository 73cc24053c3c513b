"""The test suite itself: what make targets run, what they leave out, and how they say it."""

from __future__ import annotations

import ast
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.conftest import HERE
from tests.skips import NO_SHARED, SLOW_TARGETS, needs_torch

ROOT = HERE.parent
FILES = sorted(HERE.rglob("*.py"))
TESTS = sorted(HERE.rglob("test_*.py"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PEERS = set(HERE.rglob("test_peers*.py"))  # their tests have the marker of that name


def keywords(path: Path) -> set[str]:
    """Names of all keyword arguments that a file gives."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg}


def test_one_profile_has_no_deadline() -> None:
    assert settings.default is not None
    assert settings.default.deadline is None
    assert settings.default.print_blob
    assert settings.default.derandomize == ("CI" in os.environ)
    assert HealthCheck.too_slow in settings.default.suppress_health_check
    assert [path.name for path in FILES if "deadline" in keywords(path)] == ["conftest.py"]


def test_a_deadline_is_found(tmp_path: Path) -> None:
    path = tmp_path / "test_x.py"
    path.write_text("@settings(max_examples=3, deadline=200)\ndef test_x(): ...\n")
    assert keywords(path) == {"max_examples", "deadline"}


def test_a_job_in_the_background_can_be_interrupted() -> None:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def recipe(target: str) -> str:
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, flags=re.MULTILINE)
    assert found is not None, target
    return found[1]


def test_ci_runs_these_targets() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert re.findall(r"^make (.*)$", script, flags=re.MULTILINE) == [
        "check", "test", "page", "test-page", "test-torch",
    ]  # fmt: skip


def test_only_files_named_for_it_need_pytorch() -> None:
    """Else `make test` would run other tests on a machine with PyTorch than on one without."""
    uses = re.compile(
        r"^\s*(import|from) (torch|tests\.formats\.torch\.torch_nets)\b|importorskip\(.torch", re.M
    )
    using = {path for path in TESTS if uses.search(path.read_text(encoding="utf-8"))} - PEERS
    assert using == {path for path in TESTS if needs_torch(path)}
    assert "-name 'test_torch_*.py' -o -name 'test_*_torch.py'" in MAKEFILE
    assert "$(TORCH_TESTS)" in recipe("test-torch")
    assert "--all-installed" in recipe("test-torch")


def test_every_slow_test_has_a_target() -> None:
    slow = {path for path in TESTS if "mark.slow" in path.read_text(encoding="utf-8")}
    for path in slow - {Path(__file__)}:
        target = SLOW_TARGETS.get(path.name, "make test-lower").split()[1]
        assert str(path.relative_to(ROOT)) in recipe(target)


CONFTEST = """
from tests.skips import Skips

def pytest_configure(config):
    config.pluginmanager.register(Skips())

def pytest_addoption(parser):
    parser.addoption("--all-installed", action="store_true")
"""
SOME = f"""
import pytest

def test_a(): pass
@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2])
def test_b(n): pass
@pytest.mark.peers
def test_c(): pass
def test_d(): pytest.skip({NO_SHARED!r})
def test_e(): pytest.skip("no such device")
"""
TORCH = """
import pytest
pytest.importorskip("no_such_torch", reason="torch is not installed")

def test_f(): pass
def test_g(): pass
"""
LEFT_OUT = [
    "2 PyTorch test functions in 1 files (make test-torch)",
    "1 peers (make test-peers)",
    "2 slow (make test-lower)",
    "1 that read ../shared, which is not here",
    "1 for other reasons (-rs)",
]


def run_suite(folder: Path, *arguments: str) -> tuple[int, str]:
    """Exit status and last line of a small suite with the plugin of ours."""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_some.py").write_text(SOME)
    (folder / "test_torch_some.py").write_text(TORCH)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    slow\n    peers\n")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=folder, env={"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}, capture_output=True, text=True,
        check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return ran.returncode, ran.stdout.splitlines()[-1]


@pytest.mark.parametrize("workers", ["0", "2"])
def test_the_last_line_says_what_did_not_run(tmp_path: Path, workers: str) -> None:
    selected = "-m", "not slow and not peers", "-n", workers
    assert run_suite(tmp_path, *selected) == (0, f"skipped: {', '.join(LEFT_OUT)}")


def test_nothing_left_out_says_nothing(tmp_path: Path) -> None:
    assert run_suite(tmp_path, "test_some.py::test_a")[1].startswith("1 passed")


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_library_that_is_missing_can_be_a_failure(tmp_path: Path, workers: str) -> None:
    files = "test_some.py", "test_torch_some.py", "-n", workers
    line = "1 that need a library that is not installed (-rs)"
    status, last = run_suite(tmp_path, *files)
    assert status == 0
    assert line in last
    status, last = run_suite(tmp_path, *files, "--all-installed")
    assert status == 1
    assert line in last
