"""Parameter counts that others printed, against the counts of their configurations."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, Decimal

import pytest

from layerscope.llm.description import HeadAttention, LanguageModel
from layerscope.llm.families import describe
from layerscope.llm.parameters import (
    active_params,
    predictor_params,
    stored_buffers,
    total_params,
)
from tests.llm.published_rows import Row, needs_shared, params_config, rows

ROWS = rows("params.csv")
EXACT = [row for row in ROWS if row["exact_total"]]


def _rope(model: LanguageModel) -> int:
    """A table of half a head, which GGUF files of scaled rotary positions have."""
    sizes = [each.mixer.key_dim for each in model.layers if isinstance(each.mixer, HeadAttention)]
    return max(sizes) // 2


def _head_again(model: LanguageModel) -> int:
    return model.vocabulary * model.hidden


def _no_offset(model: LanguageModel) -> int:
    """Two rows less in each table of positions, which only HF's tables have."""
    return -2 * model.hidden * len(model.outer["positions"])


def _stored(model: LanguageModel) -> int:
    return stored_buffers(model)


def _predictors(model: LanguageModel) -> int:
    return predictor_params(model)


def _all_stored(model: LanguageModel) -> int:
    return predictor_params(model) + stored_buffers(model, predictors=True)


# What a source counts beside the parameters, as arithmetic.
EXPLAINED: dict[str, Callable[[LanguageModel], int]] = {
    "P004": _rope,
    "P006": _head_again,
    "P007": _rope,
    "P008": _head_again,
    "P043": _no_offset,
    "P082": _rope,
    "P085": _all_stored,
    "P086": _stored,
    "P090": _predictors,
    "P092": _predictors,
    "P093": lambda model: _rope(model) + _stored(model),
    "P120": _no_offset,
    # A table of 64 frequencies for each of the 36 layers.
    "P135": lambda model: 36 * 64,
}
# The source contradicts itself: the same shape has the right count in another row of it.
WRONG = {"P024": 1_543_714_304, "P027": 7_615_616_512}
# No configuration of the row is published here, or its form is not described.
OPEN = {"P094", "P136", "P137", "P139", "P142", "P143", "P144", "P145", "P146"}


@needs_shared
@pytest.mark.parametrize("row", EXACT, ids=lambda row: f"{row['id']} {row['model']}")
def test_exact_totals(row: Row) -> None:
    config = params_config(row)
    assert (config is None) == (row["id"] in OPEN)
    if config is None:
        return
    model = describe(config, row["model"])
    counted = total_params(model)
    if row["id"] in WRONG:
        assert counted == WRONG[row["id"]] != int(row["exact_total"])
        return
    more = EXPLAINED[row["id"]](model) if row["id"] in EXPLAINED else 0
    assert counted + more == int(row["exact_total"])


def _rounded(count: int, stated: str, unit: str) -> bool:
    """Whether a stated figure is the count, rounded or cut to its digits."""
    figure = Decimal(stated)
    scale = Decimal({"K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}[unit])
    exponent = figure.as_tuple().exponent
    step = Decimal(1).scaleb(exponent if isinstance(exponent, int) else 0)
    value = Decimal(count) / scale
    return any(value.quantize(step, how) == figure for how in (ROUND_HALF_EVEN, ROUND_DOWN))


ACTIVE = [row for row in ROWS if row["stated_active"] and row["active_convention"]]


@needs_shared
@pytest.mark.parametrize("row", ACTIVE, ids=lambda row: f"{row['id']} {row['model']}")
def test_active_counts_match_under_a_named_convention(row: Row) -> None:
    config = params_config(row)
    assert config is not None
    counts = active_params(describe(config))
    matching = [
        each.convention
        for each in counts
        if _rounded(each.params, row["stated_active"], row["stated_unit"] or "B")
        or _rounded(each.params, row["stated_active"], "B")
    ]
    assert set(row["active_convention"].split(" or ")) & {*matching}


STATED = [
    row
    for row in ROWS
    if row["stated_total"] and row["computed_total"] and row["checked"] == "yes"
    and row["arch"] != "glm4"  # its bias of attention is not in the row
]  # fmt: skip


@needs_shared
@pytest.mark.parametrize("row", STATED, ids=lambda row: f"{row['id']} {row['model']}")
def test_stated_totals(row: Row) -> None:
    config = params_config(row)
    assert config is not None
    model = describe(config)
    counts = (total_params(model), total_params(model) + stored_buffers(model))
    assert any(_rounded(count, row["stated_total"], row["stated_unit"]) for count in counts)
    assert int(row["computed_total"]) in counts
