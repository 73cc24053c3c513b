"""Converters of ATen operators stand in the file of the op family that they emit."""

from __future__ import annotations

import pytest

from layerscope.formats.torch import aten
from layerscope.formats.torch.aten import control, layout, table
from layerscope.formats.torch.op_calls import READS
from layerscope.ops import SPECS
from layerscope.tables import merge_tables
from tests.families import FAMILIES, modules, stems_of

# Modules of the folder that are not families.
OTHERS = frozenset(("declared_outputs", "promotion", "quantized_operators", "signatures", "table"))

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


PACKAGE = "layerscope.formats.torch"
TABLES = {stem: module.TABLE for stem, module in modules(aten).items() if hasattr(module, "TABLE")}
CONVERTERS = [(stem, name) for stem, table in TABLES.items() for name in table]


def test_every_op_has_one_family() -> None:
    assert SPECS.keys() == FAMILIES.keys()


def test_every_file_is_a_family() -> None:
    assert modules(aten).keys() - TABLES.keys() == OTHERS
    assert TABLES.keys() <= set(FAMILIES.values())


def test_every_table_is_merged() -> None:
    assert sorted(table.CONVERTERS) == sorted([name for _, name in CONVERTERS])


@pytest.mark.parametrize(("stem", "name"), CONVERTERS)
def test_converter_stands_in_the_file_of_its_family(stem: str, name: str) -> None:
    stems = stems_of(TABLES[stem][name], PACKAGE)
    assert (stem in stems) == (name not in EXCEPTIONS), sorted(stems)


def test_operators_that_read_or_begin_have_no_converter() -> None:
    assert table.CONVERTERS.keys().isdisjoint(READS | aten.CONSTANTS | aten.RANDOM)


def test_exceptions_are_converters() -> None:
    assert EXCEPTIONS.keys() <= table.CONVERTERS.keys()


def test_two_converters_of_one_operator_are_refused() -> None:
    with pytest.raises(ValueError, match="converters defined twice: fill, zero"):
        merge_tables("converters", control.TABLE, layout.TABLE, control.TABLE)
