"""The last line of a test run: what did not run, and which make target runs it."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Generator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

# Only `make test-torch` runs these files, so that `make test` is the same with PyTorch and without.
TORCH_FILES = ("test_torch_*.py", "test_*_torch.py")
NO_SHARED = "the figures of others (../shared) are not on this machine"
SLOW_TARGETS = {  # of other files: make test-lower
    "test_document_large.py": "make test-documents",
    "test_document_round_trip.py": "make test-documents",
    "test_zoo_documents.py": "make test-documents",
    "test_onnx_models.py": "make test-models",
    "test_sweep.py": "make test-sweep",
    "test_torch_configs.py": "make test-configs",
    "test_torch_figures.py": "make test-zoo",
    "test_torch_threads.py": "make test-threads",
    "test_torch_vision_names.py": "make test-zoo",
}


def needs_torch(path: Path) -> bool:
    """Whether a test file is run by `make test-torch` alone."""
    return any(fnmatch(path.name, pattern) for pattern in TORCH_FILES)


def test_functions(path: Path) -> int:
    """Number of test functions in a file, which is not imported."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return sum(isinstance(x, ast.FunctionDef) and x.name.startswith("test_") for x in tree.body)


def deselected_group(item: pytest.Item) -> str:
    """What a deselected test is called in the last line."""
    if item.get_closest_marker("peers"):
        return "peers (make test-peers)"
    if item.get_closest_marker("slow"):
        return f"slow ({SLOW_TARGETS.get(item.path.name, 'make test-lower')})"
    return f"not selected (make {'test-torch' if needs_torch(item.path) else 'test'})"


def is_missing(reason: str) -> bool:
    """Whether a test is skipped because a library is not installed."""
    return "not installed" in reason or "could not import" in reason


def skipped_group(reason: str) -> str:
    """What a skipped test is called in the last line."""
    if NO_SHARED in reason:
        return "that read ../shared, which is not here"
    if is_missing(reason):
        return "that need a library that is not installed (-rs)"
    return "for other reasons (-rs)"


def summary_line(torch: Counter[str], deselected: Counter[str], reasons: list[str]) -> str:
    """`skipped: 3 peers (make test-peers), ...`, or empty if every test ran."""
    parts = []
    if torch:
        count = f"{torch.total()} PyTorch test functions in {len(torch)} files"
        parts.append(f"{count} (make test-torch)")
    parts += [f"{count} {group}" for group, count in sorted(deselected.items())]
    groups = Counter(map(skipped_group, reasons))
    parts += [f"{count} {group}" for group, count in sorted(groups.items(), reverse=True)]
    return f"skipped: {', '.join(parts)}" if parts else ""


class Skips:
    """A pytest plugin that counts what does not run, also in the workers of pytest-xdist."""

    def __init__(self) -> None:
        self.torch: Counter[str] = Counter()  # test functions by file
        self.deselected: Counter[str] = Counter()  # tests by group
        self.modules: list[str] = []  # why whole files are skipped, one reason each

    def pytest_ignore_collect(self, collection_path: Path, config: pytest.Config) -> bool | None:
        """Leave out files of PyTorch tests; pytest asks for none that the command line names."""
        if not needs_torch(collection_path):
            return None
        if any(Path(config.invocation_params.dir, arg).is_dir() for arg in config.args):
            self.torch[collection_path.name] = test_functions(collection_path)
        return True

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        self.deselected.update(map(deselected_group, items))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self.modules.append(str(report.longrepr))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, Any, Any]:
        output = getattr(session.config, "workeroutput", None)
        reporter: Any = session.config.pluginmanager.get_plugin("terminalreporter")
        reasons: list[str] = []
        if output is not None:
            output["skips"] = (dict(self.torch), dict(self.deselected), self.modules)
        elif reporter is not None:
            skipped = reporter.stats.get("skipped", ())
            tests = [report for report in skipped if isinstance(report, pytest.TestReport)]
            reasons = [*self.modules, *(str(report.longrepr) for report in tests)]
            if session.config.getoption("--all-installed") and any(map(is_missing, reasons)):
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
        result = yield
        line = summary_line(self.torch, self.deselected, reasons)
        if output is None and reporter is not None and line:
            reporter.write_line(line)
        return result

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take the counts of a worker, which are the same in each: each collects all tests."""
        counts = getattr(node, "workeroutput", {}).get("skips")
        if counts is not None:
            self.torch, self.deselected, self.modules = (
                Counter(counts[0]),
                Counter(counts[1]),
                counts[2],
            )
