"""Counts that take no time in proportion to the sizes a file names."""

from __future__ import annotations

from layerscope.ops import linalg
from layerscope.ops.pooling import bin_positions
from layerscope.ops.spec import Ops


def test_counts_of_large_matrices_take_no_steps() -> None:
    """Closed forms are the sums over columns; of 2^31 columns they take no longer."""
    for m in range(8):
        for n in range(8):
            lengths = [(m - k, n - k - 1) for k in range(min(m - 1, n))]
            assert linalg.reflections(m, n) == Ops(
                mac=sum(a + 2 * a * b for a, b in lengths), exp=len(lengths),
                div=sum(a for a, _ in lengths), add=len(lengths), mul=sum(b for _, b in lengths),
            )  # fmt: skip
            assert linalg.applied(m, n, 3).mac == sum(2 * a * 3 for a, _ in lengths)
            steps = range(min(m, n))
            assert linalg.lu(m, n) == Ops(
                mac=sum((m - k - 1) * (n - k - 1) for k in steps),
                div=sum(m - k - 1 for k in steps),
            )
            long, short = max(m, n), min(m, n)
            assert linalg._bidiagonal(m, n).mac == sum(
                4 * (long - k) * (short - k - 1) for k in range(short)
            )
        sizes = [m - k - 1 for k in range(m - 2)]
        assert linalg._hessenberg(m, m).mac == sum(4 * size * m for size in sizes)
        assert linalg._tridiagonal(m, m).mac == sum(2 * size * size + size for size in sizes)
    for count in (linalg.lu, linalg.reflections, linalg._bidiagonal, linalg._hessenberg):
        assert count(2**31, 2**31).mac > 2**90


def test_positions_of_bins() -> None:
    for size in range(1, 20):
        for bins in range(1, 20):
            each = [-(-(i + 1) * size // bins) - i * size // bins for i in range(bins)]
            assert bin_positions(size, bins) == sum(each)
    assert bin_positions(7, 2**62) == 7 + 2**62 - 1
