"""How a table writes its figures, which tells rows apart that fit by another way only."""

from __future__ import annotations

import pytest

from layerscope.auditing.document import sheets_of
from layerscope.sheets.structure import layers_of
from layerscope.sheets.writing import MEMORY, Writing, writing_of

SIDES = (224, 112, 56, 28)


def table(size: int) -> str:
    """Layers of 16 channels with the bytes of their outputs, or their elements."""
    rows = "".join(
        f"| conv{n} | 16 | {side}x{side} | {16 * side * side * size / 1000:.0f}K |\n"
        for n, side in enumerate(SIDES)
    )
    return "| Layer | Channels | Output | Memory |\n|---|---|---|---|\n" + rows


@pytest.mark.parametrize("size", [1, 2, 4])
def test_the_size_of_an_element_is_that_of_most_rows(size: int) -> None:
    layers = layers_of(sheets_of(table(size))[0])
    writing = writing_of(layers)
    assert {way[0] for way in writing.memory} == {size}
    claim = layers[0].row.claims[-1]
    assert writing.has_elements(layers[0], claim)
    assert not writing.has_elements(layers[1], claim)


def test_few_rows_show_nothing() -> None:
    layers = layers_of(sheets_of(table(4))[0])[:2]
    assert writing_of(layers).memory == MEMORY == Writing().memory
