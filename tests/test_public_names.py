"""Public functions keep their names, whatever modules are imported after them."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import layerscope

CALL_ALL = """
import layerscope
public = [name for name in layerscope.__all__ if name != "__version__"]
first = {name: getattr(layerscope, name) for name in public}
first["analyze"]("lenet5"); first["compare"]("lenet5", "lenet5"); first["explain"]("lenet5")
first["fit"]("lenet5", 10**9); first["load"]("lenet5")
first["measure"]("lenet5", threads=1)
first["predict"]("lenet5", on="a100")
layerscope.analyze("lenet5"); layerscope.compare("lenet5", "lenet5"); layerscope.explain("lenet5")
layerscope.fit("lenet5", 10**9); layerscope.load("lenet5")
layerscope.measure("lenet5", threads=1)
layerscope.predict("lenet5", on="a100")
for name in public:
    assert getattr(layerscope, name) is first[name], name
"""

IMPORT_ALL = """
import importlib, inspect, pkgutil, sys
import layerscope
modules = ["layerscope"]
for found in pkgutil.walk_packages(layerscope.__path__, "layerscope."):
    if not found.name.endswith("__main__"):
        modules.append(found.name)
public = {name: getattr(layerscope, name) for name in layerscope.__all__}
before = {}
for name in modules:
    module = importlib.import_module(name)
    if hasattr(module, "__path__"):
        before[name] = {
            key: value for key, value in vars(module).items()
            if inspect.isfunction(value) or inspect.isclass(value)
        }
for name, values in before.items():
    for key, value in values.items():
        assert getattr(sys.modules[name], key) is value, f"{name}.{key}"
for name, value in public.items():
    assert getattr(layerscope, name) is value, name
    assert not inspect.ismodule(value), name
"""


def fresh(program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_public_functions_can_be_called_twice() -> None:
    fresh(CALL_ALL)


def test_public_functions_survive_the_import_of_every_module() -> None:
    """Also functions and classes of inner packages."""
    fresh(IMPORT_ALL)


def test_no_public_name_is_the_name_of_a_submodule() -> None:
    """Importing a submodule sets the package's attribute of that name, and so hides a function."""
    submodules = {found.name for found in pkgutil.iter_modules(layerscope.__path__)}
    assert submodules
    assert not submodules & set(layerscope.__all__)
    assert not submodules & set(layerscope.PUBLIC)


def test_a_prediction_twice_in_a_process() -> None:
    fresh(
        "import layerscope, layerscope.prediction, layerscope.prediction.other_machines\n"
        "one = layerscope.predict('lenet5', on='a100')\n"
        "assert layerscope.predict('lenet5', on='a100') == one\n"
    )
