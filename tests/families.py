"""Op families of converters, found without running them: tests of several packages use this.

The ops of a converter are the string constants in its code, in its closure and in the functions of
its package that it calls, as far as they name an op.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from layerscope import ops
from layerscope.ops import SPECS

# These help other ops: what else a converter emits decides its family.
AUXILIARY = frozenset(("layout", "slice_concat", "control", "quantization"))


def modules(package: ModuleType) -> dict[str, ModuleType]:
    """Modules of a package by their names in it."""
    names = [each.name for each in pkgutil.iter_modules(package.__path__)]
    return {name: importlib.import_module(f"{package.__name__}.{name}") for name in names}


def families() -> dict[str, str]:
    """The file of ops/ that defines each op."""
    return {
        op: stem
        for stem, module in modules(ops).items()
        for op, spec in getattr(module, "SPECS", {}).items()
        if stem != "calls" and SPECS.get(op) is spec
    }


FAMILIES = families()


def strings(value: object) -> Iterator[str]:
    """Strings in a constant of a function, tuples opened."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (tuple, frozenset)):
        for each in value:
            yield from strings(each)


def functions_of(function: FunctionType, package: str) -> list[FunctionType]:
    """A function and all that it calls in the package, closures included."""
    found: dict[int, FunctionType] = {}
    waiting: list[object] = [function]
    while waiting:
        each = waiting.pop()
        if not isinstance(each, FunctionType) or id(each) in found:
            continue
        if not each.__module__.startswith(package):
            continue
        found[id(each)] = each
        waiting += [cell.cell_contents for cell in each.__closure__ or ()]
        names = {name for code in codes_of(each.__code__) for name in code.co_names}
        called = [each.__globals__.get(name) for name in names]
        waiting += called
        for module in called:
            if isinstance(module, ModuleType) and module.__name__.startswith(package):
                waiting += [getattr(module, name, None) for name in names]
    return list(found.values())


def codes_of(code: CodeType) -> Iterator[CodeType]:
    """The code of a function and of those defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_of(constant)


def emitted(converter: Callable[..., Any], package: str) -> set[str]:
    """Ops that a converter may emit."""
    assert isinstance(converter, FunctionType)
    found: set[str] = set()
    for function in functions_of(converter, package):
        for cell in function.__closure__ or ():
            found.update(strings(cell.cell_contents))
        for code in codes_of(function.__code__):
            found.update(strings(code.co_consts))
            found |= {"cast", "concat"} & set(code.co_names)  # methods that add these ops
    return found & SPECS.keys()


def stems_of(converter: Callable[..., Any], package: str) -> set[str]:
    """Files that a converter may stand in."""
    found = {FAMILIES[op] for op in emitted(converter, package)}
    return found - AUXILIARY or found or {"layout"}  # a view that adds no node
