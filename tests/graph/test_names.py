"""Unique names, shapes as text, and merged tables."""

from __future__ import annotations

import pytest

from layerscope.graph.names import shape_text, unique_name, unique_names
from layerscope.tables import merge_tables


def test_unique_names_are_numbered_from_two() -> None:
    assert unique_names(["a", "b", "a", "a_2", "a"]) == ["a", "b", "a_2", "a_2_2", "a_3"]
    assert unique_name("conv", {"conv", "conv#2"}, "#") == "conv#3"


def test_shape_text() -> None:
    assert shape_text((1, 3, 224, 224)) == "1x3x224x224"
    assert (shape_text(()), shape_text((), "a scalar"), shape_text(None)) == (
        "scalar",
        "a scalar",
        "?",
    )


def test_merging_tables_refuses_a_name_twice() -> None:
    assert merge_tables("op", {"a": 1}, {"b": 2}) == {"a": 1, "b": 2}
    with pytest.raises(ValueError, match="op defined twice: a"):
        merge_tables("op", {"a": 1}, {"a": 2})
