"""Converters of ATen operators stand in the file of the op family that they emit.

The ops are found without running PyTorch: string constants in the code of a converter, of its
closure and of the converters that it calls, as far as they name an op.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest

from layerscope import ops
from layerscope.formats.torch import aten
from layerscope.formats.torch.aten import control, layout
from layerscope.ops import SPECS
from layerscope.tables import merge_tables

# These help other ops: what else a converter emits decides its family.
AUXILIARY = frozenset(("layout", "slice_concat", "control", "quantization"))
# Modules of the folder that are not families.
OTHERS = frozenset(("declared_outputs", "promotion", "quantized_operators", "signatures"))

# Files of ops/ that have another name so far, and the ops of ops/softmax.py that are no losses.
RENAMED = {"searching": "search", "softmax": "loss"}
SOFTMAXES = frozenset(("softmax", "log_softmax", "hardmax"))
# Ops whose converters stand elsewhere than their OpSpec.
MOVED = {
    "einsum": ("linear", "outer, inner, bilinear and addbmm are matrix products"),
    "det": ("linalg", "with the solvers"),
    "expand": ("layout", "a view in PyTorch, often a reshape"),
    "top_k": ("search", "sort, median and mode are a top_k"),
    "cum_sum": ("search", "with cummax and cummin"),
    "cum_prod": ("search", "with cummax and cummin"),
    "smooth_l1": ("loss", "the loss of one element"),
    "huber": ("loss", "the loss of one element"),
    "binary_cross_entropy": ("loss", "the loss of one element"),
}

# Converters whose ops are all of other families.
EXCEPTIONS = {
    "grouped_mm": "its cost is computed by the converter: a matrix product",
    "_grouped_mm": "its cost is computed by the converter: a matrix product",
    "fractional_max_pool2d": "its cost is computed by the converter: comparisons of pooling",
    "fractional_max_pool3d": "its cost is computed by the converter: comparisons of pooling",
    "histc": "its cost is computed by the converter: a search for bins",
    "multilabel_margin_loss_forward": "its cost is computed by the converter: a loss",
    "_ctc_loss": "its cost is computed by the converter: a loss",
    "binary_cross_entropy_with_logits": "a loss composed of elementwise ops and a reduction",
    "soft_margin_loss": "a loss composed of elementwise ops and a reduction",
    "multi_margin_loss": "a loss composed of a gather, elementwise ops and a reduction",
    "col2im": "the inverse of im2col is a scatter",
    "lu_unpack": "triangles and a one-hot permutation of a factorization",
    "conj_physical": "the complex op joins parts, one of them negated",
    "_conj_physical": "the complex op joins parts, one of them negated",
}


def modules(package: ModuleType) -> dict[str, ModuleType]:
    """Modules of a package by their names in it."""
    names = [each.name for each in pkgutil.iter_modules(package.__path__)]
    return {name: importlib.import_module(f"{package.__name__}.{name}") for name in names}


def families() -> dict[str, str]:
    """The file of ops/ that defines each op."""
    found = {}
    for stem, module in modules(ops).items():
        for op, spec in getattr(module, "SPECS", {}).items():
            if stem != "calls" and SPECS.get(op) is spec:
                found[op] = "activation" if op in SOFTMAXES else RENAMED.get(stem, stem)
    return found


FAMILIES = families()
TABLES = {stem: module.TABLE for stem, module in modules(aten).items() if hasattr(module, "TABLE")}
CONVERTERS = [(stem, name) for stem, table in TABLES.items() for name in table]


def strings(value: object) -> Iterator[str]:
    """Strings in a constant of a function, tuples opened."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (tuple, frozenset)):
        for each in value:
            yield from strings(each)


def functions_of(function: FunctionType) -> list[FunctionType]:
    """A function and all that it calls in the package, closures included."""
    found: dict[int, FunctionType] = {}
    waiting: list[object] = [function]
    while waiting:
        each = waiting.pop()
        if not isinstance(each, FunctionType) or id(each) in found:
            continue
        if not each.__module__.startswith("layerscope.formats.torch"):
            continue
        found[id(each)] = each
        waiting += [cell.cell_contents for cell in each.__closure__ or ()]
        names = {name for code in codes_of(each.__code__) for name in code.co_names}
        reached = [each.__globals__.get(name) for name in names]
        waiting += reached
        for module in reached:
            if isinstance(module, ModuleType) and module.__name__.startswith(aten.__name__):
                waiting += [getattr(module, name, None) for name in names]
    return list(found.values())


def codes_of(code: CodeType) -> Iterator[CodeType]:
    """The code of a function and of those defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_of(constant)


def emitted(converter: Callable[..., Any]) -> set[str]:
    """Ops that a converter may emit."""
    assert isinstance(converter, FunctionType)
    found: set[str] = set()
    for function in functions_of(converter):
        for cell in function.__closure__ or ():
            found.update(strings(cell.cell_contents))
        for code in codes_of(function.__code__):
            found.update(strings(code.co_consts))
            found |= {"cast", "concat"} & set(code.co_names)  # methods that add these ops
    return found & SPECS.keys()


def stems_of(converter: Callable[..., Any]) -> set[str]:
    """Families that a converter may stand in."""
    found = {MOVED[op][0] if op in MOVED else FAMILIES[op] for op in emitted(converter)}
    return found - AUXILIARY or found or {"layout"}  # a view that adds no node


def test_every_op_has_one_family() -> None:
    assert SPECS.keys() == FAMILIES.keys()


def test_every_file_is_a_family() -> None:
    assert modules(aten).keys() - TABLES.keys() == OTHERS
    assert TABLES.keys() <= set(FAMILIES.values())


def test_every_table_is_merged() -> None:
    assert sorted(aten.TABLE) == sorted([name for _, name in CONVERTERS])


@pytest.mark.parametrize(("stem", "name"), CONVERTERS)
def test_converter_stands_in_the_file_of_its_family(stem: str, name: str) -> None:
    stems = stems_of(TABLES[stem][name])
    assert (stem in stems) == (name not in EXCEPTIONS), sorted(stems)


def test_exceptions_are_converters() -> None:
    assert EXCEPTIONS.keys() <= aten.TABLE.keys()
    assert {op for op, (stem, _) in MOVED.items() if FAMILIES[op] == stem} == set()


def test_two_converters_of_one_operator_are_refused() -> None:
    with pytest.raises(ValueError, match="converters defined twice: fill, zero"):
        merge_tables("converters", control.TABLE, layout.TABLE, control.TABLE)
