"""What start-up may load: users feel it first."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {"numpy", "onnx", "onnxruntime", "torch", "pandas", "rich", "json", "dataclasses", "csv"}
ALLOWED = tuple(
    f"layerscope.{name}"
    for name in (
        "cli", "api", "errors", "escaping", "interrupts", "limits", "version", "graph", "ops",
        "builder", "analysis", "conventions", "report", "export", "notations", "formats", "zoo",
        "tables",
    )
)  # fmt: skip


def loaded(*args: str) -> set[str]:
    """Modules in memory after the command, told on stderr by a fresh interpreter."""
    program = (
        "import sys\n"
        "from layerscope.cli import run\n"
        "assert run(sys.argv[1:]) == 0\n"
        "sys.stdout.flush()\n"
        "sys.stderr.write('\\n'.join(sys.modules))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *args], capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


def ours(modules: set[str]) -> set[str]:
    return {name for name in modules if name.split(".")[0] == "layerscope"}


def test_help_loads_nothing_but_the_command_line() -> None:
    modules = loaded("--help")
    assert ours(modules) == {
        "layerscope",
        "layerscope.cli",
        "layerscope.interrupts",
        "layerscope.version",
    }
    assert not modules & HEAVY
    assert "msgspec" not in modules


def test_show_loads_only_what_it_needs() -> None:
    modules = loaded("show", "vgg16")
    assert not modules & (HEAVY - {"json"})
    families = {name for name in ours(modules) if name.startswith("layerscope.zoo.")}
    listing = ("layerscope.zoo.catalogue", "layerscope.zoo.entry")
    assert {name for name in families if not name.startswith(listing)} == {"layerscope.zoo.vgg"}
    assert ours(modules) - {name for name in ours(modules) if name.startswith(ALLOWED)} == {
        "layerscope"
    }
    others = {name for name in ours(modules) if name.startswith("layerscope.conventions.")}
    assert others == {"layerscope.conventions.convention", "layerscope.conventions.exact"}


def test_a_notation_loads_when_asked_for() -> None:
    assert "layerscope.notations.boda" not in loaded("show", "lenet5")
    assert "layerscope.notations.boda" in loaded("show", "lenet5", "--as", "boda")


def test_the_garbage_collector_hardly_runs() -> None:
    program = (
        "import atexit, gc, sys\n"
        "from layerscope.cli import main\n"
        "runs = []\n"
        "gc.callbacks.append(lambda phase, info: runs.append(phase))\n"
        "atexit.register(lambda: sys.stderr.write(f'{len(runs)} {gc.get_freeze_count()}'))\n"
        "main(['show', 'lenet5'])\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    runs, frozen = map(int, done.stderr.split())
    assert runs <= 4
    assert frozen > 10_000


def test_public_names() -> None:
    import layerscope

    assert sorted(layerscope.__all__) == [
        "Builder", "Comparison", "Explanation", "FlopCountAnalysis", "Graph", "LayerscopeError",
        "Node", "Param", "Report", "SweepOptions", "Tensor", "__version__", "analyze", "audit",
        "compare", "explain", "fit", "load", "measure", "predict", "profile", "report_page",
        "results", "summary", "sweep",
    ]  # fmt: skip
    for name in layerscope.__all__:
        assert getattr(layerscope, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = layerscope.nothing


def test_the_version_is_the_packages() -> None:
    from importlib.metadata import version

    import layerscope

    assert version("layerscope") == layerscope.__version__
