"""Output sizes of windows whose stride or padding a row leaves open, and the habits of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import prod
from typing import Literal

from msgspec import Struct

from layerscope.sheets.kinds import POOLS
from layerscope.sheets.shapes import steps
from layerscope.sheets.structure import RowLayer, output_sizes

Habit = Literal["same", "valid", ""]
STRIDES = 4  # the largest stride that a row may leave out
MANY_POOLS = 3  # that show how a table pads
PADS = 64  # the largest padding that a row may leave out: a printed kernel may be any number


class WindowHabits(Struct, frozen=True):
    """How windows move and pad where a table does not print it."""

    by_kernel: bool = False  # pools without a printed stride move by their kernel
    same: bool = False  # pools without a printed padding keep the size, divided by the stride
    ceil: bool = False  # convolutions count a last window that is cut off, which is unusual


def window_sizes(layer: RowLayer, axis: str, habit: Habit, habits: WindowHabits) -> tuple[int, ...]:
    """Output sizes that are right for a window, the usual one first; () if too much is left open.

    A stride or padding that is not printed follows the table's habit, and without one any will do.
    """
    got = layer.get(f"{axis}in", f"k{axis}")
    if got is None:
        return ()
    size, kernel = got[0], span_of(layer, axis)
    stride, pad = layer.sizes.get(f"s{axis}"), layer.sizes.get(f"p{axis}")
    pool = layer.kind in POOLS
    if stride and (pad or pool):
        found = output_sizes(layer, axis)[: None if pool or habits.ceil else 1]
        same = (-(-size // stride.value),) if habits.same and not pad and stride.value else ()
        return tuple(dict.fromkeys((*found, *same)))
    if not stride and (not habits.by_kernel if pool else not habit):
        return ()
    step = stride.value if stride else kernel if pool else 1
    if pool:
        return steps(size - kernel, step)
    usual = {"same": (kernel - 1) // 2, "valid": 0}
    pads = [pad.value] if pad else [usual[habit]] if habit else open_pads(kernel)
    return tuple(dict.fromkeys(n for p in pads for n in steps(size + 2 * p - kernel, step)))


def open_pads(kernel: int) -> range:
    """Paddings that a row with this kernel may leave out."""
    return range(min(kernel // 2, PADS) + 1)


def span_of(layer: RowLayer, axis: str) -> int:
    """How far a kernel goes: its size, with what a dilation leaves out."""
    dilation = layer.sizes.get(f"d{axis}")
    return (dilation.value if dilation else 1) * (layer.sizes[f"k{axis}"].value - 1) + 1


def fits_depth(layer: RowLayer) -> bool | None:
    """Whether printed filters are as deep as the input, or a part of it in groups; None if open."""
    depth, channels = layer.printed.get("depth"), layer.sizes.get("cin")
    if depth is None or channels is None:
        return None
    whole = layer.get("cin", "hin", "win")
    if depth.value in (channels.value, *((prod(whole),) if whole else ())):
        return True
    if layer.kind == "fc" or not depth.value or not channels.value:
        return False
    if channels.value % depth.value:
        return False
    filters = layer.get("cout")
    return filters is None or filters[0] % (channels.value // depth.value) == 0


def sizes_left_open(layer: RowLayer, axis: str) -> Iterator[int]:
    """Output sizes of a window with any stride and padding that the row does not print."""
    size, kernel = layer.sizes[f"{axis}in"].value, span_of(layer, axis)
    stride, pad = layer.sizes.get(f"s{axis}"), layer.sizes.get(f"p{axis}")
    for step in [stride.value] if stride else {*range(1, STRIDES + 1), kernel}:
        if layer.kind in POOLS or pad:
            for each in [pad.value] if pad else open_pads(kernel):
                yield from steps(size + 2 * each - kernel, step)
        else:
            is_square = layer.get("kh") == layer.get("kw")
            each_side = step == 1 and (kernel % 2 or not is_square)  # else one may have one more
            for both in range(0, 2 * open_pads(kernel)[-1] + 1, 2 if each_side else 1):
                yield from steps(size + both - kernel, step)[:1]


def any_window(layer: RowLayer) -> bool:
    """Whether some stride and padding that the row does not print give its output size."""
    return all(fits_window(layer, axis) for axis in "hw")


def fits_window(layer: RowLayer, axis: str) -> bool:
    """Whether some stride and padding that the row does not print give one of its output sizes."""
    got = layer.get(f"{axis}in", f"k{axis}", f"{axis}out")
    return got is None or got[2] in sizes_left_open(layer, axis)


def padding_habit(layers: Sequence[RowLayer]) -> Habit:
    """How convolutions without a printed padding keep their size: of three in four at least."""
    counts: Counter[str] = Counter()
    for layer in layers:
        got = layer.get("hin", "kh", "hout")
        if (
            layer.kind != "conv"
            or "ph" in layer.sizes
            or got is None
            or "hout" not in layer.printed
        ):
            continue
        step = layer.sizes["sh"].value if "sh" in layer.sizes else 1
        counts["same"] += got[2] in steps(got[0] + 2 * ((got[1] - 1) // 2) - got[1], step)
        counts["valid"] += got[2] in steps(got[0] - got[1], step)
        counts["all"] += 1
    best: Habit = "same" if counts["same"] >= counts["valid"] else "valid"
    return best if counts["all"] and counts[best] * 4 >= counts["all"] * 3 else ""


def window_habits(layers: Sequence[RowLayer]) -> WindowHabits:
    """How windows move and pad: strides of half of them at least, and padding of all but one."""
    pools = [layer for layer in layers if layer.kind in POOLS]
    fact = [
        got
        for layer in pools
        if "sh" not in layer.sizes and (got := layer.get("hin", "kh", "hout")) is not None
    ]
    right = sum(out in steps(size - kernel, kernel) for size, kernel, out in fact)
    bare = [
        got
        for layer in pools
        if "ph" not in layer.sizes and (got := layer.get("hin", "hout", "sh")) is not None
    ]
    same = sum(out == -(-size // step) for size, out, step in bare if step)
    return WindowHabits(
        right > 1 and right * 2 >= len(fact),
        len(bare) >= MANY_POOLS and same >= len(bare) - 1,
        _counts_partial(layers),
    )


def _counts_partial(layers: Sequence[RowLayer]) -> bool:
    """Whether several windows count the last one, which is cut off, and all convolutions do."""
    by_ceil = by_floor = 0
    for layer in layers:
        out = layer.printed.get("hout")
        sizes = output_sizes(layer, "h") if layer.get("sh", "ph") else ()
        if layer.kind not in ("conv", *POOLS) or out is None or len(sizes) < 2:
            continue
        if layer.kind == "conv" and out.value == sizes[0]:
            return False
        by_floor += out.value == sizes[0]
        by_ceil += out.value == sizes[1]
    return by_ceil > max(1, by_floor)
