"""A hypothesis strategy for windows and the sizes they slide over."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from layerscope.graph import attributes as at
from layerscope.graph.types import Shape
from tests.brute.case import window
from tests.brute.convolution import pads_of


@st.composite
def windows(draw: Any, rounding: at.Rounding = "floor") -> tuple[at.Window, Shape]:
    """A window of one to three axes, and sizes to slide it over."""
    rank = draw(st.integers(1, 3))
    kernel = draw(st.lists(st.integers(1, 4), min_size=rank, max_size=rank))
    stride = draw(st.lists(st.integers(1, 4), min_size=rank, max_size=rank))
    dilation = draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank))
    pads = draw(
        st.one_of(
            st.sampled_from(["same_upper", "same_lower"]),
            st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=rank, max_size=rank),
        )
    )
    sizes = draw(st.lists(st.integers(1, 9), min_size=rank, max_size=rank))
    return window(kernel, stride, pads, dilation, rounding), tuple(sizes)


def fits(w: at.Window, sizes: Shape) -> bool:
    """Whether one full placement has room."""
    return all(
        size + begin + end >= (k - 1) * d + 1
        for size, (begin, end), k, d in zip(
            sizes, pads_of(sizes, w), w.kernel, w.dilation, strict=True
        )
    )
