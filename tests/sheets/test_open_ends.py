"""Outputs that no row takes, and kernels that parameters show."""

from __future__ import annotations

import pytest

from layerscope.auditing.document import sheets_of
from layerscope.sheets.attach import attach
from layerscope.sheets.open_ends import has_kernel
from layerscope.sheets.structure import RowLayer, layers_of

HEAD = "| Layer | Output Shape | Param # |\n|---|---|---|\n"


def layers(*rows: tuple[str, str, int]) -> list[RowLayer]:
    text = HEAD + "".join(f"| {name} | [-1, {shape}] | {count} |\n" for name, shape, count in rows)
    return layers_of(sheets_of(text)[0])


def branches(channels: tuple[int, ...], given: int) -> list[tuple[str, str, int]]:
    """1x1 convolutions side by side on the same input, without a row for their join."""
    return [(f"Conv2d-{n}", f"{n}, 28, 28", given * n + n) for n in channels]


@pytest.mark.parametrize("widths", [(64, 96, 17), (31, 7, 53, 11), (128, 192)])
def test_a_pool_takes_the_branches_that_no_row_takes(widths: tuple[int, ...]) -> None:
    total = sum(widths)
    rows = layers(
        ("Conv2d-0", "192, 28, 28", 3 * 192 + 192),
        *branches(widths, 192),
        ("MaxPool2d-1", f"{total}, 14, 14", 0),
        *((f"Conv2d-{n}", f"{n}, 14, 14", total * n + n) for n in (5, 9, 13)),
        ("AvgPool2d-9", "27, 14, 14", 0),
    )
    assert attach(rows)
    pool = rows[1 + len(widths)]
    assert pool.before is not None
    assert pool.before.get("cout", "hout", "wout") == (total, 28, 28)


@pytest.mark.parametrize("kernel", [1, 2, 3, 5, 7, 11, 16, 32])
@pytest.mark.parametrize("bias", [0, 1])
def test_kernels_of_exact_parameters(kernel: int, bias: int) -> None:
    count = kernel * kernel * 24 * 40 + bias * 40
    rows = layers(("Conv2d-1", "24, 56, 56", 672), ("Conv2d-2", "40, 56, 56", count))
    assert has_kernel(rows[1])
    assert has_kernel(rows[1], usual=True) == (kernel in (1, 3, 5, 7, 11))
    off = layers(("Conv2d-1", "24, 56, 56", 672), ("Conv2d-2", "40, 56, 56", count + 7))
    assert not has_kernel(off[1])
